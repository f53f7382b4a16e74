// The models of the server at llm_base_url, as it tells them itself (GET /models). A server that
// does not tell, or does not answer, makes no name wrong.
#pragma once

#include <vector>

#include "work/chat_model.h"
#include "work/kept_answer.h"

namespace caisson::work {

class OfferedModels {
 public:
  OfferedModels(asio::any_io_executor executor, const Config& config);
  Task<void> Stop() { return kept_.Stop(); }

  // By name, as they were within the last minute; empty if that is not known.
  Task<std::vector<std::string>> List();
  // kInvalidArgument with what there is instead. "" is the server's own choice.
  Task<Status> Check(std::string model);

 private:
  Task<Result<boost::json::object>> Ask();

  const std::string own_;  // llm_model; "" if there is no server to ask
  ChatModel model_;
  KeptAnswer kept_;
};

// Whether an agent of this adapter is answered by that server.
inline bool AsksOwnServer(std::string_view adapter) { return adapter == "builtin"; }

}  // namespace caisson::work
