#include "engine/client.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/json.hpp>
#include <deque>
#include <unordered_map>

#include "base/log.h"
#include "engine/protocol.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;

// The engine's main process answers in microseconds; if not, it is stuck.
constexpr std::chrono::seconds kCallTimeout{30};
// Longer than the engine itself allows for it.
constexpr std::chrono::seconds kDestroyTimeout{90};
// What the engine needs beyond its own deadline to clean up and answer.
constexpr std::chrono::seconds kCreateGrace{30};

Error Gone() { return Error(Code::kUnavailable, "the engine process is gone"); }

}  // namespace

// Coroutines hold the Impl they work on, so a Client may go away while some still unwind.
class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  Impl(asio::any_io_executor executor, UniqueFd socket)
      : executor_(executor),
        socket_(executor, socket.Release()),
        writable_(executor),
        tasks_(executor) {
    (void)SetNonBlocking(socket_.native_handle());
  }

  Task<Result<Message>> Call(Message request, milliseconds timeout) {
    return DoCall(shared_from_this(), std::move(request), timeout);
  }
  void Start() {
    tasks_.Spawn("engine answers", ReadLoop(shared_from_this()));
    tasks_.Spawn("engine requests", WriteLoop(shared_from_this()));
  }
  void Stop();

  ExitHandler on_exit_;
  BlockedHandler on_blocked_;
  HeldHandler on_held_;
  std::function<void()> on_gone_;

 private:
  struct Pending {
    explicit Pending(asio::any_io_executor executor) : answered(std::move(executor)) {}
    Condition answered;
    std::optional<Result<Message>> answer;
  };

  static Task<Result<Message>> DoCall(std::shared_ptr<Impl> self, Message request,
                                      milliseconds timeout);
  static Task<void> ReadLoop(std::shared_ptr<Impl> self);
  static Task<void> WriteLoop(std::shared_ptr<Impl> self);
  void Post(Message request);
  void Dispatch(Message message);
  void Fail();

  asio::any_io_executor executor_;
  asio::posix::stream_descriptor socket_;
  Condition writable_;  // there is something to write
  std::deque<Message> outgoing_;
  std::unordered_map<int64_t, std::shared_ptr<Pending>> pending_;
  int64_t next_call_ = 1;
  bool gone_ = false;
  bool stopped_ = false;
  TaskGroup tasks_;
};

Task<Result<Message>> Client::Impl::DoCall(std::shared_ptr<Impl> self, Message request,
                                           milliseconds timeout) {
  if (self->gone_) co_return tl::unexpected(Gone());
  int64_t call = self->next_call_++;
  request.head["call"] = call;
  auto pending = std::make_shared<Pending>(self->executor_);
  self->pending_[call] = pending;
  // Also if nobody waits any more: descriptors of a late answer would stay with it.
  struct Out {
    Impl& impl;
    int64_t call;
    ~Out() { impl.pending_.erase(call); }
  } out{*self, call};
  self->Post(std::move(request));
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!pending->answer)
    if (!co_await pending->answered.Wait(deadline)) break;
  if (!pending->answer)
    co_return caisson::Fail(Code::kDeadlineExceeded, "the engine did not answer in {} ms",
                            timeout.count());
  co_return *std::move(pending->answer);
}

void Client::Impl::Post(Message request) {
  if (outgoing_.empty()) {
    Status sent = Send(socket_.native_handle(), request);
    if (sent || sent.error().sys_errno() != EAGAIN) return;  // ReadLoop() sees if it is gone
  }
  outgoing_.push_back(std::move(request));
  writable_.Notify();
}

Task<void> Client::Impl::ReadLoop(std::shared_ptr<Impl> self) {
  for (;;) {
    auto message = Receive(self->socket_.native_handle());
    if (message) {
      self->Dispatch(std::move(*message));
      continue;
    }
    if (message.error().sys_errno() != EAGAIN) break;
    auto [ec] =
        co_await self->socket_.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
    if (ec) break;
  }
  self->Fail();
}

Task<void> Client::Impl::WriteLoop(std::shared_ptr<Impl> self) {
  while (!self->gone_) {
    if (self->outgoing_.empty()) {
      co_await self->writable_.Wait(std::chrono::hours(24));
      continue;
    }
    auto [ec] =
        co_await self->socket_.async_wait(asio::posix::stream_descriptor::wait_write, kAwait);
    if (ec) co_return;
    Status sent = Send(self->socket_.native_handle(), self->outgoing_.front());
    if (sent || sent.error().sys_errno() != EAGAIN) self->outgoing_.pop_front();
  }
}

