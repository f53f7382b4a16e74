#include "build/archive.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace caisson::build {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameField = 100;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say gzip

std::string Padding(size_t size) { return std::string((kBlock - size % kBlock) % kBlock, '\0'); }

// "23 path=some/long/name\n": the number counts itself, too.
std::string PaxRecord(std::string_view path) {
  std::string rest = fmt::format(" path={}\n", path);
  size_t size = rest.size() + 1;
  while (fmt::to_string(size).size() + rest.size() != size) ++size;
  return fmt::to_string(size) + rest;
}

}  // namespace

struct Archive::Gzip {
  Gzip() { usable = deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == 0; }
  ~Gzip() {
    if (usable) deflateEnd(&stream);
  }

  std::string Pack(std::string_view data, int flush) {
    std::string packed;
    std::array<unsigned char, 64 << 10> buffer;
    // zlib does not write there; its interface is older than const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    do {
      stream.next_out = buffer.data();
      stream.avail_out = buffer.size();
      deflate(&stream, flush);
      packed.append(reinterpret_cast<char*>(buffer.data()), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    return packed;
  }

  z_stream stream{};
  bool usable = false;
};

Archive::Archive(Time at) : at_(at), gzip_(std::make_unique<Gzip>()) {
  if (!gzip_->usable) throw std::bad_alloc();  // zlib fails for no other reason here
}
Archive::~Archive() = default;

std::string Archive::Header(std::string_view name, size_t size, char kind) const {
  std::string block(kBlock, '\0');
  auto put = [&](size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_.time_since_epoch()).count();
  put(0, name.substr(0, kNameField));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, fmt::format("{:011o}", std::max<int64_t>(seconds, 0)));
  put(148, "        ");
  put(156, std::string_view(&kind, 1));
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (unsigned char byte : block) sum += byte;
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

std::string Archive::Add(const std::string& path, std::string_view content) {
  std::string plain;
  if (path.size() > kNameField) {
    std::string record = PaxRecord(path);
    plain = Header("name", record.size(), 'x') + record + Padding(record.size());
  }
  plain += Header(path, content.size(), '0');
  plain += content;
  plain += Padding(content.size());
  return gzip_->Pack(plain, Z_NO_FLUSH);
}

std::string Archive::Finish() { return gzip_->Pack(std::string(2 * kBlock, '\0'), Z_FINISH); }

}  // namespace caisson::build
