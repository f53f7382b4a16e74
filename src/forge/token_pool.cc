#include "forge/token_pool.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace caisson::forge {
namespace {

// What GitHub asks to wait when it names no time.
constexpr auto kUnnamedWait = std::chrono::seconds(60);
constexpr auto kLeastWait = std::chrono::seconds(1);

std::optional<int64_t> Number(const http::Headers& headers, std::string_view name) {
  return ParseInt<int64_t>(Trim(headers.Value(name)));
}

std::optional<Time> Moment(const http::Headers& headers, std::string_view name) {
  auto seconds = Number(headers, name);
  if (!seconds || *seconds < 0 || *seconds > int64_t{1} << 33) return std::nullopt;
  return Time(std::chrono::seconds(*seconds));
}

// SECURITY: a line break in a token would be a header of its own.
bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool Blocked(const TokenPool::Slot& slot, Time now) {
  return slot.blocked_until && *slot.blocked_until > now;
}

// A window that is over says nothing about the next one.
bool Low(const TokenPool::Slot& slot, Time now) {
  return slot.budget.low() && (!slot.budget.resets_at || *slot.budget.resets_at > now);
}

// Which of two that may be used is the better one; what was never used counts as full.
double Share(const TokenPool::Slot& slot, Time now) {
  bool known = slot.budget.limit > 0 && (!slot.budget.resets_at || *slot.budget.resets_at > now);
  return known ? static_cast<double>(slot.budget.remaining) / slot.budget.limit : 1.0;
}

}  // namespace

TokenPool::TokenPool(std::string_view tokens) {
  for (std::string_view part : Split(tokens, ',')) {
    part = Trim(part);
    if (IsToken(part))
      Add(std::string(part));
    else if (!part.empty())
      LogWarn("a GitHub token holds characters that no token has; it is not used");
  }
}

TokenPool::Slot* TokenPool::Add(std::string token) {
  slots_.push_back({.token = std::move(token)});
  return &slots_.back();
}

TokenPool::Slot* TokenPool::Pick(Time now) {
  auto usable = [&](const Slot& slot) { return !slot.refused && !Blocked(slot, now); };
  if (current_ && usable(*current_) && !Low(*current_, now)) return current_;
  Slot* best = nullptr;
  auto better = [&](Slot& a, Slot& b) {
    if (usable(a) != usable(b)) return usable(a);
    if (!usable(a)) return *a.blocked_until < *b.blocked_until;
    return Share(a, now) > Share(b, now);
  };
  for (Slot& slot : slots_)
    if (!slot.refused && (!best || better(slot, *best))) best = &slot;
  if (best) current_ = best;
  return best;
}

bool TokenPool::Refuse(Slot& slot) {
  slot.refused = true;
  if (std::any_of(slots_.begin(), slots_.end(), [](const Slot& one) { return !one.refused; }))
    return true;
  for (Slot& one : slots_) one.refused = false;
  return false;
}

void TokenPool::Observe(Slot& slot, const http::Headers& headers, Time now) {
  std::string_view resource = headers.Value("X-RateLimit-Resource");
  auto limit = Number(headers, "X-RateLimit-Limit");
  auto remaining = Number(headers, "X-RateLimit-Remaining");
  // GraphQL and search have budgets of their own.
  if (!limit || !remaining || (!resource.empty() && resource != "core")) return;
  slot.budget = {*limit, *remaining, Moment(headers, "X-RateLimit-Reset")};
  Time window = slot.budget.resets_at.value_or(Time());
  if (!Low(slot, now) || slot.warned_window == window) return;
  slot.warned_window = window;
  LogWarn("few requests to GitHub are left",
          {{"remaining", slot.budget.remaining}, {"limit", slot.budget.limit}});
  if (low) low(slot.budget);
}

std::optional<Time> RateLimitedUntil(const http::Response& answer, Time now) {
  if (answer.status != 429 && answer.status != 403) return std::nullopt;
  if (auto seconds = Number(answer.headers, "Retry-After"))
    return now + std::max(std::chrono::seconds(std::clamp<int64_t>(*seconds, 0, 86'400)),
                          std::chrono::seconds(kLeastWait));
  if (Number(answer.headers, "X-RateLimit-Remaining") == 0)
    if (auto reset = Moment(answer.headers, "X-RateLimit-Reset"))
      return std::max(*reset + kLeastWait, now + Time::duration(kLeastWait));
  bool limited = answer.status == 429 || answer.body.find("rate limit") != std::string::npos;
  return limited ? std::optional<Time>(now + kUnnamedWait) : std::nullopt;
}

}  // namespace caisson::forge
