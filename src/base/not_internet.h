// Addresses that are not the internet: the one list of them.
#pragma once

#include <array>

namespace caisson {

// Private, link-local, shared, reserved and multicast networks of IPv4. 198.18.0.0/15 holds the
// sandboxes themselves by default; 169.254.0.0/16, 100.64.0.0/10 and 168.63.129.16 have the
// metadata services of clouds.
inline constexpr std::array kNotInternet = {"0.0.0.0/8",     "10.0.0.0/8",       "100.64.0.0/10",
                                            "127.0.0.0/8",   "168.63.129.16/32", "169.254.0.0/16",
                                            "172.16.0.0/12", "192.0.0.0/24",     "192.168.0.0/16",
                                            "198.18.0.0/15", "224.0.0.0/3"};

}  // namespace caisson
