#include "flow/engine.h"

#include "flow/runner.h"

namespace caisson::flow {

Engine::Engine(asio::any_io_executor executor, store::Store& store, const Config& config)
    : runner_(std::make_shared<Runner>(std::move(executor), store, config)) {}

Engine::~Engine() { runner_->Abandon(); }

void Engine::Define(Definition definition) { runner_->Define(std::move(definition)); }
Task<Status> Engine::Start() { return runner_->Start(); }
Task<void> Engine::Stop() { return runner_->Stop(); }

Status Engine::StartRun(store::Transaction& transaction, const StartOptions& options) {
  return runner_->ledger().StartRun(transaction, options);
}

Result<bool> Engine::Signal(store::Transaction& transaction, const std::string& key,
                            json::object data) {
  return runner_->ledger().Signal(transaction, key, data);
}

Result<bool> Engine::Cancel(store::Transaction& transaction, const std::string& run_id,
                            const std::string& reason) {
  TRY_ASSIGN(bool asked, runner_->ledger().Cancel(transaction, run_id, reason));
  if (asked) runner_->ExpectCancel(run_id);
  return asked;
}

Status Engine::Redrive(store::Transaction& transaction, const std::string& run_id,
                       const std::string& step) {
  return runner_->ledger().Redrive(transaction, run_id, step);
}

void Engine::Wake() { runner_->Wake(); }
Engine::Numbers Engine::numbers() const { return runner_->numbers(); }

}  // namespace caisson::flow
