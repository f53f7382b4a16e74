// CRIU for real: what is saved goes on where it was, as often as one likes, under other user ids.
#include "engine/criu.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "engine/cgroup.h"
#include "engine/criu_subject.h"
#include "engine/mount.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr uid_t kFirst = 0x0ff00000, kSecond = 0x0ff10000;

Deadline In(milliseconds time) { return std::chrono::steady_clock::now() + time; }

class CriuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before the mount namespace changes: it has no path afterwards.
    program_ =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "engine_criu_program";
    ASSERT_TRUE(TakeMountNamespace());
    auto found = Criu::Find(Config());
    ASSERT_TRUE(found) << found.error().message();
    criu_ = new Criu(std::move(*found));
  }
  static void TearDownTestSuite() { delete std::exchange(criu_, nullptr); }

  void SetUp() override {
    ASSERT_NE(criu_, nullptr);
    std::string path = "/tmp/caisson-criu-test-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    ASSERT_EQ(chmod(path.c_str(), 0711), 0);
    images_ = MakeImages("images");
  }
  void TearDown() override {
    for (const std::string& root : roots_) umount2(root.c_str(), MNT_DETACH);
    EXPECT_TRUE(RemoveTree(folder_));
  }

  UniqueFd MakeImages(const std::string& name) {
    std::string path = folder_ + "/" + name;
    EXPECT_EQ(mkdir(path.c_str(), 0755), 0);
    return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  // A root with the program in it.
  std::string MakeRoot(const std::string& name, uid_t first_id) {
    std::string path = folder_ + "/" + name;
    EXPECT_EQ(mkdir(path.c_str(), 0755), 0);
    std::filesystem::copy_file(program_, path + "/program");
    Status made = MakeSubjectRoot(path, first_id);
    EXPECT_TRUE(made) << made.error().message();
    roots_.push_back(path);
    return path;
  }

  Result<Subject> Start(const std::string& what, int megabytes = 1) {
    root_ = MakeRoot("root", kFirst);
    return Subject::Start(root_, kFirst, {"/program", what, std::to_string(megabytes)});
  }

  Status Dump(int pid, milliseconds timeout = seconds(120)) {
    DumpPlan plan;
    plan.pid = pid;
    plan.images = images_.get();
    return criu_->Dump(plan, In(timeout));
  }

  Result<int> Restore(int images, const std::string& root) {
    RestorePlan plan;
    plan.open_images = [&]() -> Result<int> { return images; };
    plan.root = root;
    plan.set_up_network = SetUpSubjectNetwork;
    return criu_->Restore(plan, In(seconds(120)));
  }

  // What the program says to the next connection.
  static std::string Ask(int pid) {
    UniqueFd home(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    UniqueFd there(open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (setns(there.get(), CLONE_NEWNET)) return "no such network";
    UniqueFd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(setns(home.get(), CLONE_NEWNET), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(7000);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address))
      return "no connection";
    pollfd item{connection.get(), POLLIN, 0};
    if (poll(&item, 1, 60'000) <= 0) return "no answer";
    char text[64];
    ssize_t n = read(connection.get(), text, sizeof text);
    return std::string(Trim(std::string_view(text, static_cast<size_t>(std::max<ssize_t>(n, 0)))));
  }

  static std::string Owner(int pid) {
    struct stat info{};
    stat(fmt::format("/proc/{}", pid).c_str(), &info);
    return std::to_string(info.st_uid);
  }

  static Criu* criu_;
  static std::filesystem::path program_;
  std::string folder_, root_;
  std::vector<std::string> roots_;
  UniqueFd images_;
};

Criu* CriuTest::criu_ = nullptr;
std::filesystem::path CriuTest::program_;

TEST_F(CriuTest, TriesItself) {
  EXPECT_THAT(criu_->version(), testing::MatchesRegex("[0-9]+\\.[0-9]+.*"));
  Status tried = TryCriu(*criu_, In(seconds(120)));
  EXPECT_TRUE(tried) << tried.error().message();
}

TEST_F(CriuTest, ContinuesWhereItWas) {
  {
    auto subject = Start("count", 8);
    ASSERT_TRUE(subject) << subject.error().message();
    EXPECT_EQ(Ask(subject->pid()), "intact 1");
    Status dumped = Dump(subject->pid());
    ASSERT_TRUE(dumped) << dumped.error().message();
    EXPECT_EQ(Ask(subject->pid()), "intact 2");  // it still runs
  }
  auto pid = Restore(images_.get(), root_);
  ASSERT_TRUE(pid) << pid.error().message();
  Subject continued(*pid);
  EXPECT_EQ(Ask(*pid), "intact 2");
  EXPECT_EQ(Owner(*pid), std::to_string(kFirst));
  // It belongs to this process, and outlived CRIU.
  EXPECT_EQ(waitpid(*pid, nullptr, WNOHANG), 0);
}

TEST_F(CriuTest, ForksIntoAnotherRangeOfUsersWhileTheOriginalRuns) {
  auto original = Start("terminal");  // whose device belongs to a group inside
  ASSERT_TRUE(original) << original.error().message();
  EXPECT_EQ(Ask(original->pid()), "intact 1");
  Status dumped = Dump(original->pid());
  ASSERT_TRUE(dumped) << dumped.error().message();
  std::filesystem::copy(folder_ + "/images", folder_ + "/moved");
  ASSERT_EQ(chmod((folder_ + "/moved").c_str(), 0755), 0);
  UniqueFd moved(open((folder_ + "/moved").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Status rewritten = MoveUserRange(moved.get(), kSecond);
  ASSERT_TRUE(rewritten) << rewritten.error().message();

  auto first = Restore(images_.get(), MakeRoot("first", kFirst));
  ASSERT_TRUE(first) << first.error().message();
  Subject first_fork(*first);
  auto second = Restore(moved.get(), MakeRoot("second", kSecond));
  ASSERT_TRUE(second) << second.error().message();
  Subject second_fork(*second);

  EXPECT_EQ(Ask(*first), "intact 2");
  EXPECT_EQ(Ask(*second), "intact 2");
  EXPECT_EQ(Ask(*second), "intact 3");
  EXPECT_EQ(Ask(original->pid()), "intact 2");
  EXPECT_EQ(Owner(*first), std::to_string(kFirst));
  EXPECT_EQ(Owner(*second), std::to_string(kSecond));
}

// CRIU alone waits forever in such a tree.
TEST_F(CriuTest, TheDeadThatWereInheritedAreLeftOut) {
  auto dead = [](int pid) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc"))
      if (auto stat = ReadFile(entry.path().string() + "/stat"))
        count += stat->find(fmt::format(") Z {} ", pid)) != std::string::npos;
    return count;
  };
  {
    auto subject = Start("dead");
    ASSERT_TRUE(subject) << subject.error().message();
    EXPECT_EQ(Ask(subject->pid()), "intact 1");
    EXPECT_EQ(dead(subject->pid()), 100u);
    ASSERT_TRUE(Dump(subject->pid()));
  }
  Status left = LeaveInheritedDead(images_.get());
  ASSERT_TRUE(left) << left.error().message();
  auto pid = Restore(images_.get(), root_);
  ASSERT_TRUE(pid) << pid.error().message();
  Subject continued(*pid);
  EXPECT_EQ(Ask(*pid), "intact 2");
  EXPECT_EQ(dead(*pid), 50u);
}

TEST_F(CriuTest, KeepsWatchesOfFiles) {
  {
    auto subject = Start("watching");
    ASSERT_TRUE(subject) << subject.error().message();
    EXPECT_EQ(Ask(subject->pid()), "intact 1");
    DumpPlan plan;
    plan.pid = subject->pid();
    plan.images = images_.get();
    plan.scan = {"/"};
    Status dumped = criu_->Dump(plan, In(seconds(120)));
    ASSERT_TRUE(dumped) << dumped.error().message();
  }
  auto pid = Restore(images_.get(), root_);
  ASSERT_TRUE(pid) << pid.error().message();
  Subject continued(*pid);
  EXPECT_EQ(Ask(*pid), "intact 2");
  // It looks whether something was made in its root since it looked last.
  std::ofstream(root_ + "/made");
  EXPECT_EQ(Ask(*pid), "noticed 3");
}

TEST_F(CriuTest, AFrozenTreeIsSavedAndStaysFrozen) {
  auto layout = CgroupLayout::Detect();
  ASSERT_TRUE(layout) << layout.error().message();
  std::string cgroup =
      fmt::format("{}/caisson-criu-test-{}", layout->bases[kUnifiedTree], getpid());
  ASSERT_EQ(mkdir(cgroup.c_str(), 0755), 0);
  {
    auto subject = Start("count");
    ASSERT_TRUE(subject) << subject.error().message();
    EXPECT_EQ(Ask(subject->pid()), "intact 1");
    auto child = ReadFile(fmt::format("/proc/{0}/task/{0}/children", subject->pid()));
    ASSERT_TRUE(child);
    ASSERT_TRUE(WriteKernelFile(cgroup + "/cgroup.procs", std::to_string(subject->pid())));
    ASSERT_TRUE(WriteKernelFile(cgroup + "/cgroup.procs", Trim(*child)));
    ASSERT_TRUE(WriteKernelFile(cgroup + "/cgroup.freeze", "1"));
    DumpPlan plan;
    plan.pid = subject->pid();
    plan.images = images_.get();
    plan.freezer = cgroup;
    Status dumped = criu_->Dump(plan, In(seconds(120)));
    EXPECT_TRUE(dumped) << dumped.error().message();
    EXPECT_THAT(*ReadFile(cgroup + "/cgroup.freeze"), HasSubstr("1"));
    ASSERT_TRUE(WriteKernelFile(cgroup + "/cgroup.freeze", "0"));
    EXPECT_EQ(Ask(subject->pid()), "intact 2");
  }
  for (int i = 0; i < 1500 && rmdir(cgroup.c_str()) != 0; ++i) usleep(20'000);
  EXPECT_NE(access(cgroup.c_str(), F_OK), 0);
}

TEST_F(CriuTest, SaysWhatItCannotTake) {
  {
    auto traced = Start("traced");
    ASSERT_TRUE(traced) << traced.error().message();
    EXPECT_EQ(Ask(traced->pid()), "intact 1");
    Status dumped = Dump(traced->pid());
    ASSERT_FALSE(dumped);
    EXPECT_EQ(dumped.error().code(), Code::kUnimplemented) << dumped.error().message();
    EXPECT_THAT(dumped.error().message(), HasSubstr("traced by a debugger"));
    EXPECT_EQ(Ask(traced->pid()), "intact 2");
  }
  auto nested = Subject::Start(root_, kFirst, {"/program", "nested"});
  ASSERT_TRUE(nested) << nested.error().message();
  EXPECT_EQ(Ask(nested->pid()), "intact 1");
  images_ = MakeImages("nested");
  Status dumped = Dump(nested->pid());
  ASSERT_FALSE(dumped);
  EXPECT_EQ(dumped.error().code(), Code::kUnimplemented) << dumped.error().message();
  EXPECT_THAT(dumped.error().message(), HasSubstr("pid namespace of its own"));
  EXPECT_EQ(Ask(nested->pid()), "intact 2");
}

TEST_F(CriuTest, GivesUpAtItsDeadlineAndTheProcessGoesOn) {
  auto subject = Start("count", 64);
  ASSERT_TRUE(subject) << subject.error().message();
  std::string lock = folder_ + "/lock";
  ASSERT_TRUE(WriteFileAtomic(lock, "", 0600));
  int asked = 0;
  // Before it began, and wherever it may be after that.
  for (int timeout : {0, 10, 30, 60}) {
    std::string name = fmt::format("images-{}", timeout);
    UniqueFd images = MakeImages(name);
    DumpPlan plan{.pid = subject->pid(), .images = images.get(), .lock = lock};
    Status dumped = criu_->Dump(plan, In(milliseconds(timeout)));
    if (timeout == 0) ASSERT_FALSE(dumped);
    if (!dumped)
      EXPECT_EQ(dumped.error().code(), Code::kDeadlineExceeded) << dumped.error().message();
    // CRIU may write to it at this moment; it ends by itself when that is gone.
    (void)RemoveTree(folder_ + "/" + name);
    UniqueFd locked(open(lock.c_str(), O_RDONLY | O_CLOEXEC));
    Deadline end = In(seconds(120));
    while (flock(locked.get(), LOCK_EX | LOCK_NB) && std::chrono::steady_clock::now() < end)
      usleep(10'000);
    ASSERT_EQ(flock(locked.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(Ask(subject->pid()), fmt::format("intact {}", ++asked));
    if (!dumped) EXPECT_GT(waitpid(-1, nullptr, 0), 0);
  }
}

TEST_F(CriuTest, DamagedImagesAreAnErrorAndNothingRuns) {
  {
    auto subject = Start("count");
    ASSERT_TRUE(subject) << subject.error().message();
    ASSERT_TRUE(Dump(subject->pid()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/images"))
    if (entry.path().filename().string().starts_with("core-"))
      std::filesystem::resize_file(entry.path(), 20);
  auto pid = Restore(images_.get(), root_);
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().code(), Code::kInternal);
  EXPECT_THAT(pid.error().message(), HasSubstr("CRIU failed: "));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";

  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/images"))
    if (entry.path().filename().string().starts_with("userns-"))
      std::filesystem::resize_file(entry.path(), 15);
  Status moved = MoveUserRange(images_.get(), kSecond);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code(), Code::kDataLoss) << moved.error().message();
}

TEST_F(CriuTest, AFailingNetworkEndsARestore) {
  {
    auto subject = Start("count");
    ASSERT_TRUE(subject) << subject.error().message();
    ASSERT_TRUE(Dump(subject->pid()));
  }
  RestorePlan plan;
  plan.open_images = [&]() -> Result<int> { return images_.get(); };
  plan.root = root_;
  plan.set_up_network = [](int) -> Status { return Fail(Code::kAborted, "no network today"); };
  auto pid = criu_->Restore(plan, In(seconds(120)));
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().message(), "no network today");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

TEST(CriuFind, AFolderWithoutItIsNamed) {
  Config config;
  config.criu = "/proc";
  auto found = Criu::Find(config);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::kNotFound);
  EXPECT_THAT(found.error().message(), HasSubstr("/proc"));
}

TEST(ProtobufWire, ReadsWhatItWrites) {
  std::string message = WireWriter().Number(1, 300).Bytes(16, "text").Number(2, ~0ull).data();
  WireReader reader(message);
  auto first = reader.Next(), second = reader.Next(), third = reader.Next(), end = reader.Next();
  EXPECT_EQ((*first)->value, 300u);
  EXPECT_EQ((*second)->number, 16u);
  EXPECT_EQ((*second)->bytes, "text");
  EXPECT_EQ((*third)->value, ~0ull);
  EXPECT_FALSE(end->has_value());
  for (size_t size = 1; size < message.size(); ++size) {
    WireReader broken(std::string_view(message).substr(0, size));
    auto field = broken.Next();
    while (field && *field) field = broken.Next();
    bool between = size == 3 || size == 10;
    EXPECT_EQ(field.has_value(), between) << size;
  }
}

}  // namespace
}  // namespace caisson::engine
