// One maker per adapter, and what they share.
#pragma once

#include "work/adapter.h"

namespace caisson::work {

std::unique_ptr<Adapter> MakeCommandAdapter();
std::unique_ptr<Adapter> MakeClaudeAdapter();
std::unique_ptr<Adapter> MakeCodexAdapter();
std::unique_ptr<Adapter> MakeOpenCodeAdapter();
std::unique_ptr<Adapter> MakeGeminiAdapter();
std::unique_ptr<Adapter> MakeAiderAdapter();
std::unique_ptr<Adapter> MakeBuiltinAdapter();

// The key that programs insist on. SECURITY: it opens nothing; the real one is added by the broker,
// outside of the sandbox.
inline constexpr std::string_view kDummyKey = "caisson-broker";

// Working directory, time, and the variables that every agent gets.
sdk::Command BaseCommand(const AgentJob& job);
// The agent's own arguments (config "args") at the end, and its variables over all others.
void Complete(sdk::Command& command, const AgentJob& job);
// The URL of the route that config "model_route" names, or of `usual`; "" when the agent's
// configuration brings its own keys. kFailedPrecondition: this server has no such route.
Result<std::string> ModelUrl(const AgentJob& job, const std::string& usual);

}  // namespace caisson::work
