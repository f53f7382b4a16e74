// What this server does with a preview at this moment. Only the loop thread asks; nothing is
// stored, so a server that dies leaves no state that nobody ends.
#pragma once

#include <map>
#include <string>

namespace caisson::build {

using Attentions = std::multimap<std::string, std::string>;  // build -> "checking", "resuming"

// As long as it lives, the preview of the build is in this state.
class Attention {
 public:
  Attention(Attentions& all, std::string build_id, std::string state)
      : all_(all), at_(all.emplace(std::move(build_id), std::move(state))) {}
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  ~Attention() { all_.erase(at_); }

 private:
  Attentions& all_;
  Attentions::iterator at_;
};

}  // namespace caisson::build
