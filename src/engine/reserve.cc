#include "engine/reserve.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "engine/large_areas_image.h"

namespace caisson::engine {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, newer than the headers
// Whoever has less than so many times of it to spare needs it for something better.
constexpr size_t kPlenty = 16;

}  // namespace

int64_t MemoryField(std::string_view name) {
  auto text = ReadFile("/proc/meminfo");
  if (!text) return 0;
  for (std::string_view line : Split(*text, '\n'))
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      std::string_view value = Trim(line.substr(name.size() + 1));
      return ParseInt<int64_t>(value.substr(0, value.find(' '))).value_or(0) * 1024;
    }
  return 0;
}

Reserve::Reserve(size_t bytes) : size_(bytes / kLargePage * kLargePage) {
  if (size_ == 0) return;
  // One page more than is used: huge pages begin at multiples of their size.
  void* area = mmap(nullptr, size_ + kLargePage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return;
  area_ = static_cast<char*>(area);
  // Children of a launcher need nothing of it.
  madvise(area_, size_ + kLargePage, MADV_HUGEPAGE);
  madvise(area_, size_ + kLargePage, MADV_DONTFORK);
}

Reserve::~Reserve() {
  if (area_) munmap(area_, size_ + kLargePage);
}

char* Reserve::At(size_t offset) const {
  auto begin = reinterpret_cast<uintptr_t>(area_);
  return reinterpret_cast<char*>((begin + kLargePage - 1) / kLargePage * kLargePage) + offset;
}

void Reserve::Give(size_t bytes) {
  size_t given = std::min((bytes + kLargePage - 1) / kLargePage * kLargePage, held_);
  if (given == 0) return;
  held_ -= given;
  madvise(At(held_), given, MADV_DONTNEED);
}

bool Reserve::Refill() {
  if (!wanted_ || !area_ || held_ == size_ ||
      static_cast<size_t>(MemoryField("MemAvailable")) / kPlenty < size_)
    return false;
  if (madvise(At(held_), kLargePage, kPopulateWrite)) return false;
  held_ += kLargePage;
  return true;
}

}  // namespace caisson::engine
