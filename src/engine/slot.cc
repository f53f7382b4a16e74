#include "engine/slot.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

// In the directory of the entries; its target is what all servers of the machine must agree on.
constexpr const char* kPlanName = "plan";
// Host ends of veth pairs get this + number; far from the small numbers the kernel hands out.
constexpr int kInterfaceIndexBase = 1 << 20;
// How often Allocate() walks over the table while somebody else empties and fills it.
constexpr int kAllocationAttempts = 16;

// The decimal name of an entry, without an allocation.
struct EntryName {
  explicit EntryName(int number) { *fmt::format_to_n(text, sizeof text - 1, "{}", number).out = 0; }
  char text[16];
};

std::string ReadLink(int directory, const char* name) {
  char buffer[4096];
  ssize_t n = readlinkat(directory, name, buffer, sizeof buffer);
  return n < 0 ? std::string() : std::string(buffer, static_cast<size_t>(n));
}

// Names in the directory that are slot numbers.
Result<std::vector<int>> ReadNumbers(int directory) {
  UniqueFd fd(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("cannot open the table of slots");
  DIR* dir = fdopendir(fd.get());
  if (!dir) return FailErrno("cannot read the table of slots");
  fd.Release();
  std::vector<int> numbers;
  while (dirent* entry = readdir(dir))
    if (auto number = ParseInt<int>(entry->d_name)) numbers.push_back(*number);
  closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

struct Owner {
  std::string_view boot, sandbox_id, data_dir;
};
// "<boot>:<sandbox id>:<data dir>"; the path comes last because it may contain anything.
std::optional<Owner> ParseOwner(std::string_view target) {
  size_t a = target.find(':');
  if (a == std::string_view::npos) return std::nullopt;
  size_t b = target.find(':', a + 1);
  if (b == std::string_view::npos) return std::nullopt;
  return Owner{target.substr(0, a), target.substr(a + 1, b - a - 1), target.substr(b + 1)};
}

// Where the user namespaces of all running processes begin, as host ids.
std::set<uint32_t> UidBasesInUse() {
  std::set<uint32_t> bases;
  DIR* dir = opendir("/proc");
  if (!dir) return bases;
  while (dirent* entry = readdir(dir)) {
    if (!ParseInt<int>(entry->d_name)) continue;
    auto map = ReadFile(fmt::format("/proc/{}/uid_map", entry->d_name), 64 << 10);
    if (!map) continue;
    for (std::string_view line : Split(*map, '\n')) {
      uint32_t inside, outside, count;
      if (sscanf(std::string(line).c_str(), "%u %u %u", &inside, &outside, &count) == 3)
        bases.insert(outside);
    }
  }
  closedir(dir);
  return bases;
}

// Excludes other processes that check or sweep the table; allocation needs no lock.
class TableLock {
 public:
  explicit TableLock(int directory) : directory_(directory) { flock(directory_, LOCK_EX); }
  ~TableLock() { flock(directory_, LOCK_UN); }

 private:
  int directory_;
};

// SECURITY: numbers are unique on the machine, ranges and addresses only if every server computes
// them alike. The first one writes down how; a later one that differs is refused while any slot of
// this boot is taken.
Status AgreeOnPlan(int directory, const std::string& plan, const std::string& boot) {
  TableLock lock(directory);
  std::string found = ReadLink(directory, kPlanName);
  if (found == plan) return {};
  if (!found.empty()) {
    TRY_ASSIGN(std::vector<int> taken, ReadNumbers(directory));
    for (int number : taken)
      if (ReadLink(directory, EntryName(number).text).starts_with(boot))
        return Fail(Code::kFailedPrecondition,
                    "another Caisson server of this machine runs with uid_base and network_cidr "
                    "'{}', this one is set to '{}': all servers of a machine must use the same",
                    found, plan);
    unlinkat(directory, kPlanName, 0);
  }
  if (symlinkat(plan.c_str(), directory, kPlanName) != 0)
    return FailErrno("cannot write to the table of slots");
  return {};
}

Result<std::atomic<uint32_t>*> MapCounter(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("cannot open {}", path);
  if (ftruncate(fd.get(), sizeof(uint32_t)) != 0) return FailErrno("cannot size {}", path);
  void* memory = mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return FailErrno("cannot map {}", path);
  return static_cast<std::atomic<uint32_t>*>(memory);
}

}  // namespace

std::string ServerTag(std::string_view data_dir) {
  return HexEncode(Sha256(data_dir)).substr(0, 8);
}

std::string InterfacePrefix(std::string_view server_tag) {
  return fmt::format("cs{}-", server_tag.substr(0, 4));
}

Slot::Slot(Slot&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)), number_(std::exchange(other.number_, 0)) {}

Slot& Slot::operator=(Slot&& other) noexcept {
  if (this != &other) {
    Release();
    table_ = std::exchange(other.table_, nullptr);
    number_ = std::exchange(other.number_, 0);
  }
  return *this;
}

Slot::~Slot() { Release(); }

uid_t Slot::uid_base() const {
  return table_->uid_base_ + static_cast<uint32_t>(number_) * kIdsPerSandbox;
}
std::string Slot::interface_name() const {
  return fmt::format("{}{}", InterfacePrefix(table_->tag_), number_);
}
int Slot::interface_index() const { return kInterfaceIndexBase + number_; }
uint32_t Slot::host_address() const { return sandbox_address() - 1; }
uint32_t Slot::sandbox_address() const { return SandboxAddress(table_->network_, number_); }

void Slot::Release() {
  if (SlotTable* table = std::exchange(table_, nullptr)) table->Unlink(std::exchange(number_, 0));
}

int Slot::Keep() {
  table_ = nullptr;
  return std::exchange(number_, 0);
}

