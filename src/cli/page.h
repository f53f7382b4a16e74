// The files of web/, compiled in (src/cli/CMakeLists.txt makes page.cc from them).
#pragma once

#include <string_view>

namespace caisson::cli {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;

}  // namespace caisson::cli
