// /api/v1/sandboxes: the sandboxes of the work platform, and what is done in them.
#pragma once

#include "api/frame.h"
#include "sandbox/manager.h"
#include "work/sandboxes.h"

namespace caisson::api {

class SandboxRoutes {
 public:
  // All outlive this, and this outlives the frame.
  SandboxRoutes(work::Sandboxes& sandboxes, sandbox::Manager& manager, const Config& config)
      : sandboxes_(sandboxes), manager_(manager), config_(config) {}

  void Add(Frame& frame);

 private:
  using Method = Answer (SandboxRoutes::*)(Call&);

  void AddCommands(Frame& frame);  // sandbox_command_routes.cc
  Handler Bind(Method method) {
    return [this, method](Call& call) { return (this->*method)(call); };
  }

  Answer Create(Call& call);
  Answer List(Call& call);
  Answer ListAll(Call& call);
  Answer Show(Call& call);
  Answer Destroy(Call& call);
  Answer Pause(Call& call);
  Answer Resume(Call& call);
  Answer CleanUp(Call& call);
  Answer ListBy(Call& call, std::string owner_id);

  Answer Execute(Call& call);
  Answer ExecuteLive(Call& call, work::Sandboxes::Execution execution);
  Answer Upload(Call& call);
  Answer Download(Call& call);
  Answer ListFiles(Call& call);

  work::Sandboxes& sandboxes_;
  sandbox::Manager& manager_;
  const Config& config_;
};

boost::json::object EncodeSandbox(const work::SandboxRow& row);
// Messages of the form "word: sentence" give the word as the error's code. A refused command is
// 422; a provider that refuses our key is not the client's fault.
http::Response RefusedSandbox(const Error& error, const Call& call);

}  // namespace caisson::api
