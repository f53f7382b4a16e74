#include "engine/spec.h"

#include <algorithm>

#include "engine/egress.h"

namespace caisson::engine {
namespace {

constexpr int64_t kMinMemory = 16 << 20;  // envd and a shell
constexpr int64_t kMinDisk = 16 << 20;    // an ext4 file system with room for anything
constexpr int64_t kMinPids = 16;
constexpr int64_t kMinOpenFiles = 64;  // envd's own
constexpr size_t kMaxIdLength = 64;

}  // namespace

bool IsValidId(std::string_view id) {
  if (id.empty() || id.size() > kMaxIdLength) return false;
  return std::all_of(id.begin(), id.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

Status CheckSpec(const Spec& spec) {
  if (!IsValidId(spec.id))
    return Fail(Code::kInvalidArgument, "'{}' is not a sandbox id ([a-z0-9], at most {})", spec.id,
                kMaxIdLength);
  if (!spec.snapshot.empty() && !IsValidId(spec.snapshot))
    return Fail(Code::kInvalidArgument, "'{}' is not a snapshot id", spec.snapshot);
  if (spec.boot.size() > kMaxBootBytes)
    return Fail(Code::kInvalidArgument, "environment and settings are longer than {} bytes",
                kMaxBootBytes);
  TRY(CheckEgress(spec.egress));
  const Limits& limits = spec.limits;
  if (limits.cpus < 1 || limits.memory_bytes < kMinMemory || limits.disk_bytes < kMinDisk ||
      limits.pids < kMinPids || limits.open_files < kMinOpenFiles)
    return Fail(Code::kInvalidArgument,
                "a sandbox needs at least 1 CPU, {} MB of memory, {} MB of disk, {} processes and "
                "{} open files",
                kMinMemory >> 20, kMinDisk >> 20, kMinPids, kMinOpenFiles);
  return {};
}

}  // namespace caisson::engine
