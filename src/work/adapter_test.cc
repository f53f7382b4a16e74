#include "work/adapter.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "work/agent_config.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

using Kind = AgentEvent::Kind;

AgentJob AJob(json::object config = {}) {
  return {.config = std::move(config),
          .title = "Mend the fence",
          .description = "Use oak.",
          .task_id = "t1",
          .execution_id = "e1",
          .workdir = "/w/garden",
          .timeout = std::chrono::seconds(60),
          .model_routes = {"anthropic", "openai", "google"},
          .model_url = [](const std::string& route) { return "http://127.0.0.1:1/" + route; }};
}

std::string Line(const sdk::Command& command) {
  return fmt::format("{}", fmt::join(command.argv, " "));
}

struct Parsed {
  std::vector<AgentEvent> events;
  AgentReport report;
  std::vector<std::string> Texts(Kind kind) const {
    std::vector<std::string> texts;
    for (const AgentEvent& event : events)
      if (event.kind == kind)
        texts.push_back(kind == Kind::kMessage || kind == Kind::kDelta || kind == Kind::kError
                            ? event.text
                            : event.name);
    return texts;
  }
};

// In pieces of `size` bytes: the meaning must not depend on where the output is cut.
Parsed Parse(std::string_view adapter, std::string_view output, size_t size) {
  auto parser = FindAdapter(adapter)->MakeParser();
  Parsed parsed;
  for (size_t at = 0; at < output.size(); at += size)
    for (AgentEvent& event : parser->Feed(sdk::Stream::kStdout, output.substr(at, size)))
      parsed.events.push_back(std::move(event));
  parsed.report = parser->Finish();
  return parsed;
}

class PiecesTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, PiecesTest, ::testing::Values(1, 7, 100'000));

constexpr std::string_view kClaude =
    R"({"type":"system","subtype":"init","session_id":"s","model":"claude-opus","tools":["Bash"]}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look at it."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Edit","input":{"file_path":"/w/garden/fence.txt","old_string":"a","new_string":"b"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"ok"}]}}
{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"num_turns":2,"result":"The fence is mended.","total_cost_usd":0.0123,"usage":{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":42}}
)";

TEST_P(PiecesTest, ClaudeCode) {
  Parsed parsed = Parse("claude", kClaude, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kMessage), std::vector<std::string>{"I look at it."});
  EXPECT_EQ(parsed.Texts(Kind::kTool), std::vector<std::string>{"Edit"});
  EXPECT_EQ(parsed.Texts(Kind::kFile), std::vector<std::string>{"/w/garden/fence.txt"});
  EXPECT_EQ(parsed.report.summary, "The fence is mended.");
  EXPECT_EQ(parsed.report.error, "");
  EXPECT_EQ(parsed.report.usage.model, "claude-opus");
  EXPECT_EQ(parsed.report.usage.tokens_in, 1110);
  EXPECT_EQ(parsed.report.usage.tokens_out, 42);
  EXPECT_DOUBLE_EQ(parsed.report.usage.dollars, 0.0123);
}

// With --include-partial-messages.
constexpr std::string_view kClaudePieces =
    R"({"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":{}}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look "}}}
{"type":"stream_event","parent_tool_use_id":"toolu_1","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a helper"}}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"at it."}}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look at it."}]}}
{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_stop","index":1}}
)";

TEST_P(PiecesTest, ClaudeCodeInPieces) {
  Parsed parsed = Parse("claude", kClaudePieces, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kDelta), (std::vector<std::string>{"I look ", "at it."}));
  EXPECT_TRUE(parsed.events[0].first);
  EXPECT_FALSE(parsed.events[1].first);
  EXPECT_EQ(parsed.Texts(Kind::kMessage), std::vector<std::string>{"I look at it."});
}

