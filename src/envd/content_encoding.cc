#include "envd/content_encoding.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr size_t kBuffer = 128 << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say gzip

struct Coding {
  std::string name;
  int quality = 1000;  // thousandths
};

// "0.5" -> 500; what is not a number counts as 1, as the reference does.
int ParseQuality(std::string_view text) {
  int value = 0, scale = 1000;
  bool fraction = false;
  if (text.empty()) return 1000;
  for (char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (c >= '0' && c <= '9') {
      if (fraction) scale /= 10;
      value = fraction ? value + (c - '0') * scale : std::min(value * 10 + (c - '0') * 1000, 1000);
    } else {
      return 1000;
    }
  }
  return value;
}

Coding ParseCoding(std::string_view text) {
  auto parts = Split(text, ';');
  Coding coding{ToLower(Trim(parts[0]))};
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string parameter = ToLower(Trim(parts[i]));
    if (parameter.starts_with("q=")) coding.quality = ParseQuality(parameter.substr(2));
  }
  return coding;
}

}  // namespace

Result<Encoding> ChooseEncoding(std::string_view accept_encoding, bool identity_only) {
  std::vector<Coding> codings;
  if (!Trim(accept_encoding).empty()) {
    for (std::string_view part : Split(accept_encoding, ',')) codings.push_back(ParseCoding(part));
  }
  auto identity = std::ranges::find(codings, "identity", &Coding::name);
  auto any = std::ranges::find(codings, "*", &Coding::name);
  bool identity_refused = identity != codings.end() ? identity->quality == 0
                                                    : any != codings.end() && any->quality == 0;
  // The highest quality wins; among equals, the one named first.
  const Coding* best = nullptr;
  for (const Coding& coding : codings) {
    bool known = coding.name == "gzip" || coding.name == "identity" || coding.name == "*";
    if (!identity_only && known && coding.quality > (best != nullptr ? best->quality : 0))
      best = &coding;
  }
  if (best != nullptr && best->name == "gzip") return Encoding::kGzip;
  if (!identity_refused) return Encoding::kIdentity;
  if (best != nullptr && best->name == "*") return Encoding::kGzip;
  return Fail(Code::kInvalidArgument,
              "error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]");
}

Result<Encoding> ReadContentEncoding(std::string_view content_encoding) {
  std::string name = ParseCoding(content_encoding).name;
  if (name.empty() || name == "identity") return Encoding::kIdentity;
  if (name == "gzip") return Encoding::kGzip;
  return Fail(Code::kInvalidArgument,
              "error decompressing request body: unsupported Content-Encoding: {}, supported: "
              "[gzip]",
              content_encoding);
}

Task<Result<std::string_view>> BodySource::Next() {
  if (buffer_.empty()) buffer_.resize(kBuffer);
  CO_TRY_ASSIGN(size_t size, co_await exchange_.Read(buffer_));
  co_return std::string_view(buffer_.data(), size);
}

GunzipSource::GunzipSource(std::unique_ptr<ChunkSource> source) : source_(std::move(source)) {
  inflateInit2(&stream_, kGzipWindow);
}

GunzipSource::~GunzipSource() { inflateEnd(&stream_); }

Task<Result<std::string_view>> GunzipSource::Next() {
  if (buffer_.empty()) buffer_.resize(kBuffer);
  while (!ended_) {
    if (stream_.avail_in == 0 && !output_pending_) {
      CO_TRY_ASSIGN(std::string_view input, co_await source_->Next());
      if (input.empty()) {
        ended_ = true;
        if (begun_ && !member_open_) break;
        co_return Fail(Code::kInvalidArgument,
                       "error decompressing request body: unexpected end of the gzip data");
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
      stream_.avail_in = static_cast<uInt>(input.size());
    }
    begun_ = member_open_ = true;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    int result = inflate(&stream_, Z_NO_FLUSH);
    output_pending_ = stream_.avail_out == 0;
    size_t produced = buffer_.size() - stream_.avail_out;
    if (result == Z_STREAM_END) {
      member_open_ = output_pending_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      co_return Fail(Code::kInvalidArgument,
                     "error decompressing request body: the gzip data is broken");
    }
    if (produced > 0) co_return std::string_view(buffer_.data(), produced);
  }
  co_return std::string_view();
}

Gzip::Gzip() {
  deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
}

Gzip::~Gzip() { deflateEnd(&stream_); }

void Gzip::Run(std::string_view data, int flush, std::string& out) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream_.avail_in = static_cast<uInt>(data.size());
  do {
    size_t used = out.size();
    out.resize(used + deflateBound(&stream_, stream_.avail_in) + 64);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream_.avail_out = static_cast<uInt>(out.size() - used);
    deflate(&stream_, flush);
    out.resize(out.size() - stream_.avail_out);
  } while (stream_.avail_out == 0);
}

std::string Gzip::Compress(std::string_view data, bool last) {
  std::string out;
  bool probe = !probed_ && !last && !data.empty();
  Run(data, last ? Z_FINISH : probe ? Z_SYNC_FLUSH : Z_NO_FLUSH, out);
  if (probe) {
    // The first piece tells what the rest will be like. Nothing is pending after the flush.
    probed_ = true;
    char none[64];
    stream_.next_out = reinterpret_cast<Bytef*>(none);
    stream_.avail_out = sizeof none;
    if (out.size() > data.size() * 9 / 10)
      deflateParams(&stream_, Z_NO_COMPRESSION, Z_DEFAULT_STRATEGY);
    out.append(none, sizeof none - stream_.avail_out);
  }
  return out;
}

}  // namespace caisson::envd
