#include "http/router.h"

#include <algorithm>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::http {
namespace {

bool IsParameter(std::string_view segment) { return segment.starts_with('{'); }

std::vector<std::string_view> Segments(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  return Split(path, '/');
}

}  // namespace

void Router::Add(std::string_view method, std::string_view pattern, RouteHandler handler) {
  Route route{std::string(method), std::string(pattern), {}, std::move(handler)};
  for (std::string_view segment : Segments(pattern)) route.segments.emplace_back(segment);
  // Kept in order of precedence, so that Find() takes the first that fits: literal segments before
  // parameters, from the left; routes of equal rank in order of arrival.
  auto before = [](const Route& a, const Route& b) {
    return std::ranges::lexicographical_compare(a.segments, b.segments, {}, IsParameter,
                                                IsParameter);
  };
  routes_.insert(std::upper_bound(routes_.begin(), routes_.end(), route, before), std::move(route));
}

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  std::vector<std::string> segments;
  for (std::string_view raw : Segments(path)) {
    auto decoded = PercentDecode(raw);
    if (!decoded) return {};
    segments.push_back(std::move(*decoded));
  }
  auto fits = [&](const Route& route) {
    return std::ranges::equal(route.segments, segments, [](const auto& want, const auto& have) {
      return IsParameter(want) ? !have.empty() : want == have;
    });
  };
  Match match;
  const Route* chosen = nullptr;
  for (const Route& route : routes_) {
    if (!fits(route)) continue;
    bool is_method = route.method == method || (method == "HEAD" && route.method == "GET");
    if (is_method && (!chosen || (route.method == method && chosen->method != method &&
                                  route.pattern == chosen->pattern)))
      chosen = &route;
    if (std::ranges::find(match.allowed, route.method) == match.allowed.end())
      match.allowed.push_back(route.method);
  }
  if (!chosen) return match;
  match.allowed.clear();
  match.handler = &chosen->handler;
  match.pattern = chosen->pattern;
  for (size_t i = 0; i < segments.size(); ++i) {
    std::string_view name = chosen->segments[i];
    if (IsParameter(name))
      match.params.emplace(name.substr(1, name.size() - 2), std::move(segments[i]));
  }
  return match;
}

}  // namespace caisson::http
