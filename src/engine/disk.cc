#include "engine/disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/mount.h"
#include "engine/program.h"
#include "engine/sparse.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

// Sizes seen so far stay loaded, up to so many; a server uses one or two.
constexpr size_t kMaxLoadedImages = 16;
constexpr std::chrono::seconds kMkfsTimeout{30};
constexpr const char* kGrown = ".grown";  // after the name of an image: a larger one in the making
// Where ext4 keeps what it reads when it is mounted.
constexpr off_t kFirstGroupBytes = 128 << 20;

Result<UniqueFd> MountVolatile(const std::string& path) {
  TRY_ASSIGN(FileSystem overlay, FileSystem::Open("overlay"));
  TRY(overlay.SetString("lowerdir", path + "/lower"));
  TRY(overlay.SetString("upperdir", path + "/upper"));
  TRY(overlay.SetString("workdir", path + "/work"));
  TRY(overlay.SetFlag("volatile"));
  return overlay.Mount(kOnlyData);
}

}  // namespace

Result<Shelf> Shelf::Mount() {
  Shelf shelf;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(kShelvesDir, ec))
    shelf.earlier_.push_back(entry.path().filename().string());
  if (ec) return Fail(Code::kInternal, "reading {}: {}", kShelvesDir, ec.message());
  shelf.name_ = RandomHex(8);
  std::string path = fmt::format("{}/{}", kShelvesDir, shelf.name_);
  for (const char* name : {"", "/upper", "/work", "/lower"})
    if (mkdir((path + name).c_str(), 0700)) return FailErrno("creating {}", path);
  std::string upper = path + "/upper";
  auto mount = MountVolatile(path);
  if (!mount) {
    LogWarn("disks of sandboxes are made slowly: the data directory cannot carry an overlay",
            {{"reason", mount.error().message()}});
    mount = CloneMount(AT_FDCWD, upper.c_str());
  }
  if (!mount) return tl::unexpected(std::move(mount).error());
  TRY(Attach(mount->get(), kShelfMount));
  return shelf;
}

std::string Shelf::ImagePath(const std::string& id) const {
  return fmt::format("{}/{}.img", kShelfMount, id);
}

std::optional<std::string> Shelf::FindImage(const std::string& id) const {
  if (std::string path = ImagePath(id); access(path.c_str(), F_OK) == 0) return path;
  for (const std::string& name : earlier_)
    if (std::string path = fmt::format("{}/{}/upper/{}.img", kShelvesDir, name, id);
        access(path.c_str(), F_OK) == 0)
      return path;
  return std::nullopt;
}

std::string Shelf::OnHost(std::string path) const {
  const std::string mount = fmt::format("{}/", kShelfMount);
  if (!path.starts_with(mount)) return path;
  return fmt::format("{}/{}/upper/{}", kShelvesDir, name_, path.substr(mount.size()));
}

std::optional<std::string> Shelf::FindFile(const std::string& id) const {
  auto path = FindImage(id);
  return path ? std::optional(OnHost(*path)) : std::nullopt;
}

