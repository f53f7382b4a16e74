// Texts of the built-in agent: results short enough for a model, names for errors.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::work {

// About so many tokens are this many bytes.
inline constexpr size_t kBytesPerToken = 4;

// A text of more than 1000 tokens: the first 500, "[N lines omitted]", the last 500. Characters
// stay whole.
std::string CutResult(std::string_view text);

// "{type}:{hash}". Errors that differ only in numbers have the same.
std::string ErrorSignature(std::string_view type, std::string_view message);

// A short hash, to tell texts apart.
std::string ShortHash(std::string_view text);

// The absolute path of a file named by a model: relative to `workdir`, or below it or /tmp.
// kInvalidArgument if it lies elsewhere. What links in the sandbox lead to is the sandbox's affair.
Result<std::string> ToolPath(std::string_view workdir, std::string_view path);

// '*' and '?' within a name, "**" over any number of folders. A pattern without '/' is about names
// in all folders. Takes time in proportion to the two sizes multiplied, never more.
bool MatchesGlob(std::string_view pattern, std::string_view path);

}  // namespace caisson::work
