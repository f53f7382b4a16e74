// GET and POST /files, POST /files/compose.
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "base/encoding.h"
#include "envd/auth.h"
#include "envd/content_encoding.h"
#include "envd/test_support.h"
#include "http/file_signature.h"

namespace caisson::envd {
namespace {

using testing::HasSubstr;

std::string GzipOf(const std::string& data) {
  Gzip gzip;
  return gzip.Compress(data, true);
}

std::string Gunzip(const std::string& data) {
  z_stream stream{};
  inflateInit2(&stream, 15 + 16);
  std::string out(std::max<size_t>(data.size() * 1100, 4096), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// Data that does not compress.
std::string Noise(size_t size) {
  std::string out(size, '\0');
  uint64_t state = 88172645463325252ULL;
  for (char& c : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return out;
}

class FilesTest : public Fixture {
 protected:
  Reply Get(const std::string& name, http::Headers headers = {}) {
    return Http("GET", "/files?path=" + PercentEncode(Path(name)), std::move(headers));
  }
  Reply Put(const std::string& name, const std::string& data, http::Headers headers = {}) {
    headers.Add("Content-Type", "application/octet-stream");
    return Http("POST", "/files?path=" + PercentEncode(Path(name)), std::move(headers), data);
  }
  // Parts are {disposition parameters, content}.
  using Parts = std::vector<std::pair<std::string, std::string>>;
  Reply PutParts(const std::string& query, const Parts& parts, http::Headers headers = {}) {
    std::string body;
    for (const auto& [parameters, content] : parts)
      body += "--BoUnD\r\nContent-Disposition: form-data; " + parameters +
              "\r\nContent-Type: text/plain\r\n\r\n" + content + "\r\n";
    body += "--BoUnD--\r\n";
    if (headers.Has("Content-Encoding")) body = GzipOf(body);
    headers.Add("Content-Type", "multipart/form-data; boundary=BoUnD");
    return Http("POST", "/files" + query, std::move(headers), body);
  }
};

TEST_F(FilesTest, DownloadsWithALength) {
  WriteFile("a.txt", "hello");
  Reply reply = Get("a.txt");
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.body, "hello");
  EXPECT_EQ(reply.headers.Value("Content-Length"), "5");
  EXPECT_EQ(reply.headers.Value("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(reply.headers.Value("Vary"), "Accept-Encoding");
  EXPECT_EQ(reply.headers.Value("Content-Disposition"), "inline; filename=a.txt");
  WriteFile("empty", "");
  EXPECT_EQ(Get("empty").headers.Value("Content-Length"), "0");
  std::string big = Noise(5'000'000);
  WriteFile("big", big);
  Reply large = Get("big");
  EXPECT_EQ(large.headers.Value("Content-Length"), "5000000");
  EXPECT_TRUE(large.body == big);
}

TEST_F(FilesTest, DownloadErrorsHaveTheirTexts) {
  Reply missing = Get("none");
  EXPECT_EQ(missing.status, 404u);
  EXPECT_EQ(missing.body,
            R"({"code":404,"message":"path ')" + Path("none") + R"(' does not exist"})");
  EXPECT_EQ(missing.headers.Value("Content-Type"), "application/json; charset=utf-8");
  Reply folder = Http("GET", "/files?path=" + dir);
  EXPECT_EQ(folder.status, 400u);
  EXPECT_EQ(folder.Json().at("message").as_string(), "path '" + dir + "' is a directory");
  EXPECT_EQ(Http("GET", "/files?path=/x&username=ghost").status, 401u);
  EXPECT_THAT(Http("GET", "/files?path=/x&username=ghost").body,
              HasSubstr("error looking up user 'ghost'"));
  EXPECT_EQ(Http("GET", "/files?path=~bob").status, 400u);
  EXPECT_EQ(Http("GET", "/files?path=a%00b").status, 400u);
}

TEST_F(FilesTest, SpecialFilesDoNotHang) {
  mkfifo(Path("fifo").c_str(), 0600);
  EXPECT_EQ(Get("fifo").status, 400u);
  EXPECT_EQ(Put("fifo", "x").status, 400u);
  EXPECT_EQ(Http("GET", "/files?path=/dev/zero").status, 400u);
  EXPECT_EQ(Http("GET", "/files?path=/dev/tty").status, 400u);
}

TEST_F(FilesTest, FilesWithoutASizeAreReadToTheEnd) {
  Reply id = Http("GET", "/files?path=/proc/sys/kernel/random/boot_id");
  EXPECT_EQ(id.body.size(), 37u);
  EXPECT_EQ(Http("GET", "/files?path=/proc/cpuinfo").status, 200u);
  Reply sysfs = Http("GET", "/files?path=/sys/kernel/mm/transparent_hugepage/enabled");
  EXPECT_EQ(std::to_string(sysfs.body.size()), sysfs.headers.Value("Content-Length"));
}

TEST_F(FilesTest, GzipWhenTheClientTakesIt) {
  std::string text(300'000, 'a');
  WriteFile("text.txt", text);
  Reply reply = Get("text.txt", {{"Accept-Encoding", "gzip, deflate"}});
  EXPECT_EQ(reply.headers.Value("Content-Encoding"), "gzip");
  EXPECT_EQ(reply.headers.Value("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_LT(reply.body.size(), 10'000u);
  EXPECT_TRUE(Gunzip(reply.body) == text);
  std::string noise = Noise(1'000'000);
  WriteFile("noise", noise);
  Reply packed = Get("noise", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(packed.headers.Value("Content-Encoding"), "gzip");
  EXPECT_LT(packed.body.size(), 1'001'000u);
  EXPECT_TRUE(Gunzip(packed.body) == noise);
  WriteFile("none", "");
  EXPECT_EQ(Gunzip(Get("none", {{"Accept-Encoding", "gzip"}}).body), "");
  EXPECT_EQ(Get("text.txt", {{"Accept-Encoding", "br"}}).headers.Value("Content-Encoding"), "");
  EXPECT_EQ(Get("text.txt", {{"Accept-Encoding", "br, identity;q=0"}}).status, 406u);
}

TEST_F(FilesTest, Ranges) {
  WriteFile("small", "0123456789");
  std::string big = Noise(300'000);
  WriteFile("big", big);
  auto range = [&](const std::string& name, const std::string& value) {
    return Get(name, {{"Range", value}, {"Accept-Encoding", "gzip"}});
  };
  Reply first = range("small", "bytes=2-4");
  EXPECT_EQ(first.status, 206u);
  EXPECT_EQ(first.body, "234");
  EXPECT_EQ(first.headers.Value("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(first.headers.Value("Content-Encoding"), "");
  EXPECT_EQ(range("small", "bytes=-3").body, "789");
  EXPECT_EQ(range("small", "bytes=8-").body, "89");
  EXPECT_EQ(range("small", "bytes=5-100").body, "56789");
  EXPECT_EQ(range("small", "bytes=0-1,4-5").status, 200u);
  EXPECT_EQ(range("small", "nonsense").status, 200u);
  Reply beyond = range("small", "bytes=10-");
  EXPECT_EQ(beyond.status, 416u);
  EXPECT_EQ(beyond.headers.Value("Content-Range"), "bytes */10");
  EXPECT_TRUE(range("big", "bytes=100000-299999").body == big.substr(100'000));
  EXPECT_EQ(Get("small", {{"Range", "bytes=0-4"}, {"Accept-Encoding", "gzip;q=1,*;q=0"}}).status,
            406u);
}

TEST_F(FilesTest, Conditions) {
  WriteFile("f", "x");
  std::string modified(Get("f").headers.Value("Last-Modified"));
  EXPECT_EQ(Get("f", {{"If-Modified-Since", modified}}).status, 304u);
  EXPECT_EQ(Get("f", {{"If-Modified-Since", modified}}).body, "");
  EXPECT_EQ(Get("f", {{"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}}).status, 200u);
  EXPECT_EQ(Get("f", {{"If-None-Match", "*"}}).status, 304u);
  EXPECT_EQ(Get("f", {{"If-Range", modified}, {"Range", "bytes=0-0"}}).status, 206u);
  EXPECT_EQ(
      Get("f", {{"If-Range", "Thu, 01 Jan 1970 00:00:00 GMT"}, {"Range", "bytes=0-0"}}).status,
      200u);
  EXPECT_EQ(Get("f", {{"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}}).status, 412u);
}

TEST_F(FilesTest, RawUploads) {
  Reply reply = Put("new/dir/f.bin", "data");
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.Json(),
            (json::array{{{"path", Path("new/dir/f.bin")}, {"name", "f.bin"}, {"type", "file"}}}));
  EXPECT_EQ(ReadBack("new/dir/f.bin"), "data");
  struct stat st{};
  stat(Path("new/dir/f.bin").c_str(), &st);
  EXPECT_EQ(st.st_mode & 07777, 0644u);
  Put("new/dir/f.bin", "x");
  EXPECT_EQ(ReadBack("new/dir/f.bin"), "x");
  EXPECT_EQ(Put("empty", "").status, 200u);
  std::string big = Noise(20'000'000);
  EXPECT_EQ(Put("big", big).status, 200u);
  EXPECT_TRUE(ReadBack("big") == big);
}

TEST_F(FilesTest, UploadErrors) {
  EXPECT_EQ(Http("POST", "/files", {{"Content-Type", "application/octet-stream"}}, "x").status,
            400u);
  EXPECT_EQ(Http("POST", "/files?path=/x", {{"Content-Type", "application/json"}}, "{}").status,
            400u);
  EXPECT_EQ(Put("", "x").status, 400u);  // the directory itself
  EXPECT_EQ(Put("f", "x", {{"Content-Encoding", "br"}}).status, 400u);
  EXPECT_EQ(Put("f", "this is not gzip", {{"Content-Encoding", "gzip"}}).status, 400u);
  std::string cut = GzipOf(std::string(1000, 'a'));
  cut.resize(cut.size() - 9);
  EXPECT_EQ(Put("f", cut, {{"Content-Encoding", "gzip"}}).status, 400u);
  WriteFile("file", "");
  EXPECT_EQ(Put("file/below", "x").status, 500u);
  EXPECT_EQ(
      Http("POST", "/files?path=/dev/full", {{"Content-Type", "application/octet-stream"}}, "x")
          .status,
      400u);
  EXPECT_EQ(Http("POST", "/files", {{"Content-Type", "multipart/form-data"}}, "x").status, 400u);
  EXPECT_EQ(Http("POST", "/files", {{"Content-Type", "multipart/form-data; boundary=b"}},
                 "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nx")
                .status,
            400u);
}

TEST_F(FilesTest, GzipUploads) {
  std::string text(2'000'000, 'z');
  EXPECT_EQ(Put("z", GzipOf(text), {{"Content-Encoding", "gzip"}}).status, 200u);
  EXPECT_TRUE(ReadBack("z") == text);
  // Two members make one file.
  EXPECT_EQ(Put("two", GzipOf("one ") + GzipOf("two"), {{"Content-Encoding", "GZIP"}}).status,
            200u);
  EXPECT_EQ(ReadBack("two"), "one two");
  EXPECT_EQ(PutParts("?path=" + Path("part"), {{"name=\"file\"; filename=\"x\"", "packed"}},
                     {{"Content-Encoding", "gzip"}})
                .status,
            200u);
  EXPECT_EQ(ReadBack("part"), "packed");
}

TEST_F(FilesTest, MultipartUploads) {
  // The path wins over the file name.
  Reply one = PutParts("?path=" + Path("target"), {{"name=\"file\"; filename=\"x\"", "one"}});
  EXPECT_EQ(one.Json().at(0).at("path").as_string(), Path("target"));
  EXPECT_EQ(ReadBack("target"), "one");
  Reply many = PutParts("", {{"name=\"file\"; filename=\"" + Path("m/1") + "\"", "first"},
                             {"name=\"other\"; filename=\"" + Path("no") + "\"", "skipped"},
                             {"name=\"file\"; filename=\"" + Path("m/2") + "\"", ""},
                             {"name=\"file\"; filename=\"" + Path("m/3") + "\"", Noise(400'000)}});
  ASSERT_EQ(many.status, 200u) << many.body;
  ASSERT_EQ(many.Json().as_array().size(), 3u);
  EXPECT_EQ(ReadBack("m/1"), "first");
  EXPECT_EQ(ReadBack("m/2"), "");
  EXPECT_TRUE(ReadBack("m/3") == Noise(400'000));
  EXPECT_FALSE(std::filesystem::exists(Path("no")));
  Reply twice = PutParts("", {{"name=\"file\"; filename=\"" + Path("d") + "\"", "1"},
                              {"name=\"file\"; filename=\"" + Path("d") + "\"", "2"}});
  EXPECT_EQ(twice.status, 400u);
  EXPECT_THAT(twice.body, HasSubstr("multiple files to the same path"));
  EXPECT_EQ(ReadBack("d"), "1");
  EXPECT_EQ(PutParts("", {{"name=\"file\"", "x"}}).status, 400u);
}

TEST_F(FilesTest, OddFileNames) {
  for (std::string name : {"with space", "umläut", "semi;colon", "per%20cent", "new%0Aline"}) {
    Reply reply = PutParts("", {{"name=\"file\"; filename=\"" + Path(name) + "\"", name}});
    EXPECT_EQ(reply.status, 200u) << name;
    EXPECT_EQ(ReadBack(name), name);
    EXPECT_EQ(Get(name).body, name);
  }
  PutParts("", {{"name=\"file\"; filename=\"" + Path("quo\\\"te\\\\\\b") + "\"", "q"}});
  EXPECT_EQ(ReadBack("quo\"te\\\\b"), "q");
}

TEST_F(FilesTest, MetadataIsReplacedWithEveryUpload) {
  Reply reply = Put("m", "x", {{"X-Metadata-Author", "me"}, {"x-metadata-b", "2"}});
  EXPECT_EQ(reply.Json().at(0).at("metadata"), (json::object{{"author", "me"}, {"b", "2"}}));
  auto stat = [&] {
    return Unary("filesystem.Filesystem/Stat", {{"path", Path("m")}})
        .Json()
        .at("entry")
        .as_object();
  };
  EXPECT_EQ(stat().at("metadata"), (json::object{{"author", "me"}, {"b", "2"}}));
  Put("m", "y", {{"X-Metadata-B", "3"}});
  EXPECT_EQ(stat().at("metadata"), (json::object{{"b", "3"}}));
  EXPECT_FALSE(Put("m", "z").Json().at(0).as_object().contains("metadata"));
  EXPECT_FALSE(stat().contains("metadata"));
  EXPECT_EQ(Put("m", "x", {{"X-Metadata-" + std::string(247, 'k'), "v"}}).status, 400u);
  EXPECT_EQ(Put("m", "x", {{"X-Metadata-K", std::string(5000, 'v')}}).status, 400u);
  EXPECT_EQ(Put("m", "x", {{"X-Metadata-K", "\xc3\xa4"}}).status, 400u);
  EXPECT_EQ(ReadBack("m"), "z");  // a refused upload touches nothing
}

TEST_F(FilesTest, ComposeJoinsAndRemoves) {
  WriteFile("1", "one ");
  WriteFile("2", std::string(200'000, '2'));
  WriteFile("3", "");
  auto compose = [&](json::object request) {
    return Http("POST", "/files/compose", {{"Content-Type", "application/json"}},
                json::serialize(request));
  };
  Reply reply = compose(
      {{"source_paths", {Path("1"), Path("2"), Path("3")}}, {"destination", Path("deep/all")}});
  ASSERT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(reply.Json(),
            (json::object{{"path", Path("deep/all")}, {"name", "all"}, {"type", "file"}}));
  EXPECT_TRUE(ReadBack("deep/all") == "one " + std::string(200'000, '2'));
  EXPECT_FALSE(std::filesystem::exists(Path("1")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("deep")), {}), 1);
  EXPECT_EQ(compose({{"source_paths", json::array()}, {"destination", "x"}}).status, 400u);
  EXPECT_EQ(compose({{"source_paths", {Path("none")}}, {"destination", Path("x")}}).status, 404u);
  EXPECT_EQ(compose({{"source_paths", {dir}}, {"destination", Path("x")}}).status, 400u);
  EXPECT_EQ(
      compose({{"source_paths", {Path("deep/all")}}, {"destination", Path("deep/all")}}).status,
      400u);
}

class SecuredFilesTest : public FilesTest {
 protected:
  SecuredFilesTest() { settings.access_token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"; }
  std::string Message(const Reply& reply) {
    EXPECT_EQ(reply.status, 401u);
    EXPECT_EQ(reply.Json().at("code").as_int64(), 401);
    return std::string(reply.Json().at("message").as_string());
  }
};

TEST_F(SecuredFilesTest, NeedATokenOrASignature) {
  WriteFile("f", "secret");
  EXPECT_EQ(Get("f", {{"X-Access-Token", settings.access_token}}).body, "secret");
  EXPECT_EQ(Message(Get("f", {{"X-Access-Token", "wrong"}})),
            "access token present in header but does not match");
  EXPECT_EQ(Message(Get("f")), "missing signature query parameter");
  auto get = [&](const std::string& operation, std::optional<std::string> until) {
    std::string signature =
        http::FileSigner(Path("f"), operation, "", until).Sign(settings.access_token);
    std::string target =
        "/files?path=" + PercentEncode(Path("f")) + "&signature=" + PercentEncode(signature);
    if (until) target += "&signature_expiration=" + *until;
    return Http("GET", target);
  };
  EXPECT_EQ(get("read", std::nullopt).body, "secret");
  EXPECT_EQ(Message(get("write", std::nullopt)), "invalid signature");
  EXPECT_EQ(get("read", std::to_string(time(nullptr) + 60)).body, "secret");
  Reply expired = get("read", std::to_string(time(nullptr) - 60));
  EXPECT_EQ(expired.body, R"({"code":401,"message":"signature is already expired"})");
}

TEST(Signature, MatchesTheKnownVector) {
  EXPECT_EQ(
      http::FileSigner("hello.txt", "read", "user", {}).Sign("0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"),
      "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

}  // namespace
}  // namespace caisson::envd
