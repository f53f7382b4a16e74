#include "cli/task_watch.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace caisson::cli {
namespace {

std::string Shown(std::string_view event) {
  return EventText(boost::json::parse(event).as_object());
}

TEST(TaskWatch, ShowsALinePerStep) {
  EXPECT_EQ(Shown(R"({"type":"execution_step","step":"clone","state":"running","percent":15,
                      "message":"cloning the repository"})"),
            "[ 15 %] clone         cloning the repository\n");
  EXPECT_EQ(Shown(R"({"type":"execution_step","step":"clone","state":"done","percent":15})"), "");
  EXPECT_EQ(Shown(R"({"type":"execution_step","step":"push","state":"failed",
                      "message":"no route"})"),
            "        push          failed: no route\n");
}

TEST(TaskWatch, ShowsOutputWithoutWhatSteersATerminal) {
  EXPECT_EQ(Shown(R"({"type":"command_output","stream":"stdout","output":"one\ntwo\u001b[2J\n"})"),
            "  | one\n  | two?[2J\n");
  EXPECT_EQ(Shown(R"({"type":"execution_completed","status":"succeeded","summary":"Mended.",
                      "pull_request_url":"https://github.com/o/n/pull/7"})"),
            "[100 %] succeeded\n        Mended.\n        https://github.com/o/n/pull/7\n");
  EXPECT_EQ(Shown(R"({"type":"execution_completed","status":"failed","error":"it broke"})"),
            "[100 %] failed\n        it broke\n");
  EXPECT_EQ(Shown(R"({"type":"cost_recorded"})"), "");
  EXPECT_EQ(Shown(R"({})"), "");
}

}  // namespace
}  // namespace caisson::cli
