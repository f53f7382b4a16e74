#include "engine/saved.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/deleted_files.h"
#include "engine/image_pack.h"
#include "engine/large_areas.h"
#include "engine/mapped_file.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestFile = "manifest.json";
constexpr const char* kMemoryDir = "memory";
constexpr const char* kPackFile = "images.pack";
// Deleted files of this length stay files of their own.
constexpr off_t kLongFile = 1 << 20;
constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kMaxManifestBytes = 16 << 20;  // a line for each of its files
// Names of drafts and link directories: no sandbox id has a dot.
constexpr const char* kDraft = ".draft";
constexpr const char* kLinks = ".links";
constexpr std::chrono::seconds kLeftoverPatience{2};

// Paths to be removed when nobody waits.
std::vector<std::string>& Trash() {
  static std::vector<std::string> trash;
  return trash;
}

std::string SavedPath(const std::string& id) { return fmt::format("{}/{}", kSavedDir, id); }

// The name tells which process will remove it.
std::string Temporary(const std::string& id, const char* kind) {
  return fmt::format("{}{}-{}-{}", SavedPath(id), kind, getpid(), RandomHex(4));
}

bool IsTemporary(std::string_view name) { return name.find('.') != std::string_view::npos; }

// Whether it is what a process left that does not live any more.
bool IsLeftover(std::string_view name) {
  auto parts = Split(name, '-');
  if (parts.size() < 3) return true;
  // A dead process may wait for long until somebody takes notice.
  auto stat = ReadFile(fmt::format("/proc/{}/stat", parts[parts.size() - 2]), 8192);
  return !stat || stat->find(") Z ") != std::string::npos;
}

struct FileSum {
  std::string sum;
  int64_t bytes = 0;
};

// Size and XXH3: it finds what a disk did to a file, not what an attacker did (nobody but root can
// write here), and is ten times as fast as a cryptographic one.
Result<FileSum> Checksum(int dir, const std::string& name) {
  UniqueFd fd(openat(dir, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!fd || fstat(fd.get(), &info)) return FailErrno("opening {}", name);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  // In pieces: a file may be longer than what a host has to spare.
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    ssize_t n = read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("reading {}", name);
    if (n == 0) break;
    XXH3_128bits_update(&state, piece.data(), static_cast<size_t>(n));
  }
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  // Files may have holes.
  return FileSum{fmt::format("{}:{:016x}{:016x}", info.st_size, hash.high64, hash.low64),
                 std::min<int64_t>(info.st_size, info.st_blocks * 512)};
}

Result<std::vector<std::string>> Names(const std::string& path) {
  std::vector<std::string> names;
  std::error_code ec;
  for (auto it = fs::directory_iterator(path, ec); !ec && it != fs::directory_iterator();
       it.increment(ec))
    names.push_back(it->path().filename().string());
  if (ec) return Fail(Code::kInternal, "reading {}: {}", path, ec.message());
  return names;
}

Status SyncFile(int dir, const std::string& name) {
  UniqueFd fd(openat(dir, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || fsync(fd.get())) return FailErrno("writing {} to the disk", name);
  return {};
}

Result<UniqueFd> OpenDir(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return FailErrno("opening {}", path);
  return fd;
}

}  // namespace

Result<SavedDraft> SavedDraft::Begin(const std::string& id) {
  SavedDraft draft(id, Temporary(id, kDraft));
  if (mkdir(draft.path_.c_str(), 0700)) return FailErrno("creating {}", draft.path_);
  std::string memory = draft.path_ + "/" + kMemoryDir;
  // Readable for the root of a sandbox, who opens it while it is restored, but cannot get here.
  if (mkdir(memory.c_str(), 0755)) return FailErrno("creating {}", memory);
  TRY_ASSIGN(draft.memory_, OpenDir(memory));
  return draft;
}

