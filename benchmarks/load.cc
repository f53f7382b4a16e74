// caisson-load: drives a running server over HTTP and prints what it measured as one JSON line.
// The tables are made of these lines by bench.py, which also runs the peers.
//
//   caisson-load MODE --url HOST:PORT --key KEY [--n N] [--c CONCURRENCY] [--size BYTES]
//                     [--path TARGET]
//   create    N sandboxes, C at a time: create, first exec, kill        -> create_ms, first_exec_ms
//   churn     like create, without the exec: how many per second        -> per_second
//   exec      N commands in one sandbox, one after the other            -> exec_ms
//   transfer  N uploads and downloads of SIZE bytes                     -> upload_mbs, download_mbs
//   get       N downloads of TARGET from any server                     -> mbs, request_us
//   hold      N idle sandboxes until a line comes on stdin              -> held
//   proxy     N requests through the gateway on one connection          -> request_us
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>

#include "base/async.h"
#include "base/text.h"
#include "http/client.h"
#include "http/connect_rpc.h"

namespace caisson {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

struct Options {
  std::string mode, url, key, path = "/";
  size_t n = 100, concurrency = 1, size = 64 << 20;
};

struct Sandbox {
  std::string id, token;
};

// Measured values by name.
using Samples = std::map<std::string, std::vector<double>>;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void Die(std::string_view doing, const Error& error) {
  std::cerr << "caisson-load: " << doing << ": " << error.message() << "\n";
  std::exit(1);
}

template <class T>
T Must(std::string_view doing, Result<T> result) {
  if (!result) Die(doing, result.error());
  return std::move(*result);
}
void Must(std::string_view doing, Status status) {
  if (!status) Die(doing, status.error());
}

// A keep-alive connection to the server, opened again when the server closed it.
class Connection {
 public:
  explicit Connection(const Options& options) : options_(options) {}

  Task<http::ClientConnection*> Open() {
    if (!connection_ || !connection_->Reusable())
      connection_ =
          Must("connecting", co_await http::ClientConnection::Connect(options_.url, seconds(10)));
    co_return connection_.get();
  }

  Task<http::Response> Call(std::string method, std::string target, http::Headers headers,
                            std::string body) {
    http::RequestHead head{.method = method, .target = target, .headers = std::move(headers)};
    head.headers.Set("Host", options_.url);
    auto* connection = co_await Open();
    auto answer = co_await connection->Fetch(std::move(head), std::move(body), 64 << 20);
    co_return Must(method + " " + target, std::move(answer));
  }

