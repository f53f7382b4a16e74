#include "http/message.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::http {

std::optional<std::string_view> Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (EqualsIgnoreCase(key, name)) return value;
  return std::nullopt;
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const auto& [key, value] : fields_) {
    if (!EqualsIgnoreCase(key, name)) continue;
    for (std::string_view part : Split(value, ','))
      if (EqualsIgnoreCase(Trim(part), token)) return true;
  }
  return false;
}

void Headers::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void Headers::Add(std::string_view name, std::string_view value) {
  if (fields_.empty()) fields_.reserve(8);
  fields_.emplace_back(name, value);
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return EqualsIgnoreCase(field.first, name); });
}

Query Query::Parse(std::string_view text) {
  Query query;
  if (text.empty()) return query;
  auto decode = [](std::string_view part) {
    return PercentDecode(part, true).value_or(std::string(part));
  };
  for (std::string_view pair : Split(text, '&')) {
    if (pair.empty()) continue;
    size_t at = pair.find('=');
    std::string_view value = at == std::string_view::npos ? "" : pair.substr(at + 1);
    query.pairs_.emplace_back(decode(pair.substr(0, at)), decode(value));
  }
  return query;
}

std::optional<std::string_view> Query::Get(std::string_view name) const {
  for (const auto& [key, value] : pairs_)
    if (key == name) return value;
  return std::nullopt;
}

std::string_view RequestHead::Path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string_view RequestHead::QueryString() const {
  size_t at = target.find('?');
  return at == std::string::npos ? "" : std::string_view(target).substr(at + 1);
}

namespace {

Response WithBody(unsigned status, std::string_view type, std::string body) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", type);
  response.body = std::move(body);
  return response;
}

}  // namespace

Response Response::Json(unsigned status, const boost::json::value& value) {
  return WithBody(status, "application/json", boost::json::serialize(value));
}

Response Response::Text(unsigned status, std::string body) {
  return WithBody(status, "text/plain; charset=utf-8", std::move(body));
}

Response Response::Html(unsigned status, std::string body) {
  return WithBody(status, "text/html; charset=utf-8", std::move(body));
}

Response Response::Empty(unsigned status) {
  Response response;
  response.status = status;
  return response;
}

std::string_view ReasonPhrase(unsigned status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

unsigned StatusOf(Code code) {
  switch (code) {
    case Code::kCanceled:
      return 499;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kPermissionDenied:
      return 403;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kUnauthenticated:
      return 401;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      return 500;
  }
  return 500;
}

}  // namespace caisson::http
