#include "http/tls.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/id.h"
#include "http/test_support.h"

namespace caisson::http {
namespace {

class Tls : public testing::Test {
 protected:
  Tls() : dir_(std::filesystem::temp_directory_path() / RandomId("caisson-tls-", 8)) {}
  ~Tls() override { std::filesystem::remove_all(dir_); }
  LocalAuthority Ensure(const std::string& domain) {
    auto made = EnsureLocalAuthority(dir_, domain);
    EXPECT_TRUE(made) << made.error().message();
    return made.value_or(LocalAuthority{});
  }
  StreamFactory Factory(std::chrono::milliseconds timeout = 30s) {
    auto files = Ensure("caisson.localhost");
    ca_file_ = files.ca_file;
    return TlsFromFiles(files.cert_file, files.key_file, timeout).value();
  }
  std::string dir_;
  std::string ca_file_;
};

// A blocking OpenSSL client that checks the certificate for `host`.
class TlsClient {
 public:
  TlsClient(uint16_t port, const std::string& ca_file, const std::string& host,
            int max_version = TLS1_3_VERSION, std::string alpn = "\x02h2\x08http/1.1")
      : socket_(port), context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr) {
    SSL_CTX_load_verify_locations(context_, ca_file.c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context_, max_version);
    ssl_ = SSL_new(context_);
    if (isdigit(host[0])) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), host.c_str());
    } else {
      SSL_set1_host(ssl_, host.c_str());
      SSL_set_tlsext_host_name(ssl_, host.c_str());
    }
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                        static_cast<unsigned>(alpn.size()));
    SSL_set_fd(ssl_, socket_.fd());
    connected_ = SSL_connect(ssl_) == 1;
    ERR_clear_error();
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool connected() const { return connected_; }
  // The last Read() met close_notify.
  bool ended_well() const { return ended_well_; }
  std::string Protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return std::string(reinterpret_cast<const char*>(name), size);
  }
  void Send(std::string_view bytes) {
    EXPECT_EQ(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  // Until `enough` bytes or the end.
  std::string Read(size_t enough = SIZE_MAX) {
    std::string all;
    char buffer[16 << 10];
    for (int n; all.size() < enough && (n = SSL_read(ssl_, buffer, sizeof(buffer))) > 0;)
      all.append(buffer, static_cast<size_t>(n));
    ended_well_ = SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN;
    ERR_clear_error();
    return all;
  }

 private:
  RawClient socket_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_ = false;
  bool ended_well_ = false;
};

TEST_F(Tls, ServesThoseWhoTrustTheAuthority) {
  TestServer server(EchoHandler, {}, Factory());
  for (const char* host : {"caisson.localhost", "3000-iabc.caisson.localhost",
                           "api.caisson.localhost", "localhost", "127.0.0.1"}) {
    TlsClient client(server.port(), ca_file_, host);
    ASSERT_TRUE(client.connected()) << host;
    EXPECT_EQ(client.Protocol(), "http/1.1");
    for (int i = 0; i < 2; ++i) {
      client.Send("POST /tls HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
      EXPECT_TRUE(client.Read(1).ends_with("POST /tls hi"));
    }
    client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(client.Read().ends_with("GET / "));
  }
  EXPECT_FALSE(TlsClient(server.port(), ca_file_, "other.example").connected());
}

Task<void> FetchByTls(std::string host_port, std::string ca_file, Result<Response>& answer) {
  auto connection = co_await ConnectTls(host_port, ca_file, 30s);
  if (!connection) {
    answer = tl::unexpected(connection.error());
    co_return;
  }
  RequestHead head{.method = "POST", .target = "/mine"};
  answer = co_await (*connection)->Fetch(std::move(head), std::string(100'000, 'x'), 1 << 20);
}

TEST_F(Tls, OurOwnClientChecksTheServer) {
  TestServer server(EchoHandler, {}, Factory());
  auto fetch = [&](std::string host, std::string ca_file) {
    Result<Response> answer = Fail(Code::kUnknown, "not asked");
    std::string where = fmt::format("{}:{}", host, server.port());
    server.loop().Run(FetchByTls(where, ca_file, answer));
    return answer;
  };
  for (std::string host : {"localhost", "127.0.0.1"}) {
    auto answer = fetch(host, ca_file_);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_TRUE(answer->body.starts_with("POST /mine xxx"));
  }
  auto unknown = fetch("127.0.0.1", "");
  ASSERT_FALSE(unknown) << "nobody vouches for it";
  EXPECT_EQ(unknown.error().code(), Code::kFailedPrecondition);
  auto other = fetch("127.1", ca_file_);
  ASSERT_FALSE(other) << "the same server under a name it has no proof for";
  EXPECT_EQ(other.error().message(), "its certificate is not accepted: hostname mismatch");
}

Task<void> StreamAndCut(Exchange& exchange) {
  EXPECT_TRUE(co_await exchange.StartStream({}, std::nullopt, "all of it"));
  if (exchange.request().target == "/cut") co_return;
  EXPECT_TRUE(co_await exchange.FinishStream());
}

TEST_F(Tls, OnlyWholeAnswersEndWithAGoodbye) {
  TestServer server(StreamAndCut, {}, Factory());
  for (bool whole : {true, false}) {
    TlsClient client(server.port(), ca_file_, "localhost");
    client.Send(whole ? "GET / HTTP/1.0\r\n\r\n" : "GET /cut HTTP/1.0\r\n\r\n");
    client.Read();
    EXPECT_EQ(client.ended_well(), whole);
  }
}

TEST_F(Tls, RefusesOldVersionsAndOtherProtocols) {
  TestServer server(EchoHandler, {}, Factory());
  EXPECT_TRUE(TlsClient(server.port(), ca_file_, "localhost", TLS1_2_VERSION).connected());
  EXPECT_FALSE(TlsClient(server.port(), ca_file_, "localhost", TLS1_1_VERSION).connected());
  EXPECT_FALSE(
      TlsClient(server.port(), ca_file_, "localhost", TLS1_3_VERSION, "\x02h2").connected());
  RawClient plain(server.port());
  plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadAnswer().status, 0u);
  EXPECT_TRUE(server.WaitForConnections(0));
}

TEST_F(Tls, HandshakesHaveADeadline) {
  TestServer server(EchoHandler, {}, Factory(100ms));
  RawClient silent(server.port());
  EXPECT_EQ(silent.ReadToEnd(), "");
}

Task<void> SendBig(Exchange& exchange) {
  EXPECT_TRUE(exchange.IsTls());
  auto body = co_await exchange.ReadAll(4 << 20);
  UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), body->data(), body->size()), static_cast<ssize_t>(body->size()));
  EXPECT_TRUE(co_await exchange.StartStream({}, 2 * body->size()));
  EXPECT_TRUE(co_await exchange.Write(*body));
  EXPECT_TRUE(co_await exchange.SendFile(file.get(), 0, body->size()));
  EXPECT_TRUE(co_await exchange.FinishStream());
}

