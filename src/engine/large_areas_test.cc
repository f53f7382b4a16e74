#include "engine/large_areas.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "engine/criu_images.h"
#include "engine/large_areas_image.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;
constexpr uint64_t kPages = kLargePage / kSmallPage;
constexpr uint64_t kPresent = 4;

struct Mapped {
  uint64_t start, end;
  uint64_t prot = PROT_READ | PROT_WRITE;
  uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS;
  uint64_t advice = 0;
};

struct Entry {
  uint64_t address, pages;
  uint64_t flags = kPresent;
};

class LargeAreasTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "areas-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern.data()));
    path_ = pattern;
    directory_.Reset(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void Write(const std::string& name, const std::vector<std::string>& messages) {
    std::string image(kImageMagicBytes, 'm');
    for (const std::string& message : messages) AppendImageMessage(image, message);
    ASSERT_TRUE(OverwriteImage(path_ + "/" + name, image));
  }

  // The images of process `pid`; page n of its file is full of the character n.
  void Describe(int pid, const std::vector<Mapped>& mappings, const std::vector<Entry>& entries) {
    WireWriter mm;
    for (const Mapped& m : mappings)
      mm.Bytes(14, WireWriter()
                       .Number(1, m.start)
                       .Number(2, m.end)
                       .Number(5, m.prot)
                       .Number(6, m.flags)
                       .Number(7, 0x201)
                       .Number(9, m.advice)
                       .data());
    Write(fmt::format("mm-{}.img", pid), {mm.data()});
    std::vector<std::string> map{WireWriter().Number(1, static_cast<uint64_t>(pid)).data()};
    std::string pages;
    for (const Entry& e : entries) {
      map.push_back(WireWriter()
                        .Number(1, e.address)
                        .Number(2, 0)
                        .Number(4, e.flags)
                        .Number(5, e.pages)
                        .data());
      for (uint64_t i = 0; i < e.pages; ++i)
        pages.append(kSmallPage, static_cast<char>(pages.size() / kSmallPage % 251));
    }
    Write(fmt::format("pagemap-{}.img", pid), map);
    ASSERT_TRUE(OverwriteImage(fmt::format("{}/pages-{}.img", path_, pid), pages));
    pages_[pid] = pages;
  }

  std::vector<AreaSplit> Find() {
    auto found = FindLargeAreas(directory_.get());
    EXPECT_TRUE(found) << found.error().message();
    return found ? *found : std::vector<AreaSplit>();
  }

  std::string path_;
  Reserve reserve_{0};
  UniqueFd directory_;
  std::map<int, std::string> pages_;
};

TEST_F(LargeAreasTest, WholeHugePagesAreTakenOutAndTheRestStays) {
  // It begins a page after the start of a huge page and ends a page before one, in two entries.
  uint64_t start = kBase + kSmallPage, end = kBase + 8 * kLargePage - kSmallPage;
  Describe(2, {{start, end}}, {{start, 300}, {start + 300 * kSmallPage, 8 * kPages - 302}});
  auto splits = Find();
  ASSERT_EQ(splits.size(), 1u);
  ASSERT_EQ(splits[0].areas.size(), 1u);
  EXPECT_EQ(splits[0].areas[0].address, kBase + kLargePage);
  EXPECT_EQ(splits[0].areas[0].bytes, 6 * kLargePage);
  EXPECT_EQ(splits[0].areas[0].offset, kLargePage - kSmallPage);

  ASSERT_TRUE(SplitLargeAreas(directory_.get()));
  const std::string& all = pages_[2];
  size_t from = kLargePage - kSmallPage, bytes = 6 * kLargePage;
  EXPECT_TRUE(ReadFile(path_ + "/pages-2.img", 1 << 30) ==
              all.substr(0, from) + all.substr(from + bytes));
  auto large = ReadFile(path_ + "/large-2.img", 1 << 30);
  ASSERT_TRUE(large);
  EXPECT_TRUE(large->substr(from, bytes) == all.substr(from, bytes));
  auto map = ReadFile(path_ + "/pagemap-2.img");
  ASSERT_TRUE(map);
  auto messages = ImageMessages(*map);
  ASSERT_TRUE(messages);
  ASSERT_EQ(messages->size(), 3u);
  EXPECT_EQ(
      (*messages)[1],
      WireWriter().Number(1, start).Number(2, 0).Number(4, kPresent).Number(5, kPages - 1).data());
  EXPECT_EQ((*messages)[2], WireWriter()
                                .Number(1, kBase + 7 * kLargePage)
                                .Number(2, 0)
                                .Number(4, kPresent)
                                .Number(5, kPages - 1)
                                .data());
}

