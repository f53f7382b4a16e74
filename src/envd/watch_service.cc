// The part of filesystem.Filesystem that watches: by stream and by asking.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json/array.hpp>

#include "base/id.h"
#include "envd/auth.h"
#include "envd/filesystem_service.h"
#include "envd/path.h"
#include "envd/process_service.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

using Clock = std::chrono::steady_clock;

// Sends changes until the deadline or the first failure.
Task<Status> SendChanges(http::MessageStream& stream, Watcher& watcher, bool legacy) {
  const http::RequestHead& head = stream.exchange().request();
  auto keepalive = KeepaliveInterval(head);
  auto deadline = StreamDeadline(head);
  CO_TRY(co_await stream.SendRaw(R"({"start":{}})"));
  for (;;) {
    CO_TRY_ASSIGN(auto changes,
                  co_await watcher.Read(std::min(Clock::now() + keepalive, deadline)));
    if (Clock::now() >= deadline)
      co_return Fail(Code::kDeadlineExceeded, "the timeout of the request is over");
    if (changes.empty()) CO_TRY(co_await stream.SendRaw(R"({"keepalive":{}})"));
    for (const Change& change : changes) {
      json::object message;
      message["filesystem"] = ToJson(change, legacy);
      CO_TRY(co_await stream.Send(message));
    }
  }
}

// Counts a stream for as long as it lives.
class Counted {
 public:
  explicit Counted(int64_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int64_t& count_;
};

}  // namespace

Result<std::unique_ptr<Watcher>> FilesystemService::MakeWatcher(const http::RequestHead& head,
                                                                const Json& request) {
  Fields fields(request);
  WatchOptions options;
  TRY_ASSIGN(options.path, ReadPath(head, request, "path"));
  TRY_ASSIGN(options.recursive, fields.Bool("recursive"));
  TRY_ASSIGN(options.include_entry, fields.Bool("includeEntry"));
  TRY_ASSIGN(options.allow_network_mounts, fields.Bool("allowNetworkMounts"));
  options.max_directories = static_cast<size_t>(settings_.limits.max_watched_dirs);
  if (streams_ + static_cast<int64_t>(polled_.size()) >= settings_.limits.max_watchers)
    return Fail(Code::kResourceExhausted, "there are already {} watchers",
                settings_.limits.max_watchers);
  return Watcher::Create(tasks_.executor(), std::move(options));
}

Task<Status> FilesystemService::WatchDir(http::MessageStream& stream, Json request) {
  using namespace asio::experimental::awaitable_operators;
  const http::RequestHead& head = stream.exchange().request();
  CO_TRY_ASSIGN(std::unique_ptr<Watcher> watcher, MakeWatcher(head, request));
  Counted counted(streams_);
  auto winner = co_await (SendChanges(stream, *watcher, IsLegacyClient(head)) ||
                          stream.exchange().ClientGone());
  if (winner.index() == 0) co_return std::get<0>(std::move(winner));
  co_return Fail(Code::kCanceled, "the client is gone");
}

Task<Result<json::object>> FilesystemService::CreateWatcher(http::Exchange& exchange,
                                                            Json request) {
  auto polled = std::make_shared<Polled>();
  CO_TRY_ASSIGN(polled->watcher, MakeWatcher(exchange.request(), request));
  polled->legacy = IsLegacyClient(exchange.request());
  std::string id = RandomId("w", 20);
  polled_[id] = polled;
  // Read at once, not when asked: directories that appear must be watched without delay.
  tasks_.Spawn("watcher", CollectChanges(polled));
  json::object out;
  out["watcherId"] = id;
  co_return out;
}

Task<void> FilesystemService::CollectChanges(std::shared_ptr<Polled> polled) {
  while (!polled->removed && polled->error) {
    auto changes = co_await polled->watcher->Read(Clock::now() + std::chrono::hours(1));
    Append(*polled, std::move(changes));
  }
}

void FilesystemService::Append(Polled& polled, Result<std::vector<Change>> changes) {
  if (!changes) {
    polled.error = tl::unexpected(changes.error());
    return;
  }
  for (Change& change : *changes) polled.changes.push_back(std::move(change));
  if (polled.changes.size() <= static_cast<size_t>(settings_.limits.watcher_queue)) return;
  polled.changes.clear();
  polled.error = Fail(Code::kInternal,
                      "watcher error: more than {} events were not asked for, create a new watcher",
                      settings_.limits.watcher_queue);
}

Result<std::shared_ptr<FilesystemService::Polled>> FilesystemService::FindPolled(
    const Json& request) {
  TRY_ASSIGN(std::string id, Fields(request).String("watcherId"));
  auto it = polled_.find(id);
  if (it == polled_.end()) return Fail(Code::kNotFound, "watcher with id {} not found", id);
  return it->second;
}

Task<Result<json::object>> FilesystemService::GetWatcherEvents(http::Exchange&, Json request) {
  CO_TRY_ASSIGN(std::shared_ptr<Polled> polled, FindPolled(request));
  // What the kernel has queued up to this moment belongs to the answer.
  if (polled->error) Append(*polled, polled->watcher->ReadNow());
  CO_TRY(polled->error);
  json::array events;
  for (const Change& change : polled->changes) events.push_back(ToJson(change, polled->legacy));
  polled->changes.clear();
  json::object out;
  if (!events.empty()) out["events"] = std::move(events);
  co_return out;
}

Task<Result<json::object>> FilesystemService::RemoveWatcher(http::Exchange&, Json request) {
  CO_TRY_ASSIGN(std::shared_ptr<Polled> polled, FindPolled(request));
  polled->removed = true;
  polled->watcher->Close();
  std::erase_if(polled_, [&](const auto& item) { return item.second == polled; });
  co_return json::object();
}

}  // namespace caisson::envd
