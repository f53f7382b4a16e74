#include "engine/dns_message.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"

namespace caisson::engine {
namespace {

constexpr size_t kHeaderSize = 12;
constexpr size_t kMaxName = 255;
constexpr int kMaxAliases = 16;
constexpr uint16_t kTypeAlias = 5, kTypeOptions = 41, kClassInternet = 1;
// Of the second 16 bits of a message.
constexpr uint16_t kResponse = 0x8000, kOperation = 0x7800, kTruncated = 0x0200,
                   kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080,
                   kCheckingDisabled = 0x0010;
constexpr uint32_t kWantsProof = 0x8000;  // of an options record's time to live
constexpr uint16_t kUpstreamSize = 4096;  // what we take by UDP

// Reads from the front; once something is missing, everything is.
class Reader {
 public:
  Reader(std::string_view message, size_t at) : message_(message), at_(at) {}

  bool ok() const { return ok_; }
  bool compressed() const { return compressed_; }  // a name was read through a pointer
  size_t at() const { return at_; }
  uint8_t U8() { return Need(1) ? static_cast<uint8_t>(message_[at_++]) : uint8_t{0}; }
  uint16_t U16() {
    auto high = U8();
    return static_cast<uint16_t>(high << 8 | U8());
  }
  uint32_t U32() {
    auto high = U16();
    return uint32_t{high} << 16 | U16();
  }
  void Skip(size_t count) {
    if (Need(count)) at_ += count;
  }
  std::string Name();

 private:
  bool Need(size_t count) {
    if (ok_ && message_.size() - at_ < count) ok_ = false;
    return ok_;
  }

