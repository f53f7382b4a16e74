// GET /files
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "envd/auth.h"
#include "envd/content_encoding.h"
#include "envd/files.h"
#include "envd/http_file.h"
#include "envd/path.h"

namespace caisson::envd {
namespace {

// Files up to this size are read first and sent in one piece.
constexpr size_t kChunk = 64 << 10;

// An open file and its first bytes.
struct Source {
  UniqueFd fd;
  std::string path;
  time_t modified = 0;
  uint64_t size = 0;   // as stat says it
  std::string head;    // up to kChunk bytes
  bool whole = false;  // `head` is everything: true even where stat lies, as in /proc
};

// Reads until `size` bytes or the end; false on an error.
bool ReadSome(int fd, size_t size, std::string& out) {
  out.resize(size);
  size_t filled = 0;
  while (filled < size) {
    ssize_t n = read(fd, out.data() + filled, size - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  out.resize(filled);
  return true;
}

Result<Source> OpenSource(const std::string& path) {
  struct stat st{};
  if (stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Fail(Code::kNotFound, "path '{}' does not exist", path);
    return FailErrno("error checking if path exists '{}'", path);
  }
  if (S_ISDIR(st.st_mode)) return Fail(Code::kInvalidArgument, "path '{}' is a directory", path);
  // SECURITY: a FIFO or a device could block envd or do something by being opened. The second look
  // is at what was really opened.
  auto refuse = [&] {
    return Fail(Code::kInvalidArgument, "path '{}' is not a regular file", path);
  };
  if (!S_ISREG(st.st_mode)) return refuse();
  Source source;
  source.path = path;
  source.fd.Reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!source.fd || fstat(source.fd.get(), &st) != 0)
    return FailErrno("error opening file '{}'", path);
  if (!S_ISREG(st.st_mode)) return refuse();
  source.modified = st.st_mtim.tv_sec;
  source.size = static_cast<uint64_t>(st.st_size);
  if (!ReadSome(source.fd.get(), kChunk, source.head))
    return FailErrno("error reading file '{}'", path);
  source.whole = source.head.size() < kChunk || source.size == kChunk;
  return source;
}

http::ResponseHead MakeHead(const Source& source, bool by_content) {
  http::ResponseHead head;
  head.headers.Set("Vary", "Accept-Encoding");
  head.headers.Set("Content-Disposition", ContentDisposition(BaseName(source.path)));
  head.headers.Set("Last-Modified", FormatHttpDate(source.modified));
  std::string_view type = TypeByExtension(source.path);
  if (type.empty()) type = by_content ? TypeByContent(source.head) : "application/octet-stream";
  head.headers.Set("Content-Type", type);
  return head;
}

Task<Status> SendWhole(http::Exchange& exchange, http::ResponseHead head, std::string body) {
  http::Response response;
  static_cast<http::ResponseHead&>(response) = std::move(head);
  response.body = std::move(body);
  co_return co_await exchange.Send(std::move(response));
}

Task<Status> SendGzip(http::Exchange& exchange, Source source) {
  http::ResponseHead head = MakeHead(source, false);
  head.headers.Set("Content-Encoding", "gzip");
  Gzip gzip;
  if (source.whole)
    co_return co_await SendWhole(exchange, std::move(head), gzip.Compress(source.head, true));
  CO_TRY(co_await exchange.StartStream(std::move(head), std::nullopt));
  for (std::string piece = std::move(source.head); !piece.empty();) {
    std::string packed = gzip.Compress(piece, false);
    if (!packed.empty()) CO_TRY(co_await exchange.Write(packed));
    if (!ReadSome(source.fd.get(), 2 * kChunk, piece))
      co_return FailErrno("error reading file '{}'", source.path);
  }
  std::string rest = gzip.Compress({}, true);
  co_return co_await exchange.FinishStream(rest);
}

// A file whose length only its end tells.
Task<Status> SendUnknownLength(http::Exchange& exchange, Source source) {
  CO_TRY(co_await exchange.StartStream(MakeHead(source, true), std::nullopt));
  for (std::string piece = std::move(source.head); !piece.empty();) {
    CO_TRY(co_await exchange.Write(piece));
    if (!ReadSome(source.fd.get(), 2 * kChunk, piece))
      co_return FailErrno("error reading file '{}'", source.path);
  }
  co_return co_await exchange.FinishStream();
}

Task<Status> SendIdentity(http::Exchange& exchange, Source source) {
  uint64_t size = source.whole ? source.head.size() : source.size;
  if (size < source.head.size()) co_return co_await SendUnknownLength(exchange, std::move(source));
  http::ResponseHead head = MakeHead(source, true);
  head.headers.Set("Accept-Ranges", "bytes");
  const http::Headers& asked = exchange.request().headers;
  head.status = CheckConditions(asked, source.modified);
  if (head.status != 0) {
    head.headers.Remove("Content-Type");
    co_return co_await SendWhole(exchange, std::move(head), "");
  }
  RangeChoice choice = ChooseRange(asked, size, source.modified);
  if (choice.kind == RangeKind::kUnsatisfiable) {
    http::Response response = http::Response::Text(416, "invalid range: failed to overlap\n");
    response.headers.Set("Content-Range", fmt::format("bytes */{}", size));
    co_return co_await exchange.Send(std::move(response));
  }
  ByteRange range{0, size};
  head.status = 200;
  if (choice.kind == RangeKind::kPart) {
    range = choice.range;
    head.status = 206;
    head.headers.Set("Content-Range", fmt::format("bytes {}-{}/{}", range.offset,
                                                  range.offset + range.size - 1, size));
  }
  if (source.whole)
    co_return co_await SendWhole(exchange, std::move(head),
                                 source.head.substr(range.offset, range.size));
  CO_TRY(co_await exchange.StartStream(std::move(head), range.size));
  CO_TRY(co_await exchange.SendFile(source.fd.get(), range.offset, range.size));
  co_return co_await exchange.FinishStream();
}

Result<Source> FindSource(const http::RequestHead& request, const Settings& settings) {
  http::Query query = request.ParsedQuery();
  TRY(CheckFileAccess(request, query, "read", settings, Now()));
  TRY_ASSIGN(User user, FileUser(query.Get("username"), settings));
  TRY_ASSIGN(std::string path,
             ResolvePath(query.Get("path").value_or(""), user, settings.default_workdir));
  return OpenSource(path);
}

}  // namespace

Task<void> FileApi::Download(http::Exchange& exchange) {
  const http::RequestHead& request = exchange.request();
  auto source = FindSource(request, settings_);
  if (!source) {
    (void)co_await exchange.Send(ErrorResponse(source.error()));
    co_return;
  }
  bool identity_only = false;
  for (auto name : {"Range", "If-Modified-Since", "If-None-Match", "If-Range"})
    identity_only = identity_only || !request.headers.Value(name).empty();
  auto encoding = ChooseEncoding(request.headers.Value("Accept-Encoding"), identity_only);
  if (!encoding) {
    (void)co_await exchange.Send(ErrorResponse(406, encoding.error().message()));
    co_return;
  }
  Status sent = *encoding == Encoding::kGzip ? co_await SendGzip(exchange, std::move(*source))
                                             : co_await SendIdentity(exchange, std::move(*source));
  // The client must see that the file is not complete.
  if (!sent && exchange.answered()) exchange.Abort();
}

}  // namespace caisson::envd
