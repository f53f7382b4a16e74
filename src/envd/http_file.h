// The parts of HTTP that only file downloads need: dates, ranges, conditions, types, names.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::envd {

// "Sun, 06 Nov 1994 08:49:37 GMT", and back.
std::string FormatHttpDate(time_t time);
std::optional<time_t> ParseHttpDate(std::string_view text);

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

enum class RangeKind { kWhole, kPart, kUnsatisfiable };
struct RangeChoice {
  RangeKind kind = RangeKind::kWhole;
  ByteRange range;
};
// What to send of `size` bytes. One range is honoured; several, or a broken header, mean the whole
// file. If-Range must match `modified`.
RangeChoice ChooseRange(const http::Headers& headers, uint64_t size, time_t modified);

// 304 or 412 if a condition of the request says so, else 0.
unsigned CheckConditions(const http::Headers& headers, time_t modified);

// By the extension; "" if it is unknown.
std::string_view TypeByExtension(std::string_view path);
// Text or bytes, by the look of the first bytes.
std::string_view TypeByContent(std::string_view head);

// inline; filename=..., quoted or RFC 5987-encoded where the name needs it.
std::string ContentDisposition(std::string_view name);

}  // namespace caisson::envd
