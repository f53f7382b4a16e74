// The small parsers: proto3 JSON, multipart, codings, ranges, headers.
#include "base/encoding.h"
#include "envd/content_encoding.h"
#include "envd/http_file.h"
#include "envd/multipart.h"
#include "envd/proto_json.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

json::object Parse(std::string_view text) { return json::parse(text).as_object(); }

TEST(ProtoJson, ReadsFieldsByBothNames) {
  json::object camel = Parse(R"({"includeEntry":true})");
  json::object snake = Parse(R"({"include_entry":true})");
  EXPECT_TRUE(Fields(camel).Bool("includeEntry").value());
  EXPECT_TRUE(Fields(snake).Bool("includeEntry").value());
}

TEST(ProtoJson, AbsentAndNullAreDefaults) {
  for (json::object object : {Parse("{}"), Parse(R"({"x":null})")}) {
    Fields fields(object);
    EXPECT_FALSE(fields.Has("x"));
    EXPECT_EQ(fields.String("x").value(), "");
    EXPECT_EQ(fields.Uint32("x").value(), 0u);
    EXPECT_FALSE(fields.Bool("x").value());
    EXPECT_EQ(fields.Bytes("x").value(), "");
    EXPECT_TRUE(fields.Strings("x").value().empty());
    EXPECT_TRUE(fields.StringMap("x").value().empty());
    EXPECT_EQ(fields.Message("x").value(), nullptr);
  }
}

