// POST /files
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "envd/auth.h"
#include "envd/content_encoding.h"
#include "envd/files.h"
#include "envd/multipart.h"
#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

struct Uploaded {
  std::string path;
  Metadata metadata;
};

// Everything about a request that does not depend on the file.
struct UploadRequest {
  User user;
  std::string workdir;
  std::optional<std::string> path;
  Metadata metadata;
  std::optional<uint64_t> content_length;
};

Error NoSpace(const UploadRequest& request, int error) {
  std::string message = "not enough disk space available";
  if (request.content_length.value_or(0) > 0)
    message = fmt::format("attempted to write {} bytes: {}", *request.content_length, message);
  return Error(Code::kResourceExhausted, message).WithErrno(error);
}

Result<UniqueFd> OpenTarget(const std::string& path, const User& user) {
  TRY(EnsureDirs(DirName(path), user));
  struct stat st{};
  bool existed = stat(path.c_str(), &st) == 0;
  if (path.ends_with('/') || (existed && S_ISDIR(st.st_mode)))
    return Fail(Code::kInvalidArgument, "path is a directory: {}", path);
  // SECURITY: opening a FIFO or a device could block envd. The second look is at what was opened.
  auto refuse = [&] {
    return Fail(Code::kInvalidArgument, "path is not a regular file: {}", path);
  };
  if (existed && !S_ISREG(st.st_mode)) return refuse();
  // Even where the owner does not change: those who watch expect a CHMOD with every upload.
  if (existed) TRY(ChownPath(path, user));
  UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd || fstat(fd.get(), &st) != 0) return FailErrno("error opening file '{}'", path);
  if (!S_ISREG(st.st_mode)) return refuse();
  if (!existed) TRY(ChownPath(path, user));
  return fd;
}

Status WriteAll(int fd, std::string_view data, const UploadRequest& request) {
  while (!data.empty()) {
    ssize_t size = write(fd, data.data(), data.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == ENOSPC || errno == EDQUOT))
      return tl::unexpected(NoSpace(request, errno));
    if (size < 0) return FailErrno("error writing file");
    data.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

// One file from any source of pieces.
template <class Source>
Task<Result<Uploaded>> Store(Source& source, std::string path, const UploadRequest& request) {
  CO_TRY_ASSIGN(UniqueFd fd, OpenTarget(path, request.user));
  for (;;) {
    CO_TRY_ASSIGN(std::string_view piece, co_await source.Next());
    if (piece.empty()) break;
    CO_TRY(WriteAll(fd.get(), piece, request));
  }
  CO_TRY_ASSIGN(Metadata stored, ReplaceMetadata(fd.get(), request.metadata));
  co_return Uploaded{std::move(path), std::move(stored)};
}

Task<Result<std::vector<Uploaded>>> StoreParts(ChunkSource& source, std::string boundary,
                                               const UploadRequest& request, const Limits& limits) {
  if (boundary.empty())
    co_return Fail(Code::kInvalidArgument,
                   "error parsing multipart form: no multipart boundary param in Content-Type");
  MultipartReader reader(source, boundary, static_cast<size_t>(limits.max_part_header_bytes));
  std::vector<Uploaded> files;
  for (;;) {
    CO_TRY_ASSIGN(std::optional<PartHeader> part, co_await reader.NextPart());
    if (!part) co_return files;
    if (part->name != "file") continue;
    if (!request.path && !part->filename)
      co_return Fail(Code::kInvalidArgument,
                     "error getting multipart custom part file name: the part has no filename and "
                     "the request no path");
    CO_TRY_ASSIGN(std::string path, ResolvePath(request.path ? *request.path : *part->filename,
                                                request.user, request.workdir));
    if (std::ranges::find(files, path, &Uploaded::path) != files.end())
      co_return Fail(Code::kInvalidArgument,
                     "you cannot upload multiple files to the same path '{}' in one upload "
                     "request, only the first specified file was uploaded",
                     path);
    if (files.size() >= static_cast<size_t>(limits.max_upload_parts))
      co_return Fail(Code::kInvalidArgument, "an upload can have at most {} files",
                     limits.max_upload_parts);
    CO_TRY_ASSIGN(Uploaded file, co_await Store(reader, path, request));
    files.push_back(std::move(file));
  }
}

Task<Result<std::vector<Uploaded>>> StoreBody(http::Exchange& exchange, const Settings& settings) {
  const http::RequestHead& head = exchange.request();
  http::Query query = head.ParsedQuery();
  CO_TRY(CheckFileAccess(head, query, "write", settings, Now()));
  CO_TRY_ASSIGN(Encoding encoding, ReadContentEncoding(head.headers.Value("Content-Encoding")));
  UploadRequest request;
  CO_TRY_ASSIGN(request.user, FileUser(query.Get("username"), settings));
  CO_TRY_ASSIGN(request.metadata, MetadataFromHeaders(head.headers));
  request.workdir = settings.default_workdir;
  if (auto path = query.Get("path")) request.path = std::string(*path);
  request.content_length = exchange.ContentLength();
  std::unique_ptr<ChunkSource> source = std::make_unique<BodySource>(exchange);
  if (encoding == Encoding::kGzip) source = std::make_unique<GunzipSource>(std::move(source));

  std::string_view content_type = head.headers.Value("Content-Type");
  std::string media_type = ToLower(Trim(content_type.substr(0, content_type.find(';'))));
  if (media_type.starts_with("multipart/"))
    co_return co_await StoreParts(*source, MultipartBoundary(content_type), request,
                                  settings.limits);
  if (media_type != "application/octet-stream")
    co_return Fail(Code::kInvalidArgument,
                   "unsupported content type: {}, expected multipart/form-data or "
                   "application/octet-stream",
                   content_type);
  if (!request.path)
    co_return Fail(Code::kInvalidArgument, "path query parameter is required for raw body upload");
  CO_TRY_ASSIGN(std::string path, ResolvePath(*request.path, request.user, request.workdir));
  CO_TRY_ASSIGN(Uploaded file, co_await Store(*source, std::move(path), request));
  std::vector<Uploaded> files;
  files.push_back(std::move(file));
  co_return files;
}

}  // namespace

Task<void> FileApi::Upload(http::Exchange& exchange) {
  auto files = co_await StoreBody(exchange, settings_);
  if (!files) {
    (void)co_await exchange.Send(ErrorResponse(files.error()));
    co_return;
  }
  json::array out;
  for (const Uploaded& file : *files) {
    json::object entry{
        {"path", ToUtf8(file.path)}, {"name", ToUtf8(BaseName(file.path))}, {"type", "file"}};
    if (!file.metadata.empty()) {
      json::object metadata;
      for (const auto& [key, value] : file.metadata) metadata[key] = value;
      entry["metadata"] = std::move(metadata);
    }
    out.push_back(std::move(entry));
  }
  (void)co_await exchange.Send(http::Response::Json(200, out));
}

}  // namespace caisson::envd
