// Why a build failed, in words for a person.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::build {

struct Failure {
  // "install_failure", "compile_error", "runtime_crash", "timeout", "runner_failure",
  // "sandbox_failure", "invalid_files", "canceled", "internal"
  std::string category;
  std::string summary;  // a sentence or two, without paths, stack traces or secrets
};
// `stage`: the state it was in, or "serve" while its server is started; `log`: the end of its
// output, without colours.
Failure ExplainFailure(std::string_view stage, std::string_view log, int64_t exit_code,
                       bool timed_out);
// The end of a log, which is what tells why; whole characters only.
std::string LastPart(const std::string& log);

}  // namespace caisson::build
