// A slot: the number by which everything that must be unique on the machine is chosen for one
// sandbox: its range of user ids, its pair of addresses, the name of its network interface.
//
// All Caisson servers of one machine share the table /run/caisson/slots. An entry is a symbolic
// link named after the number whose target names the owner: symlink(2) creates name and content in
// one atomic step, so two launchers can never hold the same number, and an entry is never half
// written. Numbers are handed out round robin by a counter all processes share in memory: a freed
// number rests as long as possible before it comes back, because the kernel takes a dead sandbox's
// interface away some time after the sandbox itself.
//
// SECURITY: no two sandboxes share a uid range, nor does one get the range of a sandbox whose
// processes still live: an entry is removed only by who owns the sandbox, after it is gone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/ipv4.h"

namespace caisson::engine {

// Where all servers of a machine meet. The engine makes kMachineDirectory/slots before the first
// table is opened; it may be a link (boot_dir.h).
inline constexpr const char* kMachineDirectory = "/run/caisson";

// Each sandbox owns this many consecutive user and group ids.
inline constexpr uint32_t kIdsPerSandbox = 65536;

// Eight hexadecimal digits that stand for this server wherever the machine has one name space for
// all: cgroups, nftables tables, interface names. A function of the data directory alone, so that a
// restarted server finds its things again.
std::string ServerTag(std::string_view data_dir);

// 198.18.0.1, where sandboxes find their resolver, whatever network_cidr is (templates have it in
// their resolv.conf). Held by nobody: nftables leads it to the resolver, and no slot has it: in
// networks that begin with 198.18.0.0 it belongs to number 0, in wider ones to a number beyond the
// last uid range.
inline constexpr uint32_t kDnsAddress = 0xC6120001;

// Where the packets of the sandbox with this slot come from, and whose they are.
inline uint32_t SandboxAddress(const Cidr& network, int number) {
  return network.base + 2 * static_cast<uint32_t>(number) + 1;
}
inline int NumberOf(const Cidr& network, uint32_t sandbox_address) {
  return static_cast<int>((sandbox_address - network.base - 1) / 2);
}

class SlotTable;

// Owns one number until Release() or Keep(); the destructor releases it. Move-only.
// The SlotTable must outlive it.
class Slot {
 public:
  Slot() = default;  // holds nothing
  Slot(Slot&& other) noexcept;
  Slot& operator=(Slot&& other) noexcept;
  ~Slot();

  explicit operator bool() const { return table_ != nullptr; }
  int number() const { return number_; }
  // First host id of the sandbox's range; ids 0..65535 inside map to it and the following.
  uid_t uid_base() const;
  // Host end of the veth pair: "cs" + 4 digits of the server's tag + "-" + number; at most 15
  // characters. All of one server begin with InterfacePrefix(tag).
  std::string interface_name() const;
  // Kernel index of the host end, chosen by us so that one netlink batch can make and configure it.
  int interface_index() const;
  // The two ends of the point-to-point link, host byte order.
  uint32_t host_address() const;
  uint32_t sandbox_address() const;

  // Gives the number back. Only after every process of the sandbox is gone. Idempotent.
  void Release();
  // The sandbox lives on without this process: the entry stays, this object lets go of it.
  int Keep();

 private:
  friend class SlotTable;
  Slot(SlotTable* table, int number) : table_(table), number_(number) {}
  SlotTable* table_ = nullptr;
  int number_ = 0;
};

// Every interface of this server's sandboxes on the host begins with it ("cs1a2b-").
std::string InterfacePrefix(std::string_view server_tag);

// This process's view of the table. Open one per process (cheap); not thread-safe.
class SlotTable {
 public:
  // Uses uid_base, max_slots, network_cidr and data_dir of the settings; makes `directory` (mode
  // 0700) if it is missing. Tests give their own directory.
  static Result<std::unique_ptr<SlotTable>> Open(const Config& config,
                                                 const std::string& directory = kMachineDirectory);
  ~SlotTable();
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Takes a free number for this sandbox: some microseconds. When all are taken it sweeps once
  // (see Sweep) and then fails with kResourceExhausted.
  Result<Slot> Allocate(std::string_view sandbox_id);
  // Owns again what an earlier process of this server allocated. kFailedPrecondition when the entry
  // is missing or names someone else.
  Result<Slot> Adopt(int number, std::string_view sandbox_id);

  struct Entry {
    int number = 0;
    std::string sandbox_id;
  };
  // What this server (this data directory) holds, whether its sandboxes live or not. The caller
  // adopts and releases those whose sandbox is gone.
  Result<std::vector<Entry>> List() const;
  // By any server of this machine.
  bool IsTaken(int number) const;

  // Removes entries nobody can own any more: written before the last boot, or by a server whose
  // data directory no longer exists and whose uid range no process uses. Returns how many.
  Result<int> Sweep();

 private:
  friend class Slot;
  SlotTable() = default;
  std::string Target(std::string_view sandbox_id) const;
  void Unlink(int number);

  UniqueFd directory_;                        // .../slots
  std::atomic<uint32_t>* counter_ = nullptr;  // shared by all processes: .../next-slot
  std::string boot_id_;
  std::string data_dir_;
  std::string tag_;
  uint32_t uid_base_ = 0;
  Cidr network_;
  int limit_ = 0;  // numbers are 1 .. limit_ - 1
};

}  // namespace caisson::engine
