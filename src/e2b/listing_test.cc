#include "e2b/listing.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace caisson::e2b {
namespace {

using namespace std::chrono_literals;

TEST(Cursor, ComesBackAsItWas) {
  for (bool ascending : {false, true}) {
    Cursor cursor{Time(1700000000s) + 123456us, "iabc", ascending};
    auto read = DecodeCursor(EncodeCursor(cursor)).value();
    EXPECT_EQ(read.started_at, cursor.started_at);
    EXPECT_EQ(read.id, cursor.id);
    EXPECT_EQ(read.ascending, ascending);
  }
  for (std::string bad :
       {std::string("!!!"), std::string("AAAA"), Base64UrlEncode("x__i1"),
        Base64UrlEncode("2023-11-14T22:13:20Z"), Base64UrlEncode("2023-11-14T22:13:20Z__")})
    EXPECT_EQ(DecodeCursor(bad).error().message(), "Invalid next token") << bad;
}

TEST(DecodeMetadata, UndoesTheThreeEncodingsOfTheSdks) {
  // As captured from a client: {'a b': 'c&d=e'}.
  auto query = http::Query::Parse("metadata=a%252520b%3Dc%252526d%25253De");
  EXPECT_EQ(DecodeMetadata(*query.Get("metadata")), (sandbox::StringMap{{"a b", "c&d=e"}}));
  auto two = http::Query::Parse("metadata=k%3Dv%26plus%3D1%25252B1%26u%3D%2525C3%2525BC");
  EXPECT_EQ(DecodeMetadata(*two.Get("metadata")),
            (sandbox::StringMap{{"k", "v"}, {"plus", "1+1"}, {"u", "ü"}}));
  EXPECT_EQ(DecodeMetadata(""), sandbox::StringMap{});
  EXPECT_EQ(DecodeMetadata("plain=text"), (sandbox::StringMap{{"plain", "text"}}));
  EXPECT_EQ(DecodeMetadata("a="), (sandbox::StringMap{{"a", ""}}));
  for (const char* bad : {"novalue", "a=b&novalue", "a=%zz", "%", "a=b&"})
    EXPECT_FALSE(DecodeMetadata(bad)) << bad;
}

TEST(DecodeListQuery, ReadsEveryParameter) {
  auto empty = DecodeListQuery(http::Query::Parse("")).value();
  EXPECT_TRUE(empty.filter.running);
  EXPECT_TRUE(empty.filter.paused);
  EXPECT_FALSE(empty.filter.ascending);
  EXPECT_EQ(empty.page.limit, 100u);

  auto full = DecodeListQuery(http::Query::Parse(
                                  "state=running%2Cpaused&order=asc&limit=7&template=base&"
                                  "startedAfter=2026-11-15T10:00:00.123456%2B01:00&metadata=a%3Db"))
                  .value();
  EXPECT_TRUE(full.filter.running);
  EXPECT_TRUE(full.filter.paused);
  EXPECT_TRUE(full.filter.ascending);
  EXPECT_EQ(full.page.limit, 7u);
  EXPECT_EQ(full.filter.template_name, "base");
  EXPECT_EQ(full.filter.started_after, ParseTime("2026-11-15T09:00:00.123456Z").value());
  EXPECT_EQ(full.filter.metadata, (sandbox::StringMap{{"a", "b"}}));

  auto states = [](const char* text) {
    auto filter = DecodeListQuery(http::Query::Parse(text)).value().filter;
    return std::pair(filter.running, filter.paused);
  };
  EXPECT_EQ(states("state=running"), std::pair(true, false));
  EXPECT_EQ(states("state=paused"), std::pair(false, true));
  EXPECT_EQ(states("state=paused&state=running"), std::pair(true, true));
  // An offset whose '+' was not encoded.
  EXPECT_EQ(DecodeListQuery(http::Query::Parse("startedAfter=2026-11-15T10:00:00+01:00"))
                .value()
                .filter.started_after,
            ParseTime("2026-11-15T09:00:00Z").value());
}

TEST(DecodeListQuery, RefusesWhatItDoesNotUnderstand) {
  std::string ascending = EncodeCursor({Time(1s), "i1", true});
  for (const std::string& bad :
       {std::string("limit=0"), std::string("limit=101"), std::string("limit=x"),
        std::string("order=up"), std::string("state=flying"), std::string("state="),
        std::string("nextToken=AAAA"), std::string("startedAfter=yesterday"),
        std::string("template=base%3Atag"), std::string("metadata=x"), "nextToken=" + ascending})
    EXPECT_EQ(DecodeListQuery(http::Query::Parse(bad)).error().code(), Code::kInvalidArgument)
        << bad;
  EXPECT_TRUE(DecodeListQuery(http::Query::Parse("order=asc&nextToken=" + ascending)));
}

std::vector<sandbox::Info> Sorted(bool ascending) {
  std::vector<sandbox::Info> list;
  // Two started in the same moment: the order by id decides.
  for (auto [second, id] : {std::pair{5, "ie"}, {4, "ic"}, {4, "id"}, {2, "ib"}, {1, "ia"}}) {
    sandbox::Info info;
    info.id = id;
    info.started_at = Time(std::chrono::seconds(second));
    list.push_back(info);
  }
  if (ascending) std::reverse(list.begin(), list.end());
  return list;
}

TEST(CutPage, PagesCoverTheListOnce) {
  for (bool ascending : {false, true}) {
    for (size_t limit = 1; limit <= 6; ++limit) {
      ListQuery query;
      query.page.limit = limit;
      query.filter.ascending = ascending;
      std::string seen;
      for (int page_count = 0; page_count < 10; ++page_count) {
        Page page = CutPage(Sorted(ascending), query);
        EXPECT_LE(page.items.size(), limit);
        for (const auto& info : page.items) seen += info.id;
        if (page.next_token.empty()) break;
        query.page.after = DecodeCursor(page.next_token).value();
      }
      EXPECT_EQ(seen, ascending ? "iaibidicie" : "ieicidibia") << limit;
    }
  }
}

TEST(CutPage, ACursorWhoseSandboxIsGoneStillWorks) {
  ListQuery query;
  query.page.after = Cursor{Time(3s), "ix", false};
  Page page = CutPage(Sorted(false), query);
  ASSERT_EQ(page.items.size(), 2u);
  EXPECT_EQ(page.items[0].id, "ib");
}

}  // namespace
}  // namespace caisson::e2b
