#include "engine/large_areas_image.h"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "engine/criu_images.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxImage = 256 << 20;
// Less is not worth it, and neither is what would have most of the file copied.
constexpr uint64_t kLeastBytes = 8 << 20;

// More than any machine has, and little enough that sums of addresses do not overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 44, kHighestAddress = uint64_t{1} << 56;

// Bits of an entry's flags (criu/include/pagemap.h of CRIU).
constexpr uint64_t kInParent = 1, kPresent = 4;
// Bits of a mapping's status: an ordinary one of anonymous private memory; the heap.
constexpr uint64_t kPlainStatus = 0x201, kHeapStatus = 0x20;

struct Mapping {
  uint64_t start = 0, end = 0, prot = 0, flags = 0, status = 0, advice = 0;
};

// Pages that follow each other in memory and in the file.
struct Run {
  uint64_t address = 0, offset = 0, bytes = 0, flags = 0;
};

struct Pagemap {
  uint64_t pages_id = 0;
  std::vector<Run> runs;
};

Result<Mapping> ParseMapping(std::string_view message) {
  Mapping mapping;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) return mapping;
    if (field->number == 1) mapping.start = field->value;
    if (field->number == 2) mapping.end = field->value;
    if (field->number == 5) mapping.prot = field->value;
    if (field->number == 6) mapping.flags = field->value;
    if (field->number == 7) mapping.status = field->value;
    if (field->number == 9) mapping.advice = field->value;
  }
}

Result<std::vector<Mapping>> ParseMappings(std::string_view image) {
  std::vector<Mapping> mappings;
  TRY_ASSIGN(auto messages, ImageMessages(image));
  for (std::string_view message : messages) {
    WireReader reader(message);
    for (;;) {
      TRY_ASSIGN(auto field, reader.Next());
      if (!field) break;
      if (field->number != 14) continue;
      TRY_ASSIGN(Mapping mapping, ParseMapping(field->bytes));
      mappings.push_back(mapping);
    }
  }
  return mappings;
}

Result<Run> ParseEntry(std::string_view message) {
  Run run;
  uint64_t pages = 0;
  WireReader reader(message);
  for (;;) {
    TRY_ASSIGN(auto field, reader.Next());
    if (!field) break;
    if (field->number == 1) run.address = field->value;
    if (field->number == 4) run.flags = field->value;
    if (field->number == 5) pages = field->value;
  }
  if (!(run.flags & kPresent) || run.flags & kInParent || pages == 0 || pages > UINT32_MAX)
    return Fail(Code::kDataLoss, "an entry of the page map is of an unknown kind");
  if (run.address > kHighestAddress || run.address % kSmallPage)
    return Fail(Code::kDataLoss, "an entry of the page map is at an impossible place");
  run.bytes = pages * kSmallPage;
  return run;
}

Result<Pagemap> ParsePagemap(std::string_view image) {
  TRY_ASSIGN(auto messages, ImageMessages(image));
  if (messages.empty()) return Fail(Code::kDataLoss, "a page map is empty");
  Pagemap map;
  TRY_ASSIGN(auto head, WireReader(messages.front()).Next());
  if (!head || head->number != 1) return Fail(Code::kDataLoss, "a page map names no file");
  map.pages_id = head->value;
  uint64_t offset = 0;
  for (size_t i = 1; i < messages.size(); ++i) {
    TRY_ASSIGN(Run run, ParseEntry(messages[i]));
    run.offset = offset;
    offset += run.bytes;
    if (offset > kMostBytes) return Fail(Code::kDataLoss, "a page map is larger than any memory");
    Run* last = map.runs.empty() ? nullptr : &map.runs.back();
    if (last && last->address + last->bytes > run.address)
      return Fail(Code::kDataLoss, "a page map is not in order");
    if (last && last->address + last->bytes == run.address && last->flags == run.flags)
      last->bytes += run.bytes;
    else
      map.runs.push_back(run);
  }
  return map;
}

// Where the kernel keeps its notes for threads (rseq): it writes there by itself, before we would.
Status AddKernelNotes(std::string_view image, std::set<uint64_t>& places) {
  TRY_ASSIGN(auto messages, ImageMessages(image));
  for (std::string_view message : messages) {
    WireReader core(message);
    for (;;) {
      TRY_ASSIGN(auto part, core.Next());
      if (!part) break;
      if (part->number != 5) continue;
      WireReader thread(part->bytes);
      for (;;) {
        TRY_ASSIGN(auto field, thread.Next());
        if (!field) break;
        if (field->number != 15) continue;
        TRY_ASSIGN(auto pointer, WireReader(field->bytes).Next());
        if (pointer && pointer->number == 1) places.insert(pointer->value / kLargePage);
      }
    }
  }
  return {};
}

using Images = std::map<std::string, std::string>;

// Of one process after the other: those of `kind`-<number>.img.
Result<Images> ReadImages(int directory, std::string_view kind) {
  Images images;
  std::error_code ec;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/self/fd/{}", directory), ec)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kind) || !name.ends_with(".img")) continue;
    std::string number = name.substr(kind.size(), name.size() - kind.size() - 4);
    if (!ParseInt<int>(number)) continue;
    TRY_ASSIGN(images[number], ReadFile(entry.path().string(), kMaxImage));
  }
  if (ec) return Fail(Code::kInternal, "reading saved state: {}", ec.message());
  return images;
}

