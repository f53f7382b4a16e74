// The one thing in CRIU's images that we change: the user ids a sandbox has on the host.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "engine/criu.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

// An image: two magic numbers, then messages, each after its size.
constexpr size_t kMagicBytes = 8;

Result<std::vector<std::string_view>> Messages(std::string_view image) {
  std::vector<std::string_view> messages;
  if (image.size() < kMagicBytes) return Fail(Code::kDataLoss, "it is too short");
  image.remove_prefix(kMagicBytes);
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

void AppendMessage(std::string& image, const std::string& message) {
  auto size = static_cast<uint32_t>(message.size());
  image.append(reinterpret_cast<const char*>(&size), sizeof(size));
  image += message;
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

Status MoveImage(const std::string& path, uint32_t base) {
  TRY_ASSIGN(std::string image, ReadFile(path));
  TRY_ASSIGN(auto messages, Messages(image));
  std::string moved = image.substr(0, kMagicBytes);
  for (std::string_view message : messages) {
    TRY_ASSIGN(std::string entry, MoveMaps(message, base));
    AppendMessage(moved, entry);
  }
  return WriteFileAtomic(path, moved, 0600);
}

}  // namespace

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

}  // namespace caisson::engine
