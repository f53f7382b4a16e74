// Files that the server or the engine reads at its start: settings, templates, records. The first
// byte says which; the file itself lies in memory.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/config.h"
#include "base/file.h"
#include "engine/record.h"
#include "fuzz/support.h"
#include "sandbox/template.h"

namespace caisson::fuzz {
namespace {

// A directory in memory that ends with the program, and is the current one.
struct Folder {
  Folder() {
    char name[] = "/dev/shm/fuzz_XXXXXX";
    Check(mkdtemp(name) != nullptr && chdir(name) == 0, "no place for files");
    path = name;
    mkdir("sandboxes", 0700);
    mkdir("templates", 0700);
    mkdir("templates/one", 0700);
    mkdir("templates/one/rootfs", 0700);
  }
  ~Folder() { (void)RemoveTree(path); }
  std::string path;
};

void Write(const char* name, std::string_view text) {
  FILE* file = std::fopen(name, "w");
  Check(file != nullptr, "no place for a file");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

void ReadConfig(std::string_view text) {
  Write("caisson.toml", text);
  Config config;
  Status loaded = LoadConfigFile(config, "caisson.toml");
  Check(loaded || !loaded.error().message().empty(), "a refusal without a reason");
  if (loaded) (void)FinishConfig(config);
}

void ReadTemplate(std::string_view text) {
  Write("templates/one/template.json", text);
  auto catalog = sandbox::TemplateCatalog::Load("templates");
  if (!catalog) return;
  for (const sandbox::Template& one : catalog->all())
    Check(catalog->Find(one.id) != nullptr, "a template that cannot be found");
}

void ReadRecord(std::string_view text) {
  Write("sandboxes/i1.json", text);
  engine::RecordFile file = engine::RecordFile::Leftover("i1");
  auto record = file.Read();
  Check(!record || record->id == "i1", "the record of another sandbox");
  file.Keep();
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson::fuzz;
  static Folder folder;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      ReadConfig(text);
      break;
    case 1:
      ReadTemplate(text);
      break;
    default:
      ReadRecord(text);
  }
  return 0;
}
