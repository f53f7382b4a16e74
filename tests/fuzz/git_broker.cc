// What a request from inside a sandbox reaches through its broker: one repository and the models
// that have a name, never with credentials of the sender's choice.
#include "base/text.h"
#include "fuzz/http_messages.h"
#include "git/broker_route.h"
#include "git/upstream.h"

namespace caisson::fuzz {
namespace {

const git::Grant kGrant{.repository = {"https://forge.example", "octo", "repo"},
                        .push_prefixes = {"task-7"}};
const std::vector<git::ModelRoute> kModels = {
    {"m", "https://model.example/v9", "x-api-key", "key"}};

void CheckRoute(const http::RequestHead& request) {
  git::Route route = git::FindRoute(request, kGrant, kModels);
  if (route.kind == git::Route::Kind::kRefused) {
    Check(!route.message.empty() && route.status >= 400, "a refusal without a reason");
    return;
  }
  std::string path = ToLower(request.Path());
  for (std::string_view part : Split(path, '/')) Check(part != "..", "a path that climbs");
  if (route.kind == git::Route::Kind::kModel) {
    Check(path == "/model/m" || path.starts_with("/model/m/"), "a model of another name");
    Check(route.target.starts_with('/'), "a target that changes the host");
    return;
  }
  Check(path.starts_with("/octo/repo/") || path.starts_with("/octo/repo.git/"),
        "another repository");
}

void CheckHeaders(const http::Headers& headers) {
  http::Headers out = git::GitRequestHeaders(headers);
  for (std::string_view name : {"Authorization", "Cookie", "Host", "Connection", "X-Api-Key"})
    Check(!out.Has(name), "a header that goes nowhere went out");
  http::Headers model = git::ModelRequestHeaders(headers, kModels[0]);
  int keys = 0;
  for (const auto& [name, value] : model) keys += EqualsIgnoreCase(name, "x-api-key");
  Check(keys == 1 && model.Value("x-api-key") == "key", "not the model's key");
  Check(!model.Has("Authorization") && !model.Has("Host"), "the sender's own names went out");
  http::Headers in = git::GitResponseHeaders(headers);
  for (std::string_view name : {"Set-Cookie", "WWW-Authenticate", "Location"})
    Check(!in.Has(name), "a header of the forge went in");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (auto& request : fuzz::ReadMessages<http::RequestHead>(text, size + 1)) {
    fuzz::CheckRoute(request.head);
    fuzz::CheckHeaders(request.head.headers);
  }
  fuzz::CheckRoute({.method = "POST", .target = std::string(text)});
  if (auto origin = git::ParseOrigin("https://forge.example"))
    if (auto target = git::SameOriginTarget(*origin, text))
      fuzz::Check(target->starts_with('/') && !target->starts_with("//"), "another host");
  return 0;
}
