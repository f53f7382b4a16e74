#include "events/gzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace caisson::events {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to say gzip
using Buffer = std::array<unsigned char, 64 << 10>;

// zlib does not write there; its interface is older than const.
void Give(z_stream& stream, std::string_view data) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
}

void Room(z_stream& stream, Buffer& buffer) {
  stream.next_out = buffer.data();
  stream.avail_out = buffer.size();
}

void Keep(const z_stream& stream, const Buffer& buffer, std::string& out) {
  out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
}

}  // namespace

std::string Gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();  // zlib fails for no other reason here
  Give(stream, text);
  std::string packed;
  Buffer buffer;
  do {
    Room(stream, buffer);
    deflate(&stream, Z_FINISH);
    Keep(stream, buffer, packed);
  } while (stream.avail_out == 0);
  deflateEnd(&stream);
  return packed;
}

Result<std::string> Gunzip(std::string_view packed, size_t max_size) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  Give(stream, packed);
  std::string text;
  Buffer buffer;
  int code = Z_OK;
  while (code == Z_OK && text.size() <= max_size) {
    Room(stream, buffer);
    code = inflate(&stream, Z_NO_FLUSH);
    Keep(stream, buffer, text);
  }
  inflateEnd(&stream);
  if (text.size() > max_size) return Fail(Code::kOutOfRange, "it holds more than {}", max_size);
  if (code != Z_STREAM_END) return Fail(Code::kDataLoss, "it is not a whole gzip file");
  return text;
}

}  // namespace caisson::events