SavedDraft::SavedDraft(SavedDraft&& other) noexcept
    : id_(std::move(other.id_)),
      path_(std::exchange(other.path_, {})),
      memory_(std::move(other.memory_)) {}

SavedDraft::~SavedDraft() {
  if (!path_.empty()) (void)RemoveTree(path_);
}

Status SavedDraft::Clear() {
  TRY_ASSIGN(auto names, Names(path_ + "/" + kMemoryDir));
  for (const std::string& name : names)
    if (unlinkat(memory_.get(), name.c_str(), 0)) return FailErrno("removing {}", name);
  return {};
}

// All but the content of memory and long files goes into one file.
Status SavedDraft::PackImages() {
  std::string directory = path_ + "/" + kMemoryDir;
  TRY_ASSIGN(auto names, Names(directory));
  if (names.empty()) return {};
  TRY(SplitLargeAreas(memory_.get()));
  TRY_ASSIGN(names, Names(directory));
  UniqueFd pack(openat(memory_.get(), kPackFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!pack) return FailErrno("creating {}", kPackFile);
  for (const std::string& name : names) {
    struct stat info;
    if (fstatat(memory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW))
      return FailErrno("looking at {}", name);
    if (HoldsPages(name) || (name.starts_with(kDeletedFile) && info.st_size > kLongFile)) continue;
    // CRIU's own notes are not part of it.
    if (name != "criu.log" && name != "stats-dump") TRY(PackFile(memory_.get(), name, pack.get()));
    if (unlinkat(memory_.get(), name.c_str(), 0)) return FailErrno("removing {}", name);
  }
  return {};
}

Status SavedDraft::Commit(Manifest manifest, bool sync) {
  TRY(PackImages());
  TRY_ASSIGN(auto names, Names(path_ + "/" + kMemoryDir));
  manifest.saved.memory_bytes = 0;
  for (const std::string& name : names) {
    TRY_ASSIGN(FileSum file, Checksum(memory_.get(), name));
    manifest.saved.memory_bytes += file.bytes;
    manifest.files[name] = std::move(file.sum);
    if (sync) TRY(SyncFile(memory_.get(), name));
  }
  std::string text = SerializeManifest(manifest);
  if (text.size() > kMaxManifestBytes)
    return Fail(Code::kOutOfRange, "its processes hold too many deleted files; it runs on");
  TRY(WriteFileAtomic(fmt::format("{}/{}", path_, kManifestFile), text, 0600));
  TRY_ASSIGN(UniqueFd parent, OpenDir(kSavedDir));
  if (rename(path_.c_str(), SavedPath(id_).c_str())) return FailErrno("naming {}", SavedPath(id_));
  path_.clear();
  if (sync && fsync(parent.get())) return FailErrno("writing {} to the disk", kSavedDir);
  return {};
}

Result<Manifest> ReadSaved(const std::string& id) {
  if (!SavedExists(id)) return Fail(Code::kNotFound, "nothing is saved under '{}'", id);
  auto text = ReadFile(fmt::format("{}/{}", SavedPath(id), kManifestFile), kMaxManifestBytes);
  auto manifest = text ? ParseManifest(*text) : Fail(Code::kDataLoss, "its manifest is missing");
  if (!manifest)
    return tl::unexpected(
        std::move(manifest).error().Context(fmt::format("'{}' cannot be continued", id)));
  if (manifest->saved.id != id)
    return Fail(Code::kDataLoss, "'{}' cannot be continued: its manifest is another's", id);
  return manifest;
}

bool SavedExists(const std::string& id) { return access(SavedPath(id).c_str(), F_OK) == 0; }

std::vector<SavedEntry> ListSavedEntries() {
  std::vector<SavedEntry> entries;
  auto names = Names(kSavedDir);
  if (!names) return entries;
  for (const std::string& name : *names) {
    if (IsTemporary(name)) continue;
    SavedEntry& entry = entries.emplace_back(SavedEntry{.id = name});
    if (auto manifest = ReadSaved(name))
      entry.manifest = std::move(*manifest);
    else
      LogError("a saved sandbox cannot be read", {{"error", manifest.error().message()}});
  }
  return entries;
}

Status RemoveSaved(const std::string& id) {
  if (!SavedExists(id)) return {};
  // Under its own name it is whole or not there.
  std::string trash = Temporary(id, kDraft);
  if (rename(SavedPath(id).c_str(), trash.c_str()) && errno != ENOENT)
    return FailErrno("removing {}", SavedPath(id));
  Trash().push_back(std::move(trash));
  return {};
}

void EmptyTrash() {
  for (const std::string& path : Trash())
    if (Status removed = RemoveTree(path); !removed)
      LogWarn("saved files stay until the next start", {{"error", removed.error().message()}});
  Trash().clear();
}

Result<bool> MarkResuming(const std::string& id) {
  std::string path = SavedPath(id) + "/resuming";
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd) return false;
  if (errno == EEXIST) return true;
  return FailErrno("marking {}", SavedPath(id));
}

