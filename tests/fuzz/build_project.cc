// Files of a project: package.json, requirements and sources that anybody may have written.
#include "build/framework.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

// Outside of quotes a command holds only what we wrote ourselves, and names of modules.
void CheckCommand(std::string_view command) {
  Check(!command.empty(), "an empty command");
  bool quoted = false;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == '\'') quoted = !quoted;
    if (!quoted && command.substr(i).starts_with("\\'")) ++i;
    Check(
        quoted || std::string_view("`$\n\r\0*?~!#", 10).find(command[i]) == std::string_view::npos,
        "a command that does more");
  }
  Check(!quoted, "a quote without an end");
}

void CheckProject(const build::Files& files) {
  build::Framework framework = build::DetectFramework(files);
  Check(framework.port > 0 && framework.port < 65'536 && !framework.name.empty(), "no port");
  CheckCommand(framework.start_command);
  for (const build::Packages& packages : build::DetectPackages(files))
    Check(!packages.install_command.empty(), "packages without a command");
  for (const std::string& check : build::DetectChecks(files)) CheckCommand(check);
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::CheckProject({{"package.json", text}, {"index.js", ""}, {"tsconfig.json", text}});
  fuzz::CheckProject({{"requirements.txt", text}, {"main.py", text}, {"pyproject.toml", text}});
  fuzz::CheckProject({{"manage.py", text}, {"yarn.lock", text}, {"package.json", text}});
  // Paths that a version may have.
  if (build::CheckPath(text))
    fuzz::CheckProject({{text, "import streamlit"},
                        {text + ".py", "import streamlit\nfrom django import x\n"},
                        {text + "/manage.py", "django"},
                        {"package.json", R"({"dependencies":{"express":"1"}})"}});
  (void)build::IsNetworkFailure(text);
  return 0;
}
