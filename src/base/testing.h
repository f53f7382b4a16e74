// For tests only: coroutines run to their end, directories that go away.
#pragma once

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/async.h"
#include "base/file.h"

namespace caisson::testing {

// Runs the loop until `task` is done and returns its result; an exception of the task is rethrown.
// Other work of the loop goes on from where it stood.
template <class T>
T Await(asio::io_context& io, Task<T> task) {
  std::optional<T> result;
  std::exception_ptr thrown;
  bool done = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T value) {
    thrown = e;
    result.emplace(std::move(value));
    done = true;
  });
  io.restart();
  while (!done && io.run_one() > 0) {
  }
  if (thrown) std::rethrow_exception(thrown);
  return std::move(result.value());
}

inline void Await(asio::io_context& io, Task<void> task) {
  std::exception_ptr thrown;
  bool done = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
    thrown = e;
    done = true;
  });
  io.restart();
  while (!done && io.run_one() > 0) {
  }
  if (thrown) std::rethrow_exception(thrown);
  if (!done) std::abort();
}

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "caisson-XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  ~TempDir() { (void)RemoveTree(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace caisson::testing
