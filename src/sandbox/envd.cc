#include "sandbox/envd.h"

#include <boost/json.hpp>

#include "base/time.h"
#include "sandbox/envd_call.h"

namespace caisson::sandbox {
namespace {

namespace json = boost::json;

Task<Status> Ask(UniqueFd socket, http::RequestHead request, std::string body) {
  std::string asked = request.target;
  CO_TRY_ASSIGN(auto answer,
                co_await CallEnvd(std::move(socket), std::move(request), std::move(body)));
  if (answer.status >= 300)
    co_return Fail(answer.status == 401 ? Code::kUnauthenticated : Code::kUnavailable,
                   "envd answered {} with status {}", asked, answer.status);
  co_return Status();
}

class PortEnvd final : public Envd {
 public:
  Task<Status> CheckHealth(UniqueFd socket) override {
    return Ask(std::move(socket), {.method = "GET", .target = "/health"}, "");
  }

  Task<Status> Init(UniqueFd socket, EnvdSettings settings, std::string token) override {
    json::object env;
    for (const auto& [name, value] : settings.env) env[name] = value;
    json::object body{
        {"sandboxId", settings.sandbox_id},   {"accessToken", settings.access_token},
        {"envVars", std::move(env)},          {"defaultUser", settings.user},
        {"defaultWorkdir", settings.workdir}, {"limits", {{"output_kbps", settings.output_kbps}}},
        {"timestamp", FormatTime(Now())},     {"resetIdentity", settings.reset_identity}};
    return Tell(std::move(socket), body, token);
  }

  Task<Status> SetOutputRate(UniqueFd socket, int64_t kbps, std::string token) override {
    return Tell(std::move(socket), {{"limits", {{"output_kbps", kbps}}}}, token);
  }

 private:
  static Task<Status> Tell(UniqueFd socket, const json::object& body, const std::string& token) {
    http::RequestHead request{.method = "POST", .target = "/init"};
    if (!token.empty()) request.headers.Set("X-Access-Token", token);
    return Ask(std::move(socket), std::move(request), json::serialize(body));
  }
};

}  // namespace

Envd& RealEnvd() {
  static PortEnvd envd;
  return envd;
}

}  // namespace caisson::sandbox
