// The wire format of protocol buffers, as much of it as CRIU's requests and images need: messages
// are written field by field and read field by field; what a field means is up to the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::engine {

class WireWriter {
 public:
  WireWriter& Number(uint32_t field, uint64_t value);
  // A string or a message within the message.
  WireWriter& Bytes(uint32_t field, std::string_view bytes);
  // A field exactly as it was read.
  WireWriter& Raw(std::string_view raw);

  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

struct WireField {
  uint32_t number = 0;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a string or message
  std::string_view raw;    // all of it, its header included
};

class WireReader {
 public:
  // Does not copy: `message` must outlive the reader and the fields it returns.
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Nothing at the end; kDataLoss if the message breaks off or is none.
  Result<std::optional<WireField>> Next();

 private:
  std::string_view rest_;
};

}  // namespace caisson::engine
