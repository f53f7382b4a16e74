#include "events/ansi.h"

namespace caisson::events {
namespace {

constexpr char kEscape = '\x1b';

bool IsBetween(char c, unsigned char first, unsigned char last) {
  auto byte = static_cast<unsigned char>(c);
  return byte >= first && byte <= last;
}

// "ESC [ parameters intermediates final".
size_t ControlSequence(std::string_view text) {
  size_t at = 2;
  while (at < text.size() && IsBetween(text[at], 0x30, 0x3f)) ++at;
  while (at < text.size() && IsBetween(text[at], 0x20, 0x2f)) ++at;
  return at < text.size() && IsBetween(text[at], 0x40, 0x7e) ? at + 1 : at;
}

// A title, a link: ends with BEL or "ESC \".
size_t ControlString(std::string_view text) {
  size_t bell = text.find('\a', 2), end = text.find("\x1b\\", 2);
  if (bell < end) return bell + 1;
  return end == text.npos ? 2 : end + 2;
}

}  // namespace

size_t EscapeLength(std::string_view text) {
  if (text.size() < 2) return 1;
  if (text[1] == '[') return ControlSequence(text);
  if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) return ControlString(text);
  size_t at = 1;
  while (at < text.size() && IsBetween(text[at], 0x20, 0x2f)) ++at;
  return at < text.size() && IsBetween(text[at], 0x30, 0x7e) ? at + 1 : at;
}

std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    size_t end = text.find(kEscape);
    plain += text.substr(0, end);
    if (end == text.npos) break;
    text.remove_prefix(end);
    text.remove_prefix(EscapeLength(text));
  }
  return plain;
}

}  // namespace caisson::events
