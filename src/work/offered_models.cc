#include "work/offered_models.h"

#include <algorithm>
#include <boost/json.hpp>

#include "work/json_fields.h"

namespace caisson::work {
namespace {

constexpr std::chrono::milliseconds kPatience{5'000};  // of who asks; what is kept costs nothing
constexpr size_t kTold = 50;                           // names in an error

}  // namespace

OfferedModels::OfferedModels(asio::any_io_executor executor, const Config& config)
    : own_(config.llm_base_url.empty() ? "" : config.llm_model),
      model_(executor, config),
      kept_(executor, "the models", [this] { return Ask(); }) {}

Task<Result<boost::json::object>> OfferedModels::Ask() {
  CO_TRY_ASSIGN(auto names, co_await model_.Names());
  boost::json::array list(names.begin(), names.end());
  co_return boost::json::object{{"names", std::move(list)}};
}

Task<std::vector<std::string>> OfferedModels::List() {
  if (own_.empty()) co_return std::vector<std::string>();
  auto kept = co_await kept_.Get(kPatience);
  co_return kept ? TextsOf(*kept, "names") : std::vector<std::string>();
}

Task<Status> OfferedModels::Check(std::string model) {
  if (model.empty() || model == own_) co_return Status();
  std::vector<std::string> names = co_await List();
  if (names.empty() || std::ranges::find(names, model) != names.end()) co_return Status();
  size_t more = names.size() > kTold ? names.size() - kTold : 0;
  names.resize(names.size() - more);
  co_return Fail(Code::kInvalidArgument, "the model server does not offer '{}'; it has {}{}", model,
                 fmt::join(names, ", "), more ? fmt::format(" and {} more", more) : "");
}

}  // namespace caisson::work
