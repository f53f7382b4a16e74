// From git's HTTP inside to git's SSH outside. Each request gets a connection of its own: a program
// that speaks over SSH begins with what it has (refs, capabilities), which is the answer to one
// kind of request and skipped for the other; what HTTP asks is then a whole conversation by itself.
#pragma once

#include <memory>
#include <string>

#include "git/request_body.h"
#include "git/ssh.h"
#include "git/ssh_process.h"
#include "git/upstream.h"

namespace caisson::git {

class SshRelay {
 public:
  // All outlive it. `service` is "git-upload-pack" or "git-receive-pack".
  SshRelay(http::Exchange& exchange, const SshAccess& access, const Repository& repository,
           std::string service, std::chrono::milliseconds stall_timeout);

  // GET .../info/refs.
  Task<Relay::End> PassRefs();
  // POST .../SERVICE, with a body that is not packed.
  Task<Relay::End> PassRequest(RequestBody& body);

  // With End::kStatus or kNoAnswer: what to answer.
  const SshFailure& failure() const { return failure_; }

 private:
  Task<bool> Connect();
  // The bytes that came before the end of the first packet.
  Task<std::optional<std::string>> FirstPacket();
  Task<bool> SkipRefs();
  Task<Relay::End> Receive();
  Task<void> Supply(RequestBody& body);
  // It ended, or broke, before there was an answer.
  Task<Relay::End> Explain();
  http::ResponseHead Head(std::string_view kind) const;

  http::Exchange& exchange_;
  const SshAccess& access_;
  const Repository& repository_;
  std::string service_;
  std::chrono::milliseconds stall_timeout_;
  std::unique_ptr<SshProcess> process_;
  SshFailure failure_;
};

}  // namespace caisson::git