TEST(ClaudeCode, TellsItsOwnFailure) {
  Parsed parsed = Parse(
      "claude", R"({"type":"result","subtype":"error_max_turns","is_error":true,"usage":{}})", 50);
  EXPECT_EQ(parsed.report.error, "it ended with error_max_turns");
}

constexpr std::string_view kCodex =
    R"({"type":"thread.started","thread_id":"th"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"0","type":"command_execution","command":"bash -lc ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"0","type":"command_execution","command":"bash -lc ls","aggregated_output":"x","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"a.txt","kind":"add"},{"path":"b.txt","kind":"delete"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"2","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"All done."}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122}}
)";

TEST_P(PiecesTest, Codex) {
  Parsed parsed = Parse("codex", kCodex, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kTool), std::vector<std::string>{"command"});
  EXPECT_EQ(parsed.Texts(Kind::kFile), (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(parsed.events[2].change, "deleted");
  EXPECT_EQ(parsed.report.summary, "All done.");
  EXPECT_EQ(parsed.report.usage.tokens_in, 24763);
  EXPECT_EQ(parsed.report.usage.tokens_out, 122);
}

TEST(Codex, TellsItsOwnFailure) {
  Parsed parsed = Parse(
      "codex", R"({"type":"turn.failed","error":{"message":"model response stream ended"}})", 9);
  EXPECT_EQ(parsed.report.error, "model response stream ended");
}

constexpr std::string_view kOpenCode =
    R"({"type":"step_start","timestamp":1,"sessionID":"s","part":{"type":"step-start"}}
{"type":"tool_use","timestamp":2,"sessionID":"s","part":{"type":"tool","tool":"write","state":{"status":"completed","input":{"filePath":"/w/garden/x","content":"y"},"output":""}}}
{"type":"step_finish","timestamp":3,"sessionID":"s","part":{"type":"step-finish","reason":"tool-calls","cost":0.001,"tokens":{"input":100,"output":20,"reasoning":5,"cache":{"read":7,"write":3}}}}
{"type":"text","timestamp":4,"sessionID":"s","part":{"type":"text","text":"Wrote it."}}
{"type":"step_finish","timestamp":5,"sessionID":"s","part":{"type":"step-finish","reason":"stop","cost":0.002,"tokens":{"input":50,"output":10,"reasoning":0,"cache":{"read":0,"write":0}}}}
)";

TEST_P(PiecesTest, OpenCode) {
  Parsed parsed = Parse("opencode", kOpenCode, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kTool), std::vector<std::string>{"write"});
  EXPECT_EQ(parsed.Texts(Kind::kFile), std::vector<std::string>{"/w/garden/x"});
  EXPECT_EQ(parsed.report.summary, "Wrote it.");
  EXPECT_EQ(parsed.report.usage.tokens_in, 160);
  EXPECT_EQ(parsed.report.usage.tokens_out, 35);
  EXPECT_DOUBLE_EQ(parsed.report.usage.dollars, 0.003);
}

TEST(OpenCode, TellsItsOwnFailure) {
  Parsed parsed = Parse(
      "opencode",
      R"({"type":"error","error":{"name":"ProviderAuthError","data":{"message":"no key"}}})", 5);
  EXPECT_EQ(parsed.report.error, "no key");
}

constexpr std::string_view kGemini =
    R"({"type":"init","timestamp":"2026-01-01T00:00:00Z","session_id":"s","model":"gemini-pro"}
{"type":"message","role":"user","content":"Task: ..."}
{"type":"tool_use","tool_name":"write_file","tool_id":"1","parameters":{"file_path":"n.txt","content":"x"}}
{"type":"tool_result","tool_id":"1","status":"success","output":""}
{"type":"message","role":"assistant","content":"It is ","delta":true}
{"type":"message","role":"assistant","content":"written.","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"duration_ms":5,"tool_calls":1}}
)";

