// What a request inside a sandbox asks its broker for. Pure, because anybody inside may ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "git/broker.h"
#include "http/message.h"

namespace caisson::git {

struct Route {
  enum class Kind { kRefused, kUploadRefs, kReceiveRefs, kUpload, kReceive, kModel };
  Kind kind = Kind::kRefused;
  // With kRefused: what to answer.
  unsigned status = 403;
  std::string message;
  // With kModel: which, and the target at its host.
  const ModelRoute* model = nullptr;
  std::string target;
};

Route FindRoute(const http::RequestHead& request, const Grant& grant,
                const std::vector<ModelRoute>& models);

// What goes out, and what comes back in. Only headers that the protocol needs pass, by a list.
http::Headers GitRequestHeaders(const http::Headers& from_inside);
http::Headers GitResponseHeaders(const http::Headers& from_outside);
// For models everything passes but what names or authorises somebody.
http::Headers ModelRequestHeaders(const http::Headers& from_inside, const ModelRoute& model);
http::Headers ModelResponseHeaders(const http::Headers& from_outside);

}  // namespace caisson::git
