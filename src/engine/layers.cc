#include "engine/layers.h"

#include <fcntl.h>
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/encoding.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/loop.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "layers/.lock";
constexpr const char* kDraft = ".draft-";
constexpr std::string_view kSuffix = ".img";
constexpr size_t kBlock = 1 << 20;

std::string LayerPath(const std::string& layer) {
  return fmt::format("{}/{}{}", kLayersDir, layer, kSuffix);
}

Result<UniqueFd> OpenLock() {
  UniqueFd fd(open(kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("opening {}", kLockFile);
  return fd;
}

// Calls `fn(offset, size)` for every piece of a sparse file that has data.
template <class Fn>
Status ForEachPiece(int fd, Fn fn) {
  for (off_t data = 0; (data = lseek(fd, data, SEEK_DATA)) >= 0;) {
    off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return FailErrno("reading a disk image");
    TRY(fn(data, hole - data));
    data = hole;
  }
  return errno == ENXIO ? Status() : FailErrno("reading a disk image");
}

// copy_file_range shares the blocks where the host's file system can.
Status CopyPiece(int from, int to, off_t offset, off_t size) {
  off_t in = offset, out = offset, end = offset + size;
  while (in < end) {
    ssize_t n = copy_file_range(from, &in, to, &out, static_cast<size_t>(end - in), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno("copying a disk image");
  }
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

Result<std::string> LayerCopy::Finish(bool sync) {
  SHA256_CTX context;
  SHA256_Init(&context);
  std::string buffer(kBlock, '\0');
  TRY(ForEachPiece(fd_.get(), [&](off_t offset, off_t size) -> Status {
    int64_t where[2] = {offset, size};
    SHA256_Update(&context, where, sizeof(where));
    for (off_t at = offset; at < offset + size;) {
      size_t wanted = std::min(buffer.size(), static_cast<size_t>(offset + size - at));
      ssize_t n = pread(fd_.get(), buffer.data(), wanted, at);
      if (n <= 0) return FailErrno("reading a layer");
      SHA256_Update(&context, buffer.data(), static_cast<size_t>(n));
      at += n;
    }
    return {};
  }));
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  std::string layer = HexEncode(digest);
  if (sync && fsync(fd_.get())) return FailErrno("writing a layer to the host's disk");
  if (rename(path_.c_str(), LayerPath(layer).c_str())) return FailErrno("naming a layer");
  path_.clear();
  return layer;
}

Result<int> LayerMounts::Get(const std::string& layer) {
  if (auto it = mounts_.find(layer); it != mounts_.end()) return it->second.get();
  UniqueFd image(open(LayerPath(layer).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!image)
    return Fail(Code::kDataLoss, "the layer {} of its disk is missing", layer.substr(0, 12));
  TRY_ASSIGN(Loop loop, AttachLoop(image.get(), "layer-" + layer, true));
  TRY_ASSIGN(UniqueFd mount, MountExt4(loop.number, true));
  return mounts_.emplace(layer, std::move(mount)).first->second.get();
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