TEST_P(PiecesTest, Gemini) {
  Parsed parsed = Parse("gemini", kGemini, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kMessage), std::vector<std::string>{"It is written."});
  EXPECT_EQ(parsed.Texts(Kind::kDelta), (std::vector<std::string>{"It is ", "written."}));
  EXPECT_EQ(parsed.Texts(Kind::kFile), std::vector<std::string>{"n.txt"});
  EXPECT_EQ(parsed.report.summary, "It is written.");
  EXPECT_EQ(parsed.report.usage.model, "gemini-pro");
  EXPECT_EQ(parsed.report.usage.tokens_in, 20);
  EXPECT_EQ(parsed.report.usage.tokens_out, 10);
}

constexpr std::string_view kAider =
    "Aider v0.86\nMain model: gpt-4o with diff edit format\nGit repo: .git with 5 files\n"
    "I will add a gate.\nTokens: 2.4k sent, 310 received. Cost: $0.01 message, $0.01 session.\n"
    "Applied edit to gate.txt\n"
    "The gate is there.\nTokens: 1.6k sent, 90 received. Cost: $0.02 message, $0.03 session.\n";

TEST_P(PiecesTest, Aider) {
  Parsed parsed = Parse("aider", kAider, GetParam());
  EXPECT_EQ(parsed.Texts(Kind::kFile), std::vector<std::string>{"gate.txt"});
  EXPECT_EQ(parsed.report.summary, "The gate is there.");
  EXPECT_EQ(parsed.report.usage.model, "gpt-4o");
  EXPECT_EQ(parsed.report.usage.tokens_in, 4000);
  EXPECT_EQ(parsed.report.usage.tokens_out, 400);
  EXPECT_DOUBLE_EQ(parsed.report.usage.dollars, 0.03);
}

TEST_P(PiecesTest, Command) {
  Parsed parsed = Parse("command",
                        "plain output\n"
                        "{\"caisson\":\"message\",\"text\":\"hello\"}\n"
                        "{\"caisson\":\"tool\",\"name\":\"make\",\"input\":{\"target\":\"all\"}}\n"
                        "{\"caisson\":\"file\",\"path\":\"a\",\"change\":\"added\"}\n"
                        "{\"caisson\":\"usage\",\"model\":\"m\",\"tokens_in\":5,\"tokens_out\":2,"
                        "\"dollars\":0.5}\n"
                        "{\"caisson\":\"usage\",\"tokens_in\":-5}\n"
                        "{\"other\":1}\n"
                        "{\"caisson\":\"summary\",\"text\":\"did it\"}",
                        GetParam());
  EXPECT_EQ(parsed.events.size(), 3);
  EXPECT_EQ(parsed.report.summary, "did it");
  EXPECT_EQ(parsed.report.usage.tokens_in, 5);
  EXPECT_DOUBLE_EQ(parsed.report.usage.dollars, 0.5);
}

TEST(AllParsers, SurviveWhateverComes) {
  std::string deep(200, '[');
  std::string huge(LineParser::kMaxLine + 10, 'x');
  const std::string garbage[] = {
      "",
      "\n\n\n",
      "{",
      "null\n",
      "[1,2]\n",
      "{\"type\":5}\n",
      "{\"type\":\"assistant\"}\n",
      "{\"type\":\"assistant\",\"message\":{\"content\":[1,null,\"x\",{}]}}\n",
      "{\"type\":\"item.completed\",\"item\":[]}\n",
      "{\"type\":\"result\",\"usage\":\"no\"}\n",
      "{\"type\":\"step_finish\",\"part\":{\"tokens\":{\"input\":1e400}}}\n",
      "{\"a\":" + deep + "\n",
      "Tokens: sent, received. Cost: $ session.\n",
      std::string("\xff\xfe\0{\n", 5),
      "{\"type\":\"text\",\"part\":{\"text\":\"" + huge + "\"}}\n"};
  for (const std::string& name : AdapterNames()) {
    if (!FindAdapter(name)) continue;
    for (const std::string& text : garbage) {
      Parsed parsed = Parse(name, text, 4096);
      EXPECT_LE(parsed.report.summary.size(), LineParser::kMaxSummary + 10) << name;
      EXPECT_EQ(parsed.report.usage.tokens_out, 0) << name << ": " << text.substr(0, 60);
    }
    // What comes after a line that is too long is read again.
    auto parser = FindAdapter(name)->MakeParser();
    parser->Feed(sdk::Stream::kStdout, huge + "\n");
    parser->Feed(sdk::Stream::kStderr, "{\"caisson\":\"summary\",\"text\":\"not me\"}\n");
    parser->Feed(sdk::Stream::kStdout, "{\"caisson\":\"summary\",\"text\":\"after\"}\n");
    if (name == "command") EXPECT_EQ(parser->Finish().summary, "after");
  }
}

