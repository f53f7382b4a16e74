// Live events: streams by SSE with replay, the log by pages, and the schemas of all types.
#pragma once

#include <map>
#include <string>

#include "api/frame.h"
#include "api/sse_stream.h"
#include "events/log.h"
#include "events/reader.h"

namespace caisson::api {

class EventRoutes {
 public:
  // All of these outlive it.
  EventRoutes(asio::any_io_executor executor, events::Log& log, events::Reader& reader,
              store::Store& store, const Config& config)
      : log_(log), reader_(reader), store_(store), config_(config), over_(std::move(executor)) {}

  void Add(Frame& frame);
  // The server stops: every stream ends as a stream should, and its client comes again.
  void EndStreams();

 private:
  Answer Stream(Call& call, events::Filter filter);
  Answer StreamAll(Call& call);
  Answer StreamExecution(Call& call);
  Answer StreamSquad(Call& call);
  Answer StreamBuild(Call& call);
  // Of the one that the path names; somebody else's does not exist.
  template <class Row>
  Answer StreamOf(Call& call, std::string_view what,
                  std::vector<std::string> events::Filter::* ids);
  Answer List(Call& call);
  Answer Stats(Call& call);
  Answer ListTypes(Call& call);
  // From what the query says.
  static events::Filter FilterOf(const Call& call);
  // Where a stream begins, and the events before it that are shown first.
  Task<Result<std::unique_ptr<events::Subscription>>> Begin(const Call& call,
                                                            const events::Filter& filter,
                                                            std::string& text);
  // The event before the time that the query names, nothing if it names none.
  Task<Result<std::optional<int64_t>>> Since(const Call& call);
  // `gather`: what happens within so long is one write.
  Task<Status> Pump(SseStream& stream, events::Subscription& subscription,
                    std::chrono::milliseconds gather);
  Task<void> UntilOver();

  events::Log& log_;
  events::Reader& reader_;
  store::Store& store_;
  const Config& config_;
  std::map<std::string, int64_t> streams_;  // open ones by user
  bool is_over_ = false;
  Condition over_;
};

// As clients see one: the fields of its data, what it is about, "id", "type" and "timestamp".
json::object EncodeLogEvent(const events::Event& event);
// The first `limit` of them, and where the next page begins if there are more.
json::object EncodeEventPage(std::vector<events::Event> events, size_t limit);

}  // namespace caisson::api
