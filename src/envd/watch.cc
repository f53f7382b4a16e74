#include "envd/watch.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/text.h"
#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

constexpr uint32_t kMask = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_DELETE | IN_MOVED_FROM |
                           IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr size_t kReadBuffer = 16 << 10;

std::string_view TypeName(ChangeType type) {
  switch (type) {
    case ChangeType::kCreate:
      return "EVENT_TYPE_CREATE";
    case ChangeType::kWrite:
      return "EVENT_TYPE_WRITE";
    case ChangeType::kRemove:
      return "EVENT_TYPE_REMOVE";
    case ChangeType::kRename:
      return "EVENT_TYPE_RENAME";
    case ChangeType::kChmod:
      return "EVENT_TYPE_CHMOD";
  }
  return "";
}

Status CheckDirectory(const WatchOptions& options) {
  struct stat st{};
  if (stat(options.path.c_str(), &st) != 0) {
    if (errno == ENOENT) return Fail(Code::kNotFound, "path {} not found", options.path);
    return FailErrno("cannot look at path {}", options.path);
  }
  if (!S_ISDIR(st.st_mode))
    return Fail(Code::kInvalidArgument, "path {} not a directory", options.path);
  if (options.allow_network_mounts) return {};
  struct statfs fs{};
  if (statfs(options.path.c_str(), &fs) != 0)
    return FailErrno("cannot look at the file system of {}", options.path);
  for (uint32_t magic : {0x6969U /* NFS */, 0xFF534D42U /* CIFS */, 0x517BU /* SMB */,
                         0xFE534D42U /* SMB2 */, 0x65735546U /* FUSE */}) {
    if (static_cast<uint32_t>(fs.f_type) == magic)
      return Fail(Code::kInvalidArgument, "cannot watch path on network filesystem: {}",
                  options.path);
  }
  return {};
}

std::string Below(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  return path == directory || (path.size() > directory.size() && path.starts_with(directory) &&
                               path[directory.size()] == '/');
}

}  // namespace

boost::json::object ToJson(const Change& change, bool legacy) {
  boost::json::object out;
  out["name"] = ToUtf8(change.name);
  out["type"] = TypeName(change.type);
  if (change.entry && !legacy) out["entry"] = ToJson(*change.entry, false);
  return out;
}

Watcher::Watcher(asio::any_io_executor executor, int fd, WatchOptions options)
    : options_(std::move(options)), inotify_(executor, fd), deadline_(executor) {}

Result<std::unique_ptr<Watcher>> Watcher::Create(asio::any_io_executor executor,
                                                 WatchOptions options) {
  TRY(CheckDirectory(options));
  int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return FailErrno("cannot create a watcher");
  std::unique_ptr<Watcher> watcher(new Watcher(std::move(executor), fd, std::move(options)));
  TRY(watcher->AddDirectory(""));
  if (watcher->directories_.empty())
    return Fail(Code::kNotFound, "path {} not found", watcher->options_.path);
  if (watcher->options_.recursive) TRY(watcher->AddBelow("", nullptr));
  return watcher;
}

std::string Watcher::FullPath(const std::string& relative) const {
  return relative.empty() ? options_.path : JoinPath(options_.path, relative);
}

Status Watcher::AddDirectory(const std::string& relative) {
  if (directories_.size() >= options_.max_directories)
    return Fail(Code::kResourceExhausted, "there are more than {} directories below {}",
                options_.max_directories, options_.path);
  // The watched path itself may be a link; links below it are not followed.
  uint32_t mask = relative.empty() ? kMask : kMask | IN_DONT_FOLLOW;
  int descriptor = inotify_add_watch(inotify_.native_handle(), FullPath(relative).c_str(), mask);
  if (descriptor >= 0) {
    directories_[descriptor] = relative;
    return {};
  }
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return {};
  return FailErrno("cannot watch {}", FullPath(relative));
}

Status Watcher::AddBelow(const std::string& relative, std::vector<Change>* report) {
  std::vector<std::string> todo{relative};
  while (!todo.empty()) {
    std::string directory = std::move(todo.back());
    todo.pop_back();
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(FullPath(directory).c_str()), closedir);
    if (!dir) continue;  // gone already
    while (dirent* item = readdir(dir.get())) {
      std::string_view name = item->d_name;
      if (name == "." || name == "..") continue;
      std::string child = Below(directory, name);
      struct stat st{};
      if (fstatat(dirfd(dir.get()), item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(st.st_mode)) {
        TRY(AddDirectory(child));
        todo.push_back(child);
      }
      if (report == nullptr) continue;
      reported_[child] = round_;
      Emit(*report, child, ChangeType::kCreate);
      if (S_ISREG(st.st_mode) && st.st_size > 0) Emit(*report, child, ChangeType::kWrite);
    }
  }
  return {};
}

Task<Result<std::vector<Change>>> Watcher::Read(std::chrono::steady_clock::time_point until) {
  using namespace asio::experimental::awaitable_operators;
  for (;;) {
    CO_TRY_ASSIGN(std::vector<Change> changes, ReadNow());
    if (!changes.empty() || std::chrono::steady_clock::now() >= until) co_return changes;
    deadline_.expires_at(until);
    auto winner =
        co_await (inotify_.async_wait(asio::posix::stream_descriptor::wait_read, kAwait) ||
                  deadline_.async_wait(kAwait));
    if (winner.index() == 0 && std::get<0>(std::get<0>(winner)))
      co_return Fail(Code::kCanceled, "the watch has ended");
  }
}

