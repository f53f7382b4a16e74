// The beginning of a push: which refs shall become what. Read completely before a byte of it goes
// on, so that the decision is made once, for all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::git {

struct RefUpdate {
  std::string old_id, new_id;
  std::string ref;  // "refs/heads/main"
  bool is_delete() const { return new_id.find_first_not_of('0') == std::string::npos; }
};

class PushRequest {
 public:
  static constexpr size_t kMaxUpdates = 256;
  static constexpr size_t kMaxBytes = 256 << 10;

  // Takes bytes until done(); what is behind the commands (the pack) is kept as it is. Fails with
  // kInvalidArgument when it is no push that we understand, kOutOfRange when it is too large.
  Status Feed(std::string_view data);
  bool done() const { return done_; }

  const std::vector<RefUpdate>& updates() const { return updates_; }
  bool Has(std::string_view capability) const;
  // All bytes so far.
  const std::string& bytes() const { return bytes_; }
  // True if the commands are all there is so far.
  bool has_rest() const { return parsed_ < bytes_.size(); }

 private:
  Status TakeLine(std::string_view line);

  std::string bytes_;
  size_t parsed_ = 0;
  bool done_ = false;
  std::vector<RefUpdate> updates_;
  std::vector<std::string> capabilities_;
};

// What may be pushed.
struct PushRule {
  std::vector<std::string> branch_prefixes;
  bool tags = false;
};
// "" if the ref may be changed, else why not.
std::string WhyRefused(const PushRule& rule, const RefUpdate& update);

// The answer that makes git print `why` for each of the refs, and `note` for people.
std::string RefusalReport(const PushRequest& push, const std::vector<std::string>& why,
                          std::string_view note);

}  // namespace caisson::git
