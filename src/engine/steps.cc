#include "engine/steps.h"

#include <sys/mman.h>

#include <cstdlib>

namespace caisson::engine {

std::string_view StepName(Step step) {
  static constexpr std::array<std::string_view, kStepCount> kNames = {
      "slot",  "record",  "cgroup",  "disk",   "clone",  "identity", "veth",
      "root",  "release", "boot",    "enter",  "kernel", "settle",   "mounts",
      "pivot", "confine", "restore", "freeze", "sync",   "dump",     "commit"};
  return kNames[static_cast<size_t>(step)];
}

Steps::Steps(std::string fail_at) : fail_at_(std::move(fail_at)) {
  void* memory =
      mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();  // one page at the start of a process
  times_ = new (memory) Times{};
}

Steps::~Steps() { munmap(times_, sizeof(Times)); }

void Steps::Reset() { times_->fill(0); }

std::chrono::nanoseconds Steps::took(Step step) const {
  return std::chrono::nanoseconds((*times_)[static_cast<size_t>(step)]);
}

void Steps::Took(Step step, std::chrono::nanoseconds duration) {
  (*times_)[static_cast<size_t>(step)] = duration.count();
}

std::string Steps::Summary() const {
  std::string text;
  for (size_t i = 0; i < kStepCount; ++i)
    text += fmt::format("{}{}={:.3f}", i ? " " : "", StepName(static_cast<Step>(i)),
                        static_cast<double>((*times_)[i]) / 1e6);
  return text;
}

Status Steps::FailIf(Step step, std::string_view when) const {
  if (fail_at_.empty() || !fail_at_.starts_with(when)) return {};
  if (std::string_view(fail_at_).substr(when.size()) != StepName(step)) return {};
  return Fail(Code::kInternal, "step '{}' failed because engine_fail_at asks for it", fail_at_);
}

}  // namespace caisson::engine