Status Shelf::SyncImage(const std::string& id) const {
  auto path = FindFile(id);
  UniqueFd fd(path ? open(path->c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (!fd || fsync(fd.get())) return FailErrno("writing the disk of {} to the host's disk", id);
  return {};
}

namespace {

// The new file system beside the old one: should the host go down half-way, that one is whole.
Status GrowTo(const std::string& from, const std::string& to, int64_t bytes,
              std::chrono::milliseconds timeout) {
  UniqueFd source(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  UniqueFd copy(open(to.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!source || !copy) return FailErrno("opening a disk image");
  TRY(ForEachPiece(source.get(), [&](off_t offset, off_t size) {
    return CopyPiece(source.get(), copy.get(), offset, size);
  }));
  if (ftruncate(copy.get(), bytes)) return FailErrno("sizing a disk image");
  // It was unmounted and is whole, so it need not be checked first (-f).
  return RunProgram({"resize2fs", "-f", to}, timeout);
}

Status Sync(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || fsync(fd.get())) return FailErrno("writing a disk image to the host's disk");
  return {};
}

}  // namespace

Status Shelf::GrowImage(const std::string& id, int64_t bytes, bool sync,
                        std::chrono::milliseconds timeout) const {
  auto path = FindImage(id);
  struct stat now;
  if (!path || stat(path->c_str(), &now)) return FailErrno("finding the disk of {}", id);
  if (now.st_size >= bytes) return {};
  std::string grown = *path + kGrown;
  Status made = GrowTo(*path, grown, bytes, timeout);
  if (made && sync) made = Sync(OnHost(grown));
  if (made && rename(grown.c_str(), path->c_str()))
    made = FailErrno("replacing the disk of {}", id);
  if (!made) unlink(grown.c_str());
  if (made && sync) made = Sync(fs::path(OnHost(*path)).parent_path());
  return made;
}

Status Shelf::RemoveImage(const std::string& id) const {
  // A process that was killed while it made a larger one has left that.
  if (auto path = FindImage(id)) unlink((*path + kGrown).c_str());
  if (unlink(ImagePath(id).c_str()) && errno != ENOENT) return FailErrno("removing a disk image");
  for (const std::string& name : earlier_) {
    std::string path = fmt::format("{}/{}/upper/{}.img", kShelvesDir, name, id);
    // The overlay of an earlier process may still remember the file and so keep it in existence;
    // then at least it is empty.
    if (truncate(path.c_str(), 0) == 0 && unlink(path.c_str()))
      return FailErrno("removing a disk image");
  }
  return {};
}

void Shelf::RemoveEmpty() {
  std::erase_if(earlier_, [](const std::string& name) {
    std::string path = fmt::format("{}/{}", kShelvesDir, name);
    std::error_code ec;
    return fs::is_empty(path + "/upper", ec) && RemoveTree(path);
  });
}

BlankImage::BlankImage(BlankImage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      size_(other.size_),
      pieces_(std::move(other.pieces_)) {}

BlankImage::~BlankImage() {
  if (memory_) munmap(memory_, size_);
}

Result<BlankImage> BlankImage::Load(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("opening {}", path);
  struct stat info;
  if (fstat(fd.get(), &info)) return FailErrno("stat {}", path);
  BlankImage image;
  image.size_ = static_cast<size_t>(info.st_size);
  for (off_t data = 0; (data = lseek(fd.get(), data, SEEK_DATA)) >= 0;) {
    off_t hole = lseek(fd.get(), data, SEEK_HOLE);
    if (hole < 0) return FailErrno("reading {}", path);
    image.pieces_.push_back({data, static_cast<size_t>(hole - data)});
    data = hole;
  }
  if (errno != ENXIO) return FailErrno("reading {}", path);
  void* memory = mmap(nullptr, image.size_, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return FailErrno("mapping {}", path);
  image.memory_ = memory;
  return image;
}

Status BlankImage::CopyTo(int fd) const {
  if (ftruncate(fd, static_cast<off_t>(size_))) return FailErrno("sizing a disk image");
  for (const Piece& piece : pieces_) {
    const char* from = static_cast<const char*>(memory_) + piece.offset;
    ssize_t n = pwrite(fd, from, piece.size, piece.offset);
    if (n < 0 || static_cast<size_t>(n) != piece.size) return FailErrno("writing a disk image");
  }
  return {};
}

void BlankImage::Prefetch(int device) const {
  for (const Piece& piece : pieces_)
    if (piece.offset < kFirstGroupBytes)
      posix_fadvise(device, piece.offset, static_cast<off_t>(piece.size), POSIX_FADV_WILLNEED);
}

namespace {

// Makes the file system beside its final name, so that other launchers see it whole or not at all.
Status MakeBlankFile(const std::string& path, int64_t bytes) {
  std::string seed = fmt::format("{}/{}.seed", kBlankDir, RandomHex(8));
  std::string temporary = seed + ".tmp";
  for (const char* name : {"", "/upper", "/work"})
    if (mkdir((seed + name).c_str(), 0755)) return FailErrno("creating {}", seed);
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  Status made;
  if (!fd || ftruncate(fd.get(), bytes))
    made = FailErrno("creating a blank disk of {} bytes", bytes);
  // No journal: a running sandbox does not survive a crash of the host, and a paused one was synced
  // while nothing wrote. No reserve for root: guests' root would get it. Tables are zeroed on use,
  // which keeps the image sparse.
  if (made)
    made = RunProgram(
        {"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-O", "^has_journal,^resize_inode", "-E",
         "lazy_itable_init=1,nodiscard,root_owner=0:0", "-d", seed, temporary},
        kMkfsTimeout);
  if (made && rename(temporary.c_str(), path.c_str())) made = FailErrno("naming {}", path);
  if (!made) unlink(temporary.c_str());
  (void)RemoveTree(seed);
  return made;
}

}  // namespace

Result<const BlankImage*> BlankImages::Get(int64_t bytes) {
  if (auto it = loaded_.find(bytes); it != loaded_.end()) return &it->second;
  std::string path = fmt::format("{}/{}.ext4", kBlankDir, bytes);
  if (access(path.c_str(), F_OK)) TRY(MakeBlankFile(path, bytes));
  TRY_ASSIGN(BlankImage image, BlankImage::Load(path));
  if (loaded_.size() >= kMaxLoadedImages) loaded_.clear();
  return &loaded_.emplace(bytes, std::move(image)).first->second;
}

Disk::Disk(Disk&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      mount_(std::move(other.mount_)),
      loop_(std::exchange(other.loop_, -1)),
      device_(std::move(other.device_)) {}

Disk& Disk::operator=(Disk&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(mount_, other.mount_);
  std::swap(loop_, other.loop_);
  std::swap(device_, other.device_);
  return *this;
}

Disk::~Disk() {
  mount_.Reset();
  device_.Reset();
  if (!path_.empty()) unlink(path_.c_str());
}

void Discard(int root) {
  // <linux/ext4.h> of Debian 12 does not have them.
  constexpr auto kShutDown = _IOR('X', 125, uint32_t);
  uint32_t at_once = 2;
  (void)ioctl(root, kShutDown, &at_once);
}

int64_t AllocatedBytes(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) ? 0 : info.st_blocks * 512;
}

int64_t BytesOfCopy(const std::string& path) {
  struct statfs host;
  bool shares = statfs(".", &host) == 0 &&
                (host.f_type == BTRFS_SUPER_MAGIC || host.f_type == XFS_SUPER_MAGIC);
  return shares ? 0 : AllocatedBytes(path);
}

Status CheckRoom(int64_t bytes, int64_t keep_free) {
  struct statvfs host;
  if (statvfs(".", &host)) return FailErrno("looking at the host's disk");
  const int64_t needed = keep_free + bytes;
  const auto free = static_cast<int64_t>(host.f_bavail * host.f_frsize);
  if (free >= needed) return {};
  return Fail(Code::kResourceExhausted,
              "the host's disk is too full: {} MB are free, {} MB are needed", free >> 20,
              needed >> 20);
}

Result<Disk> Disk::Create(const BlankImage& blank, const std::string& path,
                          const std::string& label) {
  UniqueFd image(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!image) return FailErrno("creating a disk image");
  Disk disk;
  disk.path_ = path;
  TRY(blank.CopyTo(image.get()));
  TRY_ASSIGN(Loop loop, AttachLoop(image.get(), label));
  disk.loop_ = loop.number;
  disk.device_ = std::move(loop.fd);
  blank.Prefetch(disk.device_.get());
  return disk;
}

Result<Disk> Disk::Open(const std::string& path, const std::string& label) {
  UniqueFd image(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!image) return FailErrno("opening the disk of {}", label);
  Disk disk;
  TRY_ASSIGN(Loop loop, AttachLoop(image.get(), label));
  disk.loop_ = loop.number;
  disk.device_ = std::move(loop.fd);
  return disk;
}

Status Disk::Mount() {
  TRY_ASSIGN(mount_, MountExt4(loop_));
  device_.Reset();
  return {};
}

namespace {

Result<UniqueFd> OpenRootOf(int mount) {
  UniqueFd fd(openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("opening the sandbox's disk");
  return fd;
}

}  // namespace

Result<UniqueFd> Disk::OpenRoot() const { return OpenRootOf(mount_.get()); }

Result<UniqueFd> Disk::OpenInUse(const std::string& label, int loop) {
  if (!LoopHolds(loop, label))
    return Fail(Code::kNotFound, "{} does not hold the disk of {}", LoopPath(loop), label);
  TRY_ASSIGN(UniqueFd mount, MountExt4(loop));
  return OpenRootOf(mount.get());
}

}  // namespace caisson::engine
