// DNS messages (RFC 1035) as far as a forwarder must understand them. Both sides are strangers: the
// queries come out of sandboxes. Every function takes any bytes, reads nothing twice and follows no
// pointer forward, so its time is bounded by the length of the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::engine {

inline constexpr uint16_t kDnsTypeA = 1;
inline constexpr uint8_t kDnsNameError = 3;  // "there is no such name"
inline constexpr uint8_t kDnsServerFailure = 2;
inline constexpr uint8_t kDnsRefused = 5;
// What a client may be sent over UDP if it says nothing else.
inline constexpr size_t kDnsPlainSize = 512;

struct DnsQuestion {
  std::string name;  // without the final dot; "" = the root. Bytes other than letters, digits, '-'
                     // and '_' are written as \ddd.
  uint16_t type = 0;
  uint16_t klass = 0;
};

struct DnsQuery {
  uint16_t id = 0;
  DnsQuestion question;
  std::string question_bytes;  // as they came, for the answer
  bool recursion_desired = false;
  bool checking_disabled = false;
  bool extended = false;            // speaks EDNS
  bool wants_proof = false;         // DNSSEC records
  size_t max_size = kDnsPlainSize;  // of an answer by UDP
};
// A query with exactly one question; nothing for anything else.
std::optional<DnsQuery> ParseDnsQuery(std::string_view message);

// The same question as a message of our own under another id: nothing else of what the client
// wrote goes on.
std::string BuildDnsQuery(const DnsQuery& query, uint16_t id);
// An answer without records.
std::string BuildDnsError(const DnsQuery& query, uint8_t code);

struct DnsAddress {
  uint32_t address = 0;  // host byte order
  uint32_t ttl = 0;      // seconds
};
struct DnsAnswer {
  uint16_t id = 0;
  uint8_t code = 0;
  bool truncated = false;
  // Of the name asked for, also through aliases.
  std::vector<DnsAddress> addresses;
};
// An answer to the query (whose id was `id`); nothing if it is not one, or broken.
std::optional<DnsAnswer> ParseDnsAnswer(std::string_view message, const DnsQuery& query,
                                        uint16_t id);
// The upstream server's message as the answer to the client's query: under the client's id, and cut
// to the bare question, marked as truncated, if it is longer than `max_size`.
std::string RelayDnsAnswer(std::string message, const DnsQuery& query, size_t max_size);

}  // namespace caisson::engine
