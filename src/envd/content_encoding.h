// Content codings of file transfers: which one to use, and gzip in both directions as a stream.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "http/server.h"

namespace caisson::envd {

enum class Encoding { kIdentity, kGzip };

// The best coding for an Accept-Encoding header ("" = none sent): the highest q of gzip and
// identity, identity when nothing fits unless it is forbidden. `identity_only` for answers that
// cannot be compressed (ranges). kInvalidArgument when nothing is acceptable (HTTP 406).
Result<Encoding> ChooseEncoding(std::string_view accept_encoding, bool identity_only);
// The coding of a request body; kInvalidArgument for one we do not know.
Result<Encoding> ReadContentEncoding(std::string_view content_encoding);

// Bytes that come in pieces.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The next piece, valid until the next call; empty at the end.
  virtual Task<Result<std::string_view>> Next() = 0;
};

// The body of a request.
class BodySource : public ChunkSource {
 public:
  explicit BodySource(http::Exchange& exchange) : exchange_(exchange) {}
  Task<Result<std::string_view>> Next() override;

 private:
  http::Exchange& exchange_;
  std::vector<char> buffer_;
};

// Decompresses another source; members of a multi-part gzip file follow each other. Broken or cut
// off data is kInvalidArgument.
class GunzipSource : public ChunkSource {
 public:
  explicit GunzipSource(std::unique_ptr<ChunkSource> source);
  ~GunzipSource() override;
  Task<Result<std::string_view>> Next() override;

 private:
  std::unique_ptr<ChunkSource> source_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool begun_ = false;           // some input was there
  bool member_open_ = false;     // inside a member: the end of the input would be too early
  bool output_pending_ = false;  // zlib has more than fitted into the buffer
  bool ended_ = false;
};

// Compresses piece by piece. Data that does not shrink is passed on in stored blocks, which costs
// hardly any time.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  // The compressed form of one more piece, possibly empty; `last` ends the stream.
  std::string Compress(std::string_view data, bool last);

 private:
  void Run(std::string_view data, int flush, std::string& out);
  z_stream stream_{};
  bool probed_ = false;
};

}  // namespace caisson::envd