void RemoveLeftovers(bool all) {
  auto names = Names(kSavedDir);
  if (!names) return;
  // CRIU outlives its launcher and may still be writing there.
  auto give_up = std::chrono::steady_clock::now() + kLeftoverPatience;
  for (const std::string& name : *names) {
    if (!IsTemporary(name) || !(all || IsLeftover(name))) continue;
    while (!RemoveTree(SavedPath(name)) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<MemoryImages> MemoryImages::Open(const Manifest& manifest) {
  MemoryImages images;
  std::string source = fmt::format("{}/{}", SavedPath(manifest.saved.id), kMemoryDir);
  images.path_ = Temporary(manifest.saved.id, kLinks);
  if (mkdir(images.path_.c_str(), 0755)) return FailErrno("creating {}", images.path_);
  TRY_ASSIGN(images.fd_, OpenDir(images.path_));
  for (const auto& [name, sum] : manifest.files)
    if (name != kPackFile && link(fmt::format("{}/{}", source, name).c_str(),
                                  fmt::format("{}/{}", images.path_, name).c_str()))
      return FailErrno("opening the saved memory of '{}'", manifest.saved.id);
  TRY_ASSIGN(UniqueFd directory, OpenDir(source));
  TRY_ASSIGN(MappedFile pack, MappedFile::Open(directory.get(), kPackFile));
  TRY_ASSIGN(auto files, UnpackFiles(pack.content()));
  size_t unpacked = 0;
  for (const auto& [name, content] : files) {
    UniqueFd fd(openat(images.fd_.get(), std::string(name).c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd ||
        write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      return FailErrno("unpacking the saved memory of '{}'", manifest.saved.id);
    if ((unpacked += content.size()) < kPieceBytes) continue;
    pack.LetGo();
    unpacked = 0;
  }
  return images;
}

MemoryImages::MemoryImages(MemoryImages&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

MemoryImages::~MemoryImages() {
  if (!path_.empty()) Trash().push_back(path_);
}

Status VerifyMemory(const Manifest& manifest, bool pages) {
  TRY_ASSIGN(UniqueFd dir, OpenDir(fmt::format("{}/{}", SavedPath(manifest.saved.id), kMemoryDir)));
  for (const auto& [name, wanted] : manifest.files) {
    struct stat info;
    bool found = fstatat(dir.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (found && name != kPackFile && !pages &&
        wanted.starts_with(fmt::format("{}:", info.st_size)))
      continue;
    auto sum = found ? Checksum(dir.get(), name) : Fail(Code::kNotFound, "missing");
    if (!sum || sum->sum != wanted)
      return Fail(Code::kDataLoss,
                  "'{}' cannot be continued: {} of its saved memory is {}; its files are intact",
                  manifest.saved.id, name, found ? "damaged" : "missing");
  }
  return {};
}

}  // namespace caisson::engine
