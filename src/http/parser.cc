#include "http/parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

#include "base/text.h"

namespace caisson::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::error;
using Text = beast::string_view;

std::string_view View(Text text) { return {text.data(), text.size()}; }

Error ToError(const error_code& ec) {
  if (ec == error::header_limit) return Error(Code::kOutOfRange, "the header is too large");
  if (ec == error::bad_version)
    return Error(Code::kFailedPrecondition, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  return Error(Code::kInvalidArgument, fmt::format("not a valid HTTP message: {}", ec.message()));
}

}  // namespace

// What both directions share, so that MessageParser needs no template.
class MessageParser::Impl {
 public:
  virtual ~Impl() = default;
  virtual size_t Put(std::string_view data, error_code& ec) = 0;
  virtual bool HeadDone() const = 0;
  virtual bool Done() const = 0;
  virtual void Finish() = 0;  // reads framing and keep_alive off the parser
  virtual Status Check() const = 0;

  size_t header_bytes = 0;
  size_t max_header_bytes = 0;
  bool chunk_seen = false;
  std::span<char> out;  // where payload goes during ParseChunks
  size_t produced = 0;
  BodyFraming framing = BodyFraming::kNone;
  uint64_t content_length = 0;
  bool keep_alive = false;
  unsigned version = 11;
};