void Client::Impl::Dispatch(Message message) {
  if (auto event = GetString(message.head, "event")) {
    if (*event == "blocked") {
      auto blocked = DecodeBlocked(message.head["blocked"]);
      if (blocked && on_blocked_) on_blocked_(*std::move(blocked));
      return;
    }
    auto id = GetString(message.head, "id");
    if (*event == "held") {
      const json::value* held = message.head.if_contains("held");
      auto free_mb = GetInt(message.head, "free_mb");
      if (id && held && held->is_bool() && free_mb && on_held_)
        on_held_(*id, held->get_bool(), *free_mb);
      return;
    }
    auto name = GetString(message.head, "reason");
    if (id && name && on_exit_)
      on_exit_(*id, DecodeExitReason(*name).value_or(ExitReason::kUnknown));
    return;
  }
  auto call = GetInt(message.head, "call");
  auto it = call ? pending_.find(*call) : pending_.end();
  if (it == pending_.end()) return;  // it came too late
  Status status = DecodeStatus(message.head);
  if (status)
    it->second->answer.emplace(std::move(message));
  else
    it->second->answer.emplace(tl::unexpected(std::move(status).error()));
  it->second->answered.Notify();
}

void Client::Impl::Fail() {
  if (std::exchange(gone_, true)) return;
  for (auto& [call, pending] : pending_) {
    pending->answer.emplace(tl::unexpected(Gone()));
    pending->answered.Notify();
  }
  writable_.Notify();
  if (!stopped_ && on_gone_) on_gone_();
}

void Client::Impl::Stop() {
  stopped_ = true;
  Fail();
  tasks_.Cancel();
  boost::system::error_code ec;
  socket_.close(ec);
}

Client::Client(asio::any_io_executor executor, UniqueFd socket)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(socket))) {}
Client::~Client() = default;

void Client::OnExit(ExitHandler handler) { impl_->on_exit_ = std::move(handler); }
void Client::OnBlocked(BlockedHandler handler) { impl_->on_blocked_ = std::move(handler); }
void Client::OnHeld(HeldHandler handler) { impl_->on_held_ = std::move(handler); }
void Client::OnEngineGone(std::function<void()> handler) { impl_->on_gone_ = std::move(handler); }
void Client::Start() { impl_->Start(); }
void Client::Stop() { impl_->Stop(); }

Task<Result<Instance>> Client::Create(Spec spec, milliseconds timeout) {
  Message request = EncodeSpec(spec);
  request.head["op"] = "create";
  request.head["timeout_ms"] = timeout.count();
  auto answer = co_await impl_->Call(std::move(request), timeout + kCreateGrace);
  if (!answer) co_return tl::unexpected(std::move(answer).error());
  co_return DecodeInstance(answer->head["instance"]);
}

Task<Status> Client::Destroy(std::string id) {
  CO_TRY(co_await impl_->Call({{{"op", "destroy"}, {"id", id}}, "", {}}, kDestroyTimeout));
  co_return Status();
}

Task<Result<std::vector<UniqueFd>>> Client::Dial(std::string id, size_t count) {
  std::vector<UniqueFd> sockets;
  while (sockets.size() < count) {
    size_t some = std::min(count - sockets.size(), kMaxFdsPerMessage);
    CO_TRY_ASSIGN(Message answer,
                  co_await impl_->Call({{{"op", "dial"}, {"id", id}, {"count", some}}, "", {}},
                                       kCallTimeout));
    if (answer.fds.size() != some)
      co_return Fail(Code::kInternal, "the engine sent {} sockets instead of {}", answer.fds.size(),
                     some);
    for (UniqueFd& fd : answer.fds) sockets.push_back(std::move(fd));
  }
  co_return sockets;
}

Task<Result<UniqueFd>> Client::Listen(std::string id, uint16_t port) {
  CO_TRY_ASSIGN(
      Message answer,
      co_await impl_->Call({{{"op", "listen"}, {"id", id}, {"port", port}}, "", {}}, kCallTimeout));
  if (answer.fds.size() != 1)
    co_return Fail(Code::kInternal, "the engine sent {} sockets instead of 1", answer.fds.size());
  co_return std::move(answer.fds[0]);
}

Task<Result<std::vector<std::pair<std::string, Usage>>>> Client::Measure(
    std::vector<std::string> ids) {
  std::vector<std::pair<std::string, Usage>> usages;
  // In small portions, so that requests of others get between.
  for (size_t begin = 0; begin < ids.size(); begin += kMaxIdsPerMessage) {
    size_t end = std::min(ids.size(), begin + kMaxIdsPerMessage);
    json::array some(ids.begin() + static_cast<ptrdiff_t>(begin),
                     ids.begin() + static_cast<ptrdiff_t>(end));
    CO_TRY_ASSIGN(Message answer,
                  co_await impl_->Call({{{"op", "measure"}, {"ids", std::move(some)}}, "", {}},
                                       kCallTimeout));
    const json::value* found = answer.head.if_contains("usages");
    if (!found || !found->is_object()) co_return Fail(Code::kInternal, "no usages in an answer");
    for (const auto& [id, value] : found->get_object()) {
      CO_TRY_ASSIGN(Usage usage, DecodeUsage(value));
      usages.emplace_back(std::string(id), usage);
    }
  }
  co_return usages;
}

