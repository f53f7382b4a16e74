#include "engine/layers.h"

#include <fcntl.h>
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/encoding.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/sparse.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "layers/.lock";
constexpr const char* kDraft = ".draft-";
constexpr std::string_view kSuffix = ".img";
constexpr off_t kBlock = 4096;  // of the file systems in them
constexpr size_t kBlocksAtOnce = 256;
// Of names that tell the content. Older ones also told where the host's file system had put holes,
// which a copy of the file need not have at the same places: they prove nothing.
constexpr std::string_view kNamePrefix = "v2-";
// On a layer: what it was when its content was last compared with its name.
constexpr const char* kCheckedAttribute = "user.caisson.checked";

std::string LayerPath(const std::string& layer) {
  return fmt::format("{}/{}{}", kLayersDir, layer, kSuffix);
}

std::string Short(const std::string& layer) { return layer.substr(0, 12); }

Result<UniqueFd> OpenLock() {
  UniqueFd fd(open(kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("opening {}", kLockFile);
  return fd;
}

class LayerDigest {
 public:
  LayerDigest() { SHA256_Init(&context_); }

  // Holes and zeros are the same.
  void Add(off_t offset, const char* block) {
    if (std::memcmp(block, kZeros.data(), kBlock) == 0) return;
    int64_t where = offset;
    SHA256_Update(&context_, &where, sizeof(where));
    SHA256_Update(&context_, block, kBlock);
  }
  std::string Name() {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context_);
    return std::string(kNamePrefix) + HexEncode(digest);
  }

 private:
  static constexpr std::array<char, kBlock> kZeros{};
  SHA256_CTX context_;
};

// The name that its content gives a layer.
Result<std::string> NameOf(int fd) {
  LayerDigest digest;
  std::string buffer(kBlock * kBlocksAtOnce, '\0');
  off_t next = 0;  // a block that two pieces share is counted once
  TRY(ForEachPiece(fd, [&](off_t offset, off_t size) -> Status {
    for (off_t at = std::max(next, offset / kBlock * kBlock); at < offset + size; at = next) {
      off_t wanted = std::min<off_t>(static_cast<off_t>(buffer.size()),
                                     (offset + size - at + kBlock - 1) / kBlock * kBlock);
      ssize_t n = pread(fd, buffer.data(), static_cast<size_t>(wanted), at);
      if (n <= 0) return FailErrno("reading a layer");
      next = at + (n + kBlock - 1) / kBlock * kBlock;
      std::memset(buffer.data() + n, 0, static_cast<size_t>(next - at - n));
      for (off_t block = 0; at + block < next; block += kBlock)
        digest.Add(at + block, buffer.data() + block);
    }
    return {};
  }));
  return digest.Name();
}

// Tells a file that nobody has touched since, on a host that was not restarted since.
Result<std::string> Stamp(int fd, const std::string& boot_id) {
  struct stat info;
  if (fstat(fd, &info)) return FailErrno("looking at a layer");
  return fmt::format("{} {}:{} {} {}.{:09}", boot_id, info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

bool IsMarked(int fd, const std::string& stamp) {
  std::string mark(stamp.size() + 1, '\0');
  ssize_t n = fgetxattr(fd, kCheckedAttribute, mark.data(), mark.size());
  return n == static_cast<ssize_t>(stamp.size()) && mark.compare(0, stamp.size(), stamp) == 0;
}

// Where the host's file system has no attributes each process remembers for itself.
void Mark(int fd, const std::string& stamp) {
  fsetxattr(fd, kCheckedAttribute, stamp.data(), stamp.size(), 0);
}

Status CheckContent(int fd, const std::string& layer, const std::string& stamp) {
  if (!layer.starts_with(kNamePrefix) || IsMarked(fd, stamp)) return {};
  TRY_ASSIGN(std::string name, NameOf(fd));
  if (name != layer)
    return Fail(Code::kDataLoss, "the layer {} of its disk is damaged", Short(layer));
  Mark(fd, stamp);
  return {};
}

}  // namespace

Result<LayersInUse> LayersInUse::Hold() {
  TRY_ASSIGN(UniqueFd fd, OpenLock());
  while (flock(fd.get(), LOCK_SH))
    if (errno != EINTR) return FailErrno("locking {}", kLayersDir);
  return LayersInUse(std::move(fd));
}

LayerCopy::LayerCopy(LayerCopy&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)), bytes_(other.bytes_) {}

LayerCopy::~LayerCopy() {
  if (!path_.empty()) unlink(path_.c_str());
}

Result<LayerCopy> LayerCopy::Take(const std::string& image_path) {
  UniqueFd from(open(image_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!from || fstat(from.get(), &info)) return FailErrno("opening {}", image_path);
  LayerCopy copy;
  std::string path = fmt::format("{}/{}{}", kLayersDir, kDraft, RandomHex(8));
  copy.fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!copy.fd_) return FailErrno("creating {}", path);
  copy.path_ = path;
  if (ftruncate(copy.fd_.get(), info.st_size)) return FailErrno("sizing {}", path);
  TRY(ForEachPiece(from.get(), [&](off_t offset, off_t size) {
    copy.bytes_ += size;
    return CopyPiece(from.get(), copy.fd_.get(), offset, size);
  }));
  return copy;
}

Result<std::string> LayerCopy::Finish(bool sync, const std::string& boot_id) {
  TRY_ASSIGN(std::string layer, NameOf(fd_.get()));
  TRY_ASSIGN(std::string stamp, Stamp(fd_.get(), boot_id));
  Mark(fd_.get(), stamp);
  if (sync && fsync(fd_.get())) return FailErrno("writing a layer to the host's disk");
  if (rename(path_.c_str(), LayerPath(layer).c_str())) return FailErrno("naming a layer");
  path_.clear();
  return layer;
}

Result<int> LayerMounts::Get(const std::string& layer, const std::string& boot_id) {
  if (auto it = mounts_.find(layer); it != mounts_.end()) return it->second.get();
  UniqueFd image(open(LayerPath(layer).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!image) return Fail(Code::kDataLoss, "the layer {} of its disk is missing", Short(layer));
  TRY_ASSIGN(std::string stamp, Stamp(image.get(), boot_id));
  if (std::string& checked = checked_[layer]; checked != stamp) {
    TRY(CheckContent(image.get(), layer, stamp));
    checked = std::move(stamp);
  }
  TRY_ASSIGN(Loop loop, AttachLoop(image.get(), "layer-" + layer, true));
  TRY_ASSIGN(UniqueFd mount, MountExt4(loop.number, true));
  return mounts_.emplace(layer, std::move(mount)).first->second.get();
}

void CheckLayers(const std::string& boot_id) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(kLayersDir, ec)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(kDraft) || !name.ends_with(kSuffix)) continue;
    UniqueFd image(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!image) continue;  // it has just been removed
    auto stamp = Stamp(image.get(), boot_id);
    if (!stamp) continue;
    Status intact = CheckContent(image.get(), name.substr(0, name.size() - kSuffix.size()), *stamp);
    if (!intact)
      LogError("what was made from a snapshot cannot be started any more",
               {{"layer", name}, {"error", intact.error().message()}});
  }
}

void CollectLayers(const std::function<std::optional<std::vector<std::string>>()>& needed) {
  auto lock = OpenLock();
  if (!lock || flock(lock->get(), LOCK_EX | LOCK_NB)) return;
  auto keep = needed();
  if (!keep) return;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(kLayersDir, ec)) {
    std::string name = entry.path().filename().string();
    bool draft = name.starts_with(kDraft);
    if (!draft && !name.ends_with(kSuffix)) continue;
    std::string layer = name.substr(0, name.size() - kSuffix.size());
    if (!draft && std::find(keep->begin(), keep->end(), layer) != keep->end()) continue;
    if (unlink(entry.path().c_str()) == 0) LogDebug("removed a layer", {{"layer", layer}});
  }
}

}  // namespace caisson::engine
