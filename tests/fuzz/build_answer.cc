// Answers of a model and of its server, paths that it names; headers of a preview, which the
// guest's server writes.
#include "build/embedding.h"
#include "build/llm_answer.h"
#include "fuzz/support.h"
#include "work/chat_stream.h"
#include "work/loop_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (auto answer = build::ReadAnswer(text)) {
    fuzz::Check(!answer->changes.empty(), "an answer without changes");
    for (const build::FileChange& change : answer->changes)
      fuzz::Check(build::CheckPath(change.path).has_value(), "a change of another place");
  } else {
    fuzz::Check(answer.error().code() == Code::kDataLoss, "an answer that is not told again");
    fuzz::Check(answer.error().message().size() < 1'000, "an endless complaint");
  }
  if (auto completion = work::ReadCompletion(text))
    fuzz::Check(completion->tokens_in >= 0 && completion->tokens_out >= 0, "negative tokens");
  for (size_t step : {size_t{1}, std::max<size_t>(size, 1)}) {
    size_t heard = 0;
    work::ChatStream stream([&heard](std::string_view piece, bool) { heard += piece.size(); });
    Status fed;
    for (size_t at = 0; at < size && fed; at += step)
      fed = stream.Feed(std::string_view(text).substr(at, step));
    if (auto completion =
            fed ? stream.Finish() : Result<work::Completion>(tl::unexpected(fed.error())))
      fuzz::Check(completion->content.size() == heard && completion->tokens_in >= 0,
                  "a stream of which something is not told");
    else
      fuzz::Check(completion.error().message().size() < 1'000, "an endless complaint");
  }
  for (unsigned status : {302u, 401u, 429u, 500u})
    fuzz::Check(work::ErrorOf(http::Response::Text(status, text)).message().size() < 1'000,
                "an endless message");
  if (auto path = work::ToolPath("/w/garden", text))
    fuzz::Check((*path + "/").starts_with("/w/garden/") || (*path + "/").starts_with("/tmp/"),
                "a path to another place");
  fuzz::Check(work::CutResult(text).size() <= std::max<size_t>(text.size(), 4'100),
              "a long result");
  for (const char* name : {"X-Frame-Options", "Content-Security-Policy"}) {
    http::Headers headers{{name, text}, {"Content-Security-Policy", "frame-ancestors " + text}};
    build::Embedding found = build::CheckEmbedding(headers, "http://a.example", "http://b:8000");
    fuzz::Check(found.embeddable == found.reason.empty(), "a refusal without a reason");
  }
  return 0;
}
