// An answer while it is being written: what the agent says becomes events of the type
// message_delta, a few every second, whose texts one after the other are the answer.
//
// `part` is the number of the message within the answer. What the log holds already is not told
// again, whoever tells the rest of it. If it turns out to be wrong (a model that is asked again
// says it in other words) the next one has `restart`: all that was told from its part on is void.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <string>

#include "events/redactor.h"
#include "store/transaction.h"

namespace caisson::session {

// What the log holds of an answer.
struct ToldText {
  std::map<int64_t, std::string> parts;
  std::string sandbox_id;  // where it was said

  std::string Text() const;
};
Result<ToldText> ReadTold(store::Transaction& tx, const std::string& answer_id);

class DeltaTeller {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(boost::json::object data)>;
  static constexpr std::chrono::milliseconds kInterval{100};
  static constexpr size_t kMaxText = 200'000;  // of one message

  // `redactor` outlives it. What was told by an agent in another sandbox than `sandbox_id` is void.
  DeltaTeller(const events::Redactor& redactor, ToldText told, const std::string& sandbox_id,
              Send send);

  // A piece of the message that is being said; `first`: it begins here.
  void Add(std::string_view piece, bool first, Clock::time_point now = Clock::now());
  // The message is said.
  void End(std::string_view message);

 private:
  void Tell(const std::string& text, bool whole);

  const events::Redactor& redactor_;
  std::map<int64_t, std::string> told_;  // by part, without secrets
  Send send_;
  bool void_ = false;  // what was told is
  int64_t part_ = 0;
  std::string saying_;
  Clock::time_point told_at_;
};

}  // namespace caisson::session
