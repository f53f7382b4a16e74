// Logins as a browser has them: three cookies and a header.
#include "api/auth_routes.h"

#include "api/account_routes.h"
#include "api/frame_fixture.h"

namespace caisson::api {
namespace {

using Jar = std::map<std::string, std::string>;

class AuthTest : public FrameFixture {
 protected:
  AuthTest() {
    BeginServer();
    user_ = Wait(accounts_->AddUser({.name = "mia", .password = kPassword})).value();
  }
  void AddRoutes(Frame& frame) override {
    AddAuthRoutes(frame, *accounts_, config_);
    AddAccountRoutes(frame, *accounts_);
  }

  // Sends what a page sends, and keeps the cookies of the answer.
  http::Response Browse(Jar& jar, const std::string& method, const std::string& target,
                        const std::string& body = "", bool csrf = true) {
    std::string cookies;
    for (const auto& [name, value] : jar)
      if (name != "caisson_refresh" || target.starts_with("/api/v1/auth"))
        cookies += fmt::format("{}{}={}", cookies.empty() ? "" : "; ", name, value);
    http::Headers headers;
    if (!cookies.empty()) headers.Set("Cookie", cookies);
    if (csrf && jar.contains("caisson_csrf")) headers.Set("X-CSRF-Token", jar["caisson_csrf"]);
    http::Response answer = Send(method, target, body, headers);
    for (const auto& [name, value] : answer.headers) {
      if (name != "Set-Cookie") continue;
      size_t equals = value.find('='), end = value.find(';');
      std::string cookie = value.substr(0, equals);
      if (value.find("Max-Age=0") != std::string::npos)
        jar.erase(cookie);
      else
        jar[cookie] = value.substr(equals + 1, end - equals - 1);
    }
    return answer;
  }
  Jar Login() {
    Jar jar;
    http::Response answer = Browse(jar, "POST", "/api/v1/auth/login", kCredentials);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    EXPECT_EQ(jar.size(), 3u);
    return jar;
  }

  static constexpr const char* kPassword = "a long password";
  static constexpr const char* kCredentials = R"({"name":"mia","password":"a long password"})";
  store::UserRow user_;
};

TEST_F(AuthTest, ALoginSetsThreeCookies) {
  Jar jar;
  http::Response answer = Browse(jar, "POST", "/api/v1/auth/login", kCredentials);
  ASSERT_EQ(answer.status, 200u);
  json::value body = json::parse(answer.body);
  EXPECT_EQ(body.at("user").at("name"), "mia");
  EXPECT_EQ(body.at("csrf_token"), jar["caisson_csrf"].c_str());
  EXPECT_EQ(body.at("expires_in"), 1800);
  EXPECT_EQ(answer.body.find("argon2"), std::string::npos);
  for (const auto& [name, value] : answer.headers) {
    if (name != "Set-Cookie") continue;
    EXPECT_NE(value.find("SameSite=Lax"), std::string::npos) << value;
    bool readable = value.starts_with("caisson_csrf");
    EXPECT_EQ(value.find("HttpOnly") == std::string::npos, readable) << value;
    if (value.starts_with("caisson_refresh")) {
      EXPECT_NE(value.find("Path=/api/v1/auth;"), std::string::npos) << value;
    }
  }
  http::Response me = Browse(jar, "GET", "/api/v1/auth/me");
  EXPECT_EQ(json::parse(me.body).at("user").at("id"), user_.id.c_str());
  EXPECT_TRUE(json::parse(me.body).at("key_id").is_null());
}

TEST_F(AuthTest, ChangesNeedTheCsrfToken) {
  Jar jar = Login();
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/keys", R"({"name":"a"})", /*csrf=*/false).status, 403u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh", "", false).status, 403u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/logout", "", false).status, 403u);
  // A pair that fits but is not ours.
  Jar planted = jar;
  planted["caisson_csrf"] = "0123456789";
  EXPECT_EQ(Browse(planted, "POST", "/api/v1/keys", R"({"name":"a"})").status, 403u);
  Jar other = Login();
  planted["caisson_csrf"] = other["caisson_csrf"];
  EXPECT_EQ(Browse(planted, "POST", "/api/v1/keys", R"({"name":"a"})").status, 403u);
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/keys", "", false).status, 200u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/keys", R"({"name":"a"})").status, 201u);
}

TEST_F(AuthTest, ARefreshRenewsAndAnOldOneEndsTheLogin) {
  Jar jar = Login(), stolen = jar;
  jar.erase("caisson_access");  // its time is over
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 401u);
  ASSERT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh").status, 200u);
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 200u);
  EXPECT_NE(jar["caisson_refresh"], stolen["caisson_refresh"]);
  EXPECT_EQ(Browse(stolen, "POST", "/api/v1/auth/refresh").status, 401u);
  EXPECT_TRUE(stolen.empty());
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 401u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh").status, 401u);
  Jar none;
  EXPECT_EQ(Browse(none, "POST", "/api/v1/auth/refresh").status, 401u);
}

