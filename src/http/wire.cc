#include "http/wire.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::http {
namespace {

bool IsTokenChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool BreaksLine(char c) { return c == '\r' || c == '\n' || c == '\0'; }

}  // namespace

bool IsFramingHeader(std::string_view name) {
  return EqualsIgnoreCase(name, "Content-Length") || EqualsIgnoreCase(name, "Transfer-Encoding");
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  if (!IsToken(name)) return;
  out += name;
  out += ": ";
  size_t start = out.size();
  out += value;
  std::replace_if(out.begin() + static_cast<ptrdiff_t>(start), out.end(), BreaksLine, ' ');
  out += "\r\n";
}

void AppendStatusLine(std::string& out, unsigned status) {
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += ReasonPhrase(status);
  out += "\r\n";
}

Status AppendRequestLine(std::string& out, const RequestHead& head) {
  bool clean =
      !head.target.empty() && std::none_of(head.target.begin(), head.target.end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
      });
  if (!IsToken(head.method) || !clean)
    return Fail(Code::kInvalidArgument, "the method or the target is not valid in a request");
  out += head.method;
  out += ' ';
  out += head.target;
  out += head.version == 10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
  return {};
}

void AppendChunkSize(std::string& out, size_t size) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", size);
}

}  // namespace caisson::http
