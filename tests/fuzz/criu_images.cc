// A whole set of CRIU's images, as it is read and changed before processes are made of it: they
// describe processes of a guest. The input is a pack of files (engine/image_pack.h).
#include "engine/criu_images.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/testing.h"
#include "engine/criu.h"
#include "engine/deleted_places.h"
#include "engine/image_pack.h"
#include "engine/large_areas_image.h"
#include "engine/protobuf_wire.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

constexpr uint32_t kUidBase = 1 << 20;

// What is taken out and what is left are all of the memory, once.
void CheckSplit(const engine::AreaSplit& split) {
  uint64_t end = 0;
  for (const engine::LargeArea& area : split.areas) {
    Check(area.bytes > 0 && area.bytes % engine::kLargePage == 0, "an area of half a page");
    Check(area.address % engine::kLargePage == 0, "an area between two pages");
    Check(area.address >= end, "areas that overlap");
    end = area.address + area.bytes;
    Check(area.pid == split.pid && area.pages_id == split.pages_id, "an area of another process");
  }
  uint64_t large = 0, rest = 0, listed = 0;
  for (const engine::LargeArea& area : split.areas) large += area.bytes;
  for (const engine::FileRange& range : split.rest) rest += range.bytes;
  Check(large >= rest, "it does not pay");
  auto messages = engine::ImageMessages(split.pagemap);
  Check(messages && !messages->empty(), "a page map that cannot be read");
  for (size_t i = 1; i < messages->size(); ++i) {
    engine::WireReader reader((*messages)[i]);
    for (auto field = reader.Next(); field && *field; field = reader.Next())
      if ((*field)->number == 5) listed += (*field)->value * engine::kSmallPage;
  }
  Check(listed == rest, "the page map of the rest tells another size");
}

// Whoever changes the images twice in the same way changes nothing the second time.
void ChangeTwice(const std::string& folder, int directory) {
  auto all = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      files[entry.path().filename().string()] = ReadFile(entry.path().string()).value_or("");
    return files;
  };
  for (auto change : {+[](int d) { return engine::MoveUserRange(d, kUidBase); },
                      +[](int d) { return engine::LeaveInheritedDead(d); }}) {
    if (Status changed = change(directory); !changed) {
      Check(!changed.error().message().empty(), "a refusal without a reason");
      continue;
    }
    auto once = all();
    Check(static_cast<bool>(change(directory)), "images of our own cannot be read");
    Check(all() == once, "the second change is not like the first");
  }
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  auto files = engine::UnpackFiles({reinterpret_cast<const char*>(data), size});
  if (!files || files->size() > 32) return 0;
  testing::TempDir folder;
  for (const auto& [name, content] : *files)
    fuzz::Check(static_cast<bool>(engine::OverwriteImage(folder / name, content)),
                "a file cannot be written");
  UniqueFd directory(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (auto splits = engine::FindLargeAreas(directory.get()))
    for (const engine::AreaSplit& split : *splits) fuzz::CheckSplit(split);
  (void)engine::ReadAreas(directory.get());
  if (files->size() > 1)
    if (auto places = engine::DeletedPlaces(files->front().second, files->back().second))
      fuzz::Check(places->size() <= size, "more places than could be named");
  fuzz::ChangeTwice(folder.path(), directory.get());
  return 0;
}
