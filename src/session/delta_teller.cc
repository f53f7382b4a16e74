#include "session/delta_teller.h"

#include "base/text.h"
#include "store/event_row.h"
#include "work/json_fields.h"

namespace caisson::session {
namespace {

namespace json = boost::json;
using store::EventRow;
using store::Select;

// If an answer has more pieces what follows is told again, as a whole.
constexpr int64_t kMaxPieces = 20'000;

}  // namespace

std::string ToldText::Text() const {
  std::string text;
  for (const auto& [part, words] : parts) text += words;
  return text;
}

Result<ToldText> ReadTold(store::Transaction& tx, const std::string& answer_id) {
  TRY_ASSIGN(auto pieces, tx.List(Select<EventRow>()
                                      .Eq(&EventRow::execution_id, answer_id)
                                      .Eq(&EventRow::type, "message_delta")
                                      .Order(&EventRow::id)
                                      .Limit(kMaxPieces)));
  ToldText told;
  for (const EventRow& piece : pieces) {
    json::object data = work::ParseObject(piece.data);
    int64_t part = work::IntOf(data, "part");
    if (work::TrueIn(data, "restart"))
      told.parts.erase(told.parts.lower_bound(part), told.parts.end());
    told.parts[part] += work::TextOf(data, "text");
    told.sandbox_id = piece.sandbox_id;
  }
  return told;
}

DeltaTeller::DeltaTeller(const events::Redactor& redactor, ToldText told,
                         const std::string& sandbox_id, Send send)
    : redactor_(redactor), told_(std::move(told.parts)), send_(std::move(send)) {
  void_ = !told_.empty() && told.sandbox_id != sandbox_id;
  if (void_) told_.clear();
}

void DeltaTeller::Add(std::string_view piece, bool first, Clock::time_point now) {
  if (first) saying_.clear();
  if (saying_.size() + piece.size() > kMaxText) return;
  saying_ += piece;
  if (now - told_at_ < kInterval) return;
  // SECURITY: only whole words. Half a secret would not be known as one.
  size_t end = saying_.find_last_of(" \n");
  if (end == saying_.npos || Trim(saying_).empty()) return;
  told_at_ = now;
  Tell(redactor_.Redact(std::string_view(saying_).substr(0, end + 1)), /*whole=*/false);
}

void DeltaTeller::End(std::string_view message) {
  Tell(redactor_.Redact(work::Shorten(message, kMaxText)) + "\n\n", /*whole=*/true);
  saying_.clear();
  ++part_;
}

void DeltaTeller::Tell(const std::string& text, bool whole) {
  std::string told = told_[part_];
  // Somebody was further already, before a restart of the server.
  if (whole ? told == text : told.starts_with(text)) return;
  json::object data{{"part", part_}};
  if (void_ || !text.starts_with(told)) {
    void_ = false;
    data["restart"] = true;
    told_.erase(told_.lower_bound(part_), told_.end());
    told.clear();
  }
  data["text"] = text.substr(told.size());
  told_[part_] = text;
  send_(std::move(data));
}

}  // namespace caisson::session
