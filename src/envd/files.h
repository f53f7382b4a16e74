// The HTTP file API: GET and POST /files, POST /files/compose (contract 3.3 to 3.5).
#pragma once

#include <string>
#include <string_view>

#include "envd/filesystem_service.h"
#include "envd/settings.h"
#include "http/router.h"
#include "http/server.h"

namespace caisson::envd {

class FileApi {
 public:
  // Both must outlive the API, and the API the router.
  FileApi(const Settings& settings, Worker& worker) : settings_(settings), worker_(worker) {}

  void Register(http::Router& router);

 private:
  Task<void> Download(http::Exchange& exchange);
  Task<void> Upload(http::Exchange& exchange);
  Task<void> Compose(http::Exchange& exchange);

  const Settings& settings_;
  Worker& worker_;
};

// {"code":N,"message":"..."}: every error of the HTTP surface.
http::Response ErrorResponse(unsigned status, std::string_view message);
// The same with the status that fits: a full disk is 507, a bad request 400, everything unexpected
// 500.
http::Response ErrorResponse(const Error& error);

}  // namespace caisson::envd
