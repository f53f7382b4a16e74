#include <cstdio>
#include <exception>

#include "cli/account_command.h"
#include "cli/build_command.h"
#include "cli/command_line.h"
#include "cli/database_command.h"
#include "cli/doctor.h"
#include "cli/sandbox_command.h"
#include "cli/serve.h"
#include "cli/session_command.h"
#include "cli/version.h"
#include "cli/work_command.h"

namespace caisson::cli {
namespace {

int Run(ServeCommand command) { return Serve(std::move(command.config)); }
int Run(const SandboxCommand& command) { return RunSandboxCommand(command); }
int Run(const AccountCommand& command) { return RunAccountCommand(command); }
int Run(const WorkCommand& command) { return RunWorkCommand(command); }
int Run(const SessionCommand& command) { return RunSessionCommand(command); }
int Run(const BuildCommand& command) { return RunBuildCommand(command); }
int Run(const DatabaseCommand& command) { return RunDatabaseCommand(command); }
int Run(const DoctorCommand& command) { return RunDoctor(command); }
int Run(const VersionCommand&) {
  fmt::print("{}\n", VersionText());
  return 0;
}

int Main(int argc, char** argv) {
  auto command = ParseCommandLine(argc, argv, ReadEnvironment());
  if (!command) {
    fmt::print(command.error().status == 0 ? stdout : stderr, "{}", command.error().text);
    return command.error().status;
  }
  return std::visit([](auto& which) { return Run(std::move(which)); }, *command);
}

}  // namespace
}  // namespace caisson::cli

int main(int argc, char** argv) {
  try {
    return caisson::cli::Main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "caisson: an unexpected failure: {}\n", e.what());
    return 1;
  }
}
