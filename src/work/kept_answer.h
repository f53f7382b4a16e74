// An answer that is dear to get, for those who ask often: it is asked for at most once a minute, in
// the background, and nobody waits long for it.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>

#include "base/async.h"

namespace caisson::work {

class KeptAnswer {
 public:
  using Ask = std::function<Task<Result<boost::json::object>>()>;

  // `name` is for errors and the log.
  KeptAnswer(asio::any_io_executor executor, std::string name, Ask ask);
  Task<void> Stop();

  // One of the last minute. If there is none it is asked for, and waited for no longer than
  // `patience`; then it is the one before, or kDeadlineExceeded if there never was one. Failures
  // are answers, too.
  Task<Result<boost::json::object>> Get(
      std::chrono::milliseconds patience = std::chrono::milliseconds(1'500));

 private:
  using Steady = std::chrono::steady_clock;

  Task<void> Refresh();

  std::string name_;
  Ask ask_;
  std::optional<Result<boost::json::object>> answer_;
  Steady::time_point at_;
  bool asking_ = false;
  Condition changed_;
  TaskGroup tasks_;
};

}  // namespace caisson::work
