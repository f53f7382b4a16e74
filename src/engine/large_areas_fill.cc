#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/errand.h"
#include "engine/large_areas.h"
#include "engine/large_areas_image.h"
#include "engine/pidfd.h"

namespace caisson::engine {
namespace {

using std::chrono::steady_clock;

constexpr int kCollapse = 25;  // MADV_COLLAPSE, newer than the headers
// What 2 MB in small pages take. A huge page that takes longer had to be made or fetched first.
constexpr std::chrono::microseconds kSlowCollapse{1500};
constexpr int kMostSlowCollapses = 2;
// A process of its own pays from 16 MB on; more than four wait for each other.
constexpr uint64_t kPagesPerWorker = 8;
constexpr uint64_t kMostWorkers = 4;

// An area, and where it goes.
struct Load {
  LargeArea area;
  pid_t pid = 0;
  int file = -1;
};

struct Outcome {
  Status status;
  bool slow = false;  // huge pages had to be fetched
};

// The number a process has in the innermost pid namespace; 0 if that is the host's, or it is gone.
int NumberInside(pid_t pid) {
  auto status = ReadFile(fmt::format("/proc/{}/status", pid), 8192);
  size_t at = status ? status->find("\nNSpid:") : std::string::npos;
  if (at == std::string::npos) return 0;
  std::string_view line = std::string_view(*status).substr(at + 7);
  auto numbers = Split(Trim(line.substr(0, line.find('\n'))), '\t');
  return numbers.size() < 2 ? 0 : ParseInt<int>(numbers.back()).value_or(0);
}

// The memory of one process.
class Target {
 public:
  static Result<Target> Open(pid_t pid) {
    TRY_ASSIGN(UniqueFd process, OpenProcess(pid));
    return Target(pid, std::move(process));
  }

  // `content`: kLargePage bytes. `slow` counts huge pages that were not at hand.
  Status Fill(uint64_t address, const char* content, int& slow) const {
    if (slow < kMostSlowCollapses) {
      // The kernel makes a huge page only of an area in which there is something.
      TRY(Write(address, content, kSmallPage));
      if (!Collapse(address)) ++slow;
    }
    return Write(address, content, kLargePage);
  }

 private:
  Target(pid_t pid, UniqueFd process) : pid_(pid), process_(std::move(process)) {}

  Status Write(uint64_t address, const char* content, size_t size) const {
    while (size > 0) {
      iovec from{const_cast<char*>(content), size};
      iovec to{reinterpret_cast<void*>(address), size};
      ssize_t n = process_vm_writev(pid_, &from, 1, &to, 1, 0);
      if (n <= 0) return FailErrno("putting memory back");
      address += static_cast<uint64_t>(n);
      content += n;
      size -= static_cast<size_t>(n);
    }
    return {};
  }

  // If there is no huge page, small ones do as well. False: it took too long.
  bool Collapse(uint64_t address) const {
    auto begin = steady_clock::now();
    iovec area{reinterpret_cast<void*>(address), kLargePage};
    syscall(SYS_process_madvise, process_.get(), &area, 1, kCollapse, 0);
    return steady_clock::now() - begin <= kSlowCollapse;
  }

