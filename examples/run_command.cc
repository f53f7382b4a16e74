// A program of its own that uses sandboxes through the client library (src/sdk), against any server
// that speaks the E2B API: no Caisson server is linked in.
//
//   E2B_API_URL=http://127.0.0.1:8000 E2B_API_KEY=e2b_... example-run-command echo hello
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <iostream>

#include "sdk/control_client.h"

namespace {

using namespace caisson;

// The output of the command; its exit code is the program's.
Task<Result<int>> Run(sdk::ControlClient& client, std::vector<std::string> argv) {
  CO_TRY_ASSIGN(auto sandbox, co_await client.Create({.template_id = "base"}));
  sdk::Command command;
  command.argv = std::move(argv);
  command.on_output = [](sdk::Stream stream, std::string_view piece) {
    (stream == sdk::Stream::kStdout ? std::cout : std::cerr) << piece << std::flush;
  };
  auto result = co_await client.Envd(sandbox).Run(std::move(command));
  // However the command ended.
  CO_TRY(co_await client.Kill(sandbox.id));
  CO_TRY(result);
  co_return result->exit_code;
}

Task<void> Main(sdk::ControlClient& client, std::vector<std::string> argv, int& code) {
  auto done = co_await Run(client, std::move(argv));
  if (!done) std::cerr << done.error().message() << "\n";
  code = done ? *done : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* url = getenv("E2B_API_URL");
  const char* key = getenv("E2B_API_KEY");
  if (argc < 2 || !url || !key) {
    std::cerr << "usage: E2B_API_URL=... E2B_API_KEY=... example-run-command PROGRAM [ARG]...\n";
    return 2;
  }
  auto endpoint = sdk::Endpoint::Parse(url);
  if (!endpoint) {
    std::cerr << endpoint.error().message() << "\n";
    return 2;
  }
  sdk::ControlClient client({.endpoint = std::move(*endpoint), .api_key = key});
  asio::io_context io;
  int code = 1;
  asio::co_spawn(io, Main(client, {argv + 1, argv + argc}, code), asio::detached);
  io.run();
  return code;
}
