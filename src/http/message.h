// Requests and responses as plain values. No Boost types: this is what the rest of the program
// sees of HTTP.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::http {

// Header fields in order of arrival; names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value, or nothing.
  std::optional<std::string_view> Get(std::string_view name) const;
  // The first value, or "".
  std::string_view Value(std::string_view name) const { return Get(name).value_or(""); }
  bool Has(std::string_view name) const { return Get(name).has_value(); }
  // True if a comma-separated list header (Connection, Accept-Encoding ...) names `token`.
  bool HasToken(std::string_view name, std::string_view token) const;
  void Set(std::string_view name, std::string_view value);  // replaces all
  void Add(std::string_view name, std::string_view value);
  void Remove(std::string_view name);

  std::vector<Field>::const_iterator begin() const { return fields_.begin(); }
  std::vector<Field>::const_iterator end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }

 private:
  std::vector<Field> fields_;
};

// Decoded query parameters in order; '+' is a space.
class Query {
 public:
  static Query Parse(std::string_view text);  // broken escapes are kept as they are
  std::optional<std::string_view> Get(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& all() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// Everything of a request but its body.
struct RequestHead {
  std::string method;  // upper case
  std::string target;  // as sent: path and query, percent-encoded
  Headers headers;
  unsigned version = 11;  // 10 or 11

  std::string_view Path() const;         // the target before '?', still encoded
  std::string_view QueryString() const;  // after '?', or ""
  Query ParsedQuery() const { return Query::Parse(QueryString()); }
};

// Everything of a response but its body.
struct ResponseHead {
  unsigned status = 200;
  Headers headers;
};

// A whole response, for answers that fit in memory.
struct Response : ResponseHead {
  std::string body;

  static Response Json(unsigned status, const boost::json::value& value);
  static Response Text(unsigned status, std::string body);
  static Response Html(unsigned status, std::string body);
  // No body: 204 as it is, others with Content-Length: 0.
  static Response Empty(unsigned status);
};

std::string_view ReasonPhrase(unsigned status);
// The HTTP status that Connect's mapping gives an error code (not_found 404, canceled 499, ...).
unsigned StatusOf(Code code);

}  // namespace caisson::http
