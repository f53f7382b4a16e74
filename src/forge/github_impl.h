// What the methods of GitHub share; each group of them has a source of its own.
#pragma once

#include "base/encoding.h"
#include "forge/caller.h"
#include "forge/github.h"

namespace caisson::forge {

class GitHub::Impl {
 public:
  Impl(asio::any_io_executor executor, const Config& config)
      : caller(std::move(executor), config) {}
  Impl(asio::any_io_executor executor, const Config& config, std::string_view tokens)
      : caller(std::move(executor), config, tokens) {}

  Caller caller;
};

// "/repos/octo/widget" + `rest`. A name that is none is kInvalidArgument.
Result<std::string> RepoPath(const RepoName& repo, std::string_view rest);

}  // namespace caisson::forge
