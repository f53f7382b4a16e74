#include "envd/multipart.h"

#include <cstring>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::envd {
namespace {

// Reads "key=value" pairs of a header value after its first token. A backslash in a quoted string
// escapes only special characters, so that "a\b" of a Windows-minded client keeps its backslash.
class ParameterReader {
 public:
  explicit ParameterReader(std::string_view text) : rest_(text) {}

  // False at the end.
  bool Next(std::string& key, std::string& value) {
    size_t start = rest_.find(';');
    if (start == std::string_view::npos) return false;
    rest_ = Trim(rest_.substr(start + 1));
    size_t end = rest_.find_first_of("=;");
    key = ToLower(Trim(rest_.substr(0, end)));
    value.clear();
    if (end == std::string_view::npos) {
      rest_ = {};
    } else {
      rest_ = rest_.substr(end);
      if (rest_.starts_with('=')) ReadValue(value);
    }
    return true;
  }

 private:
  void ReadValue(std::string& value) {
    rest_ = Trim(rest_.substr(1));
    if (!rest_.starts_with('"')) {
      size_t end = rest_.find(';');
      value = Trim(rest_.substr(0, end));
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end);
      return;
    }
    constexpr std::string_view kSpecial = "()<>@,;:\\\"/[]?=";
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; ++i) {
      bool escape = rest_[i] == '\\' && i + 1 < rest_.size() &&
                    kSpecial.find(rest_[i + 1]) != std::string_view::npos;
      if (escape) ++i;
      value += rest_[i];
    }
    rest_ = i < rest_.size() ? rest_.substr(i + 1) : std::string_view();
  }

  std::string_view rest_;
};

// RFC 5987: charset'language'percent-encoded.
std::optional<std::string> DecodeExtended(std::string_view text) {
  size_t first = text.find('\'');
  size_t second = first == std::string_view::npos ? first : text.find('\'', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  if (!EqualsIgnoreCase(text.substr(0, first), "utf-8")) return std::nullopt;
  return PercentDecode(text.substr(second + 1));
}

PartHeader ParseHeaderBlock(std::string_view block) {
  PartHeader header;
  for (std::string_view line : Split(block, '\n')) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (EqualsIgnoreCase(Trim(line.substr(0, colon)), "content-disposition"))
      header = ParseDisposition(Trim(line.substr(colon + 1)));
  }
  return header;
}

}  // namespace

PartHeader ParseDisposition(std::string_view value) {
  PartHeader header;
  if (!EqualsIgnoreCase(Trim(value.substr(0, value.find(';'))), "form-data")) return header;
  ParameterReader reader(value);
  std::string key, text;
  bool extended = false;
  while (reader.Next(key, text)) {
    if (key == "name") {
      header.name = text;
    } else if (key == "filename" && !extended) {
      header.filename = text;
    } else if (key == "filename*") {
      if (auto decoded = DecodeExtended(text)) {
        header.filename = std::move(*decoded);
        extended = true;
      }
    }
  }
  return header;
}

std::string MultipartBoundary(std::string_view content_type) {
  ParameterReader reader(content_type);
  std::string key, text;
  while (reader.Next(key, text)) {
    if (key == "boundary") return text;
  }
  return "";
}

MultipartReader::MultipartReader(ChunkSource& source, std::string_view boundary,
                                 size_t max_header_bytes)
    : source_(source),
      delimiter_("\r\n--" + std::string(boundary)),
      max_header_bytes_(max_header_bytes),
      window_("\r\n"),  // the first delimiter may start the body
      in_part_(true) {}

Task<Status> MultipartReader::Fill() {
  window_.erase(0, position_);
  position_ = 0;
  CO_TRY_ASSIGN(std::string_view more, co_await source_.Next());
  if (more.empty())
    co_return Fail(Code::kInvalidArgument, "error reading form: the multipart body is incomplete");
  window_.append(more);
  co_return Status();
}

Task<Result<std::string_view>> MultipartReader::Next() {
  while (in_part_) {
    std::string_view rest = std::string_view(window_).substr(position_);
    const void* hit = memmem(rest.data(), rest.size(), delimiter_.data(), delimiter_.size());
    if (hit != nullptr) {
      size_t length = static_cast<size_t>(static_cast<const char*>(hit) - rest.data());
      position_ += length + delimiter_.size();
      in_part_ = false;
      co_return rest.substr(0, length);
    }
    // What may be the beginning of a delimiter stays for the next look.
    if (rest.size() >= delimiter_.size()) {
      size_t safe = rest.size() - delimiter_.size() + 1;
      position_ += safe;
      co_return rest.substr(0, safe);
    }
    CO_TRY(co_await Fill());
  }
  co_return std::string_view();
}

Task<Result<std::optional<PartHeader>>> MultipartReader::NextPart() {
  while (in_part_) CO_TRY(co_await Next());
  while (window_.size() - position_ < 2) CO_TRY(co_await Fill());
  if (std::string_view(window_).substr(position_, 2) == "--") {
    // What follows the last delimiter is read, so that the connection can be used again.
    for (;;) {
      CO_TRY_ASSIGN(std::string_view epilogue, co_await source_.Next());
      if (epilogue.empty()) co_return std::nullopt;
    }
  }
  // The rest of the delimiter's line, then lines up to an empty one.
  for (;;) {
    std::string_view rest = std::string_view(window_).substr(position_);
    size_t end = rest.find("\r\n\r\n");
    if (end != std::string_view::npos && end <= max_header_bytes_) {
      PartHeader header = ParseHeaderBlock(rest.substr(0, end));
      position_ += end + 4;
      in_part_ = true;
      co_return header;
    }
    if (rest.size() > max_header_bytes_)
      co_return Fail(Code::kInvalidArgument,
                     "error reading form: the header of a part is longer than {} bytes",
                     max_header_bytes_);
    CO_TRY(co_await Fill());
  }
}

}  // namespace caisson::envd
