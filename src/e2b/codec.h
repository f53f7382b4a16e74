// E2B's messages of the sandbox routes, to and from our values.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "sandbox/manager.h"
#include "sandbox/template.h"

namespace caisson::e2b {

// What envd can do, in E2B's numbering; SDKs decide by it what they may ask for.
inline constexpr std::string_view kEnvdVersion = "0.6.13";

// /sandboxes and /v2/sandboxes differ only in defaults.
enum class Version { kV1, kV2 };

// "id" or the older "id-clientID". More than one '-' is kInvalidArgument, as E2B has it; text that
// no id has is kNotFound.
Result<std::string> DecodeSandboxId(std::string_view text);

struct Defaults {
  std::chrono::seconds timeout_v1{15};
  std::chrono::seconds timeout_v2{300};
};

// The body of a create request; key_id and the idempotency fields stay empty.
Result<sandbox::CreateOptions> DecodeCreate(const boost::json::object& body, Version version,
                                            const Defaults& defaults);
// {"timeout","memory"?} of a connect request: the timeout is required in v1.
Result<sandbox::ResumeOptions> DecodeConnect(const boost::json::object& body, Version version,
                                             const Defaults& defaults);
// {"timeout"?,"autoPause"?}
Result<sandbox::ResumeOptions> DecodeResume(const boost::json::object& body,
                                            const Defaults& defaults);
struct PauseQuery {
  bool memory = true;
  bool healthy = false;
};
// {"memory"?,"requireHealthyGuest"?}
Result<PauseQuery> DecodePause(const boost::json::object& body);
struct ForkQuery {
  std::chrono::seconds timeout;
  int64_t count = 1;
};
// {"timeout"?,"count"?}
Result<ForkQuery> DecodeFork(const boost::json::object& body, const Defaults& defaults);
// {"timeout"}: negative is 0.
Result<std::chrono::seconds> DecodeTimeout(const boost::json::object& body);
// {"duration"?}: at least 15.
Result<std::chrono::seconds> DecodeRefresh(const boost::json::object& body);

// RFC 3339 with exactly six digits of fraction: what every client can read and hand back.
std::string EncodeTime(Time time);

// Sandbox, ListedSandbox, SandboxDetail, SnapshotInfo, SandboxMetric of the contract.
boost::json::object EncodeSandbox(const sandbox::Info& info, std::string_view domain);
boost::json::object EncodeListed(const sandbox::Info& info);
boost::json::object EncodeDetail(const sandbox::Info& info, std::string_view domain);
boost::json::object EncodeSnapshot(const store::SnapshotRow& row);
boost::json::object EncodeMetric(int64_t cpus, const sandbox::Sample& sample);

// SandboxLogEntry, and the same as one line of JSON text, which the CLI parses.
boost::json::object EncodeLogEntry(const store::SandboxEvent& event);
boost::json::object EncodeLogLine(const store::SandboxEvent& event);

boost::json::object EncodeTemplate(const sandbox::Template& one, int64_t default_cpus,
                                   int64_t default_memory_mb, int64_t default_disk_mb,
                                   const store::TemplateUse& use);

}  // namespace caisson::e2b
