// A streaming parser of multipart bodies: bounded memory, whatever the size of the parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "envd/content_encoding.h"

namespace caisson::envd {

struct PartHeader {
  std::string name;                     // of the form field
  std::optional<std::string> filename;  // with its directories; nothing is percent-decoded
};

// Reads one Content-Disposition value. Other dispositions than form-data have no name.
PartHeader ParseDisposition(std::string_view value);

// The boundary of a Content-Type header; "" if there is none.
std::string MultipartBoundary(std::string_view content_type);

class MultipartReader {
 public:
  // `source` must outlive the reader.
  MultipartReader(ChunkSource& source, std::string_view boundary, size_t max_header_bytes);

  // The next part, after skipping what is left of the one before; nothing after the last.
  // kInvalidArgument when the body is malformed or ends too early.
  Task<Result<std::optional<PartHeader>>> NextPart();
  // The next bytes of the current part, valid until the next call; empty at its end.
  Task<Result<std::string_view>> Next();

 private:
  // Appends more input to the window; kInvalidArgument at the end of the input.
  Task<Status> Fill();

  ChunkSource& source_;
  std::string delimiter_;  // CRLF, two dashes, boundary
  size_t max_header_bytes_;
  std::string window_;
  size_t position_ = 0;   // consumed up to here
  bool in_part_ = false;  // the delimiter after the current part was not reached yet
};

}  // namespace caisson::envd
