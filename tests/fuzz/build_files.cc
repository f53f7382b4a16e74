// Changes of files, as clients and models send them, and the versions that they make.
#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "build/file_change.h"
#include "build/line_diff.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

using build::Files;

void CheckSafe(const Files& files) {
  for (const auto& [path, content] : files) {
    Check(!path.starts_with('/') && path.find('\0') == path.npos, "a path that is not relative");
    for (std::string_view part : Split(path, '/'))
      Check(!part.empty() && part != "." && part != ".." && ToLower(part) != ".git",
            "a path that leaves its place");
  }
}

void CheckEdits(std::string_view before, std::string_view after, int64_t budget) {
  std::string a, b;
  for (const build::LineEdit& edit : build::DiffLines(before, after, budget)) {
    if (edit.kind != '+') a += edit.line;
    if (edit.kind != '-') b += edit.line;
  }
  Check(a == before && b == after, "edits that lead elsewhere");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  bool safe = build::CheckPath(text).has_value();
  fuzz::Check(!safe || text.find("..") == text.npos || text.find("/../") == text.npos, "a climb");
  fuzz::CheckEdits(text.substr(0, size / 2), text.substr(size / 2), 100'000);
  fuzz::CheckEdits(text.substr(0, size / 2), text.substr(size / 2), 10);
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse(text, ec);
  if (ec) return 0;
  auto changes = build::ParseFileChanges(value);
  if (!changes) {
    fuzz::Check(changes.error().message().size() < 1'000, "an endless message");
    return 0;
  }
  build::Files before{{"a", "1\n2\n"}, {"b/c", ""}};
  auto after = build::Apply(before, *changes);
  fuzz::Check(after.has_value(), "a change that was read cannot be applied");
  fuzz::CheckSafe(*after);
  (void)build::CheckFiles(*after, Config());
  for (const build::FileDifference& one : build::Compare(before, *after))
    fuzz::Check(one.change == "added" || one.change == "modified" || one.change == "deleted",
                "a difference of no kind");
  fuzz::Check(build::Compare(*after, *after).empty(), "a version differs from itself");
  boost::json::array again;
  for (const auto& [path, content] : *after)
    again.push_back({{"path", path}, {"new_content_base64", caisson::Base64Encode(content)}});
  auto same = build::ParseFileChanges(again);
  fuzz::Check(same && build::Apply({}, *same) == *after, "bytes that do not come back");
  return 0;
}