template <bool kIsRequest>
class MessageParser::Beast final : public MessageParser::Impl,
                                   public beast::http::basic_parser<kIsRequest> {
  using Base = beast::http::basic_parser<kIsRequest>;
  using Head = std::conditional_t<kIsRequest, RequestHead, ResponseHead>;

 public:
  Beast(Head& head, size_t limit, bool no_body) : head_(head) {
    max_header_bytes = limit;
    this->header_limit(static_cast<uint32_t>(limit));
    this->body_limit(boost::none);
    this->skip(no_body);
  }

  size_t Put(std::string_view data, error_code& ec) override {
    return this->put(asio_buffer(data), ec);
  }
  bool HeadDone() const override { return this->is_header_done(); }
  bool Done() const override { return this->is_done(); }

  void Finish() override {
    this->eager(true);
    keep_alive = this->keep_alive_wanted();
    if (this->is_done()) {
      framing = BodyFraming::kNone;
    } else if (this->chunked()) {
      framing = BodyFraming::kChunked;
    } else if (auto length = this->Base::content_length()) {
      framing = BodyFraming::kLength;
      content_length = *length;
    } else {
      framing = BodyFraming::kUntilClose;
    }
  }

  // SECURITY: a proxy and this server must agree about where a message ends. Beast refuses
  // Content-Length beside chunked, unequal lengths and malformed chunks; the rest is here.
  Status Check() const override {
    bool has_coding = false;
    size_t hosts = 0;
    for (const auto& [name, value] : head_.headers) {
      if (EqualsIgnoreCase(name, "Host")) ++hosts;
      if (!EqualsIgnoreCase(name, "Transfer-Encoding")) continue;
      if (has_coding || !EqualsIgnoreCase(Trim(value), "chunked"))
        return Fail(Code::kUnimplemented, "the only transfer coding spoken here is \"chunked\"");
      has_coding = true;
    }
    if (has_coding && head_.headers.Has("Content-Length"))
      return Fail(Code::kInvalidArgument,
                  "Content-Length and Transfer-Encoding exclude each other");
    if (has_coding && version == 10)
      return Fail(Code::kInvalidArgument, "HTTP/1.0 has no Transfer-Encoding");
    if (kIsRequest && (hosts > 1 || (hosts == 0 && version == 11)))
      return Fail(Code::kInvalidArgument, "a request needs exactly one Host header");
    return {};
  }

 private:
  static boost::asio::const_buffer asio_buffer(std::string_view data) {
    return {data.data(), data.size()};
  }
  bool keep_alive_wanted() const {
    return this->Base::keep_alive() ||
           // Beast says no for bodies that end with the connection; that is framing's matter.
           (this->need_eof() && version == 11 && !head_.headers.HasToken("Connection", "close"));
  }

  void on_request_impl(beast::http::verb, Text method, Text target, int http_version,
                       error_code&) override {
    if constexpr (kIsRequest) {
      head_.method = View(method);
      head_.target = View(target);
      head_.version = static_cast<unsigned>(http_version);
    }
    version = static_cast<unsigned>(http_version);
  }
  void on_response_impl(int code, Text, int http_version, error_code&) override {
    if constexpr (!kIsRequest) head_.status = static_cast<unsigned>(code);
    version = static_cast<unsigned>(http_version);
  }
  void on_field_impl(beast::http::field, Text name, Text value, error_code&) override {
    // Trailers arrive here too; nobody asked for them.
    if (!this->is_header_done()) head_.headers.Add(View(name), View(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(Text, error_code& ec) override {
    ec = error::unexpected_body;  // bodies with a length never pass through the parser
    return 0;
  }
  void on_chunk_header_impl(uint64_t, Text, error_code&) override { chunk_seen = true; }
  size_t on_chunk_body_impl(uint64_t, Text body, error_code& ec) override {
    size_t n = std::min(body.size(), out.size() - produced);
    std::memcpy(out.data() + produced, body.data(), n);
    produced += n;
    if (n < body.size()) ec = error::need_buffer;
    return n;
  }
  void on_finish_impl(error_code&) override {}

  Head& head_;
};

MessageParser::MessageParser(RequestHead& head, size_t max_header_bytes)
    : impl_(std::make_unique<Beast<true>>(head, max_header_bytes, false)) {}
MessageParser::MessageParser(ResponseHead& head, size_t max_header_bytes, bool no_body)
    : impl_(std::make_unique<Beast<false>>(head, max_header_bytes, no_body)) {}
MessageParser::~MessageParser() = default;
MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser& MessageParser::operator=(MessageParser&&) noexcept = default;

Result<size_t> MessageParser::ParseHead(std::string_view data) {
  error_code ec;
  size_t used = impl_->Put(data, ec);
  // Beast's own limit looks only at what is left in the buffer.
  impl_->header_bytes += used;
  if (impl_->header_bytes > impl_->max_header_bytes ||
      (ec == error::need_more && data.size() - used >= impl_->max_header_bytes))
    return tl::unexpected(ToError(error::header_limit));
  // Beast blames the version for a line that ends without CR, too.
  if (ec == error::bad_version && data.substr(0, data.find('\n')).ends_with("HTTP/1.1"))
    ec = error::bad_line_ending;
  if (ec && ec != error::need_more) return tl::unexpected(ToError(ec));
  if (impl_->HeadDone()) {
    TRY(impl_->Check());
    impl_->Finish();
  }
  return used;
}

Result<MessageParser::Step> MessageParser::ParseChunks(std::string_view data, std::span<char> out) {
  // SECURITY: Beast asserts that an empty body, "0\r\n\r\n", never ends in a piece of four bytes.
  constexpr size_t kSmallestBody = 5;
  if (!impl_->chunk_seen && data.size() < kSmallestBody) return Step{};
  impl_->out = out;
  impl_->produced = 0;
  Step step;
  error_code ec;
  step.consumed = impl_->Put(data, ec);
  step.produced = impl_->produced;
  impl_->out = {};
  if (ec && ec != error::need_more && ec != error::need_buffer) return tl::unexpected(ToError(ec));
  return step;
}

bool MessageParser::head_done() const { return impl_->HeadDone(); }
BodyFraming MessageParser::framing() const { return impl_->framing; }
uint64_t MessageParser::content_length() const { return impl_->content_length; }
bool MessageParser::keep_alive() const { return impl_->keep_alive; }
unsigned MessageParser::version() const { return impl_->version; }
bool MessageParser::chunks_done() const { return impl_->Done(); }

}  // namespace caisson::http
