// The RPC service filesystem.Filesystem (contract 4.3). Files are touched as root, as the reference
// does; what is created belongs to the calling user.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <boost/json/object.hpp>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "envd/settings.h"
#include "envd/watch.h"
#include "http/connect_rpc.h"
#include "http/router.h"

namespace caisson::envd {

// Threads for work on trees of any size, started with the first such work: an idle envd has none.
class Worker {
 public:
  asio::thread_pool& pool() {
    if (!pool_) pool_ = std::make_unique<asio::thread_pool>(2);
    return *pool_;
  }

 private:
  std::unique_ptr<asio::thread_pool> pool_;
};

class FilesystemService {
 public:
  // Both must outlive the service, and the service the router.
  FilesystemService(asio::any_io_executor executor, const Settings& settings, Worker& worker)
      : settings_(settings), worker_(worker), tasks_(executor) {}

  void Register(http::Router& router);
  Task<void> Stop() { co_await tasks_.Stop(); }

 private:
  using Json = boost::json::object;

  // A watcher that is asked for its events, instead of sending them.
  struct Polled {
    std::unique_ptr<Watcher> watcher;
    bool legacy = false;
    std::deque<Change> changes;
    Status error;  // sticky
    bool removed = false;
  };

  Task<Result<Json>> Stat(http::Exchange& exchange, Json request);
  Task<Result<Json>> MakeDir(http::Exchange& exchange, Json request);
  Task<Result<Json>> Move(http::Exchange& exchange, Json request);
  Task<Result<Json>> ListDir(http::Exchange& exchange, Json request);
  Task<Result<Json>> Remove(http::Exchange& exchange, Json request);
  Task<Status> WatchDir(http::MessageStream& stream, Json request);
  Task<Result<Json>> CreateWatcher(http::Exchange& exchange, Json request);
  Task<Result<Json>> GetWatcherEvents(http::Exchange& exchange, Json request);
  Task<Result<Json>> RemoveWatcher(http::Exchange& exchange, Json request);

  Result<std::unique_ptr<Watcher>> MakeWatcher(const http::RequestHead& head, const Json& request);
  Result<std::shared_ptr<Polled>> FindPolled(const Json& request);
  Task<void> CollectChanges(std::shared_ptr<Polled> polled);
  void Append(Polled& polled, Result<std::vector<Change>> changes);
  // The path in `field`, resolved for the calling user.
  Result<std::string> ReadPath(const http::RequestHead& head, const Json& request,
                               std::string_view field) const;

  const Settings& settings_;
  Worker& worker_;
  TaskGroup tasks_;
  std::map<std::string, std::shared_ptr<Polled>> polled_;
  int64_t streams_ = 0;  // WatchDir calls under way
};

// Old Python clients (User-Agent exactly "connect-python") fail on fields they do not know.
bool IsLegacyClient(const http::RequestHead& head);

}  // namespace caisson::envd
