#include "api/sse_stream.h"

#include <zlib.h>

#include <boost/json.hpp>

#include "http/accept.h"

namespace caisson::api {
namespace {

// 8 kB of history and 100 kB of memory per stream: events resemble those just before them.
constexpr int kWindowBits = 13;
constexpr int kMemoryLevel = 7;
constexpr int kGzipFormat = 16;

}  // namespace

std::string Sse(std::string_view type, const boost::json::object& data, int64_t id) {
  std::string text = id > 0 ? fmt::format("id: {}\n", id) : std::string();
  return text + fmt::format("event: {}\ndata: {}\n\n", type, boost::json::serialize(data));
}

// SECURITY: the size of compressed text tells something of what stands beside a text that somebody
// else chose (BREACH). No key, cookie or token is ever in a stream: they travel in headers, and
// events and logs have been redacted before. What remains are the user's own names and texts, so it
// is off unless the operator wants it, and what commands print live is never compressed.
class SseStream::Gzip {
 public:
  Gzip() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzipFormat,
                     kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();  // the only way it fails with these arguments
  }
  ~Gzip() { deflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  // All of `text`, flushed: nothing of it waits for what comes next.
  std::string Compress(std::string_view text, bool last) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    std::string out;
    char buffer[16 << 10];
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof buffer;
      deflate(&stream_, last ? Z_FINISH : Z_SYNC_FLUSH);
      out.append(buffer, sizeof buffer - stream_.avail_out);
    } while (stream_.avail_out == 0);
    return out;
  }

 private:
  z_stream stream_{};
};

SseStream::SseStream(http::Exchange& exchange, const Config& config) : exchange_(exchange) {
  if (config.sse_compression &&
      http::AcceptsCoding(exchange.request().headers.Value("Accept-Encoding"), "gzip"))
    gzip_ = std::make_unique<Gzip>();
}

SseStream::~SseStream() = default;

Task<Status> SseStream::Start(std::string_view first) {
  http::ResponseHead head{.status = 200,
                          .headers = {{"Content-Type", "text/event-stream; charset=utf-8"},
                                      {"Cache-Control", "no-cache, no-transform"},
                                      {"X-Accel-Buffering", "no"}}};
  if (!gzip_) co_return co_await exchange_.StartStream(std::move(head), std::nullopt, first);
  head.headers.Set("Content-Encoding", "gzip");
  head.headers.Set("Vary", "Accept-Encoding");
  std::string compressed = gzip_->Compress(first, false);
  co_return co_await exchange_.StartStream(std::move(head), std::nullopt, compressed);
}

Task<Status> SseStream::Write(std::string_view events) {
  if (!gzip_) co_return co_await exchange_.Write(events);
  std::string compressed = gzip_->Compress(events, false);
  co_return co_await exchange_.Write(compressed);
}

Task<Status> SseStream::Finish() {
  if (!gzip_) co_return co_await exchange_.FinishStream();
  std::string end = gzip_->Compress({}, true);
  co_return co_await exchange_.FinishStream(end);
}

}  // namespace caisson::api
