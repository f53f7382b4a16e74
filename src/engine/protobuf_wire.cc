#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::optional<uint64_t> TakeVarint(std::string_view& from) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace

WireWriter& WireWriter::Number(uint32_t field, uint64_t value) {
  AppendVarint(data_, uint64_t{field} << 3 | kVarint);
  AppendVarint(data_, value);
  return *this;
}

WireWriter& WireWriter::Bytes(uint32_t field, std::string_view bytes) {
  AppendVarint(data_, uint64_t{field} << 3 | kLength);
  AppendVarint(data_, bytes.size());
  data_ += bytes;
  return *this;
}

WireWriter& WireWriter::Raw(std::string_view raw) {
  data_ += raw;
  return *this;
}

Result<std::optional<WireField>> WireReader::Next() {
  if (rest_.empty()) return std::nullopt;
  std::string_view start = rest_;
  auto broken = [] { return Fail(Code::kDataLoss, "a message breaks off"); };
  auto key = TakeVarint(rest_);
  if (!key || *key >> 3 == 0 || *key >> 3 > UINT32_MAX) return broken();
  WireField field{static_cast<uint32_t>(*key >> 3), 0, {}, {}};
  std::optional<uint64_t> size;
  switch (*key & 7) {
    case kVarint: {
      auto value = TakeVarint(rest_);
      if (!value) return broken();
      field.value = *value;
      size = 0;
      break;
    }
    case kFixed64:
      size = 8;
      break;
    case kLength:
      size = TakeVarint(rest_);
      break;
    case kFixed32:
      size = 4;
      break;
    default:
      return Fail(Code::kDataLoss, "a message has a field of an unknown type");
  }
  if (!size || *size > rest_.size()) return broken();
  field.bytes = rest_.substr(0, *size);
  rest_.remove_prefix(*size);
  field.raw = start.substr(0, start.size() - rest_.size());
  return field;
}

}  // namespace caisson::engine
