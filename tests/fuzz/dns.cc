// What a sandbox sends to its resolver, what nameservers answer, and the packets it is refused.
#include "engine/dns_message.h"
#include "engine/egress.h"
#include "engine/packet_log.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  using namespace caisson::engine;
  std::string_view message(reinterpret_cast<const char*>(data), size);
  (void)ParseRefusedPacket(message);
  if (auto query = ParseDnsQuery(message)) {
    auto again = ParseDnsQuery(BuildDnsQuery(*query, 7));
    // SECURITY: the name that was checked is the name that is asked for.
    fuzz::Check(again && again->question.name == query->question.name &&
                    again->question.type == query->question.type,
                "the question changed on its way");
    (void)MatchesHost("*.example.com", query->question.name);
    fuzz::Check(RelayDnsAnswer(BuildDnsError(*query, 3), *query, 65535).size() >= 12,
                "an answer without a header");
  }
  static const DnsQuery asked =
      *ParseDnsQuery(std::string_view("\0\7\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1", 27));
  if (auto answer = ParseDnsAnswer(message, asked, 7))
    fuzz::Check(answer->addresses.size() <= size / 14, "more addresses than bytes");
  return 0;
}
