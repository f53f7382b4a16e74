#include "engine/protocol.h"

#include <sys/socket.h>

#include <boost/json.hpp>

namespace caisson::engine {
namespace {

constexpr int kSocketBuffer = 4 << 20;

tl::unexpected<Error> Missing(std::string_view name) {
  return Fail(Code::kInvalidArgument, "a message has no proper field '{}'", name);
}

// Runs `fn`, which uses the throwing accessors of Boost.JSON.
template <class Fn>
auto Decode(std::string_view what, Fn fn) -> Result<decltype(fn())> {
  try {
    return fn();
  } catch (const std::exception&) {
    return Fail(Code::kInvalidArgument, "a message has no proper {}", what);
  }
}

std::string String(const json::object& o, std::string_view name) {
  return json::value_to<std::string>(o.at(name));
}
int64_t Int(const json::object& o, std::string_view name) {
  return o.at(name).to_number<int64_t>();
}

}  // namespace

Status Send(int socket, const Message& message) {
  std::string data = json::serialize(message.head);
  data += '\n';
  data += message.body;
  if (data.size() > kMaxMessageBytes)
    return Fail(Code::kOutOfRange, "a message is longer than {} bytes", kMaxMessageBytes);
  std::vector<int> fds;
  for (const UniqueFd& fd : message.fds) fds.push_back(fd.get());
  return SendMessage(socket, data, fds);
}

Result<Message> Receive(int socket) {
  // Most messages are tiny; a buffer for the longest would cost more than all the rest.
  ssize_t size = recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  if (size < 0) return FailErrno("receiving a message");
  auto room = std::clamp<size_t>(static_cast<size_t>(size), 1, kMaxMessageBytes);
  TRY_ASSIGN(FdMessage raw, ReceiveMessage(socket, room));
  size_t end = raw.data.find('\n');
  boost::system::error_code ec;
  json::value head = json::parse(std::string_view(raw.data).substr(0, end), ec);
  if (ec || end == std::string::npos || !head.is_object())
    return Fail(Code::kInvalidArgument, "a message is not of the expected form");
  return Message{std::move(head.as_object()), raw.data.substr(end + 1), std::move(raw.fds)};
}

Result<SocketPair> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
    return FailErrno("making a pair of sockets");
  SocketPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  for (int fd : ends)
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer, sizeof(kSocketBuffer)))
      return FailErrno("enlarging a socket's buffer");
  return pair;
}

Result<std::string> GetString(const json::object& head, std::string_view name) {
  const json::value* value = head.if_contains(name);
  if (!value || !value->is_string()) return Missing(name);
  return std::string(value->get_string());
}

Result<bool> GetBool(const json::object& head, std::string_view name) {
  const json::value* value = head.if_contains(name);
  if (!value || !value->is_bool()) return Missing(name);
  return value->get_bool();
}

Result<int64_t> GetInt(const json::object& head, std::string_view name) {
  const json::value* value = head.if_contains(name);
  boost::system::error_code ec;
  int64_t number = value ? value->to_number<int64_t>(ec) : 0;
  if (!value || ec) return Missing(name);
  return number;
}

Result<std::vector<std::string>> GetStrings(const json::object& head, std::string_view name) {
  return Decode(name, [&] { return json::value_to<std::vector<std::string>>(head.at(name)); });
}

Message EncodeSpec(const Spec& spec) {
  return {{{"id", spec.id},
           {"root_dir", spec.root_dir},
           {"limits", EncodeLimits(spec.limits)},
           {"egress", EncodeEgress(spec.egress)},
           {"snapshot", spec.snapshot},
           {"group", spec.group}},
          spec.boot,
          {}};
}

Result<Spec> DecodeSpec(Message message) {
  const json::object& o = message.head;
  const json::value* given = o.if_contains("limits");
  TRY_ASSIGN(Limits limits, DecodeLimits(given ? *given : json::value()));
  given = o.if_contains("egress");
  TRY_ASSIGN(Egress egress, DecodeEgress(given ? *given : json::value()));
  return Decode("spec", [&] {
    return Spec{.id = String(o, "id"),
                .root_dir = String(o, "root_dir"),
                .limits = limits,
                .egress = std::move(egress),
                .boot = std::move(message.body),
                .snapshot = String(o, "snapshot"),
                .group = String(o, "group")};
  });
}

json::object EncodeLimits(const Limits& limits) {
  return {{"cpus", limits.cpus},
          {"memory_bytes", limits.memory_bytes},
          {"disk_bytes", limits.disk_bytes},
          {"pids", limits.pids},
          {"open_files", limits.open_files}};
}

Result<Limits> DecodeLimits(const json::value& value) {
  return Decode("limits", [&] {
    const json::object& o = value.as_object();
    return Limits{.cpus = Int(o, "cpus"),
                  .memory_bytes = Int(o, "memory_bytes"),
                  .disk_bytes = Int(o, "disk_bytes"),
                  .pids = Int(o, "pids"),
                  .open_files = Int(o, "open_files")};
  });
}

json::object EncodeSaved(const Saved& saved) {
  return {{"id", saved.id},
          {"tier", TierName(saved.tier)},
          {"why_frozen", saved.why_frozen},
          {"memory_bytes", saved.memory_bytes},
          {"disk_bytes", saved.disk_bytes},
          {"at", UnixNanos(saved.at)}};
}

