// What a forge sends: webhooks, whose signature anybody can try to make, and answers.
#include "forge/answer.h"
#include "forge/app_token.h"
#include "forge/webhook.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::Check(!forge::CheckSignature("a secret", text, text), "a body that signs itself");
  for (std::string_view event : {"pull_request", "pull_request_review", "ping"}) {
    auto parsed = forge::ParseWebhook(event, text);
    fuzz::Check(!parsed || event == "ping" || (parsed->number > 0 && !parsed->repo.empty()),
                "a webhook about no pull request");
  }
  http::Response answer = http::Response::Text(422, std::string(text));
  fuzz::Check(forge::ErrorOf(answer, "it").message().size() < 1000, "an endless message");
  fuzz::Check(text.find(forge::NextPage(text)) != text.npos, "a link from nowhere");
  if (auto token = forge::ReadAppToken(text)) (void)token->Fresh(Now());
  return 0;
}
