// Heads as bytes. Framing headers are written here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::http {

// True for headers that belong to one connection's framing; callers' own are never sent.
bool IsFramingHeader(std::string_view name);

// "Name: value\r\n". SECURITY: CR, LF and NUL in a value become spaces, a field whose name is not a
// token is left out, so that no caller's data can begin another field or message.
void AppendField(std::string& out, std::string_view name, std::string_view value);

// "HTTP/1.1 200 OK\r\n"; the caller appends fields and the empty line.
void AppendStatusLine(std::string& out, unsigned status);

// "GET /x HTTP/1.1\r\n", or an error if method or target would break the line.
Status AppendRequestLine(std::string& out, const RequestHead& head);

// "1a2b\r\n"
void AppendChunkSize(std::string& out, size_t size);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace caisson::http
