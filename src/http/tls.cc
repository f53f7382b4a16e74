#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "http/socket_stream.h"

namespace caisson::http {
namespace {

constexpr size_t kRecordBytes = 16 << 10;

// Takes OpenSSL's last error off its queue.
std::string OpensslReason() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code ? ERR_reason_error_string(code) : nullptr;
  return reason ? reason : "unknown reason";
}

// The socket stream with OpenSSL between the bytes and the socket.
class TlsStream final : public SocketStream {
 public:
  using SocketStream::SocketStream;

  Status OpenTls(SSL_CTX* context, UniqueFd socket) {
    TRY(Open(std::move(socket)));
    ssl_.reset(SSL_new(context));
    if (!ssl_ || SSL_set_fd(ssl_.get(), fd()) != 1)
      return Fail(Code::kInternal, "starting TLS: {}", OpensslReason());
    return {};
  }
  void BeServer() { SSL_set_accept_state(ssl_.get()); }
  // The server must prove that it is `host`, a name or an address.
  void BeClient(const std::string& host) {
    SSL_set_connect_state(ssl_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1) return;
    ERR_clear_error();
    SSL_set1_host(ssl_.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
  }

  Task<Status> Handshake() {
    for (;;) {
      ERR_clear_error();
      int result = SSL_do_handshake(ssl_.get());
      if (result == 1) co_return Status();
      int error = SSL_get_error(ssl_.get(), result);
      if (error == SSL_ERROR_WANT_READ) {
        CO_TRY(co_await SocketStream::WaitReadable());
      } else if (error == SSL_ERROR_WANT_WRITE) {
        CO_TRY(co_await WaitWritable());
      } else {
        co_return HandshakeFailure();
      }
    }
  }

  Result<size_t> TryRead(std::span<char> buffer) override {
    TRY(CheckOpen());
    size_t n = 0;
    if (SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &n) != 1)
      return FromSsl("reading from a TLS connection");
    Progress();
    return n;
  }

  // OpenSSL may hold decrypted bytes that the socket knows nothing of.
  Task<Status> WaitReadable() override {
    if (SSL_pending(ssl_.get()) > 0) co_return Status();
    co_return co_await SocketStream::WaitReadable();
  }

  Task<Status> SendFile(int file, uint64_t offset, uint64_t size) override {
    std::string buffer(std::min<uint64_t>(size, 4 * kRecordBytes), '\0');
    while (size > 0) {
      ssize_t n = pread(file, buffer.data(), std::min<uint64_t>(size, buffer.size()),
                        static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) co_return FailErrno("reading a file");
      if (n == 0) co_return Fail(Code::kDataLoss, "the file became shorter while it was sent");
      CO_TRY(co_await Write(std::string_view(buffer.data(), static_cast<size_t>(n)), {}, {}));
      offset += static_cast<uint64_t>(n);
      size -= static_cast<uint64_t>(n);
    }
    co_return Status();
  }

  Task<void> ShutdownWrite() override {
    if (fd() >= 0) {
      ERR_clear_error();
      SSL_shutdown(ssl_.get());
      shutdown(fd(), SHUT_WR);
    }
    co_return;
  }

  // Says goodbye when the end is meant: without it, a body that ends with the connection looks cut.
  void Close(bool reset) override {
    if (fd() >= 0 && !reset && SSL_is_init_finished(ssl_.get())) {
      ERR_clear_error();
      SSL_shutdown(ssl_.get());
    }
    SocketStream::Close(reset);
  }

  int PlainSocket() const override { return -1; }

 protected:
  // A head and a small body make one record. A write that has to wait is repeated with the same
  // bytes, as OpenSSL demands: the parts advance only by what was taken.
  Result<size_t> TryWrite(Parts parts) override {
    TRY(CheckOpen());
    std::string joined;
    std::string_view data;
    for (std::string_view part : parts) {
      if (part.empty()) continue;
      if (data.empty()) {
        data = part;
      } else if (data.size() < kRecordBytes) {
        if (joined.empty()) joined = data;
        data = joined += part.substr(0, kRecordBytes - joined.size());
      }
    }
    size_t n = 0;
    if (SSL_write_ex(ssl_.get(), data.data(), data.size(), &n) != 1) {
      auto result = FromSsl("writing to a TLS connection");
      if (result) return Fail(Code::kUnavailable, "the other side closed the connection");
      return result;
    }
    Progress();
    return n;
  }

 private:
  // Whose certificate is not good, or is somebody else's, will not have a better one in a moment.
  tl::unexpected<Error> HandshakeFailure() {
    std::string reason = OpensslReason();
    long verified = SSL_get_verify_result(ssl_.get());
    if (verified == X509_V_OK) return Fail(Code::kUnavailable, "TLS handshake: {}", reason);
    return Fail(Code::kFailedPrecondition, "its certificate is not accepted: {}",
                X509_verify_cert_error_string(verified));
  }

