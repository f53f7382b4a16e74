#include "sdk/utf8_decoder.h"

#include "base/text.h"

namespace caisson::sdk {
namespace {

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// How many bytes the character has that begins with this one.
size_t LengthBy(char first) {
  auto byte = static_cast<uint8_t>(first);
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  if (byte >= 0xE0 && byte < 0xF0) return 3;
  if (byte >= 0xC2 && byte < 0xE0) return 2;
  return 1;
}

// The number of bytes at the end that may be the beginning of a character.
size_t Unfinished(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    char byte = bytes[bytes.size() - back];
    if (IsContinuation(byte)) continue;
    return LengthBy(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Decoder::Take(std::string_view bytes) {
  waiting_ += bytes;
  size_t unfinished = Unfinished(waiting_);
  std::string rest = waiting_.substr(waiting_.size() - unfinished);
  waiting_.resize(waiting_.size() - unfinished);
  std::string text = ToUtf8(waiting_);
  waiting_ = std::move(rest);
  return text;
}

std::string Utf8Decoder::Finish() { return ToUtf8(std::exchange(waiting_, {})); }

std::string_view CutUtf8(std::string_view text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && IsContinuation(text[size])) --size;
  return text.substr(0, size);
}

}  // namespace caisson::sdk
