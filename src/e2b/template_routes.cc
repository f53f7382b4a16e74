// Handlers of /templates. Templates are directories on the server; building them through the API is
// still to come.
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
  // A name with a '/' arrives in one piece or in two.
  std::string name = call.params.at("id");
  if (auto it = call.params.find("namespace"); it != call.params.end())
    name = it->second + "/" + name;
  call.target = name;
  if (templates_.Find(name))
    co_return Fail(Code::kUnimplemented,
                   "this server cannot delete templates through the API yet: template '{}' is a "
                   "directory of the server",
                   name);
  CO_TRY(co_await manager_.DeleteSnapshot(call.key_id, name));
  co_return http::Response::Empty(204);
}

Api::Answer Api::BuildTemplate(Call) {
  co_return Fail(Code::kUnimplemented, "this server cannot build templates through the API yet");
}

}  // namespace caisson::e2b
