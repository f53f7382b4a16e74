// Where CRIU finds the root and the host's files of a sandbox while it restores it. It opens them
// as the root of the sandbox, who cannot reach the engine's directory, so they are put where
// everybody may go, in a launcher's own mount namespace that nobody else sees.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/error.h"

namespace caisson::engine {

class Stage {
 public:
  // One at a time per process.
  static Result<Stage> Make(const Config& config);
  Stage(Stage&& other) noexcept;
  Stage& operator=(Stage&&) = delete;
  // Everything is gone from here; what was restored keeps what it has.
  ~Stage();

  // Attaches a detached mount as directory `name`; its path.
  Result<std::string> AddMount(const char* name, int mount);
  // These three are read-only. A bind mount of a file.
  Result<std::string> AddFile(const char* name, const std::string& path);
  // A new small file, nobody's to write.
  Result<std::string> AddText(const char* name, std::string_view text);
  Result<std::string> AddEmptyDirectory(const char* name);

 private:
  Stage() = default;
  std::string PathOf(const char* name) const;
  Result<std::string> Show(const std::string& source, std::string path);

  std::string place_;  // "" = nothing is mounted
  std::vector<std::string> mounts_;
};

}  // namespace caisson::engine
