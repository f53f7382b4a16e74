#include "account/cookies.h"

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::account {

std::string CookieOf(const http::RequestHead& request, std::string_view name) {
  for (const auto& [field, value] : request.headers) {
    if (!EqualsIgnoreCase(field, "Cookie")) continue;
    for (std::string_view pair : Split(value, ';')) {
      pair = Trim(pair);
      size_t equals = pair.find('=');
      if (equals != std::string_view::npos && pair.substr(0, equals) == name)
        return std::string(pair.substr(equals + 1));
    }
  }
  return {};
}

bool ChangesState(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

bool HasCsrfToken(const http::RequestHead& request, const Accounts& accounts,
                  std::string_view login_id) {
  // SECURITY: cookies come with every request of a browser, whichever page made it; that the page
  // is ours is shown by a value that only our page can read.
  std::string wanted = accounts.CsrfOf(login_id);
  return ConstantTimeEqual(request.headers.Value("X-CSRF-Token"), wanted) &&
         ConstantTimeEqual(CookieOf(request, kCsrfCookie), wanted);
}

std::string_view BearerOf(const http::RequestHead& request) {
  constexpr std::string_view kBearer = "bearer ";
  std::string_view text = request.headers.Value("Authorization");
  if (text.size() <= kBearer.size() || !EqualsIgnoreCase(text.substr(0, kBearer.size()), kBearer))
    return {};
  return Trim(text.substr(kBearer.size()));
}

}  // namespace caisson::account