TEST(Commands, AreAsTheProgramsDocumentThem) {
  auto claude = FindAdapter("claude")->MakeCommand(AJob({{"model", "opus"}, {"max_turns", 9}}));
  ASSERT_TRUE(claude) << claude.error().message();
  EXPECT_EQ(Line(*claude),
            "claude -p --output-format stream-json --verbose --dangerously-skip-permissions "
            "--model opus --max-turns 9");
  AgentJob followed = AJob();
  followed.partial = true;
  EXPECT_TRUE(Line(FindAdapter("claude")->MakeCommand(followed).value())
                  .ends_with(" --include-partial-messages"));
  EXPECT_EQ(claude->stdin_text, Prompt(AJob()));
  EXPECT_EQ(claude->cwd, "/w/garden");
  auto codex = FindAdapter("codex")->MakeCommand(AJob()).value();
  EXPECT_EQ(codex.argv.front(), "codex");
  EXPECT_EQ(codex.argv.back(), "-");
  EXPECT_NE(Line(codex).find("base_url=\"http://127.0.0.1:1/openai/v1\""), std::string::npos);
  auto gemini = FindAdapter("gemini")->MakeCommand(AJob()).value();
  EXPECT_EQ(gemini.argv[gemini.argv.size() - 2], "-p");
  auto aider = FindAdapter("aider")->MakeCommand(AJob({{"model", "gpt-4o"}})).value();
  EXPECT_EQ(aider.argv[aider.argv.size() - 2], "--message");
  EXPECT_NE(std::ranges::find(aider.argv, "--no-auto-commits"), aider.argv.end());
  auto opencode = FindAdapter("opencode")->MakeCommand(AJob({{"model", "openai/gpt-5"}})).value();
  EXPECT_EQ(opencode.argv.back(), Prompt(AJob()));
  EXPECT_NE(opencode.env.at("OPENCODE_CONFIG_CONTENT").find("127.0.0.1:1/openai/v1"),
            std::string::npos);
}

TEST(Commands, OfTheBuiltinAgentAreForTheServer) {
  auto builtin = FindAdapter("builtin")->MakeCommand(AJob({{"max_tool_calls", 9}})).value();
  EXPECT_EQ(Line(builtin), "caisson:agent {\"max_tool_calls\":9}");
  EXPECT_EQ(builtin.stdin_text, Prompt(AJob()));
  for (json::array command : {json::array{"caisson:agent", "{}"}, json::array{"caisson:{title}"}}) {
    AgentJob job = AJob({{"command", command}});
    job.title = "agent";
    EXPECT_EQ(FindAdapter("command")->MakeCommand(job).error().code(), Code::kInvalidArgument);
  }
}

TEST(Parsers, OnlyTheBuiltinAgentHasEventsOfItsOwn) {
  std::string output =
      "{\"caisson\":\"event\",\"type\":\"agent.state\",\"data\":{\"state\":\"stuck\"}}\n"
      "{\"caisson\":\"usage\",\"tokens_in\":5}\n";
  Parsed own = Parse("builtin", output, 7);
  EXPECT_EQ(own.Texts(Kind::kOther), (std::vector<std::string>{"agent.state"}));
  EXPECT_TRUE(own.report.usage.recorded);
  EXPECT_EQ(own.report.usage.tokens_in, 5);
  Parsed other = Parse("command", output, 7);
  EXPECT_TRUE(other.events.empty());
  EXPECT_FALSE(other.report.usage.recorded);
}

