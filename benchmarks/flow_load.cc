// caisson-flow-load: drives the workflow engine on a database of its own and prints what it
// measured as one JSON line. The steps do nothing: what is measured is the engine and its database.
//
//   caisson-flow-load MODE --url DATABASE [--n RUNS] [--steps STEPS] [--c IN_FLIGHT] [--rate PER_S]
//   throughput  N runs of STEPS steps, C of them unfinished at any time   -> steps_per_second
//   latency     N runs of one step, RATE of them started per second       -> start_ms
//               (from before the run is written to the first line of its step)
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <cstdlib>
#include <iostream>

#include "flow/engine.h"
#include "store/account_rows.h"

namespace caisson {
namespace {

namespace json = boost::json;
using Steady = std::chrono::steady_clock;

struct Options {
  std::string mode, url;
  int64_t n = 1000, steps = 5, in_flight = 100, rate = 100;
};

template <class T>
T Must(std::string_view doing, Result<T> result) {
  if (!result) {
    std::cerr << "caisson-flow-load: " << doing << ": " << result.error().message() << "\n";
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Load {
 public:
  Load(asio::io_context& io, const Options& options)
      : options_(options),
        store_(Must("opening the database", store::OpenStore(options.url, io.get_executor()))),
        engine_(io.get_executor(), *store_, config_),
        ended_(io.get_executor()),
        begun_(static_cast<size_t>(options.n)) {}

  Task<void> Run() {
    flow::Definition definition{.name = "nothing"};
    int64_t steps = options_.mode == "latency" ? 1 : options_.steps;
    for (int64_t i = 0; i < steps; ++i)
      definition.steps.push_back(
          {.name = "step" + std::to_string(i),
           .run = [this](flow::StepContext context) { return Step(this, std::move(context)); }});
    engine_.Define(std::move(definition));
    Must("adding a user", co_await store_->Write([](store::Transaction& tx) {
      return tx.Insert(
          store::UserRow{.id = "bench", .name = "bench", .role = "member", .created_at = Now()});
    }));
    Must("starting the engine", co_await engine_.Start());
    last_step_ = "step" + std::to_string(steps - 1);
    auto begin = Steady::now();
    for (int64_t i = 0; i < options_.n; ++i) {
      if (options_.mode == "latency") {
        asio::steady_timer timer(co_await asio::this_coro::executor,
                                 begin + i * std::chrono::microseconds(1'000'000 / options_.rate));
        co_await timer.async_wait(kAwait);
      }
      while (options_.mode != "latency" && i - ended_count_ >= options_.in_flight)
        co_await ended_.Wait(std::chrono::seconds(10));
      begun_[static_cast<size_t>(i)] = Steady::now();
      Must("starting a run", co_await store_->Write([this, i](store::Transaction& tx) {
        return engine_.StartRun(
            tx, {.id = std::to_string(i), .definition = "nothing", .owner_id = "bench"});
      }));
      engine_.Wake();
    }
    while (ended_count_ < options_.n) co_await ended_.Wait(std::chrono::seconds(10));
    double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
    co_await engine_.Stop();
    Must("closing the database", co_await store_->Close());
    json::object measured{{"steps_per_second", static_cast<double>(options_.n * steps) / seconds},
                          {"start_ms", json::array(start_ms_.begin(), start_ms_.end())}};
    std::cout << json::serialize(measured) << std::endl;
  }

 private:
  static Task<flow::Outcome> Step(Load* load, flow::StepContext context) {
    if (context.step == "step0") {
      auto waited = Steady::now() - load->begun_[std::stoul(context.run_id)];
      load->start_ms_.push_back(std::chrono::duration<double, std::milli>(waited).count());
    }
    if (context.step == load->last_step_) {
      ++load->ended_count_;
      load->ended_.Notify();
    }
    co_return flow::Outcome::Done();
  }

  const Options& options_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  flow::Engine engine_;
  Condition ended_;
  std::vector<Steady::time_point> begun_;
  std::vector<double> start_ms_;
  std::string last_step_;
  int64_t ended_count_ = 0;
};

int Main(int argc, char** argv) {
  Options options{.mode = argc > 1 ? argv[1] : ""};
  std::map<std::string, int64_t*> numbers{{"--n", &options.n},
                                          {"--steps", &options.steps},
                                          {"--c", &options.in_flight},
                                          {"--rate", &options.rate}};
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--url")
      options.url = argv[i + 1];
    else if (auto number = numbers.find(argv[i]); number != numbers.end())
      *number->second = std::atoll(argv[i + 1]);
  }
  if ((options.mode != "throughput" && options.mode != "latency") || options.url.empty()) {
    std::cerr << "usage: caisson-flow-load throughput|latency --url DATABASE [--n RUNS] "
                 "[--steps STEPS] [--c IN_FLIGHT] [--rate PER_SECOND]\n";
    return 2;
  }
  asio::io_context io;
  Load load(io, options);
  asio::co_spawn(io, load.Run(), asio::detached);
  io.run();
  return 0;
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) { return caisson::Main(argc, argv); }
