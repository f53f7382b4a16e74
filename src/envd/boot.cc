#include "envd/boot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"

namespace caisson::envd {
namespace {

constexpr size_t kMaxConfig = 8 << 20;

Result<std::string> ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t size = read(fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FailErrno("cannot read the boot configuration");
    if (size == 0) return text;
    text.append(buffer, static_cast<size_t>(size));
    if (text.size() > kMaxConfig)
      return Fail(Code::kInvalidArgument, "the boot configuration is too long");
  }
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t size = write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<size_t>(size));
  }
}

// SECURITY: the sandbox may have put anything at `path` meanwhile. A link or a pipe is replaced,
// not followed or waited for. A file is written over in place: that works on a full disk, too.
void WriteIdentityFile(const char* path, std::string_view text) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  struct stat st{};
  UniqueFd fd(open(path, kFlags, 0444));
  if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
    unlink(path);
    fd.Reset(open(path, kFlags | O_EXCL, 0444));
  }
  if (!fd) return;
  WriteAll(fd.get(), text);
  (void)!ftruncate(fd.get(), static_cast<off_t>(text.size()));
}

}  // namespace

Result<BootOptions> ParseArguments(int argc, char** argv) {
  BootOptions options;
  for (int i = 1; i < argc; ++i) {
    std::string_view name = argv[i];
    if ((name != "--config" && name != "--port") || i + 1 >= argc)
      return Fail(Code::kInvalidArgument, "usage: caisson-envd [--config FILE|-] [--port N]");
    std::string_view value = argv[++i];
    if (name == "--config") {
      options.config_file = value;
    } else {
      options.port = ParseInt<uint16_t>(value);
      if (!options.port) return Fail(Code::kInvalidArgument, "'{}' is not a port", value);
    }
  }
  return options;
}

UniqueFd TakeBootFd(const BootOptions& options) {
  if (!options.config_file.empty() || fcntl(kBootFd, F_SETFD, FD_CLOEXEC) != 0) return {};
  return UniqueFd(kBootFd);
}

Result<Settings> ReadSettings(const BootOptions& options, const UniqueFd& engine) {
  std::string text = "{}";
  if (engine) {
    TRY_ASSIGN(text, ReadToEnd(engine.get()));
  } else if (options.config_file == "-") {
    TRY_ASSIGN(text, ReadToEnd(STDIN_FILENO));
  } else if (!options.config_file.empty()) {
    TRY_ASSIGN(text, ReadFile(options.config_file, kMaxConfig));
  }
  TRY_ASSIGN(Settings settings, ParseSettings(text));
  if (options.port) settings.port = *options.port;
  return settings;
}

void ReportReady(UniqueFd& engine, uint16_t port) {
  if (engine) {
    WriteAll(engine.get(), "R");
    engine.Reset();
  } else {
    WriteAll(STDOUT_FILENO, fmt::format("caisson-envd: ready on port {}\n", port));
  }
}

void ReportFailure(UniqueFd& engine, std::string_view message) {
  if (engine) {
    WriteAll(engine.get(), "E" + std::string(message));
    engine.Reset();
  } else {
    WriteAll(STDERR_FILENO, fmt::format("caisson-envd: {}\n", message));
  }
}

void WriteIdentity(const Settings& settings, bool reset) {
  struct stat st{};
  bool has_id = stat("/etc/machine-id", &st) == 0 && st.st_size > 0;
  if ((!has_id || reset) && !settings.sandbox_id.empty())
    WriteIdentityFile("/etc/machine-id",
                      HexEncode(Sha256(settings.sandbox_id)).substr(0, 32) + "\n");
  mkdir("/run/e2b", 0755);
  WriteIdentityFile("/run/e2b/.E2B_SANDBOX", "true");
  WriteIdentityFile("/run/e2b/.E2B_SANDBOX_ID", settings.sandbox_id);
  WriteIdentityFile("/run/e2b/.E2B_TEMPLATE_ID", settings.template_id);
}

}  // namespace caisson::envd
