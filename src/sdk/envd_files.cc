// The files of EnvdClient.
#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "sdk/envd_call.h"
#include "sdk/process_stream.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;

constexpr size_t kChunk = 64 << 10;

std::string FilesTarget(const std::string& path) { return "/files?path=" + PercentEncode(path); }

// What a refused request says.
Task<Error> Refusal(http::ClientConnection& connection, unsigned status) {
  std::string text(4096, '\0');
  auto size = co_await connection.ReadBody(text);
  text.resize(size ? *size : 0);
  co_return ErrorOfAnswer(status, text);
}

FileInfo ReadEntry(const json::object& entry) {
  auto text = [&entry](std::string_view name) {
    const json::value* value = entry.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  FileInfo info;
  info.name = text("name");
  info.path = text("path");
  info.is_directory = text("type") == "FILE_TYPE_DIRECTORY";
  // proto3 JSON writes 64-bit numbers as text.
  info.size = ParseInt<int64_t>(text("size")).value_or(0);
  info.mode = text("permissions");
  if (auto time = ParseTime(text("modifiedTime"))) info.modified_at = *time;
  return info;
}

// Appends to a text until it is too long.
Task<Status> Append(std::string& to, size_t max_bytes, std::string_view piece) {
  if (to.size() + piece.size() > max_bytes)
    co_return Fail(Code::kOutOfRange, "the file is larger than {} bytes", max_bytes);
  to += piece;
  co_return Status();
}

Task<Result<std::string>> NextOf(std::string& content) { co_return std::exchange(content, {}); }

}  // namespace

Task<Result<std::string>> EnvdClient::ReadFile(std::string path, size_t max_bytes) {
  std::string content;
  CO_TRY(co_await Download(
      std::move(path), [&](std::string_view piece) { return Append(content, max_bytes, piece); }));
  co_return content;
}

Task<Status> EnvdClient::WriteFile(std::string path, std::string content) {
  co_return co_await Upload(std::move(path), [&content] { return NextOf(content); });
}

Task<Status> EnvdClient::Upload(std::string path, std::function<Task<Result<std::string>>()> next) {
  auto transport = transport_;
  CO_TRY_ASSIGN(auto connection, co_await transport->Connect());
  Status sent = co_await connection->SendHead(
      EnvdHead(*transport, "POST", FilesTarget(path), "application/octet-stream"), std::nullopt);
  while (sent) {
    auto piece = co_await next();
    // Half a file must not look like a whole one: the connection breaks off.
    if (!piece) co_return tl::unexpected(std::move(piece).error());
    if (piece->empty()) break;
    sent = co_await connection->WriteBody(*piece);
  }
  if (sent) sent = co_await connection->FinishBody();
  // A server that refuses a body may close before it has all of it; its answer counts.
  auto head = co_await connection->ReadHead();
  if (!head) co_return tl::unexpected(sent ? std::move(head).error() : std::move(sent).error());
  if (head->status != 200) co_return tl::unexpected(co_await Refusal(*connection, head->status));
  co_return sent;
}

Task<Status> EnvdClient::Download(std::string path,
                                  std::function<Task<Status>(std::string_view)> take) {
  auto transport = transport_;
  CO_TRY_ASSIGN(auto connection, co_await transport->Connect());
  CO_TRY(co_await connection->SendHead(EnvdHead(*transport, "GET", FilesTarget(path), ""), 0));
  CO_TRY_ASSIGN(http::ResponseHead head, co_await connection->ReadHead());
  if (head.status != 200) co_return tl::unexpected(co_await Refusal(*connection, head.status));
  CO_TRY(co_await take({}));
  std::string buffer(kChunk, '\0');
  for (;;) {
    CO_TRY_ASSIGN(size_t size, co_await connection->ReadBody(buffer));
    if (size == 0) co_return Status();
    CO_TRY(co_await take(std::string_view(buffer).substr(0, size)));
  }
}

Task<Result<std::vector<FileInfo>>> EnvdClient::ListFiles(std::string path, int depth) {
  auto transport = transport_;
  json::object message{{"path", std::move(path)}, {"depth", depth}};
  CO_TRY_ASSIGN(
      json::object answer,
      co_await CallEnvd(std::move(transport), "filesystem.Filesystem/ListDir", std::move(message)));
  std::vector<FileInfo> list;
  const json::value* entries = answer.if_contains("entries");
  if (!entries || !entries->is_array()) co_return list;
  for (const json::value& value : entries->get_array())
    if (const json::object* entry = value.if_object()) list.push_back(ReadEntry(*entry));
  co_return list;
}

Task<Result<FileInfo>> EnvdClient::Stat(std::string path) {
  auto transport = transport_;
  json::object message{{"path", std::move(path)}};
  CO_TRY_ASSIGN(
      json::object answer,
      co_await CallEnvd(std::move(transport), "filesystem.Filesystem/Stat", std::move(message)));
  const json::value* entry = answer.if_contains("entry");
  if (!entry || !entry->is_object())
    co_return Fail(Code::kDataLoss, "the sandbox did not describe the file");
  co_return ReadEntry(entry->get_object());
}

Task<Status> EnvdClient::MakeDirectory(std::string path) {
  auto transport = transport_;
  json::object message{{"path", std::move(path)}};
  auto answer =
      co_await CallEnvd(std::move(transport), "filesystem.Filesystem/MakeDir", std::move(message));
  if (!answer && answer.error().code() != Code::kAlreadyExists)
    co_return tl::unexpected(std::move(answer).error());
  co_return Status();
}

Task<Status> EnvdClient::Remove(std::string path) {
  auto transport = transport_;
  json::object message{{"path", std::move(path)}};
  auto answer =
      co_await CallEnvd(std::move(transport), "filesystem.Filesystem/Remove", std::move(message));
  if (!answer && answer.error().code() != Code::kNotFound)
    co_return tl::unexpected(std::move(answer).error());
  co_return Status();
}

}  // namespace caisson::sdk
