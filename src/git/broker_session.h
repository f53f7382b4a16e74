// What the broker of one sandbox answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "git/broker.h"
#include "git/broker_route.h"
#include "git/push_request.h"
#include "git/ssh.h"
#include "git/upstream.h"

namespace caisson::git {

// What the sessions of one broker share.
struct BrokerContext {
  UpstreamLimits limits;
  SshAccess ssh;
  std::vector<ModelRoute> models;
  Broker::Numbers numbers;
};

class BrokerSession {
 public:
  // `origin` is where grant.repository lives.
  BrokerSession(std::shared_ptr<BrokerContext> context, Grant grant, Origin origin);

  // Answers the exchange, whatever happens.
  Task<void> Serve(http::Exchange& exchange);

 private:
  // One request that goes on to the repository's host.
  struct Errand {
    std::string service;    // "git-upload-pack", "git-receive-pack"
    bool refs = false;      // asks what there is; otherwise it is the conversation
    bool unpacked = false;  // the body was gzip, and no longer is

    // The path and query behind the repository's.
    std::string behind() const { return refs ? "/info/refs?service=" + service : "/" + service; }
  };

  Task<void> ServeFetch(http::Exchange& exchange);
  Task<void> ServePush(http::Exchange& exchange);
  Task<void> RefusePush(http::Exchange& exchange, RequestBody& body, const PushRequest& push,
                        std::vector<std::string> why);
  Task<void> ServeModel(http::Exchange& exchange, Route route);
  // Passes it on, with the credential; renews that once if it is refused.
  Task<void> Forward(http::Exchange& exchange, RequestBody& body, Errand errand);
  Task<void> ForwardBySsh(http::Exchange& exchange, RequestBody& body, Errand errand);
  Task<void> Conclude(http::Exchange& exchange, Relay::End end, const Relay& relay,
                      const Origin& origin);
  Task<void> Unreachable(http::Exchange& exchange, const Origin& origin, const Error& error);
  Task<void> Answer(http::Exchange& exchange, unsigned status, std::string text);
  // The same for what this sandbox may not do.
  Task<void> Refuse(http::Exchange& exchange, unsigned status, std::string why);
  Task<Result<std::string>> Authorization(bool refresh);
  http::RequestHead Outgoing(const http::RequestHead& inside, const Errand& errand,
                             const std::string& authorization) const;
  // Takes a redirection within the same repository; false if it leads elsewhere.
  bool Follow(const std::string& location, const Errand& errand);

  std::shared_ptr<BrokerContext> context_;
  Grant grant_;
  Origin origin_;
  std::string path_;  // of the repository at its host
};

}  // namespace caisson::git
