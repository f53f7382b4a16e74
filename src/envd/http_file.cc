#include "envd/http_file.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".avif", "image/avif"},
    {".c", "text/plain; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".gif", "image/gif"},
    {".gz", "application/gzip"},
    {".htm", "text/html; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".md", "text/markdown; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".mp3", "audio/mpeg"},
    {".mp4", "video/mp4"},
    {".pdf", "application/pdf"},
    {".png", "image/png"},
    {".svg", "image/svg+xml"},
    {".tar", "application/x-tar"},
    {".txt", "text/plain; charset=utf-8"},
    {".wasm", "application/wasm"},
    {".webp", "image/webp"},
    {".xml", "text/xml; charset=utf-8"},
    {".zip", "application/zip"},
};

bool IsTokenChar(char c) {
  constexpr std::string_view kSpecial = "()<>@,;:\\\"/[]?=";
  return c > 0x20 && c < 0x7f && kSpecial.find(c) == std::string_view::npos;
}

}  // namespace

std::string FormatHttpDate(time_t time) {
  tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                     kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::optional<time_t> ParseHttpDate(std::string_view text) {
  // "Sun, 06 Nov 1994 08:49:37 GMT": the one form that is still sent.
  if (text.size() != 29 || text.substr(25) != " GMT") return std::nullopt;
  tm parts{};
  auto month = std::ranges::find(kMonths, text.substr(8, 3));
  auto number = [&](size_t at, size_t length) { return ParseInt<int>(text.substr(at, length)); };
  auto day = number(5, 2), year = number(12, 4), hour = number(17, 2), minute = number(20, 2),
       second = number(23, 2);
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  parts.tm_mday = *day;
  parts.tm_mon = static_cast<int>(month - kMonths.begin());
  parts.tm_year = *year - 1900;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  return timegm(&parts);
}

RangeChoice ChooseRange(const http::Headers& headers, uint64_t size, time_t modified) {
  std::string_view text = headers.Value("Range");
  constexpr std::string_view kUnit = "bytes=";
  if (!text.starts_with(kUnit) || text.find(',') != std::string_view::npos) return {};
  if (auto condition = headers.Get("If-Range"); condition && ParseHttpDate(*condition) != modified)
    return {};
  text = Trim(text.substr(kUnit.size()));
  size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {};
  std::string_view first_text = Trim(text.substr(0, dash)), last_text = Trim(text.substr(dash + 1));
  auto last = ParseInt<uint64_t>(last_text);
  if (!last_text.empty() && !last) return {};
  if (first_text.empty()) {  // the last n bytes
    if (!last) return {};
    if (*last == 0 || size == 0) return {RangeKind::kUnsatisfiable, {}};
    uint64_t length = std::min(*last, size);
    return {RangeKind::kPart, {size - length, length}};
  }
  auto first = ParseInt<uint64_t>(first_text);
  if (!first || (last && *last < *first)) return {};
  if (*first >= size) return {RangeKind::kUnsatisfiable, {}};
  uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return {RangeKind::kPart, {*first, end - *first + 1}};
}

unsigned CheckConditions(const http::Headers& headers, time_t modified) {
  if (auto date = ParseHttpDate(headers.Value("If-Unmodified-Since")); date && modified > *date)
    return 412;
  // We give out no entity tags, so only "any" can match.
  if (auto tags = headers.Get("If-None-Match")) return Trim(*tags) == "*" ? 304 : 0;
  if (auto date = ParseHttpDate(headers.Value("If-Modified-Since")); date && modified <= *date)
    return 304;
  return 0;
}

std::string_view TypeByExtension(std::string_view path) {
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return "";
  std::string extension = ToLower(path.substr(dot));
  for (const auto& [known, type] : kTypes) {
    if (known == extension) return type;
  }
  return "";
}

std::string_view TypeByContent(std::string_view head) {
  head = head.substr(0, 512);
  auto is_binary = [](char c) {
    auto u = static_cast<uint8_t>(c);
    return u < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b;
  };
  return std::ranges::any_of(head, is_binary) ? "application/octet-stream"
                                              : "text/plain; charset=utf-8";
}

std::string ContentDisposition(std::string_view name) {
  auto needs_encoding = [](char c) {
    auto u = static_cast<uint8_t>(c);
    return u >= 0x7f || (u < 0x20 && c != '\t');
  };
  if (std::ranges::any_of(name, needs_encoding)) {
    std::string out = "inline; filename*=utf-8''";
    for (char c : name) {
      if (IsTokenChar(c) && c != '\'' && c != '*' && c != '%') {
        out += c;
      } else {
        out += fmt::format("%{:02X}", static_cast<uint8_t>(c));
      }
    }
    return out;
  }
  if (!name.empty() && std::ranges::all_of(name, IsTokenChar))
    return "inline; filename=" + std::string(name);
  std::string out = "inline; filename=\"";
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace caisson::envd
