#include "engine/criu_images.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "engine/criu.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

// The first field of this number.
Result<std::optional<WireField>> FindField(std::string_view message, uint32_t number) {
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field || field->number == number) return field;
  }
}

// One extent: 1 = first id inside, 2 = first id outside, 3 = how many.
Result<std::string> MoveExtent(std::string_view extent, uint32_t base) {
  uint64_t first = 0, count = 0;
  WireReader reader(extent);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) break;
    if (field->number == 1) first = field->value;
    if (field->number == 3) count = field->value;
  }
  return WireWriter().Number(1, first).Number(2, base + first).Number(3, count).data();
}

// userns_entry: extents of users (1) and groups (2).
Result<std::string> MoveMaps(std::string_view entry, uint32_t base) {
  WireWriter moved;
  WireReader reader(entry);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return moved.data();
    if (field->number == 1 || field->number == 2) {
      TRY_ASSIGN(std::string extent, MoveExtent(field->bytes, base));
      moved.Bytes(field->number, extent);
    } else {
      moved.Raw(field->raw);
    }
  }
}

// What lies there is a copy, made to be restored once: a sync would take milliseconds for nothing.
Status MoveImage(const std::string& path, uint32_t base) {
  TRY_ASSIGN(std::string image, ReadFile(path));
  TRY_ASSIGN(auto messages, ImageMessages(image));
  std::string moved = image.substr(0, kImageMagicBytes);
  for (std::string_view message : messages) {
    TRY_ASSIGN(std::string entry, MoveMaps(message, base));
    AppendImageMessage(moved, entry);
  }
  return OverwriteImage(path, moved);
}

// pstree_entry: 1 = pid, 2 = parent, 4 = session.
struct TreeEntry {
  uint64_t pid = 0, parent = 0, session = 0;
};

Result<TreeEntry> ParseTreeEntry(std::string_view message) {
  TreeEntry entry;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return entry;
    if (field->number == 1) entry.pid = field->value;
    if (field->number == 2) entry.parent = field->value;
    if (field->number == 4) entry.session = field->value;
  }
}

// core_entry: 3 = task_core_entry, in which 1 = state.
Result<bool> IsDead(const std::string& folder, uint64_t pid) {
  constexpr uint64_t kDead = 2;
  TRY_ASSIGN(std::string image, ReadFile(fmt::format("{}/core-{}.img", folder, pid)));
  TRY_ASSIGN(auto messages, ImageMessages(image));
  if (messages.empty()) return Fail(Code::kDataLoss, "it is empty");
  TRY_ASSIGN(auto task, FindField(messages.front(), 3));
  if (!task) return false;
  TRY_ASSIGN(auto state, FindField(task->bytes, 1));
  return state && state->value == kDead;
}

// A process that the first one started is in its session or leads one of its own.
bool MayBeInherited(const TreeEntry& entry, const TreeEntry& first) {
  return entry.parent == first.pid && entry.session != first.session && entry.session != entry.pid;
}

Status LeaveInheritedDeadOf(const std::string& folder) {
  std::string path = folder + "/pstree.img";
  TRY_ASSIGN(std::string image, ReadFile(path));
  TRY_ASSIGN(auto messages, ImageMessages(image));
  std::string kept = image.substr(0, kImageMagicBytes);
  TreeEntry first;  // is the first of them, too
  for (std::string_view message : messages) {
    TRY_ASSIGN(TreeEntry entry, ParseTreeEntry(message));
    if (first.pid == 0) first = entry;
    if (MayBeInherited(entry, first)) {
      TRY_ASSIGN(bool dead, IsDead(folder, entry.pid));
      if (dead) continue;
    }
    AppendImageMessage(kept, message);
  }
  return kept.size() == image.size() ? Status() : OverwriteImage(path, kept);
}

}  // namespace

Result<std::vector<std::string_view>> ImageMessages(std::string_view image) {
  std::vector<std::string_view> messages;
  if (image.size() < kImageMagicBytes) return Fail(Code::kDataLoss, "it is too short");
  image.remove_prefix(kImageMagicBytes);
  while (!image.empty()) {
    uint32_t size = 0;
    if (image.size() < sizeof(size)) return Fail(Code::kDataLoss, "it breaks off");
    std::memcpy(&size, image.data(), sizeof(size));
    image.remove_prefix(sizeof(size));
    if (size > image.size()) return Fail(Code::kDataLoss, "it breaks off");
    messages.push_back(image.substr(0, size));
    image.remove_prefix(size);
  }
  return messages;
}

void AppendImageMessage(std::string& image, std::string_view message) {
  auto size = static_cast<uint32_t>(message.size());
  image.append(reinterpret_cast<const char*>(&size), sizeof(size));
  image += message;
}

Status OverwriteImage(const std::string& path, std::string_view image) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd || write(fd.get(), image.data(), image.size()) != static_cast<ssize_t>(image.size()))
    return FailErrno("writing {}", path);
  return {};
}

Status MoveUserRange(int directory, uint32_t uid_base) {
  std::string folder = fmt::format("/proc/self/fd/{}", directory);
  bool found = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("userns-") || !name.ends_with(".img")) continue;
    found = true;
    if (Status moved = MoveImage(entry.path().string(), uid_base); !moved)
      return tl::unexpected(
          std::move(moved).error().Context(fmt::format("reading the saved user ids ({})", name)));
  }
  if (error) return Fail(Code::kInternal, "reading saved state: {}", error.message());
  if (!found) return Fail(Code::kDataLoss, "the saved state has no user ids");
  return {};
}

Status LeaveInheritedDead(int directory) {
  Status left = LeaveInheritedDeadOf(fmt::format("/proc/self/fd/{}", directory));
  if (!left) return tl::unexpected(std::move(left).error().Context("reading the saved processes"));
  return {};
}

}  // namespace caisson::engine