Result<Saved> DecodeSaved(const json::value& value) {
  return Decode("saved state", [&] {
    const json::object& o = value.as_object();
    return Saved{.id = String(o, "id"),
                 .tier = ParseTier(String(o, "tier")).value(),
                 .why_frozen = String(o, "why_frozen"),
                 .memory_bytes = Int(o, "memory_bytes"),
                 .disk_bytes = Int(o, "disk_bytes"),
                 .at = FromUnixNanos(Int(o, "at"))};
  });
}

json::object EncodeInstance(const Instance& instance) {
  return {{"id", instance.id},
          {"pid", instance.pid},
          {"created_at", UnixNanos(instance.created_at)},
          {"continued", instance.continued}};
}

Result<Instance> DecodeInstance(const json::value& value) {
  return Decode("instance", [&] {
    const json::object& o = value.as_object();
    return Instance{.id = String(o, "id"),
                    .pid = static_cast<int>(Int(o, "pid")),
                    .created_at = FromUnixNanos(Int(o, "created_at")),
                    .continued = o.at("continued").as_bool()};
  });
}

json::object EncodeUsage(const Usage& usage) {
  return {{"at", UnixNanos(usage.at)},
          {"cpu_ns", usage.cpu_ns},
          {"memory_used", usage.memory_used_bytes},
          {"memory_cache", usage.memory_cache_bytes},
          {"memory_limit", usage.memory_limit_bytes},
          {"disk_used", usage.disk_used_bytes},
          {"disk_total", usage.disk_total_bytes},
          {"pids", usage.pids},
          {"pids_refused", usage.pids_refused},
          {"oom_kills", usage.oom_kills}};
}

Result<Usage> DecodeUsage(const json::value& value) {
  return Decode("usage", [&] {
    const json::object& o = value.as_object();
    return Usage{.at = FromUnixNanos(Int(o, "at")),
                 .cpu_ns = Int(o, "cpu_ns"),
                 .memory_used_bytes = Int(o, "memory_used"),
                 .memory_cache_bytes = Int(o, "memory_cache"),
                 .memory_limit_bytes = Int(o, "memory_limit"),
                 .disk_used_bytes = Int(o, "disk_used"),
                 .disk_total_bytes = Int(o, "disk_total"),
                 .pids = Int(o, "pids"),
                 .pids_refused = Int(o, "pids_refused"),
                 .oom_kills = Int(o, "oom_kills")};
  });
}

json::object EncodeEgress(const Egress& egress) {
  return {{"allow", json::value_from(egress.allow)}, {"deny", json::value_from(egress.deny)}};
}

Result<Egress> DecodeEgress(const json::value& value) {
  return Decode("egress", [&] {
    const json::object& o = value.as_object();
    return Egress{.allow = json::value_to<std::vector<std::string>>(o.at("allow")),
                  .deny = json::value_to<std::vector<std::string>>(o.at("deny"))};
  });
}

json::object EncodeBlocked(const Blocked& blocked) {
  return {{"id", blocked.id},     {"destination", blocked.destination},
          {"port", blocked.port}, {"protocol", blocked.protocol},
          {"pid", blocked.pid},   {"command", blocked.command},
          {"more", blocked.more}};
}

Result<Blocked> DecodeBlocked(const json::value& value) {
  return Decode("blocked attempt", [&] {
    const json::object& o = value.as_object();
    return Blocked{.id = String(o, "id"),
                   .destination = String(o, "destination"),
                   .port = static_cast<int>(Int(o, "port")),
                   .protocol = String(o, "protocol"),
                   .pid = static_cast<int>(Int(o, "pid")),
                   .command = String(o, "command"),
                   .more = Int(o, "more")};
  });
}

json::object EncodeCapabilities(const Capabilities& capabilities) {
  return {{"memory", capabilities.memory},
          {"why_no_memory", capabilities.why_no_memory},
          {"network", capabilities.network},
          {"open_files", capabilities.open_files}};
}

Result<Capabilities> DecodeCapabilities(const json::value& value) {
  return Decode("capabilities", [&] {
    const json::object& o = value.as_object();
    return Capabilities{.memory = o.at("memory").as_bool(),
                        .why_no_memory = String(o, "why_no_memory"),
                        .network = o.at("network").as_bool(),
                        .open_files = o.at("open_files").to_number<int64_t>()};
  });
}

Result<ExitReason> DecodeExitReason(std::string_view name) {
  for (ExitReason reason : {ExitReason::kEnvdExited, ExitReason::kEnvdKilled,
                            ExitReason::kOutOfMemory, ExitReason::kUnknown})
    if (ExitReasonName(reason) == name) return reason;
  return Missing("reason");
}

json::object EncodeError(const Error& error) {
  return {{"code", static_cast<int>(error.code())}, {"message", error.message()}};
}

Status DecodeStatus(const json::object& head) {
  const json::value* error = head.if_contains("error");
  if (!error) return {};
  if (!error->is_object()) return Missing("error");
  TRY_ASSIGN(int64_t code, GetInt(error->get_object(), "code"));
  TRY_ASSIGN(std::string message, GetString(error->get_object(), "message"));
  if (code < 0 || code > static_cast<int64_t>(Code::kUnauthenticated)) return Missing("code");
  return tl::unexpected(Error(static_cast<Code>(code), std::move(message)));
}

}  // namespace caisson::engine
