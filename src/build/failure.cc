#include "build/failure.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "build/log_lines.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

constexpr size_t kMaxDetail = 160;
constexpr size_t kMaxName = 80;
constexpr size_t kMaxLastPart = 4'000;

constexpr std::string_view kInstall = "install_failure";
constexpr std::string_view kCompile = "compile_error";
constexpr std::string_view kCrash = "runtime_crash";

// What a log says and what it means. "{}" in the sentence is the name that follows the sign, up to
// one of the characters in `ends`.
struct Sign {
  std::string_view text;      // as programs write it
  std::string_view category;  // "" = that of the stage
  std::string_view sentence;
  std::string_view ends = "";
};

// The first that is found decides, so the order is from causes to consequences.
constexpr std::array kSigns = {
    Sign{"ENOSPC", "", "The disk of the sandbox is full."},
    Sign{"No space left on device", "", "The disk of the sandbox is full."},
    Sign{"heap out of memory", "", "The sandbox ran out of memory."},
    Sign{"Out of memory", "", "The sandbox ran out of memory."},
    Sign{"EADDRINUSE", kCrash, "The server's port is already in use."},
    Sign{"Address already in use", kCrash, "The server's port is already in use."},
    Sign{"address already in use", kCrash, "The server's port is already in use."},

    // npm, pnpm, yarn
    Sign{"ERESOLVE", kInstall,
         "Some packages need versions of each other that do not fit together."},
    Sign{"No matching version found for ", kInstall,
         "There is no such version of the package \"{}\".", " \n"},
    Sign{"npm error 404  The requested resource '", kInstall,
         "The package \"{}\" does not exist in the registry.", "'\n"},
    Sign{"npm error 404  '", kInstall, "The package \"{}\" does not exist in the registry.", "'\n"},
    Sign{"is not in this registry", kInstall, "A package does not exist in the registry."},
    Sign{"ERR_PNPM_FETCH_404", kInstall, "A package does not exist in the registry."},
    Sign{"npm error code E404", kInstall, "A package does not exist in the registry."},
    Sign{"npm ERR! code E404", kInstall, "A package does not exist in the registry."},
    Sign{"Couldn't find package \"", kInstall, "The package \"{}\" does not exist in the registry.",
         "\"\n"},
    Sign{"EJSONPARSE", kInstall, "package.json is not valid JSON."},
    Sign{"EUNSUPPORTEDPROTOCOL", kInstall,
         "package.json names a package in a way npm does not know."},
    Sign{"Missing script: \"", "", "package.json has no script \"{}\".", "\"\n"},
    // pip, uv, cargo, go
    Sign{"No matching distribution found for ", kInstall,
         "The Python package \"{}\" does not exist, or not in that version.", " \n"},
    Sign{"ResolutionImpossible", kInstall,
         "Some Python packages need versions of each other that do not fit together."},
    Sign{"No solution found when resolving dependencies", kInstall,
         "Some Python packages need versions of each other that do not fit together."},
    Sign{"no matching package named `", kInstall, "The crate \"{}\" does not exist.", "`\n"},
    Sign{"no required module provides package ", kInstall,
         "The Go package \"{}\" is used but not required in go.mod.", " ;\n"},

    // compilers
    Sign{"Failed to resolve import \"", kCompile, "\"{}\" is imported but does not exist.", "\"\n"},
    Sign{"Could not resolve \"", kCompile, "\"{}\" is imported but does not exist.", "\"\n"},
    Sign{"failed to resolve import \"", kCompile, "\"{}\" is imported but does not exist.", "\"\n"},
    Sign{"Can't resolve '", kCompile, "\"{}\" is imported but does not exist.", "'\n"},
    Sign{"Cannot find module '", kCompile, "\"{}\" is imported but does not exist.", "'\n"},
    Sign{"Cannot find package '", kCompile, "\"{}\" is imported but not installed.", "'\n"},
    Sign{"ModuleNotFoundError: No module named '", kCrash,
         "The Python module \"{}\" is imported but not installed.", "'\n"},
};

