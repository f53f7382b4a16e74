// The tools that are offered: each is an operation of /api/v1, with arguments that a model can fill
// in.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>

#include "http/message.h"
#include "store/work_rows.h"

namespace caisson::mcp {

namespace json = boost::json;

struct Tool {
  std::string_view name, description;
  std::string_view operation;   // the id of the operation it is
  bool reads = false;           // it changes nothing: the arguments are the operation's query
  std::string_view properties;  // of the arguments besides sandbox_id, a JSON object
  std::string_view required;    // those that have to be there, a JSON array
  // The operation's body, made of the arguments; null: they are the body.
  json::object (*body)(const json::object& arguments) = nullptr;
};

std::span<const Tool> Tools();
// Null if there is none.
const Tool* FindTool(std::string_view name);
// The JSON schema of its arguments.
std::string SchemaOf(const Tool& tool);
// As tools/list shows it.
json::object Describe(const Tool& tool);

// What the operation is given for arguments that fit the schema; the sandbox is in its path.
http::Query QueryOf(const Tool& tool, const json::object& arguments);
json::object BodyOf(const Tool& tool, const json::object& arguments);

// Whether a tool may be used on the sandboxes of this agent: what its configuration names in
// `mcp_tools`, else what its role needs. One that reviews does not write.
bool MayUse(const store::AgentRow& agent, const Tool& tool);

}  // namespace caisson::mcp
