#include "engine/large_areas.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "engine/criu_images.h"
#include "engine/large_areas_image.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

constexpr const char* kIndexFile = "large.index";
constexpr size_t kMaxIndex = 64 << 20;

std::string PagesName(uint64_t pages_id) { return fmt::format("pages-{}.img", pages_id); }

std::string PathIn(int directory, std::string_view name) {
  return fmt::format("/proc/self/fd/{}/{}", directory, name);
}

Result<UniqueFd> OpenIn(int directory, const std::string& name, int flags) {
  UniqueFd fd(openat(directory, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return FailErrno("opening {}", name);
  return fd;
}

Status Copy(int from, int to, const FileRange& range) {
  auto offset = static_cast<off_t>(range.offset);
  for (uint64_t left = range.bytes; left > 0;) {
    ssize_t n = copy_file_range(from, &offset, to, nullptr, left, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno("copying saved memory");
    left -= static_cast<uint64_t>(n);
  }
  return {};
}

// The file as CRIU wrote it becomes the one of the areas, with holes where the rest was; the rest
// gets a file of its own.
Status SplitPages(int directory, const AreaSplit& split) {
  std::string pages = PagesName(split.pages_id), large = LargeName(split.pages_id);
  if (renameat(directory, pages.c_str(), directory, large.c_str()))
    return FailErrno("naming {}", large);
  TRY_ASSIGN(UniqueFd from, OpenIn(directory, large, O_RDWR));
  TRY_ASSIGN(UniqueFd to, OpenIn(directory, pages, O_WRONLY | O_CREAT | O_EXCL));
  for (const FileRange& range : split.rest) {
    TRY(Copy(from.get(), to.get(), range));
    // It only saves space; not every file system has it.
    (void)fallocate(from.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(range.offset), static_cast<off_t>(range.bytes));
  }
  return OverwriteImage(PathIn(directory, fmt::format("pagemap-{}.img", split.pid)), split.pagemap);
}

std::string EncodeArea(const LargeArea& area) {
  return WireWriter()
      .Number(1, static_cast<uint64_t>(area.pid))
      .Number(2, area.pages_id)
      .Number(3, area.address)
      .Number(4, area.offset)
      .Number(5, area.bytes)
      .data();
}

Result<LargeArea> DecodeArea(std::string_view message) {
  LargeArea area;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return area;
    if (field->number == 1) area.pid = static_cast<int>(field->value);
    if (field->number == 2) area.pages_id = field->value;
    if (field->number == 3) area.address = field->value;
    if (field->number == 4) area.offset = field->value;
    if (field->number == 5) area.bytes = field->value;
  }
}

}  // namespace

std::string LargeName(uint64_t pages_id) { return fmt::format("large-{}.img", pages_id); }

bool HoldsPages(std::string_view name) {
  return name.starts_with("pages-") || name.starts_with("large-");
}

Status SplitLargeAreas(int directory) {
  auto splits = FindLargeAreas(directory);
  if (!splits && splits.error().code() == Code::kDataLoss) return {};
  if (!splits) return tl::unexpected(std::move(splits).error());
  WireWriter index;
  for (const AreaSplit& split : *splits) {
    TRY(SplitPages(directory, split));
    for (const LargeArea& area : split.areas) index.Bytes(1, EncodeArea(area));
  }
  if (splits->empty()) return {};
  return OverwriteImage(PathIn(directory, kIndexFile), index.data());
}

Result<std::vector<LargeArea>> ReadAreas(int directory) {
  std::vector<LargeArea> areas;
  if (faccessat(directory, kIndexFile, F_OK, 0)) return areas;
  TRY_ASSIGN(std::string index, ReadFile(PathIn(directory, kIndexFile), kMaxIndex));
  WireReader reader(index);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return areas;
    TRY_ASSIGN(LargeArea area, DecodeArea(field->bytes));
    areas.push_back(area);
  }
}

}  // namespace caisson::engine
