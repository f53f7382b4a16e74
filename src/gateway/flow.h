// One request on its way into a sandbox, and its answer on the way back.
//
// Both bodies move at the same time, chunk by chunk, so neither is ever held whole and the slower
// side sets the pace. Whoever ends first decides: a finished answer ends the upload, a vanished
// client ends the connection into the sandbox, a dead sandbox cuts the client off.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/shares.h"
#include "gateway/gateway.h"
#include "gateway/headers.h"
#include "gateway/lane.h"
#include "gateway/numbers.h"
#include "gateway/problem.h"
#include "http/client.h"
#include "http/server.h"

namespace caisson::gateway {

// What all flows share.
struct Context {
  GatewayOptions options;
  Directory& directory;
  Numbers numbers;
  Shares<std::string> requests{options.max_requests};  // of sandboxes
};

class Flow {
 public:
  Flow(Context& context, std::shared_ptr<Lane> lane, http::Exchange& exchange, Passage passage);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Answers the exchange, whatever happens.
  Task<void> Run();

  // Ends the flow at once: an answer under way is cut off with a reset, so that the client cannot
  // mistake it for complete; one that has not begun becomes a 502.
  void End(Cut cut);

  bool to_envd() const { return passage_.port == context_.options.envd_port; }
  // Since when the sandbox has neither sent nor taken a byte.
  Clock::time_point silent_since() const { return last_moved_; }
  void Moved() { last_moved_ = Clock::now(); }

 private:
  enum class Outcome {
    kDone,        // a complete answer went through
    kUpgraded,    // the sandbox agreed to leave HTTP
    kNoAnswer,    // failed before the answer began; error_ says why
    kBroken,      // failed in the middle of the answer
    kClientGone,  // nobody waits for the answer
  };

  Task<std::unique_ptr<http::ClientConnection>> Connect();
  Task<Result<std::unique_ptr<http::ClientConnection>>> TryConnect();
  Task<Outcome> Attempt();
  Task<Outcome> Receive();
  Task<Outcome> Relay();
  Task<void> Supply();
  Task<void> Tunnel();
  Task<void> Conclude(Outcome outcome);
  Task<void> Refuse();
  Task<Problem> Explain();
  // Sleeps, but not longer than until End().
  Task<void> Pause(std::chrono::milliseconds duration);
  void Count(std::string_view result);

  Context& context_;
  std::shared_ptr<Lane> lane_;
  std::list<Flow*>::iterator place_;
  http::Exchange& exchange_;
  Passage passage_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point last_moved_ = begun_;
  asio::steady_timer pause_;

  std::unique_ptr<http::ClientConnection> connection_;
  bool pooled_ = false;      // connection_ was used before
  bool body_begun_ = false;  // bytes of the request's body are gone
  bool body_sent_ = false;   // all of it went through
  unsigned status_ = 0;      // of the answer; 0 until it begins
  std::optional<Error> error_;
  http::ResponseHead upgrade_head_;
  Cut cut_ = Cut::kNone;
  // The two ends of an upgraded connection.
  std::unique_ptr<http::Stream> client_stream_;
  std::unique_ptr<http::Stream> sandbox_stream_;
};

}  // namespace caisson::gateway
