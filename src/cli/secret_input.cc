#include "cli/secret_input.h"

#include <termios.h>
#include <unistd.h>

#include <cstdio>

namespace caisson::cli {
namespace {

constexpr size_t kMaxSecret = 4096;

// Typed characters are not shown while it lives.
class Unseen {
 public:
  Unseen() {
    if (tcgetattr(STDIN_FILENO, &before_)) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
  }
  ~Unseen() {
    if (changed_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

}  // namespace

Result<std::string> ReadSecret(const std::string& prompt) {
  bool person = isatty(STDIN_FILENO);
  std::string line;
  {
    Unseen unseen;
    if (person) fmt::print(stderr, "{}: ", prompt);
    for (int c; (c = getchar()) != EOF && c != '\n' && line.size() <= kMaxSecret;)
      line += static_cast<char>(c);
  }
  if (person) fmt::print(stderr, "\n");
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty() || line.size() > kMaxSecret)
    return Fail(Code::kInvalidArgument, "nothing usable came from standard input ({})", prompt);
  return line;
}

}  // namespace caisson::cli
