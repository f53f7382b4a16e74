// Cuts secrets out of text before it is stored, logged or shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::events {

class Redactor {
 public:
  // Every occurrence of `secret` becomes "***", also in its base64 and percent-encoded forms.
  // Texts shorter than 8 characters are not taken: they would eat ordinary words.
  void Add(std::string secret);
  // Also cuts what looks like a token of a well-known kind (ghp_, github_pat_, ghs_, sk-, e2b_ +
  // hex, JWTs, "x-access-token:...@") whoever it belongs to.
  std::string Redact(std::string_view text) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace caisson::events
