#include "store/testing.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"

namespace caisson::store::testing {
namespace {

// tests/support/postgres.py starts a server and stops it when we close its standard input, be it by
// dying.
class Server {
 public:
  Server() {
    if (const char* given = getenv("CAISSON_TEST_POSTGRES")) {
      url_ = given;
      return;
    }
    std::string program = CAISSON_SOURCE_DIR "/tests/support/postgres.py";
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC)) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execlp("python3", "python3", program.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_.Reset(input[1]);
    FILE* lines = fdopen(output[0], "r");
    char line[1024];
    if (fgets(line, sizeof(line), lines)) url_ = Trim(line);
    fclose(lines);
  }
  ~Server() {
    if (pid_ <= 0) return;
    input_.Reset();
    waitpid(pid_, nullptr, 0);
  }
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  pid_t pid_ = 0;
  UniqueFd input_;
};

void RunAsAdministrator(const std::string& sql) {
  auto admin = OpenDatabase(PostgresUrl());
  ASSERT_TRUE(admin) << admin.error().message();
  Status done = (*admin)->Script(sql);
  ASSERT_TRUE(done) << done.error().message();
}

}  // namespace

std::string PostgresUrl() {
  static const Server server;
  EXPECT_NE(server.url(), "") << "PostgreSQL could not be started; see the lines above";
  return server.url();
}

TestDatabase::TestDatabase(const std::string& kind) {
  if (kind == "sqlite") {
    url_ = "sqlite://" + (dir_ / "caisson.db");
    return;
  }
  name_ = RandomId("test_", 12);
  RunAsAdministrator("CREATE DATABASE " + name_);
  url_ = PostgresUrl();
  url_.replace(url_.rfind('/') + 1, std::string::npos, name_);
}

TestDatabase::~TestDatabase() {
  // One's own server goes away as a whole, which is faster.
  if (postgres() && getenv("CAISSON_TEST_POSTGRES"))
    RunAsAdministrator("DROP DATABASE " + name_ + " WITH (FORCE)");
}

std::unique_ptr<Database> TestDatabase::Open() const {
  auto opened = OpenDatabase(url_);
  EXPECT_TRUE(opened) << opened.error().message();
  return std::move(opened.value());
}

}  // namespace caisson::store::testing
