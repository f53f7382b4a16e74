#include "work/line_parser.h"

#include <boost/json/parse.hpp>

#include "base/text.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

constexpr size_t kMaxModel = 200;
constexpr double kMaxDollars = 1e6;

}  // namespace

std::vector<AgentEvent> LineParser::Feed(sdk::Stream stream, std::string_view piece) {
  if (stream != sdk::Stream::kStdout) return {};
  while (!piece.empty()) {
    size_t end = piece.find('\n');
    std::string_view part = piece.substr(0, end);
    if (!too_long_ && line_.size() + part.size() > kMaxLine) too_long_ = true;
    if (too_long_) {
      line_.clear();
    } else {
      line_ += part;
    }
    if (end == std::string_view::npos) break;
    if (!too_long_) Line(line_);
    line_.clear();
    too_long_ = false;
    piece.remove_prefix(end + 1);
  }
  return std::exchange(events_, {});
}

AgentReport LineParser::Finish() {
  if (!line_.empty()) Line(line_);
  line_.clear();
  report_.summary = Shorten(Trim(report_.summary), kMaxSummary);
  report_.error = Shorten(Trim(report_.error), kMaxSummary);
  // SECURITY: an agent cannot earn money for its owner's budget.
  Usage& usage = report_.usage;
  usage.model = Shorten(usage.model, kMaxModel);
  usage.tokens_in = std::max<int64_t>(usage.tokens_in, 0);
  usage.tokens_out = std::max<int64_t>(usage.tokens_out, 0);
  usage.dollars = usage.dollars > 0 && usage.dollars < kMaxDollars ? usage.dollars : 0;
  return report_;
}

void LineParser::Say(std::string text) {
  if (Trim(text).empty()) return;
  report_.summary = text;
  Emit({.kind = AgentEvent::Kind::kMessage, .text = std::move(text)});
}

void JsonLineParser::Line(std::string_view line) {
  line = Trim(line);
  if (!line.starts_with('{')) return;
  boost::system::error_code ec;
  json::parse_options options;
  options.max_depth = 64;
  json::value value = json::parse(line, ec, {}, options);
  if (!ec && value.is_object()) Object(value.as_object());
}

}  // namespace caisson::work