void Watcher::Close() {
  boost::system::error_code ignored;
  inotify_.close(ignored);
}

Result<std::vector<Change>> Watcher::ReadNow() {
  if (!inotify_.is_open()) return Fail(Code::kCanceled, "the watch has ended");
  ++round_;
  std::vector<Change> changes;
  alignas(inotify_event) std::array<char, kReadBuffer> buffer;
  ssize_t size = read(inotify_.native_handle(), buffer.data(), buffer.size());
  if (size < 0 && errno != EAGAIN && errno != EINTR) return FailErrno("watcher error");
  for (ssize_t offset = 0; offset < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + offset);
    const char* name = event->len > 0 ? event->name : "";
    TRY(Handle(*event, name, changes));
    offset += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  // The kernel fills the buffer up to the last event that fits.
  if (size < static_cast<ssize_t>(kReadBuffer / 2)) ForgetEarlierRounds();
  return changes;
}

void Watcher::ForgetEarlierRounds() {
  std::erase_if(reported_, [this](const auto& item) { return item.second < round_; });
  for (auto it = moved_.begin(); it != moved_.end();) {
    auto current = it++;
    if (current->second.round == round_) continue;
    ForgetDirectories(current->second.from);  // it was moved out of the tree
    moved_.erase(current);
  }
}

Status Watcher::Handle(const inotify_event& event, std::string_view name,
                       std::vector<Change>& changes) {
  if (event.mask & IN_Q_OVERFLOW)
    return Fail(Code::kInternal, "watcher error: too many events at once, some were lost");
  auto known = directories_.find(event.wd);
  if (known == directories_.end()) return {};
  std::string directory = known->second;
  if (event.mask & IN_IGNORED) {
    directories_.erase(known);
    return {};
  }
  if (name.empty()) {
    HandleSelf(event, directory, changes);
    return {};
  }
  std::string relative = Below(directory, name);
  bool told = event.mask & IN_CREATE && reported_.erase(relative) > 0;
  if (event.mask & (IN_CREATE | IN_MOVED_TO) && !told) Emit(changes, relative, ChangeType::kCreate);
  if (event.mask & IN_MOVED_FROM) Emit(changes, relative, ChangeType::kRename);
  if (event.mask & IN_ATTRIB) Emit(changes, relative, ChangeType::kChmod);
  if (event.mask & IN_MODIFY) Emit(changes, relative, ChangeType::kWrite);
  if (event.mask & IN_DELETE) Emit(changes, relative, ChangeType::kRemove);
  // One that was told was found in a directory that appeared, and is watched since then.
  if (options_.recursive && event.mask & IN_ISDIR && !told)
    return HandleDirectory(event, relative, changes);
  return {};
}

void Watcher::HandleSelf(const inotify_event& event, const std::string& directory,
                         std::vector<Change>& changes) {
  // Directories below the watched one are reported by their parents.
  if (!directory.empty()) return;
  if (event.mask & IN_MOVE_SELF) Emit(changes, ".", ChangeType::kRename);
  if (event.mask & IN_ATTRIB) Emit(changes, ".", ChangeType::kChmod);
  if (event.mask & IN_DELETE_SELF) Emit(changes, ".", ChangeType::kRemove);
}

Status Watcher::HandleDirectory(const inotify_event& event, const std::string& relative,
                                std::vector<Change>& changes) {
  if (event.mask & IN_MOVED_FROM) {
    moved_[event.cookie] = {relative, round_};
  } else if (event.mask & IN_MOVED_TO) {
    auto from = moved_.extract(event.cookie);
    if (from) {
      MoveDirectories(from.mapped().from, relative);
    } else {
      TRY(AddDirectory(relative));
      TRY(AddBelow(relative, nullptr));
    }
  } else if (event.mask & IN_CREATE) {
    // Between its creation and the watch, things may have been made inside: tell them now.
    TRY(AddDirectory(relative));
    TRY(AddBelow(relative, &changes));
  }
  return {};
}

void Watcher::Emit(std::vector<Change>& changes, std::string relative, ChangeType type) const {
  Change change{std::move(relative), type, std::nullopt};
  bool describable =
      type == ChangeType::kCreate || type == ChangeType::kWrite || type == ChangeType::kChmod;
  if (options_.include_entry && describable) {
    auto entry =
        ReadEntry(change.name == "." ? options_.path : FullPath(change.name), *Accounts::Current());
    if (entry) change.entry = std::move(*entry);
  }
  changes.push_back(std::move(change));
}

void Watcher::MoveDirectories(const std::string& from, const std::string& to) {
  for (auto& [descriptor, path] : directories_) {
    if (IsAtOrBelow(path, from)) path = to + path.substr(from.size());
  }
}

void Watcher::ForgetDirectories(const std::string& relative) {
  for (auto it = directories_.begin(); it != directories_.end();) {
    auto current = it++;
    if (!IsAtOrBelow(current->second, relative)) continue;
    inotify_rm_watch(inotify_.native_handle(), current->first);
    directories_.erase(current);
  }
}

}  // namespace caisson::envd
