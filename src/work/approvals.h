// Questions to a person that a run waits for.
#pragma once

#include <boost/json/object.hpp>

#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

namespace json = boost::json;

struct ApprovalFilter {
  std::string state, squad_id, task_id;  // "" = any
  Page page;
};

class Approvals {
 public:
  explicit Approvals(Platform platform) : platform_(platform) {}

  // Newest first.
  Task<Result<Listed<store::ApprovalRow>>> List(std::string owner_id, ApprovalFilter filter);
  Task<Result<store::ApprovalRow>> Get(std::string owner_id, std::string id);
  // The same answer twice is fine, another one is kFailedPrecondition.
  Task<Result<store::ApprovalRow>> Decide(std::string owner_id, std::string id, bool approve,
                                          std::string user_id, std::string comment);

 private:
  Platform platform_;
};

// The signal that the step which asked waits for.
std::string ApprovalKey(const std::string& id);
// Asks once per id; asking again does nothing.
Status RequestApproval(store::Transaction& tx, Platform& platform,
                       const store::ApprovalRow& approval);

}  // namespace caisson::work
