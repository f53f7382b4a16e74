// An answer as it is put together while the agent works.
#pragma once

#include <boost/json/array.hpp>
#include <string>

#include "work/adapter.h"

namespace caisson::session {

class Answer {
 public:
  static constexpr size_t kMaxParts = 1'000;
  static constexpr size_t kMaxBytes = 256 << 10;

  void Add(const work::AgentEvent& event);
  // What the agent said in words; if it said nothing so, its summary, else its plain output.
  std::string Text(const work::AgentReport& report, std::string_view output) const;
  const boost::json::array& parts() const { return parts_; }

 private:
  void Append(boost::json::object part);

  boost::json::array parts_;  // bounded; the last one says if something is missing
  std::string text_;
  size_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace caisson::session
