#include "flow/definition.h"

namespace caisson::flow {

std::string_view ErrorClassName(ErrorClass value) {
  switch (value) {
    case ErrorClass::kTransient:
      return "transient";
    case ErrorClass::kPersistent:
      return "persistent";
    case ErrorClass::kUserAction:
      return "user_action";
    case ErrorClass::kFatal:
      return "fatal";
  }
  return "fatal";
}

ErrorClass Classify(const Error& error) {
  switch (error.code()) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
    case Code::kResourceExhausted:
      return ErrorClass::kTransient;
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
      return ErrorClass::kUserAction;
    case Code::kInternal:
    case Code::kDataLoss:
      return ErrorClass::kPersistent;
    default:
      return ErrorClass::kFatal;
  }
}

Outcome Outcome::Done(json::object result) {
  Outcome outcome;
  outcome.result = std::move(result);
  return outcome;
}

Outcome Outcome::Wait(std::string key, std::chrono::milliseconds timeout) {
  Outcome outcome;
  outcome.kind = Kind::kWait;
  outcome.wait_key = std::move(key);
  outcome.wait = timeout;
  return outcome;
}

Outcome Outcome::Failed(const Error& error) {
  Outcome outcome;
  outcome.kind = Kind::kFail;
  outcome.error_class = Classify(error);
  outcome.error = error.message();
  return outcome;
}

}  // namespace caisson::flow