// Lines whose own words tell most: what stands after the sign is shown.
constexpr std::array kMessages = {
    Sign{": ERROR: ", kCompile, "The code does not compile"},  // esbuild
    Sign{": error TS", kCompile, "The type check found an error"},
    Sign{"error[E", kCompile, "The code does not compile"},
    Sign{"IndentationError: ", kCompile, "The code cannot be read"},
    Sign{"TabError: ", kCompile, "The code cannot be read"},
    Sign{"SyntaxError: ", kCompile, "The code cannot be read"},
    Sign{"Failed to compile", kCompile, "The code does not compile"},
    Sign{"Build failed", kCompile, "The code does not compile"},
    Sign{"error during build", kCompile, "The code does not compile"},
    Sign{"ReferenceError: ", kCrash, "The program failed while it ran"},
    Sign{"TypeError: ", kCrash, "The program failed while it ran"},
    Sign{"RangeError: ", kCrash, "The program failed while it ran"},
    Sign{"ImportError: ", kCrash, "The program failed while it ran"},
    Sign{"NameError: ", kCrash, "The program failed while it ran"},
    Sign{"AttributeError: ", kCrash, "The program failed while it ran"},
    Sign{"ValueError: ", kCrash, "The program failed while it ran"},
    Sign{"KeyError: ", kCrash, "The program failed while it ran"},
    Sign{"RuntimeError: ", kCrash, "The program failed while it ran"},
    Sign{"ImproperlyConfigured: ", kCrash, "The program failed while it ran"},
    Sign{"panic: ", kCrash, "The program failed while it ran"},
    Sign{"' panicked at", kCrash, "The program failed while it ran"},
    Sign{"Traceback (most recent call last)", kCrash, "The program failed while it ran"},
    Sign{"Uncaught ", kCrash, "The program failed while it ran"},
    Sign{"Segmentation fault", kCrash, "The program failed while it ran"},
};

bool IsPlainChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("@/._-=<>~^:*[]+").find(c) != std::string_view::npos;
}

// The name of a package or of a file; of a path only its last part. "" if it is none.
std::string NameIn(std::string_view text, std::string_view ends) {
  std::string_view name = text.substr(0, text.find_first_of(ends));
  while (name.ends_with('.') || name.ends_with(':')) name.remove_suffix(1);
  bool is_path = name.starts_with('/') || name.starts_with('.') || name.starts_with("src/") ||
                 std::ranges::count(name, '/') > (name.starts_with('@') ? 1 : 2);
  if (is_path) name = name.substr(name.rfind('/') + 1);
  if (name.empty() || name.size() > kMaxName || !std::ranges::all_of(name, IsPlainChar)) return "";
  return RedactPatterns(std::string(name));
}

bool LooksLikePath(std::string_view word) {
  return word.find('/') != word.npos || word.find('\\') != word.npos;
}

