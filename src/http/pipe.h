// A kernel buffer between two plain sockets. Bytes go through it by splice(2) and never enter this
// process: for bodies so large that copying them would be the main cost.
#pragma once

#include "base/fd.h"
#include "http/stream.h"

namespace caisson::http {

class Pipe {
 public:
  static Result<Pipe> Create();

  // Takes at most `max` bytes from a plain socket, without waiting: 0 at its end, errno EAGAIN if
  // nothing is there. The pipe must be empty.
  Result<size_t> TryFill(Stream& from, uint64_t max);
  // Passes `size` bytes of the pipe on to a plain socket.
  Task<Status> Drain(Stream& to, size_t size);

 private:
  Pipe(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}
  UniqueFd in_, out_;
};

}  // namespace caisson::http
