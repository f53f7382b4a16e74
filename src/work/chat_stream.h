// A chat completion that comes as a stream: server-sent events, each with a piece of the answer.
#pragma once

#include <vector>

#include "work/chat_model.h"

namespace caisson::work {

class ChatStream {
 public:
  static constexpr size_t kMaxBytes = 16 << 20;  // of the whole stream
  static constexpr size_t kMaxLine = 1 << 20;
  static constexpr size_t kMaxCalls = 64;

  // `on_text` gets what the model says, piece by piece; may be empty.
  explicit ChatStream(OnText on_text) : on_text_(std::move(on_text)) {}

  // Bytes as they come, cut anywhere. kDataLoss: this is no stream of a completion, or too much;
  // kUnavailable: the server gives up in the middle of it.
  Status Feed(std::string_view bytes);
  // It said that nothing follows.
  bool done() const { return done_; }
  bool has_usage() const { return has_usage_; }
  // The bytes are at their end. kUnavailable: the answer is not.
  Result<Completion> Finish();

 private:
  Status Line(std::string_view line);
  Status Event(std::string_view data);
  Status Chunk(const json::object& chunk);
  Status Delta(const json::object& delta);
  Status CallPiece(const json::object& piece);
  struct Call {
    std::string id, name, arguments;
  };

  OnText on_text_;
  Completion completion_;
  std::vector<Call> calls_;
  std::string line_, data_;
  size_t bytes_ = 0;
  bool done_ = false, has_usage_ = false, begun_ = false;
};

}  // namespace caisson::work
