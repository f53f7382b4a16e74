#include "api/audit.h"

namespace caisson::api {
namespace {

constexpr int kUnknownPerMinute = 120;

}  // namespace

bool Audit::Wants(const store::AuditRow& row) {
  if (row.status == 429) return false;
  if (!row.actor_id.empty()) return true;
  auto now = Clock::now();
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    unknown_ = 0;
  }
  return ++unknown_ <= kUnknownPerMinute;
}

}  // namespace caisson::api
