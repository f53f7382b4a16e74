// The RPC service process.Process (contract 4.2).
#pragma once

#include <boost/json/object.hpp>

#include "envd/process_table.h"
#include "envd/settings.h"
#include "http/connect_rpc.h"
#include "http/router.h"

namespace caisson::envd {

class ProcessService {
 public:
  // Both must outlive the service, and the service the router.
  ProcessService(const Settings& settings, ProcessTable& table)
      : settings_(settings), table_(table) {}

  void Register(http::Router& router);

 private:
  using Json = boost::json::object;

  Task<Status> Start(http::MessageStream& stream, Json request);
  Task<Status> Connect(http::MessageStream& stream, Json request);
  Task<Result<Json>> List(http::Exchange& exchange, Json request);
  Task<Result<Json>> Update(http::Exchange& exchange, Json request);
  Task<Result<Json>> SendInput(http::Exchange& exchange, Json request);
  Task<Result<Json>> SendSignal(http::Exchange& exchange, Json request);
  Task<Result<Json>> CloseStdin(http::Exchange& exchange, Json request);
  Task<void> StreamInput(http::Exchange& exchange);
  Task<Status> ReadInputs(http::Exchange& exchange);

  const Settings& settings_;
  ProcessTable& table_;
};

// The message ProcessSelector in field "process". kUnimplemented when nothing is selected.
Result<Selector> ReadSelector(const boost::json::object& request);

// How long a stream may be silent before a keepalive: Keepalive-Ping-Interval, 90 s by default.
std::chrono::seconds KeepaliveInterval(const http::RequestHead& request);
// When the client's Connect-Timeout-Ms is over; the end of time if it set none.
std::chrono::steady_clock::time_point StreamDeadline(const http::RequestHead& request);

}  // namespace caisson::envd
