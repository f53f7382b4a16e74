#include "terminal/terminal.h"

#include <algorithm>

namespace caisson::terminal {
namespace {

// A viewer that has taken nothing for so long does not hold up the shell and the others any more.
constexpr std::chrono::milliseconds kPatience{10'000};

}  // namespace

Options OptionsFrom(const Config& config) {
  return {.idle = std::chrono::minutes(config.terminal_idle_minutes),
          .history_bytes = static_cast<size_t>(config.terminal_history_bytes),
          .queue_bytes = static_cast<size_t>(config.terminal_queue_bytes),
          .max_per_sandbox = config.terminal_max_per_sandbox,
          .max_viewers = config.terminal_max_viewers,
          .ping = std::chrono::seconds(config.terminal_ping_s)};
}

void Terminal::Attach(Viewer& viewer) {
  if (!history_.empty())
    viewer.Show(std::string_view(history_).substr(
        history_.size() - std::min(history_.size(), options_.history_bytes)));
  viewers_.push_back(&viewer);
}

void Terminal::EndViewers(const Ending& ending) {
  // A viewer may detach meanwhile.
  for (Viewer* viewer : std::exchange(viewers_, {})) viewer->End(ending);
}

void Terminal::Keep(std::string_view output) {
  history_ += output;
  // Not at every piece: that would move all of it each time.
  if (history_.size() > 2 * options_.history_bytes)
    history_.erase(0, history_.size() - options_.history_bytes);
}

Task<Ending> Terminal::Follow() {
  Ending ending = co_await Pass();
  pty_.reset();
  EndViewers(ending);
  co_return ending;
}

Task<Ending> Terminal::Pass() {
  std::shared_ptr<sdk::Pty> pty = pty_;
  for (;;) {
    auto event = co_await pty->Next();
    if (!event) co_return Ending{.kind = Ending::Kind::kLost, .message = event.error().message()};
    if (event->kind == sdk::ProcessEvent::Kind::kEnded)
      co_return Ending{.kind = Ending::Kind::kExit, .exit_code = event->exit_code};
    if (event->kind != sdk::ProcessEvent::Kind::kPty) continue;
    active = true;
    Keep(event->data);
    for (Viewer* viewer : std::list(viewers_)) viewer->Show(event->data);
    co_await WaitForViewers();
  }
}

Task<void> Terminal::WaitForViewers() {
  auto behind = [this](const Viewer* viewer) { return viewer->waiting() > options_.queue_bytes; };
  while (std::ranges::any_of(viewers_, behind)) {
    if (co_await room_.Wait(kPatience)) continue;
    for (Viewer* viewer : std::list(viewers_)) {
      if (!behind(viewer)) continue;
      Detach(*viewer);
      viewer->End({.kind = Ending::Kind::kSlow, .message = "the output was not taken in time"});
    }
  }
}

}  // namespace caisson::terminal