TEST_F(LargeAreasTest, WhatTheKernelWritesToStaysWithCriu) {
  Describe(2, {{kBase, kBase + 8 * kLargePage}}, {{kBase, 8 * kPages}});
  std::string rseq = WireWriter().Number(1, kBase + 3 * kLargePage + 5).Number(2, 32).data();
  Write("core-7.img", {WireWriter().Bytes(5, WireWriter().Bytes(15, rseq).data()).data()});
  auto splits = Find();
  ASSERT_EQ(splits.size(), 1u);
  ASSERT_EQ(splits[0].areas.size(), 2u);
  EXPECT_EQ(splits[0].areas[0].bytes, 3 * kLargePage);
  EXPECT_EQ(splits[0].areas[1].address, kBase + 4 * kLargePage);
  ASSERT_EQ(splits[0].rest.size(), 1u);
  EXPECT_EQ(splits[0].rest[0].offset, 3 * kLargePage);
  EXPECT_EQ(splits[0].rest[0].bytes, kLargePage);
}

TEST_F(LargeAreasTest, OtherMemoryStaysWithCriu) {
  uint64_t end = kBase + 8 * kLargePage;
  std::vector<Entry> full{{kBase, 8 * kPages}};
  for (const Mapped& odd :
       {Mapped{kBase, end, PROT_READ}, Mapped{.start = kBase, .end = end, .flags = MAP_PRIVATE},
        Mapped{.start = kBase, .end = end, .flags = MAP_SHARED | MAP_ANONYMOUS},
        Mapped{.start = kBase, .end = end, .advice = 1 << MADV_NOHUGEPAGE}}) {
    Describe(2, {odd}, full);
    EXPECT_TRUE(Find().empty()) << odd.prot << " " << odd.flags << " " << odd.advice;
  }
  Describe(2, {{kBase, end}}, {{kBase, 3 * kPages}});  // too little
  EXPECT_TRUE(Find().empty());
  Describe(2, {{kBase, end}}, full);
  EXPECT_EQ(Find().size(), 1u);
  Describe(3, {{kBase, end}}, full);  // a relative, which may share it
  EXPECT_TRUE(Find().empty());
}

TEST_F(LargeAreasTest, UnknownImagesAreLeftAlone) {
  uint64_t end = kBase + 8 * kLargePage;
  Describe(2, {{kBase, end}}, {{kBase, 8 * kPages, kPresent | 1}});
  EXPECT_FALSE(FindLargeAreas(directory_.get()));
  EXPECT_TRUE(SplitLargeAreas(directory_.get()));
  EXPECT_TRUE(ReadFile(path_ + "/pages-2.img", 1 << 30) == pages_[2]);
  ASSERT_TRUE(OverwriteImage(path_ + "/pagemap-2.img", "half an image"));
  EXPECT_TRUE(SplitLargeAreas(directory_.get()));
  EXPECT_TRUE(FillLargeAreas(directory_.get(), {}, reserve_));  // nothing to do
}

TEST_F(LargeAreasTest, OddMapsAreSplitOnce) {
  uint64_t middle = kBase + 4 * kLargePage, end = kBase + 8 * kLargePage;
  // Mappings that overlap, which no process has.
  Describe(2, {{kBase, kBase + 6 * kLargePage}, {middle, end}}, {{kBase, 8 * kPages}});
  auto found = Find();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].areas.size(), 1u);
  EXPECT_EQ(found[0].areas[0].bytes, 8 * kLargePage);
  EXPECT_TRUE(found[0].rest.empty());
  // Neighbours of two kinds.
  Describe(2, {{kBase, end}}, {{kBase, 4 * kPages}, {middle, 4 * kPages, kPresent | 2}});
  found = Find();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].areas.size(), 2u);
  EXPECT_EQ(found[0].areas[1].address, middle);
  EXPECT_TRUE(found[0].rest.empty());
}

TEST_F(LargeAreasTest, ImpossibleMapsAreRefused) {
  auto reads = [this](uint64_t address, uint64_t pages) {
    auto entry = [&](uint64_t at) {
      return WireWriter().Number(1, at).Number(4, kPresent).Number(5, pages).data();
    };
    Write("pagemap-2.img",
          {WireWriter().Number(1, 2).data(), entry(address), entry(address + pages * kSmallPage)});
    return FindLargeAreas(directory_.get()).has_value();
  };
  EXPECT_TRUE(reads(kBase, 1));
  EXPECT_FALSE(reads(UINT64_MAX - kSmallPage + 1, 1)) << "the sum of address and size overflows";
  EXPECT_FALSE(reads(kBase + 1, 1)) << "half a page";
  EXPECT_FALSE(reads(kBase, UINT32_MAX)) << "more than any machine has";
}

TEST_F(LargeAreasTest, MemoryOfNobodyIsAnError) {
  Describe(2, {{kBase, kBase + 8 * kLargePage}}, {{kBase, 8 * kPages}});
  ASSERT_TRUE(SplitLargeAreas(directory_.get()));
  Status filled = FillLargeAreas(directory_.get(), {getpid()}, reserve_);
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace caisson::engine
