// The files of the page (web/), compiled in: web/build makes page.cc of them.
#pragma once

#include <span>
#include <string_view>

namespace caisson::cli {

struct PageFile {
  std::string_view path;  // "/index.html", "/assets/index-….js"
  std::string_view type;
  std::string_view plain, gzip, brotli;
};

extern const std::span<const PageFile> kPageFiles;

// The page that shows the description of the API (web/docs).
extern const std::string_view kDocsHtml;
extern const std::string_view kDocsCss;
extern const std::string_view kDocsJs;

}  // namespace caisson::cli
