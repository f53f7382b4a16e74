#include "engine/image_pack.h"

#include <cstring>

namespace caisson::engine {
namespace {

// Each file: both lengths, its name, its content.
struct Lengths {
  uint32_t name = 0;
  uint32_t content = 0;
};

}  // namespace

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos && name != "." && name != "..";
}

std::string PackFiles(const std::vector<NamedFile>& files) {
  std::string pack;
  for (const auto& [name, content] : files) {
    Lengths lengths{static_cast<uint32_t>(name.size()), static_cast<uint32_t>(content.size())};
    pack.append(reinterpret_cast<const char*>(&lengths), sizeof(lengths));
    pack += name;
    pack += content;
  }
  return pack;
}

Result<std::vector<NamedFile>> UnpackFiles(std::string_view pack) {
  std::vector<NamedFile> files;
  while (!pack.empty()) {
    Lengths lengths;
    if (pack.size() < sizeof(lengths)) return Fail(Code::kDataLoss, "a pack of files is cut");
    std::memcpy(&lengths, pack.data(), sizeof(lengths));
    pack.remove_prefix(sizeof(lengths));
    if (pack.size() < size_t{lengths.name} + lengths.content)
      return Fail(Code::kDataLoss, "a pack of files is cut");
    std::string name(pack.substr(0, lengths.name));
    if (!IsFileName(name)) return Fail(Code::kDataLoss, "a pack of files has an odd name in it");
    files.emplace_back(std::move(name), pack.substr(lengths.name, lengths.content));
    pack.remove_prefix(size_t{lengths.name} + lengths.content);
  }
  return files;
}

}  // namespace caisson::engine
