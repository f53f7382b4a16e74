// One of the streams that a user may have open; it is taken as long as this lives.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace caisson::api {

class StreamSeat {
 public:
  // `streams`: how many each user has; it outlives this.
  StreamSeat(std::map<std::string, int64_t>& streams, std::string user)
      : streams_(streams), user_(std::move(user)) {
    ++streams_[user_];
  }
  ~StreamSeat() {
    if (--streams_[user_] == 0) streams_.erase(user_);
  }
  StreamSeat(const StreamSeat&) = delete;
  StreamSeat& operator=(const StreamSeat&) = delete;

 private:
  std::map<std::string, int64_t>& streams_;
  std::string user_;
};

}  // namespace caisson::api
