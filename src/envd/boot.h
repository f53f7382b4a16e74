// How envd comes up: where its configuration is from, and to whom it reports that it is ready.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "envd/settings.h"

namespace caisson::envd {

// The descriptor on which the engine speaks to a new envd: JSON until the end, then the answer.
inline constexpr int kBootFd = 3;

// Command line of a run by hand: caisson-envd [--config FILE|-] [--port N]. Without --config the
// boot descriptor is used if there is one, else the defaults.
struct BootOptions {
  std::string config_file;  // "-" = standard input
  std::optional<uint16_t> port;
};
Result<BootOptions> ParseArguments(int argc, char** argv);

// Takes the boot descriptor over; empty when run by hand.
UniqueFd TakeBootFd(const BootOptions& options);
Result<Settings> ReadSettings(const BootOptions& options, const UniqueFd& engine);

// "R" to the engine, or a line for a person on standard output.
void ReportReady(UniqueFd& engine, uint16_t port);
// "E<message>" to the engine, or a line on standard error.
void ReportFailure(UniqueFd& engine, std::string_view message);

// As init of a sandbox: an identity in /etc/machine-id where the template left it empty (or in any
// case, with `reset`), and the files in /run/e2b that tell programs where they are.
void WriteIdentity(const Settings& settings, bool reset = false);

}  // namespace caisson::envd
