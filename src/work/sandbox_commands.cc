// What is done inside a sandbox for a user: commands and files.
#include <boost/json.hpp>

#include "base/id.h"
#include "base/log.h"
#include "sdk/utf8_decoder.h"
#include "work/sandboxes.h"

namespace caisson::work {
namespace {

namespace json = boost::json;
using store::GitOperationRow;
using store::Transaction;

// Of a command's output, its beginning and its end are kept.
constexpr size_t kKept = 4'000;

// The end of a text that grows, in bounded memory.
class Tail {
 public:
  void Add(std::string_view piece) {
    text_ += piece;
    if (text_.size() > 4 * kKept) text_ = Text();
  }
  std::string Text() const {
    if (text_.size() <= kKept) return text_;
    size_t begin = text_.size() - kKept;
    while (begin < text_.size() && (static_cast<uint8_t>(text_[begin]) & 0xC0) == 0x80) ++begin;
    return text_.substr(begin);
  }

 private:
  std::string text_;
};

std::string Joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& arg : argv) text += (text.empty() ? "" : " ") + arg;
  return text;
}

Error FileError(Error error, const std::string& path) {
  if (error.code() == Code::kNotFound)
    return Error(Code::kNotFound,
                 fmt::format("file_not_found: '{}' does not exist in the sandbox", path));
  return error;
}

// A command whose caller was canceled: its row says so.
class Unfinished {
 public:
  Unfinished(GitOperationRow operation, std::function<void(GitOperationRow)> write)
      : operation_(std::move(operation)), write_(std::move(write)) {}
  ~Unfinished() {
    if (!write_) return;
    operation_.status = "failed";
    operation_.error_type = "canceled";
    write_(std::move(operation_));
  }
  void Finish() { write_ = nullptr; }

 private:
  GitOperationRow operation_;
  std::function<void(GitOperationRow)> write_;
};

// Counts what passes.
class Meter {
 public:
  explicit Meter(int64_t limit) : left_(limit) {}
  Status Take(size_t size) {
    left_ -= static_cast<int64_t>(size);
    if (left_ >= 0) return {};
    return Fail(Code::kOutOfRange, "the file is larger than this server passes on");
  }

 private:
  int64_t left_;
};

Task<Result<std::string>> Metered(Meter& meter,
                                  const std::function<Task<Result<std::string>>()>& next) {
  CO_TRY_ASSIGN(std::string piece, co_await next());
  CO_TRY(meter.Take(piece.size()));
  co_return piece;
}

Task<Status> TakeMetered(Meter& meter, const std::function<Task<Status>(std::string_view)>& take,
                         std::string_view piece) {
  CO_TRY(meter.Take(piece.size()));
  co_return co_await take(piece);
}

}  // namespace

Task<Result<Sandboxes::Executed>> Sandboxes::Execute(std::string owner_id, std::string id,
                                                     Execution execution) {
  CO_TRY(policy_.Check(execution.role, execution.command.argv));
  CO_TRY_ASSIGN(Connection connection, co_await Connect(std::move(owner_id), std::move(id)));
  const SandboxRow& row = connection.row;
  const events::Redactor& redactor = log_.redactor();
  GitOperationRow operation{.id = RandomId("op-", 20),
                            .owner_id = row.owner_id,
                            .sandbox_id = row.id,
                            .task_id = row.task_id,
                            .execution_id = execution.execution_id,
                            .operation = "execute",
                            .command = redactor.Redact(Joined(execution.command.argv)),
                            .created_at = Now()};
  CO_TRY(
      co_await store_.Write([operation](Transaction& write) { return write.Insert(operation); }));

  Unfinished unfinished(operation, [this](GitOperationRow left) {
    operations_.Spawn("end of a command", WriteOperation(std::move(left)));
  });
  Tail tail;
  auto pass_on = std::move(execution.command.on_output);
  execution.command.on_output = [&](sdk::Stream stream, std::string_view piece) {
    tail.Add(piece);
    auto event = About(row, "command_output",
                       {{"output", piece},
                        {"stream", stream == sdk::Stream::kStdout ? "stdout" : "stderr"},
                        {"operation_id", operation.id}});
    if (!execution.execution_id.empty()) event.execution_id = execution.execution_id;
    log_.Gather(std::move(event));
    if (pass_on) pass_on(stream, piece);
  };
  auto begun = std::chrono::steady_clock::now();
  auto result = co_await connection.envd.Run(execution.command);
  operation.duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                              std::chrono::steady_clock::now() - begun)
                              .count();
  operation.status = result && result->exit_code == 0 ? "completed" : "failed";
  if (result) {
    operation.exit_code = result->exit_code;
    operation.output_head =
        redactor.Redact(sdk::CutUtf8(result->stdout_text + result->stderr_text, kKept));
    if (result->timed_out) operation.error_type = "timeout";
  } else {
    operation.error_type = "other";
    operation.error_message = redactor.Redact(result.error().message());
  }
  operation.output_tail = redactor.Redact(tail.Text());
  // A canceled caller does not get past this.
  co_await WriteOperation(operation);
  unfinished.Finish();
  if (!result) co_return tl::unexpected(co_await WhyFailed(row, std::move(result).error()));
  co_return Executed{operation.id, std::move(*result)};
}

