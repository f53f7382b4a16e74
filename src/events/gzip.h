// Whole texts as gzip, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::events {

std::string Gzip(std::string_view text);
// kDataLoss: it is not gzip, or not all of it. kOutOfRange: more than `max_size` bytes.
Result<std::string> Gunzip(std::string_view packed, size_t max_size);

}  // namespace caisson::events
