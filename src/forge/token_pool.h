// The tokens there are, how much each may still be used, and which one is used next.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "forge/github.h"
#include "http/message.h"

namespace caisson::forge {

class TokenPool {
 public:
  struct Slot {
    std::string token;
    Budget budget;
    std::optional<Time> blocked_until;  // GitHub said to come back then
    std::optional<Time> warned_window;  // its low budget was reported in the window that ends then
    bool refused = false;               // GitHub does not know it (any more)
  };

  // "a,b,c"; what can be no token is left out.
  explicit TokenPool(std::string_view tokens);

  bool empty() const { return slots_.empty(); }
  size_t size() const { return slots_.size(); }
  // Stays with one token while its budget is good, then goes to the one with the most left. Null
  // if there is none. A slot stays where it is as long as the pool lives.
  Slot* Pick(Time now);
  const Slot* current() const { return current_; }
  Slot* Add(std::string token);
  // GitHub does not accept it: another one is next. False if there is no other; then all get a new
  // chance, since a token may be mended.
  bool Refuse(Slot& slot);

  // Takes note of an answer's X-RateLimit-* headers, and calls `low` when the budget has fallen
  // below a tenth, once per window.
  void Observe(Slot& slot, const http::Headers& headers, Time now);
  std::function<void(Budget)> low;

 private:
  std::list<Slot> slots_;
  Slot* current_ = nullptr;
};

// When a rate-limited request may be repeated; nothing if the answer is about no rate limit.
std::optional<Time> RateLimitedUntil(const http::Response& answer, Time now);

}  // namespace caisson::forge
