#include "session/answer.h"

#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "work/json_fields.h"

namespace caisson::session {
namespace {

namespace json = boost::json;
using Kind = work::AgentEvent::Kind;

constexpr size_t kMaxOne = 8'000;
constexpr size_t kMaxOutput = 20'000;

json::object PartOf(const work::AgentEvent& event) {
  switch (event.kind) {
    case Kind::kMessage:
      return {{"type", "text"}, {"text", work::Shorten(event.text, kMaxOne)}};
    case Kind::kError:
      return {{"type", "error"}, {"text", work::Shorten(event.text, kMaxOne)}};
    case Kind::kDelta:
    case Kind::kOther:
      return {};
    case Kind::kFile:
      return {{"type", "file"},
              {"path", event.name},
              {"change", event.change.empty() ? "modified" : event.change}};
    case Kind::kTool: {
      std::string input = json::serialize(event.input);
      if (input.size() <= kMaxOne)
        return {{"type", "tool"}, {"name", event.name}, {"input", event.input}};
      return {{"type", "tool"},
              {"name", event.name},
              {"input", {{"cut", work::Shorten(input, kMaxOne)}}}};
    }
  }
  return {};
}

}  // namespace

void Answer::Add(const work::AgentEvent& event) {
  // These are for the log only.
  if (event.kind == Kind::kOther || event.kind == Kind::kDelta) return;
  if (event.kind == Kind::kMessage && text_.size() < kMaxBytes)
    text_ += (text_.empty() ? "" : "\n\n") + event.text;
  if (!full_) Append(PartOf(event));
}

void Answer::Append(json::object part) {
  bytes_ += json::serialize(part).size();
  full_ = parts_.size() + 1 >= kMaxParts || bytes_ > kMaxBytes;
  parts_.push_back(full_ ? json::object{{"type", "cut"}} : std::move(part));
}

std::string Answer::Text(const work::AgentReport& report, std::string_view output) const {
  if (!Trim(text_).empty()) return work::Shorten(Trim(text_), kMaxBytes);
  if (!report.summary.empty()) return report.summary;
  return work::Shorten(Trim(output), kMaxOutput);
}

}  // namespace caisson::session