// A program's own words, for people: without places, paths, colours and secrets.
std::string Detail(std::string_view words) {
  std::string text;
  for (std::string_view word : Split(words.substr(0, words.find('\n')), ' ')) {
    if (word.empty() || LooksLikePath(word)) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  text = RedactPatterns(StripAnsi(text));
  while (!text.empty() && std::string_view(" .:,(").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return work::Shorten(text, kMaxDetail);
}

std::string_view CategoryOf(std::string_view stage) {
  if (stage == "deps") return kInstall;
  if (stage == "checks") return kCompile;
  if (stage == "serve" || stage == "ready") return kCrash;
  if (stage == "code") return "runner_failure";
  if (stage == "queued" || stage == "starting" || stage == "scaffold") return "sandbox_failure";
  return "internal";
}

std::string_view WhatHappened(std::string_view category) {
  if (category == kInstall) return "The packages could not be installed.";
  if (category == kCompile) return "The checks of the code failed.";
  if (category == kCrash) return "The server ended instead of answering.";
  if (category == "runner_failure") return "The code could not be written.";
  if (category == "sandbox_failure") return "The sandbox could not be prepared.";
  return "Something unexpected went wrong on our side.";
}

std::string_view WhatTookLong(std::string_view stage) {
  if (stage == "deps") return "Installing the packages took longer than allowed.";
  if (stage == "checks") return "The checks took longer than allowed.";
  if (stage == "serve" || stage == "ready")
    return "The server was started, but did not answer in time.";
  if (stage == "code") return "Writing the code took longer than allowed.";
  return "Preparing the sandbox took longer than allowed.";
}

// Signs of a package manager mean nothing in the words of a model, or while a sandbox is made.
bool RunsPrograms(std::string_view stage) {
  return stage == "deps" || stage == "checks" || stage == "serve" || stage == "ready";
}

Failure FromSign(const Sign& sign, std::string_view log, size_t at, std::string_view stage) {
  Failure failure{
      .category = std::string(sign.category.empty() ? CategoryOf(stage) : sign.category),
      .summary = std::string(sign.sentence)};
  size_t place = failure.summary.find("\"{}\"");
  if (place == std::string::npos) return failure;
  std::string name = NameIn(log.substr(at + sign.text.size()), sign.ends);
  if (name.empty())
    failure.summary = WhatHappened(failure.category);
  else
    failure.summary.replace(place + 1, 2, name);
  return failure;
}

// "TS2304: Cannot find name 'x'." and "E0425]: cannot find ..." without their numbers.
std::string_view WithoutNumber(const Sign& sign, std::string_view words) {
  if (sign.text != ": error TS" && sign.text != "error[E") return words;
  size_t end = words.find(": ");
  return end == words.npos ? words : words.substr(end + 2);
}

Failure FromMessage(const Sign& sign, std::string_view log, size_t at) {
  std::string_view words = WithoutNumber(sign, log.substr(at + sign.text.size()));
  bool says = sign.text.ends_with(": ") || sign.text.ends_with("TS") || sign.text.ends_with("[E");
  std::string detail = says ? Detail(words) : "";
  return {std::string(sign.category), detail.empty()
                                          ? std::string(sign.sentence) + "."
                                          : fmt::format("{}: {}.", sign.sentence, detail)};
}

std::optional<Failure> FromLog(std::string_view stage, std::string_view log) {
  for (const Sign& sign : kSigns)
    if (size_t at = log.find(sign.text); at != log.npos) return FromSign(sign, log, at, stage);
  for (const Sign& sign : kMessages)
    if (size_t at = log.find(sign.text); at != log.npos) {
      Failure failure = FromMessage(sign, log, at);
      // While packages are installed, code that breaks is a package's.
      if (stage == "deps") failure.category = kInstall;
      return failure;
    }
  return std::nullopt;
}

std::optional<Failure> FromExit(std::string_view stage, int64_t exit_code) {
  std::string category(CategoryOf(stage));
  if (exit_code == 137)
    return Failure{category, "A program was killed, most likely because memory ran out."};
  if (exit_code == 127)
    return Failure{category, "A program that is needed is not installed in the sandbox."};
  if (exit_code > 128 && exit_code < 160)
    return Failure{category, fmt::format("A program was ended by signal {}.", exit_code - 128)};
  return std::nullopt;
}

}  // namespace

Failure ExplainFailure(std::string_view stage, std::string_view log, int64_t exit_code,
                       bool timed_out) {
  if (timed_out) return {"timeout", std::string(WhatTookLong(stage))};
  if (RunsPrograms(stage)) {
    if (auto failure = FromLog(stage, log)) return *failure;
    if (auto failure = FromExit(stage, exit_code)) return *failure;
  }
  std::string category(CategoryOf(stage));
  return {category, std::string(WhatHappened(category))};
}

std::string LastPart(const std::string& log) {
  if (log.size() <= kMaxLastPart) return log;
  return ToUtf8("…" + log.substr(log.size() - kMaxLastPart));
}

}  // namespace caisson::build
