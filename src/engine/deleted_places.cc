#include "engine/deleted_places.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <set>

#include "base/fd.h"
#include "engine/criu_images.h"
#include "engine/mapped_file.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

// CRIU's names for how a deleted file is kept: as another name of it, or as a copy.
constexpr uint64_t kLinked = 0, kCopied = 1;
constexpr uint64_t kRegularFile = 1;

struct Remap {
  uint64_t file = 0, type = kLinked;
};

// remap_file_path_entry: 1 = the file's id, 3 = type.
Result<Remap> ParseRemap(std::string_view message) {
  Remap remap;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return remap;
    if (field->number == 1) remap.file = field->value;
    if (field->number == 3) remap.type = field->value;
  }
}

struct File {
  uint64_t type = 0, id = 0;
  std::string_view regular;  // message
};

// file_entry: 1 = type, 2 = id, 3 = of a regular file.
Result<File> ParseFile(std::string_view message) {
  File file;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return file;
    if (field->number == 1) file.type = field->value;
    if (field->number == 2) file.id = field->value;
    if (field->number == 3) file.regular = field->bytes;
  }
}

// reg_file_entry: 6 = name.
Result<std::string_view> NameOf(std::string_view regular) {
  std::string_view name;
  WireReader reader(regular);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return name;
    if (field->number == 6) name = field->bytes;
  }
}

// SECURITY: CRIU follows links in the path of such a file, and an absolute one from the host's
// root: a guest that puts a link where a directory was would have it write on the host. What stands
// there now cannot change: nothing runs until the processes go on, which is when it is put back.
bool LeadsWhereItDid(int root, std::string path) {
  constexpr uint64_t kStay = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (;;) {
    size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    open_how how{.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .mode = 0, .resolve = kStay};
    UniqueFd fd(static_cast<int>(
        syscall(SYS_openat2, root, path.empty() ? "." : path.c_str(), &how, sizeof how)));
    if (fd) return true;
    // A directory that is gone is made again, if what is above it is as it was.
    if (errno != ENOENT || path.empty()) return false;
  }
}

}  // namespace

Result<std::vector<std::string>> DeletedPlaces(std::string_view remaps, std::string_view files) {
  std::set<uint64_t> copied;
  TRY_ASSIGN(auto entries, ImageMessages(remaps));
  for (std::string_view message : entries) {
    TRY_ASSIGN(Remap remap, ParseRemap(message));
    // The other name is removed again as soon as CRIU is done, because the processes are still
    // there.
    if (remap.type == kLinked)
      return Fail(Code::kUnimplemented,
                  "a process inside holds a deleted file that has another name, too");
    if (remap.type == kCopied) copied.insert(remap.file);
  }
  std::vector<std::string> places;
  TRY_ASSIGN(auto all, ImageMessages(files));
  for (std::string_view message : all) {
    TRY_ASSIGN(File file, ParseFile(message));
    if (file.type != kRegularFile || !copied.contains(file.id)) continue;
    TRY_ASSIGN(std::string_view name, NameOf(file.regular));
    places.emplace_back(name);
  }
  return places;
}

Status CheckDeletedPlaces(int images, pid_t first) {
  if (faccessat(images, "remap-fpath.img", F_OK, 0)) return {};
  TRY_ASSIGN(MappedFile remaps, MappedFile::Open(images, "remap-fpath.img"));
  TRY_ASSIGN(MappedFile files, MappedFile::Open(images, "files.img"));
  TRY_ASSIGN(auto places, DeletedPlaces(remaps.content(), files.content()));
  UniqueFd root(
      open(fmt::format("/proc/{}/root", first).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return FailErrno("opening the root of process {}", first);
  for (const std::string& place : places)
    if (!LeadsWhereItDid(root.get(), place))
      return Fail(Code::kUnimplemented,
                  "a process inside holds a deleted file whose directory is something else now");
  return {};
}

}  // namespace caisson::engine
