// Users, for admins; API keys, everybody's own, and all of them for admins.
#pragma once

#include "account/accounts.h"
#include "api/frame.h"

namespace caisson::api {

// `accounts` outlives the frame.
void AddAccountRoutes(Frame& frame, account::Accounts& accounts);

}  // namespace caisson::api
