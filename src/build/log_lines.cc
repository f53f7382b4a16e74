#include "build/log_lines.h"

#include "base/text.h"
#include "events/ansi.h"

namespace caisson::build {
namespace {

constexpr char kEscape = '\x1b';
// What is kept of a line before it is cleaned: room for colours and for a secret that stands across
// the place where the clean line is cut.
constexpr size_t kBytesPerChar = 8;
constexpr size_t kMargin = 4 << 10;

bool IsBetween(char c, unsigned char first, unsigned char last) {
  auto byte = static_cast<unsigned char>(c);
  return byte >= first && byte <= last;
}

// "ESC [ 1 ; 31 m": colours, the one kind of sequence that does nothing else.
bool IsColour(std::string_view sequence) {
  return sequence.starts_with("\x1b[") && sequence.ends_with('m') &&
         sequence.find_first_not_of("0123456789;:", 2) == sequence.size() - 1;
}

struct Cleaned {
  std::string text;
  std::string coloured;
  bool has_colours = false;
};

Cleaned Clean(std::string_view bytes) {
  Cleaned clean;
  std::string text = ToUtf8(bytes);
  for (size_t at = 0; at < text.size();) {
    std::string_view rest = std::string_view(text).substr(at);
    char c = rest[0];
    size_t size = 1;
    if (c == kEscape) {
      size = events::EscapeLength(rest);
      if (IsColour(rest.substr(0, size))) {
        clean.coloured += rest.substr(0, size);
        clean.has_colours = true;
      }
    } else if (c == '\xc2' && IsBetween(rest[1], 0x80, 0x9f)) {
      size = 2;  // a control character of the second kind, in UTF-8
    } else if ((!IsBetween(c, 0, 0x1f) && c != 0x7f) || c == '\n' || c == '\t') {
      clean.text += c;
      clean.coloured += c;
    }
    at += size;
  }
  return clean;
}

// True if something was cut. The end is marked.
bool CutTo(std::string& text, size_t max_chars) {
  size_t chars = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (IsBetween(text[at], 0x80, 0xbf)) continue;  // within a character
    if (++chars <= max_chars) continue;
    text.erase(at);
    text += "…";
    return true;
  }
  return false;
}

// SECURITY: half a secret at the end would not be known as one, so the last word goes.
std::string_view WithoutLastWord(std::string_view line) {
  size_t end = line.find_last_of(" \t");
  size_t least = line.size() - std::min(line.size(), kMargin);
  return line.substr(0, end == line.npos ? least : std::max(end, least));
}

}  // namespace

std::string StripAnsi(std::string_view text) { return Clean(text).text; }

std::vector<LogLine> LogLines::Feed(std::string_view piece) {
  std::vector<LogLine> lines;
  size_t most = kBytesPerChar * max_chars_ + kMargin;
  while (!piece.empty()) {
    if (piece[0] == '\n') {
      lines.push_back(Make(rest_));
      Restart();
      piece.remove_prefix(1);
    } else if (piece[0] == '\r') {
      returned_ = true;
      piece.remove_prefix(1);
    } else {
      if (returned_) Restart();
      std::string_view part = piece.substr(0, piece.find_first_of("\r\n"));
      size_t room = most - rest_.size();
      if (part.size() > room) cut_ = true;
      rest_ += part.substr(0, room);
      piece.remove_prefix(part.size());
    }
  }
  return lines;
}

std::vector<LogLine> LogLines::Finish() {
  std::vector<LogLine> lines;
  if (!rest_.empty()) lines.push_back(Make(rest_));
  Restart();
  return lines;
}

void LogLines::Restart() {
  rest_.clear();
  cut_ = returned_ = false;
}

LogLine LogLines::Make(std::string_view line) const {
  Cleaned clean = Clean(cut_ ? WithoutLastWord(line) : line);
  LogLine made{.text = RedactPatterns(redactor_.Redact(clean.text)), .raw = ""};
  // With colours in the middle of it a secret would not be found, so such a line has none.
  bool is_clean = made.text == clean.text;
  bool was_cut = CutTo(made.text, max_chars_);
  if (cut_ && !was_cut) made.text += "…";
  if (clean.has_colours && is_clean && !was_cut && !cut_) made.raw = std::move(clean.coloured);
  return made;
}

}  // namespace caisson::build
