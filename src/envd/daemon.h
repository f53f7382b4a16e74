// Everything of envd put together: settings, processes, files, watches, behind one HTTP server.
#pragma once

#include <optional>

#include "base/async.h"
#include "base/fd.h"
#include "base/time.h"
#include "envd/files.h"
#include "envd/filesystem_service.h"
#include "envd/process_service.h"
#include "envd/process_table.h"
#include "envd/resources.h"
#include "envd/settings.h"
#include "http/router.h"
#include "http/server.h"

namespace caisson::envd {

class Daemon {
 public:
  Daemon(asio::any_io_executor executor, Settings settings);

  // Listens on all addresses (IPv6 and IPv4 where there is IPv6) and begins to reap children.
  Status Start();
  uint16_t port() const { return server_.port(); }
  // Ends connections and coroutines; processes go on.
  Task<void> Stop();

 private:
  Task<void> Handle(http::Exchange& exchange);
  Task<void> Dispatch(http::Exchange& exchange);
  Task<void> Init(http::Exchange& exchange);
  // Applies the body of POST /init: all of it, or nothing. {"sandboxId","accessToken","envVars",
  // "defaultUser","defaultWorkdir","limits":{"output_kbps"},"timestamp","resetIdentity"}; what is
  // absent stays as it is.
  // "resetIdentity" is for a sandbox that goes on with the memory of another one.
  // kUnauthenticated without the current token.
  Status ApplyInit(const http::RequestHead& head, std::string_view body);
  void RegisterRoutes();

  Settings settings_;
  Resources resources_;
  Worker worker_;
  ProcessTable processes_;
  ProcessService process_service_;
  FilesystemService filesystem_service_;
  FileApi file_api_;
  http::Router router_;
  http::Server server_;
  std::optional<Time> initialized_;  // timestamp of the newest POST /init
};

// A listening socket on `port` of every address; 0 takes a free one.
Result<UniqueFd> OpenListener(uint16_t port);

}  // namespace caisson::envd
