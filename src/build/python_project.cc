#include "build/python_project.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "build/shell_word.h"

namespace caisson::build {
namespace {

constexpr int64_t kDefaultPort = 8'000;
// Files beyond these are not read: an application is made in a small one near the top.
constexpr size_t kMaxSources = 200;
constexpr size_t kMaxSourceBytes = 64 << 10;

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool IsPackageChar(char c) { return IsNameChar(c) || c == '-' || c == '.'; }

// Whether a text names a package as a word of its own: "flask" in "Flask==3.0", not in
// "flask-cors".
bool Names(std::string_view text, std::string_view package) {
  for (size_t at = text.find(package); at != text.npos; at = text.find(package, at + 1)) {
    size_t end = at + package.size();
    bool begins = at == 0 || !IsPackageChar(text[at - 1]);
    if (begins && (end == text.size() || !IsPackageChar(text[end]))) return true;
  }
  return false;
}

bool Requires(const Files& files, std::string_view package) {
  for (const char* path : {"requirements.txt", "pyproject.toml"})
    if (auto file = files.find(path); file != files.end())
      for (std::string_view line : Split(file->second, '\n'))
        if (std::string_view text = line.substr(0, line.find('#')); Names(ToLower(text), package))
          return true;
  return false;
}

bool Imports(std::string_view source, std::string_view package) {
  for (std::string_view line : Split(source, '\n')) {
    line = Trim(line);
    for (std::string_view word : {"import ", "from "})
      if (line.starts_with(word)) {
        std::string_view rest = Trim(line.substr(word.size()));
        if (rest.starts_with(package) &&
            (rest.size() == package.size() || !IsNameChar(rest[package.size()])))
          return true;
      }
  }
  return false;
}

// Python files to look into, those with usual names first.
std::vector<std::string> Sources(const Files& files) {
  std::vector<std::string> paths;
  for (const char* path : {"main.py", "app.py", "server.py", "api.py", "app/main.py",
                           "app/__init__.py", "src/main.py", "src/app.py"})
    if (files.contains(path)) paths.push_back(path);
  for (const auto& [path, content] : files)
    if (path.ends_with(".py") && content.size() <= kMaxSourceBytes && paths.size() < kMaxSources &&
        std::ranges::find(paths, path) == paths.end())
      paths.push_back(path);
  return paths;
}

std::string FirstThatImports(const Files& files, std::string_view package) {
  for (const std::string& path : Sources(files))
    if (Imports(files.at(path), package)) return path;
  return "";
}

// "src/main.py" -> "src.main"; "" if it cannot be imported under such a name.
std::string ModuleOf(std::string_view path) {
  path.remove_suffix(3);
  if (path.ends_with("/__init__")) path.remove_suffix(9);
  std::string module(path);
  for (char& c : module) {
    if (c == '/')
      c = '.';
    else if (!IsNameChar(c))
      return "";
  }
  return module;
}

// The variable in `app = Flask(__name__)`, outside of functions; "" if there is none.
std::string VariableOf(std::string_view source, std::string_view type) {
  for (std::string_view line : Split(source, '\n')) {
    size_t end = 0;
    while (end < line.size() && IsNameChar(line[end])) ++end;
    std::string_view name = line.substr(0, end), rest = Trim(line.substr(end));
    // `app: FastAPI = FastAPI()`
    if (rest.starts_with(':')) rest = rest.substr(std::min(rest.find('='), rest.size()));
    if (name.empty() || !rest.starts_with('=')) continue;
    rest = Trim(rest.substr(1));
    size_t call = rest.find('(');
    if (call == rest.npos) continue;
    std::string_view called = rest.substr(0, call);
    if (called == type || called.ends_with(fmt::format(".{}", type))) return std::string(name);
  }
  return "";
}

struct Application {
  std::string module, variable;
};
// Where the application object is made: the first module with one, else one that imports.
Application FindApplication(const Files& files, std::string_view package, std::string_view type) {
  for (const std::string& path : Sources(files))
    if (std::string module = ModuleOf(path); !module.empty())
      if (std::string variable = VariableOf(files.at(path), type); !variable.empty())
        return {module, variable};
  std::string path = FirstThatImports(files, package);
  std::string module = path.empty() ? "" : ModuleOf(path);
  return {module.empty() ? "main" : module, ""};
}

bool Uses(const Files& files, std::string_view package) {
  return Requires(files, package) || !FirstThatImports(files, package).empty();
}

Framework FastApi(const Files& files) {
  Application app = FindApplication(files, "fastapi", "FastAPI");
  return {"fastapi",
          fmt::format("{} -m uvicorn {}:{} --host 0.0.0.0 --port 8000", PythonProgram(files),
                      app.module, app.variable.empty() ? "app" : app.variable),
          8'000};
}

Framework Flask(const Files& files) {
  Application app = FindApplication(files, "flask", "Flask");
  // Without a variable Flask itself looks for a factory.
  std::string target = app.variable.empty() ? app.module : app.module + ":" + app.variable;
  return {"flask",
          fmt::format("{} -m flask --app {} run --host 0.0.0.0 --port 5000", PythonProgram(files),
                      target),
          5'000};
}

Framework Django(const Files& files) {
  std::string program = PythonProgram(files) + " " + ShellWord(ManagePath(files));
  return {"django", fmt::format("{0} migrate --noinput && {0} runserver 0.0.0.0:8000", program),
          8'000};
}

Framework Streamlit(const Files& files) {
  std::string path = "app.py";
  for (const char* usual : {"streamlit_app.py", "app.py", "main.py", "Home.py"})
    if (files.contains(usual)) {
      path = usual;
      break;
    }
  if (!files.contains(path))
    if (std::string found = FirstThatImports(files, "streamlit"); !found.empty()) path = found;
  // Behind the gateway the page's origin is not the one that the server knows of itself.
  return {"streamlit",
          fmt::format("{} -m streamlit run {} --server.address 0.0.0.0 --server.port 8501 "
                      "--server.headless true --server.enableCORS false "
                      "--server.enableXsrfProtection false",
                      PythonProgram(files), ShellWord(path)),
          8'501};
}

}  // namespace

bool HasPython(const Files& files) {
  return std::ranges::any_of(files, [](const auto& file) { return file.first.ends_with(".py"); });
}

std::string ManagePath(const Files& files) {
  for (const auto& [path, content] : files)
    if ((path == "manage.py" || path.ends_with("/manage.py")) &&
        content.find("django") != std::string::npos)
      return path;
  return "";
}

std::string PythonProgram(const Files& files) {
  return files.contains("requirements.txt") || files.contains("pyproject.toml") ? ".venv/bin/python"
                                                                                : "python3";
}

std::optional<Framework> KnownPython(const Files& files) {
  if (!HasPython(files)) return std::nullopt;
  if (!ManagePath(files).empty()) return Django(files);
  if (Uses(files, "streamlit")) return Streamlit(files);
  if (Uses(files, "fastapi")) return FastApi(files);
  if (Uses(files, "flask")) return Flask(files);
  return std::nullopt;
}

std::optional<Framework> AnyPython(const Files& files) {
  for (const char* path : {"main.py", "app.py", "server.py", "run.py", "src/main.py"})
    if (files.contains(path))
      return Framework{
          "python",
          fmt::format("HOST=0.0.0.0 PORT={} {} {}", kDefaultPort, PythonProgram(files), path),
          kDefaultPort};
  return std::nullopt;
}

}  // namespace caisson::build
