// Sandboxes that are ready before anybody asks: made in the background, with their final ids, and
// handed out for the price of a row in the database.
//
// This class is the shelf; filling it, looking after it and handing over are in pool.cc, as parts
// of Manager::Impl. A sandbox on the shelf has no row: after a crash the next server destroys it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/registry.h"
#include "sandbox/template.h"

namespace caisson::sandbox {

class Pool {
 public:
  Pool() = default;
  // "base=4,other=2-10": templates by id or alias, and how many are kept ready; of a range the
  // smaller number at rest, and up to the larger one while more are asked for than are there.
  // kInvalidArgument says what is wrong.
  static Result<Pool> Parse(std::string_view setting, const TemplateCatalog& templates);

  // A template that has fewer ready than it should; "" if none has.
  std::string NextMissing() const;
  bool empty() const { return shelves_.empty(); }
  size_t ready() const;
  int64_t memory_mb() const;

  void Put(std::shared_ptr<Record> record);
  // Null if there is none of this template; counted as hit or miss if it has a shelf.
  std::shared_ptr<Record> Take(const std::string& template_id);
  // Any one, to make room; null if there is none.
  std::shared_ptr<Record> TakeAny();
  // Null if it is not here (any more).
  std::shared_ptr<Record> Remove(std::string_view id);
  std::vector<std::shared_ptr<Record>> All() const;
  // Once in a while: a shelf from which nobody took anything since the last time shrinks by one
  // towards its smaller number. What is too many by that.
  std::vector<std::shared_ptr<Record>> Relax();

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  struct Shelf {
    size_t least = 0, most = 0;
    size_t wanted = 0;                          // between them
    bool asked = false;                         // since the last Relax()
    std::deque<std::shared_ptr<Record>> ready;  // oldest first
  };
  std::map<std::string, Shelf> shelves_;  // by template id
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace caisson::sandbox
