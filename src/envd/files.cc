#include "envd/files.h"

namespace caisson::envd {
namespace {

unsigned HttpStatus(const Error& error) {
  if (error.sys_errno() == ENOSPC || error.sys_errno() == EDQUOT) return 507;
  switch (error.code()) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kNotFound:
      return 404;
    case Code::kOutOfRange:  // a request body beyond its limit
      return 413;
    case Code::kResourceExhausted:
      return 429;
    default:
      return 500;
  }
}

}  // namespace

void FileApi::Register(http::Router& router) {
  router.Add("GET", "/files",
             [this](http::Exchange& exchange, http::PathParams) { return Download(exchange); });
  router.Add("POST", "/files",
             [this](http::Exchange& exchange, http::PathParams) { return Upload(exchange); });
  router.Add("POST", "/files/compose",
             [this](http::Exchange& exchange, http::PathParams) { return Compose(exchange); });
}

http::Response ErrorResponse(unsigned status, std::string_view message) {
  http::Response response =
      http::Response::Json(status, boost::json::object{{"code", status}, {"message", message}});
  response.headers.Set("Content-Type", "application/json; charset=utf-8");
  return response;
}

http::Response ErrorResponse(const Error& error) {
  return ErrorResponse(HttpStatus(error), error.message());
}

}  // namespace caisson::envd
