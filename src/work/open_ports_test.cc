// What a sandbox says about its sockets, and what is made of it.
#include "work/open_ports.h"

#include <gmock/gmock.h>

namespace caisson::work {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

std::string Socket(std::string_view address, std::string_view state, std::string_view inode) {
  return fmt::format(
      "   0: {} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  1000        0 {} 1 "
      "0000000000000000 100 0 0 10 0\n",
      address, state, inode);
}

TEST(OpenPorts, ListenersAreFoundByNumberAndNamed) {
  std::string text(kHead);
  text += Socket("0100007F:1F90", "0A", "77");    // 127.0.0.1:8080
  text += Socket("00000000:0BB8", "0A", "4711");  // 0.0.0.0:3000
  text += Socket("0100007F:C33F", "0A", "1");     // envd's 49983
  text += Socket("0100007F:C346", "0A", "2");     // the broker's 49990
  text += Socket("0100007F:1F91", "01", "78");    // established
  text += kHead;
  text += Socket("00000000000000000000000000000000:0BB8", "0A", "4712");
  text += Socket("00000000000000000000000001000000:1538", "0A", "0");
  text +=
      "====\n/proc/12/fd:\ntotal 0\nlr-x------ 1 root root 64 Jan 1 00:00 0 -> /dev/null\n"
      "lrwx------ 1 root root 64 Jan 1 00:00 3 -> socket:[4711]\n\n/proc/9/fd:\n"
      "lrwx------ 1 root root 64 Jan 1 00:00 5 -> socket:[77]\n"
      "====\n/proc/12 node\n/proc/9 python3 a b\n/proc/1 envd\n";
  EXPECT_THAT(ParseOpenPorts(text), ElementsAre(OpenPort{3000, "node"}, OpenPort{5432, ""},
                                                OpenPort{8080, "python3 a b"}));
}

TEST(OpenPorts, AnythingElseIsLeftOut) {
  for (const std::string& text :
       {std::string(), std::string("===="), std::string("====\n====\n====\n===="),
        std::string(kHead), Socket("no address", "0A", "1"), Socket("0100007F:", "0A", "1"),
        Socket("0100007F:XYZ", "0A", "1"), Socket("0100007F:12345", "0A", "1"),
        Socket("0100007F:0000", "0A", "1"), std::string(1000, ' '), std::string("\0\xff\n", 3)})
    EXPECT_THAT(ParseOpenPorts(text), IsEmpty()) << text;
  std::string odd = Socket("0100007F:0050", "0A", "7") +
                    "====\n-> socket:[7]\n/proc/:\n-> socket:[\n====\n/proc/ \n/proc/x\n \xff\n";
  EXPECT_THAT(ParseOpenPorts(odd), ElementsAre(OpenPort{80, ""}));
}

}  // namespace
}  // namespace caisson::work
