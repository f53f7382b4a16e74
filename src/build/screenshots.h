// Pictures of previews, by a browser inside the sandbox: what a page does there, it does to itself.
#pragma once

#include <string>

#include "base/config.h"
#include "build/workbench.h"
#include "sdk/retry.h"
#include "store/build_rows.h"

namespace caisson::build {

class Screenshots {
 public:
  // `directory` is where they are kept, "" = nowhere: then there are none. All outlive it.
  Screenshots(const Config& config, Workbench& workbench, std::string directory);

  // The name of its file; "" if there is no browser, it fails, or the page is empty. Never takes
  // longer than screenshot_timeout_ms, and is left alone for a while after failures.
  Task<std::string> Take(store::BuildRow build);
  const std::string& directory() const { return directory_; }

 private:
  Task<Result<std::string>> TakeOnce(const store::BuildRow& build);

  const Config& config_;
  Workbench& workbench_;
  std::string directory_;
  sdk::CircuitBreaker breaker_;
};

// Where this server may put files: beside the database, if that is one. "" = nowhere.
std::string WritableDirectory(const Config& config);

}  // namespace caisson::build
