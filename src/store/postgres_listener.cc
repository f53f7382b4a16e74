#include "store/postgres_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

namespace caisson::store {
namespace {

constexpr std::chrono::milliseconds kRetryPause{1'000};
// Only a bound: announcements and the end wake the thread at once.
constexpr std::chrono::milliseconds kLongest{60'000};

}  // namespace

PostgresListener::PostgresListener(Open open, std::function<void()> heard)
    : open_(std::move(open)),
      heard_(std::move(heard)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Loop(); }) {}

PostgresListener::~PostgresListener() {
  stopping_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void PostgresListener::Loop() {
  bool warned = false;
  while (!stopping_) {
    Status done;
    if (auto database = open_())
      done = ListenOn(**database);
    else
      done = tl::unexpected(database.error());
    if (stopping_) return;
    if (!done && !warned)
      LogWarn("events of other servers are not heard until the database is back",
              {{"error", done.error().message()}});
    warned = !done;
    pollfd wake{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    poll(&wake, 1, static_cast<int>(kRetryPause.count()));
  }
}

Status PostgresListener::ListenOn(PostgresDatabase& database) {
  TRY(database.Listen());
  heard_();  // what came before this was not heard
  while (!stopping_) {
    TRY_ASSIGN(bool announced, database.WaitForAnnouncement(wake_.get(), kLongest));
    if (announced) heard_();
  }
  return {};
}

}  // namespace caisson::store
