// Messages between server, engine and launchers: SOCK_SEQPACKET, one line of JSON (the head), and
// after its newline raw bytes (the body; only boot data has one). Descriptors travel along.
//
//   request   {"call": number, "op": "create" | "destroy" | "pause" | "resume" |
//              "snapshot" | "delete_saved" | "get_saved" | "list_saved" | "set_limits" |
//              "dial" | "listen" | "measure" | "list" | "set_egress" | "capabilities", ...}
//   answer    {"call": number, ...} or {"call": number, "error": {"code", "message"}}
//   event     {"event": "exit", "id", "reason"}, {"event": "blocked", "blocked"},
//             {"event": "held", "id", "held": bool, "free_mb": number}
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"

namespace caisson::engine {

namespace json = boost::json;

// Room for the longest boot data and its head.
inline constexpr size_t kMaxMessageBytes = 256 << 10;
// So that answers stay far below that.
inline constexpr size_t kMaxInstancesPerMessage = 500;
// Measuring one takes some 0.1 ms, and nobody is served meanwhile.
inline constexpr size_t kMaxIdsPerMessage = 16;

struct Message {
  json::object head;
  std::string body;
  std::vector<UniqueFd> fds;
};

// A non-blocking socket with a full buffer gives EAGAIN, and `message` can be sent again.
Status Send(int socket, const Message& message);
Result<Message> Receive(int socket);
// A connected pair whose buffers hold messages of full size.
struct SocketPair {
  UniqueFd first, second;
};
Result<SocketPair> MakeSocketPair();

// The fields of a head. Missing or of another type is kInvalidArgument.
Result<std::string> GetString(const json::object& head, std::string_view name);
Result<bool> GetBool(const json::object& head, std::string_view name);
Result<int64_t> GetInt(const json::object& head, std::string_view name);
Result<std::vector<std::string>> GetStrings(const json::object& head, std::string_view name);

// A request with the spec: its boot data becomes the body.
Message EncodeSpec(const Spec& spec);
Result<Spec> DecodeSpec(Message message);

json::object EncodeInstance(const Instance& instance);
Result<Instance> DecodeInstance(const json::value& value);
json::object EncodeUsage(const Usage& usage);
Result<Usage> DecodeUsage(const json::value& value);
json::object EncodeSaved(const Saved& saved);
Result<Saved> DecodeSaved(const json::value& value);
json::object EncodeLimits(const Limits& limits);
Result<Limits> DecodeLimits(const json::value& value);
json::object EncodeEgress(const Egress& egress);
Result<Egress> DecodeEgress(const json::value& value);
json::object EncodeBlocked(const Blocked& blocked);
Result<Blocked> DecodeBlocked(const json::value& value);
json::object EncodeCapabilities(const Capabilities& capabilities);
Result<Capabilities> DecodeCapabilities(const json::value& value);
Result<ExitReason> DecodeExitReason(std::string_view name);

json::object EncodeError(const Error& error);
// The error of an answer, if it is one.
Status DecodeStatus(const json::object& head);

}  // namespace caisson::engine