Task<Error> Sandboxes::WhyFailed(SandboxRow row, Error error) {
  auto info = co_await provider_.Get(row.owner_id, row.backend_id);
  if (info || info.error().code() != Code::kNotFound) co_return error;
  std::string reason = co_await provider_.EndReason(row.owner_id, row.backend_id);
  if (Status ended = co_await WriteEnd(row, "terminated", "gone"); !ended)
    LogWarn("the end of a sandbox could not be written down",
            {{"sandbox", row.id}, {"error", ended.error().message()}});
  if (reason != "timeout") co_return error;
  co_return Error(Code::kFailedPrecondition,
                  "sandbox_expired: the time of the sandbox was over before the command ended");
}

Task<void> Sandboxes::WriteOperation(GitOperationRow operation) {
  Status written =
      co_await store_.Write([operation](Transaction& write) { return write.Update(operation); });
  // The command has run all the same.
  if (!written)
    LogError("the end of a command could not be written down",
             {{"operation", operation.id}, {"error", written.error().message()}});
}

Task<Status> Sandboxes::Upload(std::string owner_id, std::string id, std::string path,
                               std::function<Task<Result<std::string>>()> next) {
  CO_TRY_ASSIGN(Connection connection, co_await Connect(std::move(owner_id), std::move(id)));
  Meter meter(config_.file_max_bytes);
  Status sent = co_await connection.envd.Upload(path, [&] { return Metered(meter, next); });
  // Half a file is nobody's wish.
  if (!sent && sent.error().code() == Code::kOutOfRange)
    (void)co_await connection.envd.Remove(path);
  co_return sent;
}

Task<Status> Sandboxes::Download(std::string owner_id, std::string id, std::string path,
                                 std::function<Task<Status>(std::string_view)> take) {
  CO_TRY_ASSIGN(Connection connection, co_await Connect(std::move(owner_id), std::move(id)));
  auto info = co_await connection.envd.Stat(path);
  if (!info) co_return tl::unexpected(FileError(std::move(info).error(), path));
  if (info->is_directory) co_return Fail(Code::kInvalidArgument, "'{}' is a directory", path);
  Meter meter(config_.file_max_bytes);
  // Known before the first byte, so that the answer can still say so.
  CO_TRY(Meter(config_.file_max_bytes).Take(static_cast<size_t>(info->size)));
  Status got = co_await connection.envd.Download(
      path, [&](std::string_view piece) { return TakeMetered(meter, take, piece); });
  if (!got) co_return tl::unexpected(FileError(std::move(got).error(), path));
  co_return Status();
}

Task<Result<std::vector<sdk::FileInfo>>> Sandboxes::ListFiles(std::string owner_id, std::string id,
                                                              std::string path, int depth) {
  CO_TRY_ASSIGN(Connection connection, co_await Connect(std::move(owner_id), std::move(id)));
  auto list = co_await connection.envd.ListFiles(path, depth);
  if (!list) co_return tl::unexpected(FileError(std::move(list).error(), path));
  co_return list;
}

}  // namespace caisson::work