  std::string_view message_;
  size_t at_;
  bool ok_ = true;
  bool compressed_ = false;
};

void AppendLabel(std::string& name, std::string_view label) {
  if (!name.empty()) name += '.';
  for (char c : label) {
    auto byte = static_cast<unsigned char>(c);
    if (isalnum(byte) || c == '-' || c == '_')
      name += c;
    else
      name += fmt::format("\\{:03}", byte);
  }
}

std::string Reader::Name() {
  std::string name;
  size_t length = 0, at = at_;
  // A pointer may lead only to before where this name (or the part it led to) begins, so there is
  // no circle.
  size_t limit = at_;
  bool jumped = false;
  while (ok_) {
    if (at >= message_.size()) break;
    auto size = static_cast<unsigned char>(message_[at]);
    if (size == 0) {
      if (!jumped) at_ = at + 1;
      return name;
    }
    if ((size & 0xc0) == 0xc0) {
      if (at + 1 >= message_.size()) break;
      size_t target = (size & 0x3fu) << 8 | static_cast<unsigned char>(message_[at + 1]);
      if (!jumped) at_ = at + 2;
      jumped = compressed_ = true;
      if (target >= limit) break;
      limit = at = target;
      continue;
    }
    length += size + 1u;
    if (size > 63 || length >= kMaxName || at + 1 + size > message_.size()) break;
    AppendLabel(name, message_.substr(at + 1, size));
    at += size + 1u;
  }
  ok_ = false;
  return "";
}

void PutU16(std::string& out, unsigned value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}

std::string Header(uint16_t id, uint16_t flags, uint16_t additional) {
  std::string out;
  for (unsigned value : {unsigned{id}, unsigned{flags}, 1u, 0u, 0u, unsigned{additional}})
    PutU16(out, value);
  return out;
}

// An options record: how long an answer may be, and whether it shall come with its proof.
void AppendOptions(std::string& out, uint16_t size, bool wants_proof) {
  out += '\0';
  PutU16(out, kTypeOptions);
  PutU16(out, size);
  PutU16(out, 0);
  PutU16(out, wants_proof ? kWantsProof : 0);
  PutU16(out, 0);
}

uint16_t AnswerFlags(const DnsQuery& query) {
  return static_cast<uint16_t>(kResponse | kRecursionAvailable |
                               (query.recursion_desired ? kRecursionDesired : 0) |
                               (query.checking_disabled ? kCheckingDisabled : 0));
}

struct Record {
  std::string owner;
  uint16_t type = 0;
  std::string alias;   // of kTypeAlias
  DnsAddress address;  // of kDnsTypeA
};

// The addresses of `name`, in whatever order the records come.
std::vector<DnsAddress> Follow(const std::vector<Record>& records, std::string_view name) {
  std::set<std::string> names{ToLower(name)};
  for (int i = 0; i < kMaxAliases; ++i) {
    size_t before = names.size();
    for (const Record& record : records)
      if (record.type == kTypeAlias && names.contains(record.owner)) names.insert(record.alias);
    if (names.size() == before) break;
  }
  std::vector<DnsAddress> addresses;
  for (const Record& record : records)
    if (record.type == kDnsTypeA && names.contains(record.owner))
      addresses.push_back(record.address);
  return addresses;
}

}  // namespace

std::optional<DnsQuery> ParseDnsQuery(std::string_view message) {
  Reader reader(message, 0);
  DnsQuery query;
  query.id = reader.U16();
  uint16_t flags = reader.U16();
  uint16_t questions = reader.U16(), answers = reader.U16(), authorities = reader.U16();
  uint16_t additional = reader.U16();
  if (!reader.ok() || flags & (kResponse | kOperation) || questions != 1 || answers || authorities)
    return std::nullopt;
  query.recursion_desired = flags & kRecursionDesired;
  query.checking_disabled = flags & kCheckingDisabled;
  query.question = {reader.Name(), reader.U16(), reader.U16()};
  // SECURITY: a pointer would mean another name in the message we build from these bytes.
  if (!reader.ok() || reader.compressed()) return std::nullopt;
  query.question_bytes = message.substr(kHeaderSize, reader.at() - kHeaderSize);
  for (int i = 0; i < additional && reader.ok(); ++i) {
    reader.Name();
    uint16_t type = reader.U16(), klass = reader.U16();
    uint32_t ttl = reader.U32();
    reader.Skip(reader.U16());
    if (!reader.ok() || type != kTypeOptions) continue;
    query.extended = true;
    query.wants_proof = ttl & kWantsProof;
    query.max_size = std::max<size_t>(klass, kDnsPlainSize);
  }
  if (!reader.ok()) return std::nullopt;
  return query;
}

std::string BuildDnsQuery(const DnsQuery& query, uint16_t id) {
  auto flags = static_cast<uint16_t>((query.recursion_desired ? kRecursionDesired : 0) |
                                     (query.checking_disabled ? kCheckingDisabled : 0));
  std::string out = Header(id, flags, query.extended ? 1 : 0) + query.question_bytes;
  if (query.extended) AppendOptions(out, kUpstreamSize, query.wants_proof);
  return out;
}

std::string BuildDnsError(const DnsQuery& query, uint8_t code) {
  auto flags = static_cast<uint16_t>(AnswerFlags(query) | code);
  std::string out = Header(query.id, flags, query.extended ? 1 : 0) + query.question_bytes;
  if (query.extended) AppendOptions(out, kUpstreamSize, query.wants_proof);
  return out;
}

std::optional<DnsAnswer> ParseDnsAnswer(std::string_view message, const DnsQuery& query,
                                        uint16_t id) {
  Reader reader(message, 0);
  DnsAnswer answer{.id = reader.U16()};
  uint16_t flags = reader.U16();
  uint16_t questions = reader.U16(), records = reader.U16();
  reader.Skip(4);
  if (!reader.ok() || answer.id != id || !(flags & kResponse) || questions > 1) return std::nullopt;
  answer.code = flags & 0xf;
  answer.truncated = flags & kTruncated;
  if (questions == 1) {
    std::string asked = reader.Name();
    uint16_t type = reader.U16(), klass = reader.U16();
    if (!reader.ok() || !EqualsIgnoreCase(asked, query.question.name) ||
        type != query.question.type || klass != query.question.klass)
      return std::nullopt;
  }
  std::vector<Record> read;
  for (int i = 0; i < records; ++i) {
    Record record{.owner = ToLower(reader.Name()), .type = reader.U16()};
    uint16_t klass = reader.U16();
    record.address.ttl = reader.U32();
    uint16_t size = reader.U16();
    Reader inside(message, reader.at());
    reader.Skip(size);
    // What is missing of a truncated answer comes by TCP.
    if (!reader.ok()) return answer.truncated ? std::optional(answer) : std::nullopt;
    if (klass != kClassInternet) continue;
    if (record.type == kTypeAlias)
      record.alias = ToLower(inside.Name());
    else if (record.type == kDnsTypeA && size == 4)
      record.address.address = inside.U32();
    else
      continue;
    if (!inside.ok()) return std::nullopt;
    read.push_back(std::move(record));
  }
  answer.addresses = Follow(read, query.question.name);
  return answer;
}

std::string RelayDnsAnswer(std::string message, const DnsQuery& query, size_t max_size) {
  if (message.size() > max_size) {
    auto flags = static_cast<uint16_t>(AnswerFlags(query) | kTruncated);
    return Header(query.id, flags, 0) + query.question_bytes;
  }
  message[0] = static_cast<char>(query.id >> 8);
  message[1] = static_cast<char>(query.id);
  return message;
}

}  // namespace caisson::engine
