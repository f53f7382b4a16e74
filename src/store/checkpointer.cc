#include "store/checkpointer.h"

#include "base/log.h"

namespace caisson::store {
namespace {

constexpr std::chrono::seconds kInterval{5};

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<Database> database)
    : database_(std::move(database)), thread_([this] { Loop(); }) {}

Checkpointer::~Checkpointer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Checkpointer::Loop() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    lock.unlock();
    // PASSIVE: takes what it can get without making a writer wait; nothing to do costs nothing.
    Status done = database_->Script("PRAGMA wal_checkpoint(PASSIVE)");
    if (!done)
      LogWarn("the write-ahead log could not be moved into the database; it is tried again",
              {{"error", done.error().message()}});
    lock.lock();
  }
}

}  // namespace caisson::store