TEST(Configs, OfTheBuiltinAgentAreChecked) {
  EXPECT_TRUE(CheckAgentConfig("builtin", {{"max_dollars", 1.5}, {"price_out", 10}}));
  for (json::object config : {json::object{{"max_dollars", 1}}, json::object{{"price_in", -1}},
                              json::object{{"max_tool_calls", 0}}, json::object{{"price_in", "1"}},
                              json::object{{"model_route", "openai"}}})
    EXPECT_EQ(CheckAgentConfig("builtin", config).error().code(), Code::kInvalidArgument)
        << json::serialize(config);
  EXPECT_FALSE(CheckAgentConfig("claude", {{"max_tries", 3}}));
}

TEST(Commands, NeverGetARealKeyUnlessTheAgentBringsIt) {
  for (const char* name : {"claude", "codex", "opencode", "gemini", "aider"}) {
    auto command = FindAdapter(name)->MakeCommand(AJob()).value();
    for (const auto& [variable, value] : command.env)
      if (variable.ends_with("_KEY")) EXPECT_EQ(value, "caisson-broker") << variable;
    AgentJob without = AJob();
    without.model_routes.clear();
    EXPECT_EQ(FindAdapter(name)->MakeCommand(without).error().code(), Code::kFailedPrecondition);
    without.config = {{"model_keys", "environment"}, {"env", {{"MY_KEY", "k"}}}};
    auto own = FindAdapter(name)->MakeCommand(without);
    ASSERT_TRUE(own) << own.error().message();
    EXPECT_EQ(own->env.at("MY_KEY"), "k");
    EXPECT_FALSE(own->env.contains("ANTHROPIC_BASE_URL"));
  }
}

TEST(Commands, SayWhichModelsAreMissing) {
  const std::pair<const char*, const char*> usual[] = {
      {"claude", "'anthropic'"}, {"codex", "'openai'"}, {"gemini", "'google'"}};
  for (const auto& [name, route] : usual) {
    AgentJob job = AJob();
    job.model_routes = {"other"};
    auto refused = FindAdapter(name)->MakeCommand(job);
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message().find(route), std::string::npos)
        << refused.error().message();
  }
}

TEST(Commands, OfAnyProgramHavePlaceholders) {
  AgentJob job =
      AJob({{"command", json::array{"./a", "{title}", "--in={workdir}", "{task}", "{x}"}}});
  job.title = "a {workdir} b";
  auto command = FindAdapter("command")->MakeCommand(job).value();
  EXPECT_EQ(command.argv[1], "a {workdir} b");  // what is filled in is not filled again
  EXPECT_EQ(command.argv[2], "--in=/w/garden");
  EXPECT_EQ(command.argv[3], Prompt(job));
  EXPECT_EQ(command.argv[4], "{x}");
  EXPECT_EQ(command.env.at("CAISSON_TASK"), Prompt(job));
  EXPECT_EQ(command.env.at("CAISSON_MODEL_URL_openai"), "http://127.0.0.1:1/openai");
  EXPECT_EQ(command.stdin_text, Prompt(job));
}

TEST(Prompt, HasTheFeedbackAndTheInstructions) {
  AgentJob job = AJob({{"instructions", "Be brief."}});
  EXPECT_EQ(Prompt(job).find("reviewed"), std::string::npos);
  job.feedback = "Use pine.";
  std::string text = Prompt(job);
  for (std::string_view part : {"Mend the fence", "Use oak.", "Use pine.", "Be brief."})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace caisson::work
