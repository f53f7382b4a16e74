// Who uses more than its share of something for long: of the CPUs, of the disk. Such a sandbox
// makes room for the others: whoever computes all the time loses nothing it would notice, and one
// that only now and then wants a CPU gets it at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace caisson::engine {

class Balance {
 public:
  using Clock = std::chrono::steady_clock;
  // What each sandbox used per second since the last time.
  using Rates = std::map<std::string, double>;

  // `after`: so long it must have used more than its share before it makes room.
  explicit Balance(std::chrono::milliseconds after) : after_(after) {}

  struct Change {
    std::string id;
    bool busy = false;
  };
  // What each running sandbox has used since its start, now, and how much is too much; what changes
  // with that. Sandboxes that are not named are forgotten.
  std::vector<Change> Update(const std::map<std::string, int64_t>& used, Clock::time_point now,
                             const std::function<double(const Rates&)>& share);
  // All of them rest, and are forgotten.
  std::vector<Change> Rest();

 private:
  struct Known {
    int64_t used = 0;
    Clock::duration over{0};  // how long it has used more than its share
    bool busy = false;
  };
  Rates Measure(const std::map<std::string, int64_t>& used, Clock::duration passed);

  const std::chrono::milliseconds after_;
  Clock::time_point at_;
  std::map<std::string, Known> known_;
};

// Nanoseconds of CPU time per second that are as good as nothing.
inline constexpr double kCpuIdle = 0.05e9;
// How many do something at all, by the nanoseconds of CPU time per second.
size_t CountActive(const Balance::Rates& cpu);
// How much of a CPU is too much for one. Where the rates include the time it waited for a CPU, it
// is a constant: who wants a CPU all the time wants more than that, however little it gets, and
// who runs one short command after the other does not. Else it is half of what each would get if
// all that are active computed all the time, at most that constant.
double CpuShare(const Balance::Rates& cpu, double host_cpus, bool with_waits);

}  // namespace caisson::engine
