#include "work/kept_answer.h"

namespace caisson::work {
namespace {

constexpr std::chrono::seconds kKeep{60};
constexpr std::chrono::milliseconds kDeadline{30'000};  // of asking

}  // namespace

KeptAnswer::KeptAnswer(asio::any_io_executor executor, std::string name, Ask ask)
    : name_(std::move(name)), ask_(std::move(ask)), changed_(executor), tasks_(executor) {}

Task<void> KeptAnswer::Stop() { co_await tasks_.Stop(); }

Task<Result<boost::json::object>> KeptAnswer::Get(std::chrono::milliseconds patience) {
  bool fresh = answer_ && Steady::now() - at_ < kKeep;
  if (!fresh && !asking_) {
    asking_ = true;
    tasks_.Spawn(name_, Refresh());
  }
  auto end = Steady::now() + patience;
  while (!fresh && asking_ && Steady::now() < end) co_await changed_.Wait(end);
  if (!answer_) co_return Fail(Code::kDeadlineExceeded, "There is no answer yet about {}.", name_);
  co_return *answer_;
}

Task<void> KeptAnswer::Refresh() {
  answer_ = co_await WithDeadline(kDeadline, name_, ask_());
  at_ = Steady::now();
  asking_ = false;
  changed_.Notify();
}

}  // namespace caisson::work
