// Memory at hand. A virtual machine may give free memory back to its host; what is taken from there
// again comes twenty times slower. A launcher that has met this keeps some huge pages, and lets go
// of them right before it needs as many for a sandbox: the kernel hands out first what was freed
// last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace caisson::engine {

// A field of /proc/meminfo in bytes, 0 if it is not there.
int64_t MemoryField(std::string_view name);

class Reserve {
 public:
  // At most so many bytes; none are taken before Want().
  explicit Reserve(size_t bytes);
  ~Reserve();
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  // Memory was slow to come: from now on some is kept.
  void Want() { wanted_ = true; }
  // Lets go of as much as somebody is about to take, if there is so much.
  void Give(size_t bytes);
  // One more huge page. False: there is nothing to do, or this is not the time for it.
  bool Refill();
  size_t held() const { return held_; }

 private:
  char* At(size_t offset) const;

  size_t size_;
  char* area_ = nullptr;
  size_t held_ = 0;  // from the beginning of the area
  bool wanted_ = false;
};

}  // namespace caisson::engine
