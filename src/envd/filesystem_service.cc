#include "envd/filesystem_service.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/array.hpp>

#include "base/file.h"
#include "envd/auth.h"
#include "envd/list_dir.h"
#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {

bool IsLegacyClient(const http::RequestHead& head) {
  return head.headers.Value("User-Agent") == "connect-python";
}

namespace {

// Tells an old client why its entries are short.
http::Headers LegacyHeaders(const http::RequestHead& head) {
  if (!IsLegacyClient(head)) return {};
  return {{"X-E2B-Legacy-SDK", "true"}};
}

Result<json::object> EntryAnswer(const http::RequestHead& head, const std::string& path) {
  TRY_ASSIGN(Entry entry, ReadEntry(path, *Accounts::Current()));
  json::object out;
  out["entry"] = ToJson(entry, IsLegacyClient(head));
  return out;
}

}  // namespace

void FilesystemService::Register(http::Router& router) {
  auto limit = static_cast<size_t>(settings_.limits.max_request_bytes);
  auto path = [](std::string_view method) {
    return "/filesystem.Filesystem/" + std::string(method);
  };
  auto unary = [&](std::string_view name, auto member) {
    http::UnaryMethod method =
        std::bind(member, this, std::placeholders::_1, std::placeholders::_2);
    router.Add("POST", path(name), [method, limit](http::Exchange& exchange, http::PathParams) {
      return http::ServeUnary(exchange, method, limit, LegacyHeaders(exchange.request()));
    });
  };
  unary("Stat", &FilesystemService::Stat);
  unary("MakeDir", &FilesystemService::MakeDir);
  unary("Move", &FilesystemService::Move);
  unary("ListDir", &FilesystemService::ListDir);
  unary("Remove", &FilesystemService::Remove);
  unary("CreateWatcher", &FilesystemService::CreateWatcher);
  unary("GetWatcherEvents", &FilesystemService::GetWatcherEvents);
  unary("RemoveWatcher", &FilesystemService::RemoveWatcher);
  http::StreamMethod watch =
      std::bind(&FilesystemService::WatchDir, this, std::placeholders::_1, std::placeholders::_2);
  router.Add("POST", path("WatchDir"), [watch, limit](http::Exchange& exchange, http::PathParams) {
    return http::ServeStream(exchange, watch, limit, LegacyHeaders(exchange.request()));
  });
}

Result<std::string> FilesystemService::ReadPath(const http::RequestHead& head, const Json& request,
                                                std::string_view field) const {
  TRY_ASSIGN(User user, RpcUser(head, settings_));
  TRY_ASSIGN(std::string path, Fields(request).String(field));
  return ResolvePath(path, user, settings_.default_workdir);
}

Task<Result<json::object>> FilesystemService::Stat(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(std::string path, ReadPath(exchange.request(), request, "path"));
  co_return EntryAnswer(exchange.request(), path);
}

Task<Result<json::object>> FilesystemService::MakeDir(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(std::string path, ReadPath(exchange.request(), request, "path"));
  CO_TRY_ASSIGN(User user, RpcUser(exchange.request(), settings_));
  struct stat st{};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode))
      co_return Fail(Code::kAlreadyExists, "directory already exists: {}", path);
    co_return Fail(Code::kInvalidArgument, "path already exists but it is not a directory: {}",
                   path);
  }
  CO_TRY(EnsureDirs(path, user));
  co_return EntryAnswer(exchange.request(), path);
}

Task<Result<json::object>> FilesystemService::Move(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(std::string source, ReadPath(exchange.request(), request, "source"));
  CO_TRY_ASSIGN(std::string destination, ReadPath(exchange.request(), request, "destination"));
  CO_TRY_ASSIGN(User user, RpcUser(exchange.request(), settings_));
  struct stat st{};
  if (lstat(source.c_str(), &st) != 0 && errno == ENOENT)
    co_return Fail(Code::kNotFound, "source file not found: {}", source);
  CO_TRY(EnsureDirs(DirName(destination), user));
  if (rename(source.c_str(), destination.c_str()) != 0) {
    if (errno == ENOENT) co_return Fail(Code::kNotFound, "source file not found: {}", source);
    int error = errno;
    co_return Fail(Code::kInternal, "error renaming {} to {}: {}", source, destination,
                   strerror(error));
  }
  co_return EntryAnswer(exchange.request(), destination);
}

Task<Result<json::object>> FilesystemService::ListDir(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(std::string path, ReadPath(exchange.request(), request, "path"));
  CO_TRY_ASSIGN(uint32_t depth, Fields(request).Uint32("depth"));
  ListOptions options{path, std::max(depth, 1U), IsLegacyClient(exchange.request()),
                      static_cast<size_t>(settings_.limits.max_list_entries)};
  co_return co_await RunBlocking(worker_.pool(), [options, accounts = Accounts::Current()] {
    return ListDirectory(options, *accounts);
  });
}

Task<Result<json::object>> FilesystemService::Remove(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(std::string path, ReadPath(exchange.request(), request, "path"));
  Status removed = co_await RunBlocking(worker_.pool(), [path] { return RemoveTree(path); });
  if (!removed)
    co_return Fail(Code::kInternal, "error removing file or directory: {}",
                   removed.error().message());
  co_return json::object();
}

}  // namespace caisson::envd
