#include "git/ssh_relay.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/log.h"
#include "git/pkt_line.h"

namespace caisson::git {
namespace {

using namespace asio::experimental::awaitable_operators;

// ssh itself, not git at the other end, failed.
constexpr int kSshFailed = 255;
// Its output has ended, so it has, too.
constexpr std::chrono::milliseconds kEndPatience{5'000};

}  // namespace

SshRelay::SshRelay(http::Exchange& exchange, const SshAccess& access, const Repository& repository,
                   std::string service, std::chrono::milliseconds stall_timeout)
    : exchange_(exchange),
      access_(access),
      repository_(repository),
      service_(std::move(service)),
      stall_timeout_(stall_timeout) {}

http::ResponseHead SshRelay::Head(std::string_view kind) const {
  http::ResponseHead head;
  head.headers.Set("Content-Type", fmt::format("application/x-{}-{}", service_, kind));
  head.headers.Set("Cache-Control", "no-cache");
  return head;
}

Task<bool> SshRelay::Connect() {
  if (auto why = WhyNotSsh(access_, repository_)) {
    failure_ = std::move(*why);
    co_return false;
  }
  auto started = SshProcess::Start(
      co_await asio::this_coro::executor, SshCommand(access_, repository_, service_),
      SshEnvironment(exchange_.request().headers.Value("Git-Protocol")), stall_timeout_);
  if (!started) {
    failure_ = {503, "The server cannot use SSH: " + started.error().message()};
    co_return false;
  }
  process_ = std::move(*started);
  co_return true;
}

Task<Relay::End> SshRelay::Explain() {
  process_->CloseInput();
  auto ended = co_await WithDeadline(kEndPatience, "waiting for ssh", process_->Wait());
  failure_ = ended ? ExplainSsh(repository_.ssh, process_->errors())
                   : SshFailure{504, fmt::format("{} does not answer by SSH.", repository_.ssh)};
  LogInfo("a repository could not be reached by ssh",
          {{"repository", repository_.full_name()}, {"error", failure_.text}});
  co_return Relay::End::kStatus;
}

Task<std::optional<std::string>> SshRelay::FirstPacket() {
  std::string bytes;
  for (;;) {
    auto piece = co_await process_->Read();
    if (!piece || piece->empty()) co_return std::nullopt;
    bytes += *piece;
    auto packet = ReadPacket(bytes);
    if (!packet) co_return std::nullopt;
    if (*packet) co_return bytes;
  }
}

Task<Relay::End> SshRelay::PassRefs() {
  if (!co_await Connect()) co_return Relay::End::kStatus;
  auto first = co_await FirstPacket();
  if (!first) co_return co_await Explain();
  // The second version of the protocol has no heading over HTTP; the others have.
  auto packet = ReadPacket(*first);
  bool second = packet && *packet && (*packet)->payload.starts_with("version 2");
  std::string heading;
  if (!second) heading = Packet(fmt::format("# service={}\n", service_)) + std::string(kFlush);
  if (!co_await exchange_.StartStream(Head("advertisement"), std::nullopt, heading))
    co_return Relay::End::kClientGone;

  PacketScanner scanner;
  std::string_view piece = *first;
  for (;;) {
    auto used = scanner.Feed(piece);
    if (!used) co_return Relay::End::kBroken;
    if (!co_await exchange_.Write(piece.substr(0, *used))) co_return Relay::End::kClientGone;
    if (scanner.flushed()) break;
    auto next = co_await process_->Read();
    if (!next || next->empty()) co_return Relay::End::kBroken;
    piece = *next;
  }
  // That was all; the other side ends by itself when it is told so.
  (void)co_await process_->Write(kFlush);
  process_->CloseInput();
  co_return co_await exchange_.FinishStream() ? Relay::End::kPassed : Relay::End::kClientGone;
}

Task<bool> SshRelay::SkipRefs() {
  PacketScanner scanner;
  while (!scanner.flushed()) {
    auto piece = co_await process_->Read();
    if (!piece || piece->empty()) co_return false;
    auto used = scanner.Feed(*piece);
    // It has not been asked anything yet.
    if (!used || *used != piece->size()) co_return false;
  }
  co_return true;
}

Task<Relay::End> SshRelay::PassRequest(RequestBody& body) {
  if (!co_await Connect()) co_return Relay::End::kStatus;
  if (!co_await SkipRefs()) co_return co_await Explain();
  auto winner = co_await (Receive() || Supply(body));
  co_return winner.index() == 0 ? std::get<0>(winner) : Relay::End::kClientGone;
}

// Passes the body on. Returns only when the client is gone.
Task<void> SshRelay::Supply(RequestBody& body) {
  Status written = co_await process_->Write(body.kept());
  while (written && !body.whole()) {
    auto piece = co_await body.Next();
    if (!piece) co_return;
    written = co_await process_->Write(*piece);
  }
  // Who does not want the rest may still say why.
  process_->CloseInput();
  co_await exchange_.ClientGone();
}

Task<Relay::End> SshRelay::Receive() {
  bool begun = false;
  for (;;) {
    auto piece = co_await process_->Read();
    if (!piece && !begun) co_return co_await Explain();
    if (!piece) co_return Relay::End::kBroken;
    if (piece->empty()) break;
    Status written = begun ? co_await exchange_.Write(*piece)
                           : co_await exchange_.StartStream(Head("result"), std::nullopt, *piece);
    if (!written) co_return Relay::End::kClientGone;
    begun = true;
  }
  auto ended = co_await WithDeadline(kEndPatience, "waiting for ssh", process_->Wait());
  bool failed = !ended || *ended == kSshFailed;
  if (begun && failed) co_return Relay::End::kBroken;
  // Without a word: fine if it says so (git asks whether it may push), a failure otherwise.
  if (!begun && (failed || *ended != 0)) {
    failure_ = ExplainSsh(repository_.ssh, process_->errors());
    co_return Relay::End::kStatus;
  }
  // What git at the other end returns is not asked: it ends with an error also when a round of a
  // conversation has no next one, which is how HTTP asks.
  if (!begun && !co_await exchange_.StartStream(Head("result"), std::nullopt))
    co_return Relay::End::kClientGone;
  co_return co_await exchange_.FinishStream() ? Relay::End::kPassed : Relay::End::kClientGone;
}

}  // namespace caisson::git