  // SECURITY: after Close() the descriptor number may belong to another connection.
  Status CheckOpen() {
    if (fd() < 0) return Fail(Code::kCanceled, "the connection is closed");
    ERR_clear_error();
    return {};
  }

  // 0 at an orderly end.
  Result<size_t> FromSsl(std::string_view doing) {
    int saved = errno;
    switch (SSL_get_error(ssl_.get(), 0)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return tl::unexpected(ErrnoError(std::string(doing), EAGAIN));
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      case SSL_ERROR_SYSCALL:
        return tl::unexpected(ErrnoError(std::string(doing), saved ? saved : ECONNRESET));
      default:
        return Fail(Code::kUnavailable, "{}: {}", doing, OpensslReason());
    }
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, Free> ssl_;
};

int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* in, unsigned in_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  auto* chosen = const_cast<unsigned char**>(out);
  bool common = SSL_select_next_proto(chosen, out_size, kOurs, sizeof(kOurs) - 1, in, in_size) ==
                OPENSSL_NPN_NEGOTIATED;
  return common ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::shared_ptr<SSL_CTX> MakeContext(const SSL_METHOD* method) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // An end without close_notify is an end: HTTP's own framing tells whether a message is whole.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");  // TLS 1.2
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseProtocol, nullptr);
  return context;
}

Task<Result<std::unique_ptr<Stream>>> Accept(std::shared_ptr<SSL_CTX> context,
                                             asio::any_io_executor executor, UniqueFd socket,
                                             std::chrono::milliseconds timeout) {
  auto stream = std::make_unique<TlsStream>(executor);
  CO_TRY(stream->OpenTls(context.get(), std::move(socket)));
  stream->BeServer();
  CO_TRY(co_await WithDeadline(timeout, "TLS handshake", stream->Handshake()));
  co_return std::move(stream);
}

}  // namespace

Result<StreamFactory> TlsFromFiles(const std::string& cert_file, const std::string& key_file,
                                   std::chrono::milliseconds handshake_timeout) {
  auto context = MakeContext(TLS_server_method());
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), cert_file.c_str()) != 1)
    return Fail(Code::kInvalidArgument, "no usable TLS certificate in {}: {}", cert_file,
                OpensslReason());
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return Fail(Code::kInvalidArgument, "no usable TLS key for {} in {}: {}", cert_file, key_file,
                OpensslReason());
  return StreamFactory(
      [context, handshake_timeout](asio::any_io_executor executor, UniqueFd socket) {
        return Accept(context, std::move(executor), std::move(socket), handshake_timeout);
      });
}

namespace {

Task<Result<std::unique_ptr<Stream>>> Greet(std::shared_ptr<SSL_CTX> context, UniqueFd socket,
                                            std::string host) {
  auto stream = std::make_unique<TlsStream>(co_await asio::this_coro::executor);
  CO_TRY(stream->OpenTls(context.get(), std::move(socket)));
  stream->BeClient(host);
  CO_TRY(co_await stream->Handshake());
  co_return std::move(stream);
}

Task<Result<std::unique_ptr<Stream>>> DialTls(std::shared_ptr<SSL_CTX> context, std::string name,
                                              HostPort where, AddressCheck check) {
  CO_TRY_ASSIGN(UniqueFd socket, co_await Dial(where, std::move(check)));
  co_return co_await Greet(std::move(context), std::move(socket), std::move(name));
}

}  // namespace

Task<Result<std::unique_ptr<ClientConnection>>> ConnectTls(
    std::string host_port, std::string ca_file, std::chrono::milliseconds timeout,
    ClientOptions options, AddressCheck check, std::string dialled) {
  CO_TRY_ASSIGN(HostPort named, ParseHostPort(host_port));
  CO_TRY_ASSIGN(HostPort where, ParseHostPort(dialled.empty() ? host_port : dialled));
  auto context = MakeContext(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(context.get());
  ERR_clear_error();
  if (!ca_file.empty() &&
      SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) != 1)
    co_return Fail(Code::kInvalidArgument, "no usable authority in {}: {}", ca_file,
                   OpensslReason());
  CO_TRY_ASSIGN(auto stream, co_await WithDeadline<std::unique_ptr<Stream>>(
                                 timeout, fmt::format("connecting to {}", host_port),
                                 DialTls(std::move(context), std::move(named.host),
                                         std::move(where), std::move(check))));
  co_return std::make_unique<ClientConnection>(std::move(stream), options);
}

Task<Result<std::unique_ptr<Stream>>> StartUncheckedTls(UniqueFd socket,
                                                        std::chrono::milliseconds timeout) {
  static const std::shared_ptr<SSL_CTX> context = MakeContext(TLS_client_method());
  co_return co_await WithDeadline<std::unique_ptr<Stream>>(
      timeout, "TLS handshake", Greet(context, std::move(socket), "localhost"));
}

}  // namespace caisson::http
