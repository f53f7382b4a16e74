#include "account/audit_trail.h"

#include "base/log.h"

namespace caisson::account {
namespace {

constexpr size_t kMostWaiting = 10'000;
constexpr std::chrono::milliseconds kPatience{10'000};

void TellLost(const store::AuditRow& row, const std::string& why) {
  LogError("a call was not written into the audit log",
           {{"action", row.action}, {"request", row.request_id}, {"error", why}});
}

}  // namespace

AuditTrail::AuditTrail(asio::any_io_executor executor, store::Store& store)
    : store_(store), written_(executor), tasks_(executor) {}

void AuditTrail::Add(store::AuditRow row) {
  if (waiting_.size() >= kMostWaiting) return TellLost(row, "too many wait for the database");
  waiting_.push_back(std::move(row));
  if (writing_) return;
  writing_ = true;
  tasks_.Spawn("audit", Write());
}

Task<void> AuditTrail::Write() {
  while (!waiting_.empty()) {
    std::vector<store::AuditRow> rows = std::exchange(waiting_, {});
    Status done = co_await store_.Write([rows](store::Transaction& tx) mutable -> Status {
      for (store::AuditRow& row : rows) TRY(tx.Append(row));
      return {};
    });
    if (!done)
      for (const store::AuditRow& row : rows) TellLost(row, done.error().message());
  }
  writing_ = false;
  written_.Notify();
}

Task<void> AuditTrail::Stop() {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (writing_ && co_await written_.Wait(deadline)) {
  }
  co_await tasks_.Stop();
}

}  // namespace caisson::account
