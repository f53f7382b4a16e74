// What belongs to a user besides the work: how they sign in elsewhere, the token that acts in their
// name there, what a page keeps for them.
#pragma once

#include "store/table.h"

namespace caisson::store {

// Somebody of another service who is a user here. No token of theirs is kept.
struct IdentityRow {
  std::string id;  // "github:" and the number of the account there, which never changes
  std::string user_id;
  std::string login;  // their name there, when they came last
  Time created_at;
  Time last_used_at;

  static constexpr auto kTable = MakeTable(
      "user_identities", Column{"id", &IdentityRow::id}, Column{"user_id", &IdentityRow::user_id},
      Column{"login", &IdentityRow::login}, Column{"created_at", &IdentityRow::created_at},
      Column{"last_used_at", &IdentityRow::last_used_at});
};

// A token for GitHub that a user gave the server.
struct GithubTokenRow {
  std::string id;  // the user's and the server's that can open it, in one text
  std::string user_id;
  std::string login;   // whose it is at GitHub
  std::string sealed;  // SECURITY: never the token itself (account/sealed_text.h)
  Time created_at;

  static constexpr auto kTable = MakeTable(
      "github_tokens", Column{"id", &GithubTokenRow::id},
      Column{"user_id", &GithubTokenRow::user_id}, Column{"login", &GithubTokenRow::login},
      Column{"sealed", &GithubTokenRow::sealed}, Column{"created_at", &GithubTokenRow::created_at});
};

struct PreferencesRow {
  std::string id;            // the user's
  std::string value = "{}";  // a JSON object
  Time updated_at;

  static constexpr auto kTable = MakeTable("user_preferences", Column{"id", &PreferencesRow::id},
                                           Column{"value", &PreferencesRow::value},
                                           Column{"updated_at", &PreferencesRow::updated_at});
};

}  // namespace caisson::store
