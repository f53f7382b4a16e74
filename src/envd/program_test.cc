// The program itself: its size, its memory, its boot protocol, its behaviour under pressure.
#include <elf.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "envd/test_program.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

class ProgramTest : public Unbooted {
 protected:
  json::object Config() {
    port = FreePort();
    return {{"sandboxId", "iprogram"}, {"defaultUser", CurrentUser()}, {"port", port}};
  }
};

TEST_F(ProgramTest, IsSmallAndStatic) {
  EXPECT_LE(std::filesystem::file_size(Program::File()), 3'000'000u);
  std::ifstream file(Program::File(), std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    EXPECT_NE(segment.p_type, static_cast<Elf64_Word>(PT_INTERP)) << "it needs a dynamic loader";
  }
}

TEST_F(ProgramTest, SaysReadyAndLeavesNoDescriptorBehind) {
  Program program({.config = json::serialize(Config())});
  EXPECT_EQ(program.Answer(), "R");
  EXPECT_EQ(Http("GET", "/health").status, 204u);
  for (const auto& item :
       std::filesystem::directory_iterator("/proc/" + std::to_string(program.pid()) + "/fd")) {
    std::string target = std::filesystem::read_symlink(item.path());
    bool known =
        target == "/dev/null" || target.starts_with("socket:") || target.starts_with("anon_inode:");
    EXPECT_TRUE(known) << target;
  }
  EXPECT_EQ(Bash("echo $E2B_SANDBOX_ID").out, "iprogram\n");
}

TEST_F(ProgramTest, NeedsLittleMemoryAndStartsFast) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    json::object config = Config();
    auto began = std::chrono::steady_clock::now();
    Program program({.config = json::serialize(config)});
    ASSERT_EQ(program.Answer(), "R");
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
            .count());
    EXPECT_EQ(Http("GET", "/health").status, 204u);
    EXPECT_LE(program.ResidentBytes(), 3u << 20);
  }
  std::ranges::sort(times);
  // The whole of fork, exec, configuration and listening, in the better half of the runs. How fast
  // it is benchmarks measure; here only that it waits for nothing.
  EXPECT_LE(times[times.size() / 4], 1000.0);
  RecordProperty("start_ms", std::to_string(times[times.size() / 2]));
}

TEST_F(ProgramTest, SaysWhyItCannotStart) {
  Program nonsense({.config = "nonsense"});
  EXPECT_EQ(nonsense.Answer(), "Ethe boot configuration is not a JSON object");
  EXPECT_EQ(nonsense.WaitForExit(), 1);
  json::object config = Config();
  Program first({.config = json::serialize(config)});
  ASSERT_EQ(first.Answer(), "R");
  Program second({.config = json::serialize(config)});
  EXPECT_THAT(second.Answer(), testing::StartsWith("Ecannot listen: "));
  EXPECT_EQ(second.WaitForExit(), 1);
}

TEST_F(ProgramTest, SurvivesExhaustedDescriptors) {
  Program program({.config = json::serialize(Config()), .before_exec = [] {
                     rlimit few{40, 40};
                     setrlimit(RLIMIT_NOFILE, &few);
                   }});
  ASSERT_EQ(program.Answer(), "R");
  std::vector<Call> calls;
  std::string code;
  for (int i = 0; i < 40 && code.empty(); ++i) {
    // The client is dropped, the process and its pipes stay.
    Call call = Stream("process.Process/Start", BashRequest("sleep 60"));
    auto first = call.Next();
    ASSERT_TRUE(first);
    if (first->last()) code = first->body.at("error").at("code").as_string();
  }
  EXPECT_EQ(code, "resource_exhausted");
  EXPECT_EQ(Http("GET", "/health").status, 204u);
  json::value list = Unary("process.Process/List", {}).Json();
  for (const json::value& info : list.at("processes").as_array())
    Unary("process.Process/SendSignal", {{"process", {{"pid", info.at("pid")}}}, {"signal", 9}});
  EXPECT_TRUE(Until([&] { return Unary("process.Process/List", {}).body == "{}"; }));
  EXPECT_EQ(Bash("echo again").out, "again\n");
}

TEST_F(ProgramTest, MemoryStaysBoundedUnderOutputNobodyReads) {
  json::object config = Config();
  config["limits"] = {{"stall_timeout_ms", 2000}};
  Program program({.config = json::serialize(config)});
  ASSERT_EQ(program.Answer(), "R");
  Call call = Stream("process.Process/Start", BashRequest("head -c 10G /dev/zero"));
  ASSERT_TRUE(call.Next());
  size_t peak = 0;
  for (int i = 0; i < 30; ++i) {
    Wait(100ms);
    peak = std::max(peak, program.ResidentBytes());
  }
  EXPECT_LT(peak, 8u << 20);
  EXPECT_EQ(Http("GET", "/health").status, 204u);
}

}  // namespace
}  // namespace caisson::envd