 private:
  const Options& options_;
  std::unique_ptr<http::ClientConnection> connection_;
};

http::Headers SandboxHeaders(const Sandbox& sandbox) {
  return {{"E2b-Sandbox-Id", sandbox.id},
          {"E2b-Sandbox-Port", "49983"},
          {"X-Access-Token", sandbox.token}};
}

Task<Sandbox> Create(Connection& connection, const Options& options) {
  auto answer = co_await connection.Call(
      "POST", "/v2/sandboxes", {{"X-API-KEY", options.key}, {"Content-Type", "application/json"}},
      R"({"templateID":"base","timeout":3600})");
  if (answer.status != 201) Die("create", Error(Code::kInternal, answer.body));
  json::value value = json::parse(answer.body);
  co_return Sandbox{std::string(value.at("sandboxID").as_string()),
                    std::string(value.at("envdAccessToken").as_string())};
}

Task<void> Kill(Connection& connection, const Options& options, const Sandbox& sandbox) {
  auto answer = co_await connection.Call("DELETE", "/sandboxes/" + sandbox.id,
                                         {{"X-API-KEY", options.key}}, "");
  if (answer.status != 204) Die("kill", Error(Code::kInternal, answer.body));
}

Task<void> Exec(Connection& connection, const Sandbox& sandbox) {
  auto headers = SandboxHeaders(sandbox);
  headers.Set("Content-Type", "application/connect+json");
  headers.Set("Connect-Protocol-Version", "1");
  auto answer =
      co_await connection.Call("POST", "/process.Process/Start", std::move(headers),
                               http::Envelope(R"({"process":{"cmd":"/bin/true"},"stdin":false})"));
  if (answer.status != 200 || answer.body.find("\"exit status 0\"") == std::string::npos)
    Die("exec", Error(Code::kInternal, answer.body));
}

Task<void> CreateWorker(const Options& options, bool exec, size_t& left, Samples& samples) {
  Connection connection(options);
  while (left > 0) {
    --left;
    auto start = Clock::now();
    Sandbox sandbox = co_await Create(connection, options);
    samples["create_ms"].push_back(MsSince(start));
    if (exec) {
      co_await Exec(connection, sandbox);
      samples["first_exec_ms"].push_back(MsSince(start));
    }
    co_await Kill(connection, options, sandbox);
  }
}

Task<void> ExecLoop(const Options& options, Samples& samples) {
  Connection connection(options);
  Sandbox sandbox = co_await Create(connection, options);
  for (size_t i = 0; i < options.n; ++i) {
    auto start = Clock::now();
    co_await Exec(connection, sandbox);
    samples["exec_ms"].push_back(MsSince(start));
  }
  co_await Kill(connection, options, sandbox);
}

Task<void> ProxyLoop(const Options& options, Samples& samples) {
  Connection connection(options);
  Sandbox sandbox = co_await Create(connection, options);
  auto start = Clock::now();
  for (size_t i = 0; i < options.n; ++i) {
    auto answer = co_await connection.Call("GET", "/health", SandboxHeaders(sandbox), "");
    if (answer.status != 204) Die("health", Error(Code::kInternal, answer.body));
  }
  samples["request_us"].push_back(MsSince(start) * 1000 / static_cast<double>(options.n));
  co_await Kill(connection, options, sandbox);
}

// Reads a body to its end without keeping it; returns its size.
Task<size_t> Drain(http::ClientConnection& connection, std::vector<char>& buffer) {
  size_t total = 0;
  for (;;) {
    size_t n = Must("downloading", co_await connection.ReadBody(buffer));
    if (n == 0) co_return total;
    total += n;
  }
}

Task<void> Download(Connection& connection, http::RequestHead head, std::vector<char>& buffer,
                    size_t expected) {
  auto* raw = co_await connection.Open();
  Must("download", co_await raw->SendHead(std::move(head), 0));
  auto answer = Must("download", co_await raw->ReadHead());
  size_t got = co_await Drain(*raw, buffer);
  if (answer.status != 200 || (expected && got != expected))
    Die("download", Error(Code::kInternal, fmt::format("{}, {} bytes", answer.status, got)));
}

Task<void> Upload(Connection& connection, http::RequestHead head, const std::string& chunk,
                  size_t size) {
  auto* raw = co_await connection.Open();
  Must("upload", co_await raw->SendHead(std::move(head), size));
  for (size_t sent = 0; sent < size; sent += chunk.size())
    Must("upload", co_await raw->WriteBody(
                       std::string_view(chunk).substr(0, std::min(chunk.size(), size - sent))));
  Must("upload", co_await raw->FinishBody());
  auto answer = Must("upload", co_await raw->ReadHead());
  std::vector<char> buffer(4096);
  co_await Drain(*raw, buffer);
  if (answer.status != 200) Die("upload", Error(Code::kInternal, fmt::format("{}", answer.status)));
}

Task<void> TransferLoop(const Options& options, Samples& samples) {
  Connection connection(options);
  Sandbox sandbox = co_await Create(connection, options);
  std::vector<char> buffer(256 << 10);
  std::string chunk(256 << 10, 'x');
  double megabytes = static_cast<double>(options.size) / (1 << 20);
  for (size_t i = 0; i < options.n; ++i) {
    http::RequestHead up{
        .method = "POST", .target = "/files?path=big", .headers = SandboxHeaders(sandbox)};
    up.headers.Set("Host", options.url);
    up.headers.Set("Content-Type", "application/octet-stream");
    auto start = Clock::now();
    co_await Upload(connection, std::move(up), chunk, options.size);
    samples["upload_mbs"].push_back(megabytes * 1000 / MsSince(start));
    http::RequestHead down{
        .method = "GET", .target = "/files?path=big", .headers = SandboxHeaders(sandbox)};
    down.headers.Set("Host", options.url);
    start = Clock::now();
    co_await Download(connection, std::move(down), buffer, options.size);
    samples["download_mbs"].push_back(megabytes * 1000 / MsSince(start));
  }
  co_await Kill(connection, options, sandbox);
}

Task<void> GetLoop(const Options& options, Samples& samples) {
  Connection connection(options);
  std::vector<char> buffer(256 << 10);
  for (size_t i = 0; i < options.n; ++i) {
    http::RequestHead head{
        .method = "GET", .target = options.path, .headers = {{"Host", options.url}}};
    auto start = Clock::now();
    auto* raw = co_await connection.Open();
    Must("get", co_await raw->SendHead(std::move(head), 0));
    Must("get", co_await raw->ReadHead());
    double bytes = static_cast<double>(co_await Drain(*raw, buffer));
    double ms = MsSince(start);
    samples["mbs"].push_back(bytes / (1 << 20) * 1000 / ms);
    samples["request_us"].push_back(ms * 1000);
  }
}

Task<void> HoldWorker(const Options& options, size_t& left, std::vector<Sandbox>& held) {
  Connection connection(options);
  while (left > 0) {
    --left;
    held.push_back(co_await Create(connection, options));
  }
}

Task<void> ReleaseWorker(const Options& options, std::vector<Sandbox>& held) {
  Connection connection(options);
  while (!held.empty()) {
    Sandbox sandbox = std::move(held.back());
    held.pop_back();
    co_await Kill(connection, options, sandbox);
  }
}

Task<void> Hold(TaskGroup& group, const Options& options) {
  std::vector<Sandbox> held;
  size_t left = options.n;
  for (size_t i = 0; i < options.concurrency; ++i)
    group.Spawn("hold", HoldWorker(options, left, held));
  co_await group.Join(seconds(600));
  std::cout << json::serialize(json::object{{"held", held.size()}}) << std::endl;
  std::string line;
  std::getline(std::cin, line);  // nothing else runs on this loop
  for (size_t i = 0; i < options.concurrency; ++i)
    group.Spawn("release", ReleaseWorker(options, held));
  co_await group.Join(seconds(600));
}

Task<void> Workers(TaskGroup& group, const Options& options, bool exec, Samples& samples) {
  size_t left = options.n;
  auto start = Clock::now();
  for (size_t i = 0; i < options.concurrency; ++i)
    group.Spawn("create", CreateWorker(options, exec, left, samples));
  co_await group.Join(seconds(600));
  samples["per_second"].push_back(static_cast<double>(options.n) * 1000 / MsSince(start));
}

Task<void> Measure(const Options& options, asio::any_io_executor executor) {
  TaskGroup group(executor);
  Samples samples;
  if (options.mode == "create") co_await Workers(group, options, true, samples);
  if (options.mode == "churn") co_await Workers(group, options, false, samples);
  if (options.mode == "exec") co_await ExecLoop(options, samples);
  if (options.mode == "transfer") co_await TransferLoop(options, samples);
  if (options.mode == "get") co_await GetLoop(options, samples);
  if (options.mode == "proxy") co_await ProxyLoop(options, samples);
  if (options.mode == "hold") {
    co_await Hold(group, options);
    co_return;
  }
  std::cout << json::serialize(json::value_from(samples)) << std::endl;
}

Options Parse(int argc, char** argv) {
  Options options;
  if (argc > 1) options.mode = argv[1];
  std::map<std::string, std::string> given;
  for (int i = 2; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  options.url = given["--url"];
  options.key = given["--key"];
  if (given.contains("--path")) options.path = given["--path"];
  options.n = ParseInt<size_t>(given["--n"]).value_or(options.n);
  options.concurrency = ParseInt<size_t>(given["--c"]).value_or(options.concurrency);
  options.size = ParseInt<size_t>(given["--size"]).value_or(options.size);
  return options;
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) {
  caisson::Options options = caisson::Parse(argc, argv);
  if (options.mode.empty() || options.url.empty()) {
    std::cerr << "usage: caisson-load MODE --url HOST:PORT --key KEY [--n N] [--c N] ...\n";
    return 2;
  }
  boost::asio::io_context io(1);
  boost::asio::co_spawn(io, caisson::Measure(options, io.get_executor()),
                        [](std::exception_ptr thrown) {
                          if (thrown) std::rethrow_exception(thrown);
                        });
  io.run();
}
