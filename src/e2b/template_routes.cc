// Handlers of /templates and /snapshots. Templates are directories on the server; building them
// through the API, and snapshots, are still to come.
#include <boost/json.hpp>

#include "e2b/api.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

}  // namespace

Api::Answer Api::ListTemplates(Call) {
  CO_TRY_ASSIGN(auto uses, co_await manager_.TemplateUse());
  json::array list;
  for (const sandbox::Template& one : templates_.all()) {
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const auto& u) { return u.template_id == one.id; });
    list.push_back(EncodeTemplate(one, config_.sandbox_cpus, config_.sandbox_memory_mb,
                                  config_.sandbox_disk_mb,
                                  use == uses.end() ? store::TemplateUse{} : *use));
  }
  co_return http::Response::Json(200, list);
}

Api::Answer Api::FindAlias(Call call) {
  const std::string& alias = call.params.at("alias");
  const sandbox::Template* found = templates_.Find(alias);
  if (!found) co_return Fail(Code::kNotFound, "template '{}' not found", alias);
  co_return http::Response::Json(200, json::object{{"templateID", found->id}, {"public", true}});
}

Api::Answer Api::DeleteTemplate(Call call) {
  const std::string& name = call.params.at("id");
  if (!templates_.Find(name)) co_return Fail(Code::kNotFound, "template '{}' not found", name);
  co_return Fail(Code::kUnimplemented,
                 "this server cannot delete templates through the API yet: template '{}' is a "
                 "directory of the server",
                 name);
}

Api::Answer Api::BuildTemplate(Call) {
  co_return Fail(Code::kUnimplemented, "this server cannot build templates through the API yet");
}

Api::Answer Api::ListSnapshots(Call) {
  // Nothing can make a snapshot yet, so this is the whole truth.
  co_return http::Response::Json(200, json::array{});
}

}  // namespace caisson::e2b
