#include "api/account_codec.h"

#include <boost/json.hpp>

#include "api/fields.h"

namespace caisson::api {

namespace json = boost::json;

json::object EncodeUser(const store::UserRow& user) {
  return {{"id", user.id},
          {"name", user.name},
          {"role", user.role},
          {"has_password", !user.password_hash.empty()},
          {"created_at", FormatTime(user.created_at)},
          {"disabled_at", EncodeOptionalTime(user.disabled_at)}};
}

json::object EncodeKey(const store::ApiKey& key) {
  json::object limits;
  for (const auto& [name, field] : store::kKeyLimits)
    if (key.limits.*field) limits[name] = *(key.limits.*field);
  return {{"id", key.id},
          {"name", key.name},
          {"hint", key.hint},
          {"user_id", account::UserOf(key)},
          {"created_at", FormatTime(key.created_at)},
          {"last_used_at", EncodeOptionalTime(key.last_used_at)},
          {"revoked_at", EncodeOptionalTime(key.revoked_at)},
          {"limits", std::move(limits)}};
}

}  // namespace caisson::api