TEST_F(AuthTest, LogoutEndsIt) {
  Jar jar = Login(), kept = jar;
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/logout").status, 204u);
  EXPECT_TRUE(jar.empty());
  EXPECT_EQ(Browse(kept, "GET", "/api/v1/auth/me").status, 401u);
  EXPECT_EQ(Browse(kept, "POST", "/api/v1/auth/refresh").status, 401u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/logout").status, 204u);
}

TEST_F(AuthTest, PasswordsChange) {
  Jar jar = Login();
  auto change = [&](const char* body) {
    return Browse(jar, "POST", "/api/v1/auth/password", body).status;
  };
  EXPECT_EQ(change(R"({"new_password":"another password"})"), 403u);
  EXPECT_EQ(change(R"({"current_password":"wrong","new_password":"another password"})"), 403u);
  EXPECT_EQ(change(R"({"current_password":"a long password","new_password":"short"})"), 422u);
  EXPECT_EQ(change(R"({"current_password":"a long password","new_password":"another password"})"),
            204u);
  EXPECT_TRUE(jar.empty());
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", kCredentials).status, 401u);
}

TEST_F(AuthTest, FailuresAreRefusedAfterSome) {
  Jar jar;
  const char* wrong = R"({"name":"mia","password":"guess"})";
  for (int64_t i = 0; i < config_.login_failures_per_minute; ++i)
    EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", wrong).status, 401u);
  http::Response refused = Browse(jar, "POST", "/api/v1/auth/login", kCredentials);
  EXPECT_EQ(refused.status, 429u);
  EXPECT_TRUE(refused.headers.Has("Retry-After"));
}

TEST_F(AuthTest, AKeyLogsInAndItsEndEndsTheLogin) {
  auto key = Wait(accounts_->AddKey("laptop", user_.id, {})).value();
  std::string body = fmt::format(R"({{"api_key":"{}"}})", key.text);
  Jar jar;
  http::Response answer = Browse(jar, "POST", "/api/v1/auth/login", body);
  ASSERT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(json::parse(answer.body).at("user").at("name"), "mia");
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/keys", R"({"name":"a"})").status, 201u);
  ASSERT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh").status, 200u);
  Jar by_password = Login();
  Ask(204, "DELETE", "/api/v1/keys/" + key.row.id);
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 401u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh").status, 401u);
  EXPECT_EQ(Browse(by_password, "GET", "/api/v1/auth/me").status, 200u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", body).status, 401u);
}

TEST_F(AuthTest, AnotherKeyOfTheServerEndsLoginsOfTheOld) {
  Jar jar;
  std::string body = fmt::format(R"({{"api_key":"{}"}})", kAdminKey);
  ASSERT_EQ(Browse(jar, "POST", "/api/v1/auth/login", body).status, 200u);
  EndServer();
  BeginServer();
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 200u);
  // The server comes up with another key of its own.
  keys_ = account::KeyRing::Open(dir_.path(), "another key of the server").value();
  ASSERT_TRUE(Wait(accounts_->Start()));
  EXPECT_EQ(Browse(jar, "GET", "/api/v1/auth/me").status, 401u);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/refresh").status, 401u);
}

TEST_F(AuthTest, ALoginIsByPasswordOrByKey) {
  Jar jar;
  for (const char* body : {"{}", R"({"name":"mia"})", R"({"api_key":""})", R"({"api_key":1})",
                           R"({"name":"mia","password":"a long password","api_key":"k"})"})
    EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", body).status, 422u) << body;
  std::string of_disabled = KeyOf("ben", "member");
  auto ben = accounts_->FindUserByName("ben")->id;
  ASSERT_TRUE(Wait(accounts_->ChangeUser(ben, {.disabled = true})));
  std::string disabled = fmt::format(R"({{"api_key":"{}"}})", of_disabled);
  EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", disabled).status, 401u);
}

TEST_F(AuthTest, WrongKeysCountAsFailures) {
  Jar jar;
  for (int64_t i = 0; i < config_.login_failures_per_minute; ++i)
    EXPECT_EQ(Browse(jar, "POST", "/api/v1/auth/login", R"({"api_key":"e2b_guess"})").status, 401u);
  http::Response refused =
      Browse(jar, "POST", "/api/v1/auth/login", fmt::format(R"({{"api_key":"{}"}})", kAdminKey));
  EXPECT_EQ(refused.status, 429u);
  EXPECT_TRUE(refused.headers.Has("Retry-After"));
}

TEST_F(AuthTest, UsersAreTheAdminsBusiness) {
  std::string member = KeyOf("ben", "member");
  json::value made = Ask(201, "POST", "/api/v1/users",
                         R"({"name":"zoe","role":"viewer","password":"0123456789"})");
  std::string path = "/api/v1/users/" + std::string(made.at("id").as_string());
  EXPECT_EQ(made.at("has_password"), true);
  Ask(409, "POST", "/api/v1/users", R"({"name":"zoe"})");
  Ask(422, "POST", "/api/v1/users", R"({"name":"two words"})");
  Ask(403, "GET", path, "", member);
  EXPECT_EQ(Ask(200, "PATCH", path, R"({"role":"member"})").at("role"), "member");
  EXPECT_TRUE(Ask(200, "PATCH", path, R"({"disabled":true})").at("disabled_at").is_string());
  Ask(404, "GET", "/api/v1/users/nobody");
  Ask(404, "PATCH", "/api/v1/users/nobody", R"({"disabled":true})");
  Ask(409, "PATCH", "/api/v1/users/admin", R"({"disabled":true})");
  EXPECT_EQ(Ask(200, "GET", "/api/v1/users").at("users").as_array().size(), 4u);
}

TEST_F(AuthTest, KeysAreTheirUsersBusiness) {
  std::string mia = KeyOf("ben", "member"), other = KeyOf("ann", "member");
  json::value made = Ask(201, "POST", "/api/v1/keys", R"({"name":"laptop"})", mia);
  std::string text(made.at("key").as_string()), id(made.at("id").as_string());
  EXPECT_TRUE(text.starts_with(std::string_view(made.at("hint").as_string()).substr(0, 8)));
  Ask(200, "GET", "/api/v1/auth/me", "", text);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/keys", "", mia).at("keys").as_array().size(), 2u);
  Ask(403, "GET", "/api/v1/keys?all=true", "", mia);
  EXPECT_EQ(Ask(200, "GET", "/api/v1/keys?all=true").at("keys").as_array().size(), 3u);
  Ask(404, "DELETE", "/api/v1/keys/" + id, "", other);
  Ask(404, "PATCH", "/api/v1/keys/" + id, R"({"name":"x"})", other);
  Ask(403, "POST", "/api/v1/keys", R"({"name":"x","user_id":"admin"})", mia);
  Ask(403, "POST", "/api/v1/keys", R"({"name":"x","own_user":true})", mia);
  Ask(403, "PATCH", "/api/v1/keys/" + id, R"({"limits":{"rate_limit":0}})", mia);
  EXPECT_EQ(Ask(200, "PATCH", "/api/v1/keys/" + id, R"({"name":"desk"})", mia).at("name"), "desk");
  json::value limited =
      Ask(200, "PATCH", "/api/v1/keys/" + id, R"({"limits":{"rate_limit":5,"max_sandboxes":2}})");
  EXPECT_EQ(limited.at("limits"), json::parse(R"({"rate_limit":5,"max_sandboxes":2})"));
  limited = Ask(200, "PATCH", "/api/v1/keys/" + id, R"({"limits":{"rate_limit":null}})");
  EXPECT_EQ(limited.at("limits"), json::parse(R"({"max_sandboxes":2})"));
  for (const auto& [name, field] : store::kKeyLimits) {
    std::string body = fmt::format(R"({{"limits":{{"{}":77}}}})", name);
    EXPECT_EQ(Ask(200, "PATCH", "/api/v1/keys/" + id, body).at("limits").at(name), 77) << name;
    body = fmt::format(R"({{"limits":{{"{}":null}}}})", name);
    Ask(200, "PATCH", "/api/v1/keys/" + id, body);
  }
  Ask(204, "DELETE", "/api/v1/keys/" + id, "", mia);
  Ask(401, "GET", "/api/v1/auth/me", "", text);
  Ask(204, "DELETE", "/api/v1/keys/" + id, "", mia);
  json::value own = Ask(201, "POST", "/api/v1/keys", R"({"name":"ci","own_user":true})");
  EXPECT_EQ(own.at("user_id"), own.at("id"));
  Ask(404, "POST", "/api/v1/keys", R"({"name":"x","user_id":"nobody"})");
  // Nobody throttles the server's first key by mistake.
  Ask(409, "POST", "/api/v1/keys", R"({"name":"x","limits":{"rate_limit":1}})");
  Ask(400, "POST", "/api/v1/keys", R"({"name":"x","user_id":"admin","own_user":true})");
}

}  // namespace
}  // namespace caisson::api