class Finder {
 public:
  Status Read(int directory) {
    TRY_ASSIGN(Images cores, ReadImages(directory, "core-"));
    for (const auto& [number, image] : cores) TRY(AddKernelNotes(image, notes_));
    TRY_ASSIGN(Images images, ReadImages(directory, "mm-"));
    for (const auto& [number, image] : images) {
      TRY_ASSIGN(mappings_[number], ParseMappings(image));
      for (const Mapping& mapping : mappings_[number]) ++uses_[{mapping.start, mapping.end}];
    }
    return {};
  }

  Result<std::optional<AreaSplit>> Split(const std::string& number, std::string_view image) {
    TRY_ASSIGN(Pagemap map, ParsePagemap(image));
    AreaSplit split{.pid = ParseInt<int>(number).value_or(0), .pages_id = map.pages_id};
    FindAreas(map, mappings_[number], split);
    uint64_t large = 0, all = 0;
    for (const LargeArea& area : split.areas) large += area.bytes;
    for (const Run& run : map.runs) all += run.bytes;
    if (large < kLeastBytes || large < all - large) return std::nullopt;
    DescribeRest(map, image, split);
    return split;
  }

 private:
  // Ordinary memory that the process may write to and that no other has a part in: CRIU lets
  // relatives share what they still have in common.
  bool IsPlain(const Mapping& mapping) const {
    return mapping.prot & PROT_WRITE && mapping.flags == (MAP_PRIVATE | MAP_ANONYMOUS) &&
           (mapping.status & ~kHeapStatus) == kPlainStatus && mapping.advice == 0 &&
           uses_.at({mapping.start, mapping.end}) == 1;
  }

  void FindAreas(const Pagemap& map, const std::vector<Mapping>& mappings, AreaSplit& split) const {
    auto mapping = mappings.begin();
    for (const Run& run : map.runs) {
      uint64_t end = run.address + run.bytes;
      while (mapping != mappings.end() && mapping->end <= run.address) ++mapping;
      for (auto it = mapping; it != mappings.end() && it->start < end; ++it)
        if (IsPlain(*it))
          AddAreas(run, std::max(run.address, it->start), std::min(end, it->end), split);
    }
  }

  void AddAreas(const Run& run, uint64_t start, uint64_t end, AreaSplit& split) const {
    start = (start + kLargePage - 1) / kLargePage * kLargePage;
    for (; start + kLargePage <= end; start += kLargePage) {
      if (notes_.contains(start / kLargePage)) continue;
      uint64_t offset = run.offset + (start - run.address);
      LargeArea* last = split.areas.empty() ? nullptr : &split.areas.back();
      uint64_t last_end = last ? last->address + last->bytes : 0;
      if (start < last_end) continue;  // mappings that overlap
      // Not across two runs: DescribeRest() goes from run to run.
      if (last && last->address >= run.address && last_end == start)
        last->bytes += kLargePage;
      else
        split.areas.push_back({split.pid, split.pages_id, start, offset, kLargePage});
    }
  }

  static void AddRest(const Run& run, uint64_t from, uint64_t to, AreaSplit& split) {
    if (from == to) return;
    AppendImageMessage(split.pagemap, WireWriter()
                                          .Number(1, from)
                                          .Number(2, 0)
                                          .Number(4, run.flags)
                                          .Number(5, (to - from) / kSmallPage)
                                          .data());
    FileRange range{run.offset + (from - run.address), to - from};
    FileRange* last = split.rest.empty() ? nullptr : &split.rest.back();
    if (last && last->offset + last->bytes == range.offset)
      last->bytes += range.bytes;
    else
      split.rest.push_back(range);
  }

  static void DescribeRest(const Pagemap& map, std::string_view image, AreaSplit& split) {
    split.pagemap = image.substr(0, kImageMagicBytes);
    AppendImageMessage(split.pagemap, WireWriter().Number(1, map.pages_id).data());
    auto area = split.areas.begin();
    for (const Run& run : map.runs) {
      uint64_t at = run.address, end = run.address + run.bytes;
      for (; area != split.areas.end() && area->address < end; ++area) {
        AddRest(run, at, area->address, split);
        at = area->address + area->bytes;
      }
      AddRest(run, at, end, split);
    }
  }

  std::map<std::string, std::vector<Mapping>> mappings_;
  std::map<std::pair<uint64_t, uint64_t>, int> uses_;
  std::set<uint64_t> notes_;  // huge pages, by number
};

}  // namespace

Result<std::vector<AreaSplit>> FindLargeAreas(int directory) {
  Finder finder;
  TRY(finder.Read(directory));
  TRY_ASSIGN(Images pagemaps, ReadImages(directory, "pagemap-"));
  std::vector<AreaSplit> splits;
  for (const auto& [number, image] : pagemaps) {
    TRY_ASSIGN(auto split, finder.Split(number, image));
    if (split) splits.push_back(std::move(*split));
  }
  return splits;
}

}  // namespace caisson::engine
