#include "git/recovery.h"

namespace caisson::git {

std::string_view RecoveryOf(Failure failure) {
  switch (failure) {
    case Failure::kAuth:
      return "Check that the server's credential may read and write this repository.";
    case Failure::kNetwork:
      return "Try again later; it was tried several times.";
    case Failure::kConflict:
      return "Pull, resolve the conflict in the checkout, commit, and push again.";
    case Failure::kNotFound:
      return "Check the names of the repository and the branch.";
    case Failure::kRejected:
      return "Pull what the branch has got meanwhile, or push another branch and open a pull "
             "request.";
    case Failure::kLocked:
      return "Wait until the other operation in this checkout has ended.";
    case Failure::kNone:
    case Failure::kOther:
      break;
  }
  return "";
}

}  // namespace caisson::git