Result<std::unique_ptr<SlotTable>> SlotTable::Open(const Config& config,
                                                   const std::string& directory) {
  std::unique_ptr<SlotTable> table(new SlotTable);
  TRY_ASSIGN(table->network_, ParseCidr(config.network_cidr));
  if (config.uid_base < kIdsPerSandbox || config.uid_base > UINT32_MAX - 2 * kIdsPerSandbox)
    return Fail(Code::kInvalidArgument,
                "uid_base must lie above the machine's own users (65536 or more) and below 2^32");
  int64_t by_uid = (int64_t{UINT32_MAX} - config.uid_base) / kIdsPerSandbox;
  int64_t by_address = static_cast<int64_t>(table->network_.size() / 2);
  table->limit_ = static_cast<int>(std::min({config.max_slots, by_uid, by_address}));
  if (table->limit_ < 2)
    return Fail(Code::kInvalidArgument,
                "max_slots {} and network_cidr {} leave room for no sandbox", config.max_slots,
                config.network_cidr);
  table->uid_base_ = static_cast<uint32_t>(config.uid_base);
  table->data_dir_ = config.data_dir;
  table->tag_ = ServerTag(config.data_dir);
  TRY_ASSIGN(std::string boot_id, ReadFile("/proc/sys/kernel/random/boot_id"));
  table->boot_id_ = boot_id.substr(0, 8);

  std::string slots = directory + "/slots";
  for (const std::string& path : {directory, slots})
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FailErrno("cannot make {}", path);
  table->directory_.Reset(open(slots.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!table->directory_) return FailErrno("cannot open {}", slots);
  struct stat st;
  // SECURITY: whoever can write there could make two sandboxes share a range.
  if (fstat(table->directory_.get(), &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022))
    return Fail(Code::kFailedPrecondition, "{} must belong to this user and nobody else may write",
                slots);
  TRY_ASSIGN(table->counter_, MapCounter(directory + "/next-slot"));
  TRY(AgreeOnPlan(table->directory_.get(),
                  fmt::format("{},{}/{}", table->uid_base_, FormatIpv4(table->network_.base),
                              table->network_.prefix),
                  table->boot_id_));
  return table;
}

SlotTable::~SlotTable() {
  if (counter_) munmap(counter_, sizeof(uint32_t));
}

std::string SlotTable::Target(std::string_view sandbox_id) const {
  return fmt::format("{}:{}:{}", boot_id_, sandbox_id, data_dir_);
}

void SlotTable::Unlink(int number) { unlinkat(directory_.get(), EntryName(number).text, 0); }

Result<Slot> SlotTable::Allocate(std::string_view sandbox_id) {
  std::string target = Target(sandbox_id);
  auto count = static_cast<uint32_t>(limit_ - 1);
  // The walk alone proves nothing: who shares the counter may always find the number taken that
  // another process is just about to give back. So "all are taken" is what the table itself shows.
  for (int attempt = 0; attempt < kAllocationAttempts; ++attempt) {
    for (uint32_t i = 0; i < count; ++i) {
      int number = 1 + static_cast<int>(counter_->fetch_add(1, std::memory_order_relaxed) % count);
      if (symlinkat(target.c_str(), directory_.get(), EntryName(number).text) == 0)
        return Slot(this, number);
      if (errno != EEXIST) return FailErrno("cannot take a slot for the sandbox");
    }
    TRY_ASSIGN(int swept, Sweep());
    TRY_ASSIGN(std::vector<int> taken, ReadNumbers(directory_.get()));
    if (swept == 0 && taken.size() >= count) break;
  }
  return Fail(Code::kResourceExhausted,
              "all {} slots (uid ranges and addresses) of this machine are taken", count);
}

Result<Slot> SlotTable::Adopt(int number, std::string_view sandbox_id) {
  if (number < 1 || ReadLink(directory_.get(), EntryName(number).text) != Target(sandbox_id))
    return Fail(Code::kFailedPrecondition, "slot {} does not belong to sandbox {}", number,
                sandbox_id);
  return Slot(this, number);
}

Result<std::vector<SlotTable::Entry>> SlotTable::List() const {
  TRY_ASSIGN(std::vector<int> numbers, ReadNumbers(directory_.get()));
  std::vector<Entry> entries;
  for (int number : numbers) {
    std::string target = ReadLink(directory_.get(), EntryName(number).text);
    auto owner = ParseOwner(target);
    if (owner && owner->boot == boot_id_ && owner->data_dir == data_dir_)
      entries.push_back({number, std::string(owner->sandbox_id)});
  }
  return entries;
}

bool SlotTable::IsTaken(int number) const {
  return !ReadLink(directory_.get(), EntryName(number).text).empty();
}

Result<int> SlotTable::Sweep() {
  // Without the lock, two sweepers could both read a stale entry and the second would remove the
  // fresh one that a launcher put in its place.
  TableLock lock(directory_.get());
  TRY_ASSIGN(std::vector<int> numbers, ReadNumbers(directory_.get()));
  std::set<uint32_t> in_use = UidBasesInUse();
  int swept = 0;
  for (int number : numbers) {
    std::string target = ReadLink(directory_.get(), EntryName(number).text);
    if (target.empty()) continue;  // released meanwhile
    auto owner = ParseOwner(target);
    bool stale = !owner || owner->boot != boot_id_;
    if (!stale && access(std::string(owner->data_dir).c_str(), F_OK) != 0 && errno == ENOENT) {
      uint32_t first = uid_base_ + static_cast<uint32_t>(number) * kIdsPerSandbox;
      auto used = in_use.lower_bound(first);
      stale = used == in_use.end() || *used - first >= kIdsPerSandbox;
    }
    if (!stale) continue;
    Unlink(number);
    ++swept;
  }
  return swept;
}

}  // namespace caisson::engine
