// The files of a version as a .tar.gz, made piece by piece: nobody has to hold the whole of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"

namespace caisson::build {

class Archive {
 public:
  // Everything in it is of the time `at`: the same files give the same bytes.
  explicit Archive(Time at);
  ~Archive();

  // The bytes that come next; perhaps none yet.
  std::string Add(const std::string& path, std::string_view content);
  // The last ones.
  std::string Finish();

 private:
  struct Gzip;
  std::string Header(std::string_view name, size_t size, char kind) const;

  Time at_;
  std::unique_ptr<Gzip> gzip_;
};

}  // namespace caisson::build
