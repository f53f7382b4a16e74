// The Model Context Protocol at /mcp: the streamable HTTP transport without sessions, every answer
// one JSON object. What a tool does is done by the operation of /api/v1 that it is.
#pragma once

#include "api/frame.h"
#include "api/schema.h"
#include "mcp/tools.h"

namespace caisson::mcp {

class Server {
 public:
  // All of these outlive it, and it outlives the frame's last request.
  Server(store::Store& store, const Config& config);

  void Add(api::Frame& frame);

 private:
  // A failure of the protocol, not of a tool.
  struct Problem {
    int code = 0;
    std::string message;
  };
  template <class T>
  using Outcome = tl::expected<T, Problem>;

  api::Answer Handle(api::Call& call);
  Task<Outcome<json::object>> Dispatch(api::Call& call, const std::string& method);
  json::object Initialize(const json::object& params) const;
  Task<Outcome<json::object>> ListTools(api::Call& call);
  Task<Outcome<json::object>> CallTool(api::Call& call);
  // SECURITY: a page elsewhere must not reach a server on its visitor's machine by a name of its
  // own.
  Status CheckOrigin(const http::RequestHead& request) const;
  // Whether the caller, and the agent whose sandbox it is, may use it.
  Task<bool> IsAllowed(const api::Principal& who, std::string sandbox_id, const Tool& tool);

  store::Store& store_;
  const Config& config_;
  api::Frame* frame_ = nullptr;
  api::Schemas schemas_;  // of the arguments, by the tool's name
};

}  // namespace caisson::mcp
