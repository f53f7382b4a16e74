#include <cstdio>
#include <exception>

#include "cli/command_line.h"
#include "cli/doctor.h"
#include "cli/key_command.h"
#include "cli/sandbox_command.h"
#include "cli/serve.h"
#include "cli/version.h"

namespace caisson::cli {
namespace {

int Run(ServeCommand command) { return Serve(std::move(command.config)); }
int Run(const SandboxCommand& command) { return RunSandboxCommand(command); }
int Run(const KeyCommand& command) { return RunKeyCommand(command); }
int Run(const DoctorCommand& command) { return RunDoctor(command); }
int Run(const VersionCommand&) {
  fmt::print("{}\n", VersionText());
  return 0;
}

Environment ReadEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (size_t equals = text.find('='); equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
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
