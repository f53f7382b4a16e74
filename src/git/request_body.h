// The body of a request inside, as it goes on: unpacked if it has to be read here, and as much of
// it kept as is needed to send it a second time.
#pragma once

#include <zlib.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "http/server.h"

namespace caisson::git {

// gzip, piece by piece, in constant memory.
class Gunzip {
 public:
  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Gives it the next piece of input, which must live until Take() has returned "".
  void Give(std::string_view input);
  // The next piece of output, valid until the next call; "" when all input is used up.
  // kInvalidArgument if it is not gzip.
  Result<std::string_view> Take();
  // True if the input may end here.
  bool complete() const { return complete_; }

 private:
  z_stream stream_{};
  std::string out_;
  bool complete_ = false;
};

class RequestBody {
 public:
  RequestBody(http::Exchange& exchange, bool unpack);

  // The next piece, valid until the next call; "" at the end.
  Task<Result<std::string_view>> Next();
  // Reads on until `size` bytes are kept or the body ends. Keep() begins with what was read before.
  Task<Status> ReadAhead(size_t size);
  void Keep(std::string bytes) { kept_ = std::move(bytes); }

  // What is sent first, and whether it is all, so that it can be sent again.
  const std::string& kept() const { return kept_; }
  bool whole() const { return ended_; }
  // Of the whole body, if that is known.
  std::optional<uint64_t> Length() const;

 private:
  Task<Result<std::string_view>> Read();

  http::Exchange& exchange_;
  std::unique_ptr<Gunzip> gunzip_;
  std::string buffer_;
  std::string kept_;
  bool ended_ = false;
};

}  // namespace caisson::git
