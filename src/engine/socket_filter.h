// Which sockets a sandbox may make, as a program for the kernel.
//
// SECURITY: asked for a family, type or protocol it does not know, the kernel looks for a module to
// load; and many of those it knows are code that hardly anybody uses or looks at. So those in daily
// use are listed, by all three numbers, and nothing else reaches the kernel: another family answers
// EAFNOSUPPORT, all else EPROTONOSUPPORT, which programs take for a kernel without it.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace caisson::engine {

// `nesting`: containers inside, so every protocol of netlink.
std::vector<sock_filter> SocketFilter(bool nesting);

}  // namespace caisson::engine
