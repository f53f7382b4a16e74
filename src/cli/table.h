// Plain tables for people.
#pragma once

#include <string>
#include <vector>

namespace caisson::cli {

// Columns as wide as their widest cell, two spaces between; no trailing blanks. The width is
// counted in characters, not bytes. Control characters are shown as '?': what strangers wrote must
// not steer the terminal.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

// "12s", "3m 5s", "2h 7m", "4d 1h"
std::string FormatDuration(int64_t seconds);
// "512 B", "1.5 MB", powers of 1024
std::string FormatBytes(int64_t bytes);
// One line without control characters.
std::string Printable(std::string_view text);

}  // namespace caisson::cli
