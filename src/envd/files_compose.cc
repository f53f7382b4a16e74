// POST /files/compose: several files become one, which appears at once and complete.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"
#include "envd/auth.h"
#include "envd/files.h"
#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

struct ComposeRequest {
  User user;
  std::vector<std::string> sources;
  std::string destination;
};

Result<ComposeRequest> ReadRequest(std::string_view body, const Settings& settings) {
  boost::system::error_code ec;
  json::value document = json::parse(body, ec);
  if (ec || !document.is_object())
    return Fail(Code::kInvalidArgument, "invalid request body: it is not a JSON object");
  Fields fields(document.get_object());
  TRY_ASSIGN(auto sources, fields.Strings("sourcePaths"));
  TRY_ASSIGN(std::string destination, fields.String("destination"));
  TRY_ASSIGN(std::string username, fields.String("username"));
  if (sources.empty()) return Fail(Code::kInvalidArgument, "source_paths must not be empty");
  if (destination.empty()) return Fail(Code::kInvalidArgument, "destination is required");
  ComposeRequest request;
  TRY_ASSIGN(request.user, FileUser(username, settings));
  TRY_ASSIGN(request.destination, ResolvePath(destination, request.user, settings.default_workdir));
  for (const std::string& source : sources) {
    TRY_ASSIGN(std::string path, ResolvePath(source, request.user, settings.default_workdir));
    if (path == request.destination)
      return Fail(Code::kInvalidArgument, "source path \"{}\" cannot be the same as destination",
                  source);
    struct stat st{};
    if (stat(path.c_str(), &st) != 0)
      return Fail(Code::kNotFound, "source file not found: {}", source);
    if (!S_ISREG(st.st_mode))
      return Fail(Code::kInvalidArgument, "source path is not a regular file: {}", source);
    request.sources.push_back(std::move(path));
  }
  return request;
}

Status AppendFile(int target, const std::string& path) {
  UniqueFd source(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat st{};
  if (!source || fstat(source.get(), &st) != 0)
    return FailErrno("error opening source file {}", path);
  // SECURITY: it may have been swapped since it was looked at, for a device without an end.
  if (!S_ISREG(st.st_mode))
    return Fail(Code::kInvalidArgument, "source path is not a regular file: {}", path);
  // The kernel copies, or shares blocks, where it can; the loop below does what is left.
  constexpr size_t kStep = 64 << 20;
  while (copy_file_range(source.get(), nullptr, target, nullptr, kStep, 0) > 0) continue;
  std::string buffer(128 << 10, '\0');
  for (;;) {
    ssize_t size = read(source.get(), buffer.data(), buffer.size());
    if (size < 0) return FailErrno("error composing source {}", path);
    if (size == 0) return {};
    for (ssize_t offset = 0; offset < size;) {
      ssize_t written = write(target, buffer.data() + offset, static_cast<size_t>(size - offset));
      if (written < 0) return FailErrno("error composing source {}", path);
      offset += written;
    }
  }
}

Status ComposeFiles(const ComposeRequest& request) {
  TRY(EnsureDirs(DirName(request.destination), request.user));
  std::string temporary = request.destination + ".compose." + RandomHex(8) + ".tmp";
  UniqueFd target(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!target) return FailErrno("error creating destination file");
  Status done = ChownPath(temporary, request.user);
  for (size_t i = 0; done && i < request.sources.size(); ++i)
    done = AppendFile(target.get(), request.sources[i]);
  if (done && rename(temporary.c_str(), request.destination.c_str()) != 0)
    done = FailErrno("error finalizing compose");
  if (!done) {
    unlink(temporary.c_str());
    return done;
  }
  for (const std::string& source : request.sources) unlink(source.c_str());
  return {};
}

}  // namespace

Task<void> FileApi::Compose(http::Exchange& exchange) {
  auto body = co_await exchange.ReadAll(static_cast<size_t>(settings_.limits.max_request_bytes));
  auto request =
      body ? ReadRequest(*body, settings_) : Result<ComposeRequest>(tl::unexpected(body.error()));
  Status done;
  if (request) {
    done = co_await RunBlocking(worker_.pool(),
                                [request = *request] { return ComposeFiles(request); });
  } else {
    done = tl::unexpected(request.error());
  }
  if (!done) {
    (void)co_await exchange.Send(ErrorResponse(done.error()));
    co_return;
  }
  json::object entry{{"path", ToUtf8(request->destination)},
                     {"name", ToUtf8(BaseName(request->destination))},
                     {"type", "file"}};
  (void)co_await exchange.Send(http::Response::Json(200, entry));
}

}  // namespace caisson::envd
