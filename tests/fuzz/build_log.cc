// What programs in a sandbox print, in pieces of any size.
#include "build/failure.h"
#include "build/log_lines.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

constexpr size_t kMax = 50;
constexpr std::string_view kSecret = "the-servers-own-secret";

std::string Lines(std::string_view text, size_t piece) {
  events::Redactor redactor;
  redactor.Add(std::string(kSecret));
  build::LogLines lines(redactor, kMax);
  std::string all;
  auto add = [&](const std::vector<build::LogLine>& made) {
    for (const build::LogLine& line : made) {
      Check(line.text.size() <= 4 * kMax + 3, "a line that is too long");
      Check(line.text.find_first_of("\n\r\x1b") == line.text.npos, "a line with controls");
      all += line.text + "\n" + line.raw + "\n";
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    add(lines.Feed(text.substr(0, piece)));
  add(lines.Finish());
  return all;
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string whole = fuzz::Lines(text, size + 1);
  fuzz::Check(fuzz::Lines(text, 1) == whole, "bytes one by one are other lines");
  fuzz::Check(fuzz::Lines(text, size / 3 + 1) == whole, "pieces are other lines");
  fuzz::Check(whole.find(fuzz::kSecret) == whole.npos, "a secret in a line");
  std::string clean = build::StripAnsi(text);
  fuzz::Check(clean.find('\x1b') == clean.npos && build::StripAnsi(clean) == clean,
              "a text that is not clean");
  // What stands on a line of its own is found, whatever is around it.
  std::string planted = build::RedactPatterns(clean + "\nAPI_TOKEN=planted7\n" + clean);
  fuzz::Check(clean.find("planted7") != clean.npos || clean.find_first_of("\"'`") != clean.npos ||
                  planted.find("planted7") == planted.npos,
              "a token in a text");
  for (std::string_view stage : {"code", "deps", "checks", "serve"}) {
    build::Failure failure = build::ExplainFailure(stage, clean, 1, false);
    fuzz::Check(!failure.category.empty() && !failure.summary.empty(), "a failure without words");
    fuzz::Check(failure.summary.size() < 400, "an endless sentence");
    fuzz::Check(failure.summary.find_first_of("\n\x1b") == std::string::npos, "a broken sentence");
  }
  return 0;
}
