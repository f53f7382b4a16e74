// The messages about users and keys.
#pragma once

#include <boost/json/object.hpp>

#include "account/accounts.h"

namespace caisson::api {

// SECURITY: neither holds a hash.
boost::json::object EncodeUser(const store::UserRow& user);
boost::json::object EncodeKey(const store::ApiKey& key);

}  // namespace caisson::api
