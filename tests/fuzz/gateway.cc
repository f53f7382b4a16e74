// Which sandbox a request is for, and what it looks like when it gets there.
#include "base/text.h"
#include "fuzz/http_messages.h"
#include "gateway/headers.h"
#include "gateway/signature.h"
#include "gateway/target.h"

namespace caisson::fuzz {
namespace {

void CheckTarget(const gateway::Target& target) {
  if (target.kind == gateway::Target::Kind::kInvalid)
    Check(!target.message.empty(), "a refusal without a reason");
  if (target.kind != gateway::Target::Kind::kSandbox) return;
  Check(!target.sandbox_id.empty() && target.port != 0, "a target without id or port");
  for (char c : target.sandbox_id)
    Check((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'), "a strange sandbox id");
}

constexpr std::string_view kKey = "e2b_0123456789012345678901234567890123456789";

bool IsSecret(std::string_view name, std::string_view value) {
  return (EqualsIgnoreCase(name, "X-API-Key") && value == kKey) ||
         (EqualsIgnoreCase(name, "Authorization") && value == "Bearer " + std::string(kKey)) ||
         EqualsIgnoreCase(name, "E2b-Traffic-Access-Token");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (auto& request : fuzz::ReadMessages<http::RequestHead>(text, size + 1)) {
    fuzz::CheckTarget(gateway::FindTarget(request.head, "sandbox.example:8080"));
    (void)gateway::IsUpgrade(request.head);
    (void)gateway::AnswerPreflight(request.head);
    auto fields = gateway::SignedFields::From(request.head);
    auto signer = fields.signer();
    std::string signature = signer.Sign("token");
    fuzz::Check(http::IsFileSignature(signature), "our own signature is taken for none");
    fuzz::Check(signer.Made(signature, "token"), "our own signature does not hold");
    fuzz::Check(!signer.Made(signature, "nekot"), "a signature holds for every token");
    auto inside = gateway::ForSandbox(request.head, {.peer_address = "10.0.0.1",
                                                     .tls = true,
                                                     .mask_request_host = "localhost:${PORT}",
                                                     .port = 80,
                                                     .access_token = "outside",
                                                     .inside_token = "inside"});
    fuzz::Check(inside.headers.Value("X-Access-Token") != "outside", "a token goes inside");
    for (const auto& [name, value] : inside.headers)
      fuzz::Check(!fuzz::IsSecret(name, value), "a key of the server reaches a sandbox");
    fuzz::Check(!inside.headers.Has("Transfer-Encoding"), "framing reaches a sandbox");
  }
  std::string host = gateway::HostName(text);
  fuzz::Check(host.size() <= text.size(), "a host name grew");
  return 0;
}
