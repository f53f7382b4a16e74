// Ways to sign in, and the one by GitHub: there with a state, back with a code.
#pragma once

#include "account/accounts.h"
#include "api/frame.h"
#include "forge/oauth.h"

namespace caisson::api {

// All outlive the frame.
void AddSignInRoutes(Frame& frame, account::Accounts& accounts, forge::OAuth& github,
                     const Config& config);

}  // namespace caisson::api
