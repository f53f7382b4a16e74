// The things of work/ as /api/v1 shows them.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/frame.h"
#include "work/work.h"

namespace caisson::api {

json::object Encode(const store::AgentRow& agent);
json::object Encode(const work::Squad& squad);
json::object Encode(const work::TaskView& task);
json::object Encode(const store::ExecutionRow& execution);
json::object Encode(const work::Execution& execution);
json::object Encode(const store::ApprovalRow& approval);
json::object Encode(const store::CostRow& cost);
json::object Encode(const work::CostSum& sum);
json::object Encode(const store::GitOperationRow& operation);
json::object Encode(const work::Started& started);

// {"<name>": [...], "total": how many there are in all}.
template <class T>
http::Response ListResponse(std::string_view name, const work::Listed<T>& listed) {
  json::array items;
  for (const T& item : listed.items) items.push_back(Encode(item));
  return http::Response::Json(200, json::object{{name, std::move(items)}, {"total", listed.total}});
}
// The schema of such a list.
std::string ListSchema(std::string_view name, std::string_view item);

using WorkFunction = Answer (*)(work::Work&, Call&);
// What a rule of work/ does not accept is told like what a schema does not accept: 422.
Handler Bind(work::Work& work, WorkFunction function);

// ---- what requests say ------------------------------------------------------------------

// "" if it is not given.
std::string TextParameter(const Call& call, std::string_view name);
std::vector<std::string> TextParameters(const Call& call, std::string_view name);
int64_t NumberParameter(const Call& call, std::string_view name, int64_t otherwise);
work::Page PageOf(const Call& call);
// "limit" and "offset", and what a list has besides.
std::vector<Parameter> WithPage(std::vector<Parameter> parameters);

// Fields of a body; nothing if the field is not there.
std::optional<std::string> OptionalText(const json::object& body, std::string_view name);
// The same, and null is "".
std::optional<std::string> OptionalId(const json::object& body, std::string_view name);

}  // namespace caisson::api
