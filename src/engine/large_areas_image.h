// What CRIU's images say about the memory of processes: where large areas are in it; and our own
// list of those that were taken out. Internal to large_areas.cc and large_areas_fill.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

inline constexpr uint64_t kSmallPage = 4096;
inline constexpr uint64_t kLargePage = 2 << 20;

// Whole huge pages.
struct LargeArea {
  int pid = 0;            // of the process, as it sees itself
  uint64_t pages_id = 0;  // pages-<id>.img
  uint64_t address = 0;
  uint64_t offset = 0;  // of its content in the file
  uint64_t bytes = 0;
};

struct FileRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// How the memory of one process is to be split.
struct AreaSplit {
  int pid = 0;
  uint64_t pages_id = 0;
  std::vector<LargeArea> areas;
  std::vector<FileRange> rest;  // of the file, in order
  std::string pagemap;          // the image that describes the rest
};

// Processes for which it pays. kDataLoss: an image is not as expected.
Result<std::vector<AreaSplit>> FindLargeAreas(int directory);

// Those that were taken out, and the file that holds the content of one.
Result<std::vector<LargeArea>> ReadAreas(int directory);
std::string LargeName(uint64_t pages_id);

}  // namespace caisson::engine
