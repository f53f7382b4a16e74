#include "build/llm_answer.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

namespace json = boost::json;

constexpr size_t kMaxNote = 2'000;

// "```json\n{...}\n```" without the fence.
std::string_view WithoutFence(std::string_view text) {
  text = Trim(text);
  if (!text.starts_with("```") || !text.ends_with("```") || text.size() < 6) return text;
  text.remove_suffix(3);
  size_t line = text.find('\n');
  return line == text.npos ? text.substr(3) : Trim(text.substr(line));
}

}  // namespace

Result<LlmAnswer> ReadAnswer(std::string_view content) {
  boost::system::error_code ec;
  json::value value = json::parse(WithoutFence(content), ec);
  if (ec) return Fail(Code::kDataLoss, "the answer is not JSON: {}", ec.message());
  const json::object* object = value.if_object();
  const json::value* changes = object ? object->if_contains("changes") : nullptr;
  if (!changes || !changes->is_array())
    return Fail(Code::kDataLoss, "the answer is no JSON object with a list \"changes\"");
  auto parsed = ParseFileChanges(*changes);
  if (!parsed) return Fail(Code::kDataLoss, "{}", parsed.error().message());
  if (parsed->empty()) return Fail(Code::kDataLoss, "the list \"changes\" is empty");
  return LlmAnswer{.changes = std::move(*parsed),
                   .note = work::Shorten(work::TextOf(*object, "note"), kMaxNote)};
}

}  // namespace caisson::build
