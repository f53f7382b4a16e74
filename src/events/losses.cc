#include "events/losses.h"

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace caisson::events {
namespace {

namespace json = boost::json;

// More things than this at once are counted together.
constexpr size_t kMaxThings = 1'000;

std::string OutputOf(const store::EventRow& event) {
  boost::system::error_code ec;
  json::value data = json::parse(event.data, ec);
  const json::object* object = ec ? nullptr : data.if_object();
  const json::value* output = object ? object->if_contains("output") : nullptr;
  return output && output->is_string() ? std::string(output->get_string()) : "";
}

}  // namespace

void Losses::Add(const store::EventRow& event) {
  std::string key = event.task_id + ' ' + event.execution_id + ' ' + event.session_id + ' ' +
                    event.sandbox_id + ' ' + event.build_id + ' ' + event.owner_id;
  bool full = losses_.size() >= kMaxThings && !losses_.contains(key);
  Loss& loss = full ? losses_.begin()->second : losses_[key];
  if (loss.pieces++ == 0) loss.like = event;
  std::string output = OutputOf(event);
  loss.lines += std::ranges::count(output, '\n');
  loss.bytes += static_cast<int64_t>(output.size());
}

std::vector<store::EventRow> Losses::Take() {
  std::vector<store::EventRow> events;
  for (auto& [key, loss] : losses_) {
    store::EventRow event = std::move(loss.like);
    event.type = "log";
    event.at = Now();
    event.data = json::serialize(json::object{
        {"level", "warn"},
        {"message", fmt::format("{} pieces of output came too fast and were dropped", loss.pieces)},
        {"cut_lines", loss.lines},
        {"cut_bytes", loss.bytes}});
    events.push_back(std::move(event));
  }
  losses_.clear();
  return events;
}

}  // namespace caisson::events
