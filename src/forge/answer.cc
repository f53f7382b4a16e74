#include "forge/answer.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "forge/fields.h"

namespace caisson::forge {
namespace {

constexpr size_t kMaxWords = 500;

// GitHub's "message" and the messages of its "errors", as one text.
struct Words {
  std::string text;
  bool unknown_branch = false;  // the field head or base is said to be wrong
};

void AddTo(std::string& text, std::string_view part) {
  if (part.empty()) return;
  if (!text.empty()) text += "; ";
  text += part;
}

Words WordsOf(const http::Response& answer) {
  Words words;
  boost::system::error_code ec;
  json::value value = json::parse(answer.body, ec);
  if (ec || !value.is_object()) return words;
  AddTo(words.text, Text(value, "message"));
  if (const json::array* errors = List(value, "errors")) {
    for (const json::value& error : *errors) {
      std::string field = Text(error, "field"), code = Text(error, "code");
      if ((field == "head" || field == "base") && code == "invalid") words.unknown_branch = true;
      std::string message =
          error.is_string() ? std::string(error.get_string().c_str()) : Text(error, "message");
      if (message.empty() && !field.empty()) message = field + " is " + code;
      AddTo(words.text, message);
    }
  }
  if (words.text.size() > kMaxWords) words.text = ToUtf8(words.text.substr(0, kMaxWords)) + "…";
  return words;
}

Error Unprocessable(const Words& words, std::string_view what) {
  auto says = [&](std::string_view part) { return words.text.find(part) != std::string::npos; };
  if (says("already exists"))
    return {Code::kAlreadyExists, fmt::format("{} exists already: {}", what, words.text)};
  if (says("No commits between"))
    return {Code::kFailedPrecondition, fmt::format("nothing_to_review: {}", words.text)};
  if (words.unknown_branch || says("Reference does not exist"))
    return {Code::kNotFound,
            fmt::format("GitHub does not know a branch of {}: {}", what, words.text)};
  return {Code::kInvalidArgument, fmt::format("GitHub refuses {}: {}", what, words.text)};
}

}  // namespace

Error ErrorOf(const http::Response& answer, std::string_view what) {
  Words words = WordsOf(answer);
  std::string said = words.text.empty() ? fmt::format("status {}", answer.status) : words.text;
  switch (answer.status) {
    case 401:
      return {Code::kUnauthenticated, fmt::format("GitHub does not accept the token: {}", said)};
    case 403: {
      std::string_view needs = answer.headers.Value("X-Accepted-GitHub-Permissions");
      return {Code::kPermissionDenied,
              fmt::format("The token may not do this with {}: {}{}", what, said,
                          needs.empty() ? "" : fmt::format(" (needed: {})", needs))};
    }
    case 404:
    case 410:
      return {Code::kNotFound,
              fmt::format("GitHub has no {}, or the token may not see it: {}", what, said)};
    case 405:
    case 409:
      return {Code::kFailedPrecondition,
              fmt::format("The state of {} does not allow this: {}", what, said)};
    case 422:
      return Unprocessable(words, what);
    case 400:
      return {Code::kInvalidArgument, fmt::format("GitHub refuses {}: {}", what, said)};
    default:
      break;
  }
  if (answer.status >= 500)
    return {Code::kUnavailable, fmt::format("GitHub does not work at the moment: {}", said)};
  return {Code::kUnknown, fmt::format("GitHub gave an unexpected answer to {}: {}", what, said)};
}

Result<json::value> ReadBody(const http::Response& answer) {
  boost::system::error_code ec;
  json::value value = json::parse(answer.body, ec);
  if (ec) return Fail(Code::kUnavailable, "GitHub's answer is not readable.");
  return value;
}

std::string_view NextPage(std::string_view link) {
  for (std::string_view part : Split(link, ',')) {
    part = Trim(part);
    size_t end = part.find('>');
    if (!part.starts_with('<') || end == part.npos) continue;
    if (part.substr(end).find("rel=\"next\"") != part.npos) return part.substr(1, end - 1);
  }
  return "";
}

}  // namespace caisson::forge