  pid_t pid_;
  UniqueFd process_;
};

Status CheckArea(const LargeArea& area, int file) {
  struct stat info;
  if (fstat(file, &info)) return FailErrno("looking at saved memory");
  auto size = static_cast<uint64_t>(info.st_size);
  if (area.bytes % kLargePage || area.address % kLargePage || area.offset % kSmallPage ||
      area.offset > size || area.bytes > size - area.offset)
    return Fail(Code::kDataLoss, "the index of saved memory is damaged");
  return {};
}

// `bytes` of one area, from `begin` on.
Status FillPart(const Load& load, uint64_t begin, uint64_t bytes, int& slow) {
  TRY_ASSIGN(Target target, Target::Open(load.pid));
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, load.file,
                    static_cast<off_t>(load.area.offset + begin));
  if (data == MAP_FAILED) return FailErrno("reading saved memory");
  Status filled;
  for (uint64_t at = 0; filled && at < bytes; at += kLargePage)
    filled = target.Fill(load.area.address + begin + at, static_cast<const char*>(data) + at, slow);
  munmap(data, bytes);
  return filled;
}

// What lies from `from` up to `to` when all areas stand one after the other.
Outcome FillRange(const std::vector<Load>& loads, uint64_t from, uint64_t to) {
  Outcome outcome;
  int slow = 0;
  uint64_t start = 0;
  for (const Load& load : loads) {
    uint64_t begin = std::clamp(from, start, start + load.area.bytes) - start;
    uint64_t end = std::clamp(to, start, start + load.area.bytes) - start;
    start += load.area.bytes;
    if (begin < end && outcome.status) outcome.status = FillPart(load, begin, end - begin, slow);
  }
  outcome.slow = slow > 0;
  return outcome;
}

// What another process did and says: "f" or "s" (slow), and what is wrong, if anything.
std::string Tell(const Outcome& outcome) {
  std::string told = outcome.slow ? "s" : "f";
  return outcome.status ? told : told + outcome.status.error().message();
}

Outcome Understand(const std::string& told) {
  if (told.empty()) return {Fail(Code::kInternal, "a process that puts memory back died")};
  Outcome outcome{.slow = told[0] == 's'};
  if (told.size() > 1) outcome.status = Fail(Code::kInternal, "{}", told.substr(1));
  return outcome;
}

uint64_t CountWorkers(uint64_t bytes) {
  cpu_set_t cpus;
  uint64_t most = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
  most = std::min(most, kMostWorkers);
  return std::clamp<uint64_t>(bytes / kLargePage / kPagesPerWorker, 1, most);
}

// The first range is ours.
Outcome FillTogether(const std::vector<Load>& loads, uint64_t bytes) {
  uint64_t count = CountWorkers(bytes), pages = bytes / kLargePage;
  auto edge = [&](uint64_t n) { return pages * n / count * kLargePage; };
  std::vector<Errand> workers;
  for (uint64_t n = 1; n < count; ++n) {
    auto worker = Errand::Send([&] { return Tell(FillRange(loads, edge(n), edge(n + 1))); });
    if (!worker) break;
    workers.push_back(std::move(*worker));
  }
  Outcome all = FillRange(loads, 0, edge(1));
  // Where no process can be made it takes longer.
  if (uint64_t taken = edge(workers.size() + 1); all.status && taken < bytes)
    all = FillRange(loads, taken, bytes);
  for (Errand& worker : workers) {
    Outcome its = Understand(worker.Wait());
    all.slow |= its.slow;
    if (all.status) all.status = std::move(its.status);
  }
  return all;
}

}  // namespace

Status FillLargeAreas(int directory, const std::vector<pid_t>& processes, Reserve& reserve) {
  TRY_ASSIGN(auto areas, ReadAreas(directory));
  if (areas.empty()) return {};
  std::map<int, pid_t> numbers;
  for (pid_t pid : processes) numbers[NumberInside(pid)] = pid;
  std::map<uint64_t, UniqueFd> files;
  std::vector<Load> loads;
  uint64_t bytes = 0;
  for (const LargeArea& area : areas) {
    auto number = numbers.find(area.pid);
    if (area.pid <= 0 || number == numbers.end())
      return Fail(Code::kDataLoss, "there is saved memory of process {}, but no such process",
                  area.pid);
    UniqueFd& file = files[area.pages_id];
    std::string name = LargeName(area.pages_id);
    if (!file) file.Reset(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return FailErrno("opening {}", name);
    TRY(CheckArea(area, file.get()));
    loads.push_back({area, number->second, file.get()});
    bytes += area.bytes;
  }
  reserve.Give(bytes);
  Outcome outcome = FillTogether(loads, bytes);
  if (outcome.slow) reserve.Want();
  return outcome.status;
}

}  // namespace caisson::engine
