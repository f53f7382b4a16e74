#include "events/output_lines.h"

#include <boost/json.hpp>
#include <optional>

#include "events/ansi.h"

namespace caisson::events {
namespace {

namespace json = boost::json;

constexpr size_t kBatch = 200;  // events read at once, of at most 32 KiB each
// A walk that begins in the middle looks back so far for lines that are not complete: a longer one
// is told from there on.
constexpr size_t kLookBack = 200;
constexpr size_t kMaxLine = 1 << 20;
constexpr size_t kMaxOpen = 1'000;  // commands that ended in the middle of a line

std::string TextOf(const json::object& data, std::string_view name) {
  const json::value* value = data.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

// What is left of a line in which carriage returns began it anew. The one at its very end is half
// of the line's end.
std::string_view Shown(std::string_view raw) {
  if (raw.ends_with('\r')) raw.remove_suffix(1);
  size_t begin = raw.rfind('\r');
  return begin == raw.npos ? raw : raw.substr(begin + 1);
}

}  // namespace

OutputLine OutputLines::Close(Open open, bool ends) {
  open.line.text = WithoutEscapes(Shown(open.raw));
  open.line.ends = ends;
  return std::move(open.line);
}

bool OutputLines::Feed(const Event& event, const TakeLine& take) {
  boost::system::error_code ec;
  json::value data = json::parse(event.data, ec);
  if (ec || !data.is_object()) return true;
  std::string stream = TextOf(data.get_object(), "stream");
  std::string output = TextOf(data.get_object(), "output");
  std::string key = event.execution_id + ' ' + TextOf(data.get_object(), "operation_id") + ' ' +
                    event.sandbox_id + ' ' + stream;
  if (open_.size() > kMaxOpen && !open_.contains(key)) Finish(take);
  int64_t ends = 0;
  bool go_on = true;
  for (std::string_view rest = output; !rest.empty();) {
    auto [found, is_new] = open_.try_emplace(key);
    Open& open = found->second;
    if (is_new)
      open.line = {.event = event.id, .place = ends, .is_stderr = stream == "stderr", .text = ""};
    size_t end = rest.find('\n');
    open.raw += rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (end != rest.npos) {
      ++ends;
      go_on = take(Close(std::move(open), /*ends=*/true)) && go_on;
      open_.erase(found);
    } else if (open.raw.size() > kMaxLine) {
      go_on = take(Close(open, /*ends=*/false)) && go_on;
      open.raw.clear();
    }
  }
  return go_on;
}

void OutputLines::Finish(const TakeLine& take) {
  for (auto& [key, open] : open_) take(Close(std::move(open), /*ends=*/true));
  open_.clear();
}

OutputWalk::OutputWalk(Reader& reader, Filter filter, int64_t after)
    : reader_(reader), filter_(std::move(filter)), position_(after) {
  filter_.types = {"command_output"};
}

Task<Status> OutputWalk::Prime() {
  if (std::exchange(primed_, true) || position_ == 0) co_return Status();
  PageQuery query{.filter = filter_, .before = position_ + 1, .limit = kLookBack, .newest = true};
  auto learn = [lines = lines_](const std::vector<Event>& events) {
    for (const Event& event : events) lines->Feed(event, [](const OutputLine&) { return true; });
  };
  co_return co_await reader_.Visit(std::move(query), std::move(learn));
}

Task<Result<OutputWalk::Part>> OutputWalk::Next(TakeLine take) {
  CO_TRY(co_await Prime());
  auto part = std::make_shared<Part>(Part{.last = position_});
  auto visit = [part, take = std::move(take), lines = lines_](const std::vector<Event>& events) {
    for (const Event& event : events) {
      part->last = event.id;
      if (!lines->Feed(event, take)) return;
    }
    part->over = events.size() < kBatch;
    if (part->over) lines->Finish(take);
  };
  CO_TRY(co_await reader_.Visit({.filter = filter_, .after = position_, .limit = kBatch},
                                std::move(visit)));
  position_ = part->last;
  co_return *part;
}

}  // namespace caisson::events
