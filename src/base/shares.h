// Places of which there are only so many, for many who know nothing of each other. Whoever has most
// is the first to get no more: one may have an eighth of what is free at the moment, so that a few
// who take all they can leave room for any number of others.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace caisson {

template <class Who>
class Shares {
 public:
  explicit Shares(size_t places) : places_(places) {}

  bool MayTake(const Who& who) const {
    auto own = own_.find(who);
    size_t free = places_ - taken_;
    return free > 0 && (own == own_.end() || own->second < free / kParts);
  }
  // False: there is none for this one now.
  bool Take(const Who& who) {
    if (!MayTake(who)) return false;
    ++taken_;
    ++own_[who];
    return true;
  }
  void GiveBack(const Who& who) {
    auto own = own_.find(who);
    --taken_;
    if (--own->second == 0) own_.erase(own);
  }
  size_t taken() const { return taken_; }

  // A place for as long as this lives, if there is one.
  class Place {
   public:
    Place(Shares& shares, Who who) : shares_(shares), who_(std::move(who)) {
      taken_ = shares_.Take(who_);
    }
    ~Place() {
      if (taken_) shares_.GiveBack(who_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    explicit operator bool() const { return taken_; }

   private:
    Shares& shares_;
    const Who who_;
    bool taken_;
  };

 private:
  static constexpr size_t kParts = 8;

  size_t places_;
  size_t taken_ = 0;
  std::map<Who, size_t> own_;  // no zeros
};

}  // namespace caisson
