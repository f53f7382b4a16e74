// Routes by method and path pattern: "/sandboxes/{id}/timeout". A segment in braces matches one
// whole segment and is percent-decoded AFTER the path was split, so "%2F" stays inside it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace caisson::http {

using PathParams = std::map<std::string, std::string, std::less<>>;
using RouteHandler = std::function<Task<void>(Exchange&, PathParams)>;

class Router {
 public:
  void Add(std::string_view method, std::string_view pattern, RouteHandler handler);

  struct Match {
    const RouteHandler* handler = nullptr;  // null: no such path, or the method is not allowed
    PathParams params;
    std::string pattern;               // for metrics; "" if none
    std::vector<std::string> allowed;  // methods of the path, when only the method did not match
  };
  // Literal segments win over parameters. A trailing slash is ignored. HEAD finds the GET route
  // when it has none of its own. The handler belongs to the router.
  Match Find(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;
    RouteHandler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace caisson::http
