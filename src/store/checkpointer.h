// Moves committed pages from the write-ahead log into the database file, on a thread and a
// connection of its own: that has to wait for the disk, and no caller should.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/database.h"

namespace caisson::store {

class Checkpointer {
 public:
  // A second connection to the same file.
  explicit Checkpointer(std::unique_ptr<Database> database);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

 private:
  void Loop();

  std::unique_ptr<Database> database_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace caisson::store