// A list that comes in pages, each beginning after the id that ended the one before.
template <class Item, class ImplPtr>
Task<Result<std::vector<Item>>> Pages(ImplPtr impl, std::string op,
                                      Result<Item> (*decode)(const json::value&)) {
  std::vector<Item> items;
  for (bool more = true; more;) {
    std::string after = items.empty() ? "" : items.back().id;
    CO_TRY_ASSIGN(Message answer,
                  co_await impl->Call({{{"op", op}, {"after", after}}, "", {}}, kCallTimeout));
    const json::value* found = answer.head.if_contains("items");
    if (!found || !found->is_array()) co_return Fail(Code::kInternal, "no items in an answer");
    for (const json::value& value : found->get_array()) {
      CO_TRY_ASSIGN(Item item, decode(value));
      items.push_back(std::move(item));
    }
    const json::value* rest = answer.head.if_contains("more");
    more = rest && rest->is_bool() && rest->get_bool() && !found->get_array().empty();
  }
  co_return items;
}

Task<Result<std::vector<Instance>>> Client::List() {
  return Pages<Instance>(impl_, "list", DecodeInstance);
}

Task<Result<Saved>> Client::Pause(std::string id, bool memory, milliseconds timeout) {
  CO_TRY_ASSIGN(
      Message answer,
      co_await impl_->Call(
          {{{"op", "pause"}, {"id", id}, {"memory", memory}, {"timeout_ms", timeout.count()}},
           "",
           {}},
          timeout + kCreateGrace));
  co_return DecodeSaved(answer.head["saved"]);
}

Task<Result<Instance>> Client::Resume(Spec spec, bool memory, milliseconds timeout) {
  Message request = EncodeSpec(spec);
  request.head["op"] = "resume";
  request.head["memory"] = memory;
  request.head["timeout_ms"] = timeout.count();
  CO_TRY_ASSIGN(Message answer, co_await impl_->Call(std::move(request), timeout + kCreateGrace));
  co_return DecodeInstance(answer.head["instance"]);
}

Task<Result<Saved>> Client::Snapshot(std::string id, std::string snapshot_id, bool memory,
                                     milliseconds timeout) {
  CO_TRY_ASSIGN(Message answer, co_await impl_->Call({{{"op", "snapshot"},
                                                       {"id", id},
                                                       {"snapshot_id", snapshot_id},
                                                       {"memory", memory},
                                                       {"timeout_ms", timeout.count()}},
                                                      "",
                                                      {}},
                                                     timeout + kCreateGrace));
  co_return DecodeSaved(answer.head["saved"]);
}

Task<Status> Client::DeleteSaved(std::string id) {
  CO_TRY(co_await impl_->Call({{{"op", "delete_saved"}, {"id", id}}, "", {}}, kDestroyTimeout));
  co_return Status();
}

Task<Result<std::optional<Saved>>> Client::GetSaved(std::string id) {
  CO_TRY_ASSIGN(Message answer,
                co_await impl_->Call({{{"op", "get_saved"}, {"id", id}}, "", {}}, kCallTimeout));
  const json::value& saved = answer.head["saved"];
  if (saved.is_null()) co_return std::nullopt;
  CO_TRY_ASSIGN(Saved decoded, DecodeSaved(saved));
  co_return decoded;
}

Task<Result<std::vector<Saved>>> Client::ListSaved() {
  return Pages<Saved>(impl_, "list_saved", DecodeSaved);
}

Task<Status> Client::SetLimits(std::string id, Limits limits) {
  CO_TRY(co_await impl_->Call(
      {{{"op", "set_limits"}, {"id", id}, {"limits", EncodeLimits(limits)}}, "", {}},
      kCallTimeout));
  co_return Status();
}

Task<Status> Client::GrowDisk(std::string id, int64_t bytes, milliseconds timeout) {
  CO_TRY(co_await impl_->Call(
      {{{"op", "grow_disk"}, {"id", id}, {"bytes", bytes}, {"timeout_ms", timeout.count()}},
       "",
       {}},
      timeout + kCreateGrace));
  co_return Status();
}

Task<Status> Client::SetEgress(std::string id, Egress egress) {
  CO_TRY(co_await impl_->Call(
      {{{"op", "set_egress"}, {"id", id}, {"egress", EncodeEgress(egress)}}, "", {}},
      kCallTimeout));
  co_return Status();
}

Task<Result<Capabilities>> Client::GetCapabilities() {
  CO_TRY_ASSIGN(Message answer,
                co_await impl_->Call({{{"op", "capabilities"}}, "", {}}, kCallTimeout));
  co_return DecodeCapabilities(answer.head["capabilities"]);
}

}  // namespace caisson::engine
