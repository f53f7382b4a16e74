#include "api/idempotency.h"

#include "base/encoding.h"

namespace caisson::api {

using store::IdempotencyRow;
using store::Select;
using store::Transaction;

namespace {

// The first attempt's time is part of it: a key that is used again when the first use is forgotten
// makes something new.
std::string NewIdOf(const IdempotencyRow& row) {
  auto at = row.created_at.time_since_epoch().count();
  std::string hex = HexEncode(Sha256(fmt::format("{}\n{}", row.id, at)));
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

}  // namespace

Task<Checked<Idempotency::Begun>> Idempotency::Begin(IdempotentRequest request) {
  // SECURITY: the key is the client's text and may be anything; the hash makes ids of one shape.
  std::string id =
      HexEncode(Sha256(fmt::format("{}\n{}\n{}", request.user_id, request.route, request.key)));
  Time now = Now(), oldest = now - std::chrono::hours(config_.idempotency_hours);
  IdempotencyRow fresh{.id = id, .request_hash = request.hash, .created_at = now};
  auto row = co_await store_.Write(
      [fresh, oldest](Transaction& tx) -> Result<std::optional<IdempotencyRow>> {
        TRY(tx.Delete(Select<IdempotencyRow>().Less(&IdempotencyRow::created_at, oldest)));
        TRY_ASSIGN(auto there, tx.Get<IdempotencyRow>(fresh.id));
        if (!there) TRY(tx.Insert(fresh));
        return there;
      });
  if (!row) co_return tl::unexpected(RefusalOf(row.error()));
  Begun begun{.id = id, .new_id = NewIdOf(row->value_or(fresh))};
  // Whoever was at work on it before this server started is gone. What it made is found again by
  // the id it gave it.
  bool orphan = *row && (*row)->status == 0 && (*row)->created_at < boot_ &&
                (*row)->request_hash == fresh.request_hash && !at_work_.contains(id);
  if (!*row || orphan) {
    at_work_.insert(id);
    co_return begun;
  }
  begun.earlier = std::move(*row);
  if (begun.earlier->request_hash != request.hash)
    co_return Refuse(409, "idempotency_conflict",
                     "this Idempotency-Key was used for another request: use a new one");
  if (begun.earlier->status == 0) {
    co_return tl::unexpected(Refusal{409, "in_progress",
                                     "the first request with this Idempotency-Key is still at work",
                                     /*retryable=*/true, /*retry_after_s=*/1});
  }
  co_return begun;
}

Status Idempotency::Finish(Transaction& tx, const std::string& id, unsigned status,
                           const std::string& body) {
  auto row = Select<IdempotencyRow>().Eq(&IdempotencyRow::id, id);
  if (status == 0 || status >= 500 || status == 429 || status == 408) {
    TRY(tx.Delete(row));
    return {};
  }
  TRY(tx.Set(row, {store::Assign(&IdempotencyRow::status, status),
                   store::Assign(&IdempotencyRow::body, body)}));
  return {};
}

}  // namespace caisson::api
