#include "engine/dns_message.h"

#include <gtest/gtest.h>

#include "base/encoding.h"

namespace caisson::engine {
namespace {

std::string U16(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string Name(std::string_view dotted) {
  std::string out;
  while (!dotted.empty()) {
    size_t dot = std::min(dotted.find('.'), dotted.size());
    out += static_cast<char>(dot);
    out += dotted.substr(0, dot);
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
  }
  return out + '\0';
}

std::string Head(unsigned id, unsigned flags, unsigned answers = 0, unsigned additional = 0) {
  return U16(id) + U16(flags) + U16(1) + U16(answers) + U16(0) + U16(additional);
}

std::string Question(std::string_view name, unsigned type = kDnsTypeA) {
  return Name(name) + U16(type) + U16(1);
}

std::string Record(const std::string& owner, unsigned type, unsigned ttl, const std::string& data) {
  return owner + U16(type) + U16(1) + U16(0) + U16(ttl) + U16(static_cast<unsigned>(data.size())) +
         data;
}

DnsQuery Query(std::string_view name) { return *ParseDnsQuery(Head(7, 0x0100) + Question(name)); }

TEST(DnsMessage, ReadsAQuery) {
  auto query = ParseDnsQuery(Head(0x1234, 0x0110) + Question("WWW.Example.com", 28));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->id, 0x1234);
  EXPECT_EQ(query->question.name, "WWW.Example.com");
  EXPECT_EQ(query->question.type, 28);
  EXPECT_TRUE(query->recursion_desired);
  EXPECT_TRUE(query->checking_disabled);
  EXPECT_FALSE(query->extended);
  EXPECT_EQ(query->max_size, kDnsPlainSize);
  std::string options = std::string(1, '\0') + U16(41) + U16(1232) + U16(0) + U16(0x8000) + U16(0);
  query = ParseDnsQuery(Head(1, 0, 0, 1) + Question("a.b") + options);
  ASSERT_TRUE(query);
  EXPECT_TRUE(query->extended);
  EXPECT_TRUE(query->wants_proof);
  EXPECT_EQ(query->max_size, 1232u);
}

TEST(DnsMessage, OddBytesInALabelAreNoDots) {
  auto query =
      ParseDnsQuery(Head(1, 0) + std::string("\x0b") + "example.com" + '\0' + U16(1) + U16(1));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->question.name, "example\\046com");
}

TEST(DnsMessage, RefusesWhatIsNoQuery) {
  std::string good = Head(1, 0x0100) + Question("a.example");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(ParseDnsQuery(good.substr(0, size))) << size;
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0x8000) + Question("a.example")));    // an answer
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0x2800) + Question("a.example")));    // an update
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0, 1) + Question("a.example")));      // has answers
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0) + "\xc0\x0c" + U16(1) + U16(1)));  // points to itself
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0) + "\xc0\x02" + U16(1) + U16(1)));  // into the header
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0) +
                             "\x01"
                             "a\xc0\x0c" +
                             U16(1) + U16(1)));  // a circle
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0) + "\x40" + std::string(64, 'a') + '\0' + U16(1) + U16(1)));
  std::string longest;
  for (int i = 0; i < 128; ++i) longest += "a.";
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0) + Question(longest + "a")));
  EXPECT_FALSE(ParseDnsQuery(Head(1, 0, 0, 1) + Question("a.b")));  // a record is missing
}

TEST(DnsMessage, AsksTheSameQuestionInItsOwnWords) {
  DnsQuery query = *ParseDnsQuery(Head(7, 0x0100) + Question("a.example"));
  EXPECT_EQ(BuildDnsQuery(query, 0x4242), Head(0x4242, 0x0100) + Question("a.example"));
  auto again = ParseDnsQuery(BuildDnsQuery(query, 9));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->question.name, "a.example");
  std::string error = BuildDnsError(query, kDnsNameError);
  EXPECT_EQ(error, Head(7, 0x8183) + Question("a.example"));
}

TEST(DnsMessage, FindsTheAddressesOfTheNameOnly) {
  DnsQuery query = Query("www.a.example");
  std::string pointer("\xc0\x0c");
  std::string message = Head(9, 0x8180, 5) + Question("www.A.example") +
                        // Out of order, as some servers answer.
                        Record(Name("cdn.example"), 1, 30, std::string("\x01\x02\x03\x04")) +
                        Record(pointer, 5, 300, Name("cdn.example")) +
                        Record(Name("other.example"), 1, 60, std::string("\x09\x09\x09\x09")) +
                        Record(Name("CDN.example"), 1, 70, std::string("\x05\x06\x07\x08")) +
                        Record(pointer, 28, 70, std::string(16, 'x'));
  auto answer = ParseDnsAnswer(message, query, 9);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->addresses.size(), 2u);
  EXPECT_EQ(answer->addresses[0].address, 0x01020304u);
  EXPECT_EQ(answer->addresses[0].ttl, 30u);
  EXPECT_EQ(answer->addresses[1].address, 0x05060708u);
  for (size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(ParseDnsAnswer(message.substr(0, size), query, 9)) << size;
  EXPECT_FALSE(ParseDnsAnswer(message, query, 8));               // another id
  EXPECT_FALSE(ParseDnsAnswer(message, Query("b.example"), 9));  // another question
  EXPECT_FALSE(ParseDnsAnswer(Head(9, 0x0100) + Question("www.a.example"), query, 9));
}

TEST(DnsMessage, RelaysAnAnswerUnderTheClientsId) {
  DnsQuery query = Query("a.example");
  std::string message = Head(9, 0x8180, 0) + Question("a.example");
  std::string relayed = RelayDnsAnswer(message, query, 512);
  EXPECT_EQ(relayed, Head(7, 0x8180) + Question("a.example"));
  std::string cut = RelayDnsAnswer(message + std::string(600, 'x'), query, 512);
  EXPECT_EQ(cut, Head(7, 0x8380) + Question("a.example"));
}

TEST(DnsMessage, TakesAnyBytes) {
  // Every single byte of a good answer changed to a few others: no crash, no endless loop.
  std::string good = Head(9, 0x8180, 2) + Question("a.example") +
                     Record("\xc0\x0c", 5, 1, Name("b.example")) +
                     Record(Name("b.example"), 1, 1, "abcd");
  DnsQuery query = Query("a.example");
  for (size_t at = 0; at < good.size(); ++at)
    for (char c : {'\0', '\x3f', '\x40', '\xc0', '\xff'}) {
      std::string bad = good;
      bad[at] = c;
      (void)ParseDnsQuery(bad);
      auto answer = ParseDnsAnswer(bad, query, 9);
      if (answer) {
        EXPECT_LE(answer->addresses.size(), 2u);
      }
    }
}

}  // namespace
}  // namespace caisson::engine
