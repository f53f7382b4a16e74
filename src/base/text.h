// Small helpers on text.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

// ASCII only, as protocol words are.
std::string ToLower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view Trim(std::string_view text);
// Splits at every `separator`; empty parts are kept.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Replaces what is not UTF-8 by U+FFFD: file names and URLs are bytes, JSON strings are not.
std::string ToUtf8(std::string_view bytes);

// The whole text as a decimal integer, or nothing.
template <class Int>
std::optional<Int> ParseInt(std::string_view text) {
  Int value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "300", "300s", "5m", "24h", "500ms" as milliseconds; nothing if it is not a duration.
std::optional<int64_t> ParseDurationMs(std::string_view text);
// "1048576", "64K", "512M", "10G" (powers of 1024) as bytes; nothing if it is not a size.
std::optional<int64_t> ParseSize(std::string_view text);

}  // namespace caisson
