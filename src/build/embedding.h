// Whether a page may be shown inside another one.
#pragma once

#include <string>

#include "http/message.h"

namespace caisson::build {

struct Embedding {
  bool embeddable = true;
  std::string reason;  // why not: "x_frame_options", "frame_ancestors", "unreachable"
};
// By X-Frame-Options and the frame-ancestors of Content-Security-Policy; `page_origin` is the page
// that would show it ("http://127.0.0.1:8000").
Embedding CheckEmbedding(const http::Headers& headers, const std::string& preview_origin,
                         const std::string& page_origin);

}  // namespace caisson::build