TEST_F(Tls, CarriesLargeBodies) {
  TestServer server(SendBig, {}, Factory());
  TlsClient client(server.port(), ca_file_, "localhost");
  std::string body(3 << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i % 251);
  client.Send(
      fmt::format("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                  body.size()));
  client.Send(body);
  std::string answer = client.Read();
  size_t at = answer.find("\r\n\r\n");
  ASSERT_NE(at, std::string::npos);
  EXPECT_TRUE(answer.substr(at + 4) == body + body) << answer.size();
}

Task<void> WaitUntilGone(Exchange& exchange, std::promise<void>& gone) {
  EXPECT_TRUE(co_await exchange.StartStream({}, std::nullopt));
  co_await exchange.ClientGone();
  gone.set_value();
}

TEST_F(Tls, NoticesThatTheClientIsGone) {
  std::promise<void> gone;
  Handler handler = [&gone](Exchange& exchange) { return WaitUntilGone(exchange, gone); };
  TestServer server(handler, {}, Factory());
  {
    TlsClient client(server.port(), ca_file_, "localhost");
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(client.Read(1), "");
  }
  EXPECT_EQ(gone.get_future().wait_for(30s), std::future_status::ready);
}

unsigned ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST_F(Tls, TheAuthorityIsMadeOnce) {
  auto files = Ensure("caisson.localhost");
  EXPECT_EQ(ModeOf(files.key_file), 0600u);
  EXPECT_EQ(ModeOf(dir_ + "/ca.key"), 0600u);
  EXPECT_EQ(ModeOf(files.ca_file), 0644u);
  auto ca = ReadFile(files.ca_file).value();
  auto cert = ReadFile(files.cert_file).value();
  Ensure("caisson.localhost:8443");  // the port does not matter
  EXPECT_EQ(ReadFile(files.ca_file).value(), ca);
  EXPECT_EQ(ReadFile(files.cert_file).value(), cert);
  // The authority speaks for one domain only.
  Ensure("other.localhost");
  EXPECT_NE(ReadFile(files.ca_file).value(), ca);
  EXPECT_NE(ReadFile(files.cert_file).value(), cert);
  // A damaged key is replaced.
  ASSERT_TRUE(WriteFileAtomic(files.key_file, "no key", 0600));
  Ensure("other.localhost");
  EXPECT_TRUE(TlsFromFiles(files.cert_file, files.key_file, 1s));
}

TEST_F(Tls, SaysWhichFileIsWrong) {
  auto files = Ensure("caisson.localhost");
  auto missing = TlsFromFiles(dir_ + "/none.pem", files.key_file, 1s);
  EXPECT_NE(missing.error().message().find("none.pem"), std::string::npos);
  auto mismatch = TlsFromFiles(files.cert_file, dir_ + "/ca.key", 1s);
  EXPECT_NE(mismatch.error().message().find("ca.key"), std::string::npos);
  EXPECT_EQ(EnsureLocalAuthority(dir_, "a,DNS:evil").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace caisson::http
