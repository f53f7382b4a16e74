#include "work/chat_stream.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "events/redact_patterns.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

constexpr size_t kMaxWords = 300;

Error NoStream(std::string_view why) {
  return {Code::kDataLoss, fmt::format("the model server's stream is no completion: {}", why)};
}

}  // namespace

Status ChatStream::Feed(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > kMaxBytes) return tl::unexpected(NoStream("it is too long"));
  while (!bytes.empty() && !done_) {
    size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kMaxLine) return tl::unexpected(NoStream("a line is too long"));
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    TRY(Line(std::exchange(line_, {})));
  }
  return {};
}

// One field of an event, or the empty line that ends it.
Status ChatStream::Line(std::string_view line) {
  if (line.empty()) return data_.empty() ? Status() : Event(std::exchange(data_, {}));
  if (!line.starts_with("data:")) return {};  // a comment, or a field that has no answer in it
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (!data_.empty()) data_ += '\n';
  data_ += line;
  return {};
}

Status ChatStream::Event(std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return {};
  }
  boost::system::error_code ec;
  json::value value = json::parse(data, ec);
  if (ec || !value.is_object()) return tl::unexpected(NoStream("an event is no JSON object"));
  return Chunk(value.get_object());
}

Status ChatStream::Chunk(const json::object& chunk) {
  if (chunk.contains("error")) {
    std::string words = TextOf(ObjectIn(chunk, "error"), "message");
    if (words.empty()) words = TextOf(chunk, "error");
    return Fail(Code::kUnavailable, "the model server broke off its answer: {}",
                Shorten(events::RedactPatterns(std::move(words)), kMaxWords));
  }
  if (completion_.model.empty()) completion_.model = TextOf(chunk, "model");
  if (const json::object& usage = ObjectIn(chunk, "usage"); !usage.empty()) {
    has_usage_ = true;
    completion_.tokens_in = std::max<int64_t>(IntOf(usage, "prompt_tokens"), 0);
    completion_.tokens_out = std::max<int64_t>(IntOf(usage, "completion_tokens"), 0);
  }
  const json::array& choices = ArrayIn(chunk, "choices");
  if (choices.empty()) return {};  // the one with the usage
  if (!choices[0].is_object()) return tl::unexpected(NoStream("a choice is no object"));
  const json::object& choice = choices[0].get_object();
  if (std::string reason = TextOf(choice, "finish_reason"); !reason.empty())
    completion_.finish_reason = std::move(reason);
  return Delta(ObjectIn(choice, "delta"));
}

Status ChatStream::Delta(const json::object& delta) {
  completion_.refusal += TextOf(delta, "refusal");
  if (std::string text = TextOf(delta, "content"); !text.empty()) {
    completion_.content += text;
    if (on_text_) on_text_(text, !std::exchange(begun_, true));
  }
  for (const json::value& piece : ArrayIn(delta, "tool_calls")) {
    if (!piece.is_object()) return tl::unexpected(NoStream("a tool call is no object"));
    TRY(CallPiece(piece.get_object()));
  }
  return {};
}

// The first piece of a call has its id and its name, all have pieces of its arguments.
Status ChatStream::CallPiece(const json::object& piece) {
  auto index = static_cast<uint64_t>(IntOf(piece, "index"));
  if (index > calls_.size() || index >= kMaxCalls)
    return tl::unexpected(NoStream("its tool calls are not in order"));
  if (index == calls_.size()) calls_.emplace_back();
  Call& call = calls_[index];
  const json::object& function = ObjectIn(piece, "function");
  if (call.id.empty()) call.id = TextOf(piece, "id");
  if (call.name.empty()) call.name = TextOf(function, "name");
  call.arguments += TextOf(function, "arguments");
  return {};
}

Result<Completion> ChatStream::Finish() {
  if (completion_.finish_reason.empty())
    return Fail(Code::kUnavailable, "the model server's answer ended in the middle");
  for (const Call& call : calls_)
    completion_.tool_calls.push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return std::move(completion_);
}

}  // namespace caisson::work
