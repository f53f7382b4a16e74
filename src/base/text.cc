#include "base/text.h"

#include <cstdint>

namespace caisson {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::optional<int64_t> Scaled(std::string_view digits, int64_t scale) {
  auto number = ParseInt<int64_t>(digits);
  if (!number || *number < 0 || *number > INT64_MAX / scale) return std::nullopt;
  return *number * scale;
}

}  // namespace

std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = Lower(c);
  return out;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (Lower(a[i]) != Lower(b[i])) return false;
  return true;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string ToUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
    uint8_t lead = byte(i);
    size_t length = lead < 0x80                   ? 1
                    : lead >= 0xC2 && lead < 0xE0 ? 2
                    : (lead & 0xF0) == 0xE0       ? 3
                    : lead >= 0xF0 && lead < 0xF5 ? 4
                                                  : 0;
    bool valid = length > 0 && i + length <= bytes.size();
    for (size_t k = 1; valid && k < length; ++k) valid = (byte(i + k) & 0xC0) == 0x80;
    // Overlong forms, surrogates and values above U+10FFFF show in the second byte.
    if (valid && lead == 0xE0) valid = byte(i + 1) >= 0xA0;
    if (valid && lead == 0xED) valid = byte(i + 1) < 0xA0;
    if (valid && lead == 0xF0) valid = byte(i + 1) >= 0x90;
    if (valid && lead == 0xF4) valid = byte(i + 1) < 0x90;
    if (valid) {
      out.append(bytes.substr(i, length));
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

std::optional<int64_t> ParseDurationMs(std::string_view text) {
  if (text.ends_with("ms")) return Scaled(text.substr(0, text.size() - 2), 1);
  if (text.empty()) return std::nullopt;
  std::string_view digits = text.substr(0, text.size() - 1);
  switch (text.back()) {
    case 's':
      return Scaled(digits, 1000);
    case 'm':
      return Scaled(digits, 60'000);
    case 'h':
      return Scaled(digits, 3'600'000);
    case 'd':
      return Scaled(digits, 86'400'000);
    default:
      return Scaled(text, 1000);
  }
}

std::optional<int64_t> ParseSize(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::string_view digits = text.substr(0, text.size() - 1);
  switch (text.back()) {
    case 'K':
      return Scaled(digits, 1 << 10);
    case 'M':
      return Scaled(digits, 1 << 20);
    case 'G':
      return Scaled(digits, 1 << 30);
    default:
      return Scaled(text, 1);
  }
}

}  // namespace caisson