TEST(ProtoJson, NumbersComeInManyForms) {
  for (auto text : {R"({"n":7})", R"({"n":"7"})", R"({"n":7.0})", R"({"n":7e0})"}) {
    json::object object = Parse(text);
    EXPECT_EQ(Fields(object).Uint32("n").value(), 7u) << text;
  }
  for (auto text : {R"({"n":-1})", R"({"n":4294967296})", R"({"n":1.5})", R"({"n":"x"})",
                    R"({"n":true})", R"({"n":[]})"}) {
    json::object object = Parse(text);
    EXPECT_EQ(Fields(object).Uint32("n").error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(ProtoJson, BytesInBothAlphabets) {
  for (auto text : {R"({"b":"+/8="})", R"({"b":"-_8"})", R"({"b":"+/8"})"}) {
    json::object object = Parse(text);
    EXPECT_EQ(Fields(object).Bytes("b").value(), "\xfb\xff") << text;
  }
  json::object broken = Parse(R"({"b":"*"})");
  EXPECT_FALSE(Fields(broken).Bytes("b"));
}

TEST(ProtoJson, OneOfHasOneMember) {
  json::object both = Parse(R"({"pid":1,"tag":"x"})"), one = Parse(R"({"pid":null,"tag":"x"})");
  EXPECT_FALSE(Fields(both).OneOf({"pid", "tag"}));
  EXPECT_EQ(Fields(one).OneOf({"pid", "tag"}).value(), "tag");
}

TEST(AcceptEncoding, FollowsTheReference) {
  auto choose = [](std::string_view header) { return ChooseEncoding(header, false).value(); };
  EXPECT_EQ(choose(""), Encoding::kIdentity);
  EXPECT_EQ(choose("gzip"), Encoding::kGzip);
  EXPECT_EQ(choose("GZIP ; q=0.8"), Encoding::kGzip);
  EXPECT_EQ(choose("deflate, gzip, br"), Encoding::kGzip);
  EXPECT_EQ(choose("identity"), Encoding::kIdentity);
  EXPECT_EQ(choose("*"), Encoding::kIdentity);
  EXPECT_EQ(choose("deflate, br"), Encoding::kIdentity);
  EXPECT_EQ(choose("br;q=1.0, gzip;q=0.5"), Encoding::kGzip);
  EXPECT_EQ(choose("gzip;q=0.5, identity;q=1.0"), Encoding::kIdentity);
  EXPECT_EQ(choose("gzip;q=0, identity"), Encoding::kIdentity);
  EXPECT_EQ(choose("gzip;q=0, br"), Encoding::kIdentity);
  EXPECT_EQ(choose("gzip;q=nonsense"), Encoding::kGzip);
  EXPECT_EQ(choose("*, identity;q=0"), Encoding::kGzip);
  EXPECT_FALSE(ChooseEncoding("br, identity;q=0", false));
  EXPECT_FALSE(ChooseEncoding("gzip;q=1,*;q=0", true));
  EXPECT_EQ(ChooseEncoding("gzip", true).value(), Encoding::kIdentity);
}

TEST(Disposition, IsEncodedAsGoDoes) {
  EXPECT_EQ(ContentDisposition("test.txt"), "inline; filename=test.txt");
  EXPECT_EQ(ContentDisposition("my document.pdf"), "inline; filename=\"my document.pdf\"");
  EXPECT_EQ(ContentDisposition("file\"name.txt"), "inline; filename=\"file\\\"name.txt\"");
  EXPECT_EQ(ContentDisposition("file\\name.txt"), "inline; filename=\"file\\\\name.txt\"");
  EXPECT_EQ(ContentDisposition("文档.pdf"), "inline; filename*=utf-8''%E6%96%87%E6%A1%A3.pdf");
  EXPECT_EQ(ContentDisposition(".env"), "inline; filename=.env");
  EXPECT_EQ(ContentDisposition("a\r\nX: y").find('\n'), std::string::npos);
}

TEST(HttpDates, ThereAndBack) {
  EXPECT_EQ(FormatHttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_FALSE(ParseHttpDate("yesterday"));
  EXPECT_FALSE(ParseHttpDate("Sun, 06 Foo 1994 08:49:37 GMT"));
}

TEST(Multipart, ReadsDispositions) {
  PartHeader part = ParseDisposition(R"(form-data; name="file"; filename="a;b=\"c\" \d.txt")");
  EXPECT_EQ(part.name, "file");
  EXPECT_EQ(part.filename, R"(a;b="c" \d.txt)");
  EXPECT_EQ(ParseDisposition("form-data; name=file").name, "file");
  EXPECT_FALSE(ParseDisposition("form-data; name=file").filename);
  EXPECT_EQ(ParseDisposition("attachment; name=file").name, "");
  EXPECT_EQ(ParseDisposition("form-data; name=file; filename=x; filename*=UTF-8''%C3%A4").filename,
            "ä");
  EXPECT_EQ(MultipartBoundary("multipart/form-data; boundary=\"a b\""), "a b");
  EXPECT_EQ(MultipartBoundary("multipart/form-data"), "");
}

// Hands out a text in pieces of one size.
class PieceSource : public ChunkSource {
 public:
  PieceSource(std::string text, size_t size) : text_(std::move(text)), size_(size) {}
  Task<Result<std::string_view>> Next() override {
    size_t length = std::min(size_, text_.size() - at_);
    std::string_view piece = std::string_view(text_).substr(at_, length);
    at_ += length;
    co_return piece;
  }

 private:
  std::string text_;
  size_t size_;
  size_t at_ = 0;
};

using MultipartStreamTest = Unbooted;

Task<Result<std::string>> Flatten(PieceSource& source, size_t max_header) {
  MultipartReader reader(source, "B", max_header);
  std::string out;
  for (;;) {
    CO_TRY_ASSIGN(auto part, co_await reader.NextPart());
    if (!part) co_return out;
    out += "[" + part->name + "]";
    for (;;) {
      CO_TRY_ASSIGN(std::string_view piece, co_await reader.Next());
      if (piece.empty()) break;
      out += piece;
    }
  }
}

TEST_F(MultipartStreamTest, AnySplitGivesTheSameParts) {
  std::string body =
      "preamble\r\n--B\r\nContent-Disposition: form-data; name=one\r\n\r\nbody\r\n-\r\n--\r\n--B"
      "\r\nX: y\r\ncontent-disposition: form-data; name=two\r\n\r\n\r\n--B--\r\nepilogue";
  for (size_t size = 1; size <= body.size(); ++size) {
    PieceSource source(body, size);
    auto flat = Await(Flatten(source, 1000));
    ASSERT_TRUE(flat) << size << ": " << flat.error().message();
    EXPECT_EQ(*flat, "[one]body\r\n-\r\n--[two]") << size;
  }
}

TEST_F(MultipartStreamTest, BoundsHeadersAndRefusesFragments) {
  PieceSource endless("--B\r\nX: " + std::string(5000, 'x'), 100);
  EXPECT_EQ(Await(Flatten(endless, 1000)).error().code(), Code::kInvalidArgument);
  PieceSource cut("--B\r\nContent-Disposition: form-data; name=one\r\n\r\nbod", 7);
  EXPECT_EQ(Await(Flatten(cut, 1000)).error().code(), Code::kInvalidArgument);
  PieceSource empty("", 7);
  EXPECT_FALSE(Await(Flatten(empty, 1000)));
}

}  // namespace
}  // namespace caisson::envd
