#include "cli/work_options.h"

#include "cli/account_options.h"

namespace caisson::cli {
namespace {

constexpr const char* kAgentFooter =
    "Adapters: command (any program; its command line follows --), claude, codex, opencode, "
    "gemini,\n"
    "aider, builtin (the server's own), external (a program elsewhere that asks for work through "
    "the API). docs/agents.md has\n"
    "the settings of each.\n"
    "\n"
    "Examples:\n"
    "  caisson agent add ada --adapter claude --model opus\n"
    "  caisson agent add script -- bash -c 'echo \"$CAISSON_TASK\" > task.txt'";
constexpr const char* kTaskFooter =
    "`watch` prints a line per step and the agent's output, and ends with the task's work: status "
    "0\n"
    "if it went well, 1 if not.\n"
    "\n"
    "Examples:\n"
    "  caisson task create --repo owner/name --agent ada --watch \"Fix the typo in the README\"\n"
    "  caisson task list --status in_review";
constexpr const char* kRunFooter =
    "A run is one attempt at a task, step by step. One that failed goes on where it stopped with\n"
    "`caisson run retry ID`.";

}  // namespace

void WorkOptions::AddCommon(CLI::App& app, const char* footer) {
  app.fallthrough();  // --url and --json may also follow the sub-command
  app.require_subcommand(1);
  app.footer(footer);
  app.add_option("--url", url_, "the server")->type_name("URL");
  app.add_flag("--json", json_, "print JSON, as the server answers");
}

void WorkOptions::Choose(CLI::App& app, WorkAction action) {
  app.callback([this, action] { action_ = action; });
}

CLI::App& WorkOptions::AddOne(CLI::App& app, const char* name, const char* help,
                              WorkAction action) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option("ID", id_)->required();
  Choose(*sub, std::move(action));
  return *sub;
}

void WorkOptions::AddAgentsTo(CLI::App& app) {
  AddCommon(app, kAgentFooter);
  CLI::App* add = app.add_subcommand("add", "make an agent and print its id");
  add->add_option("NAME", agent_.name)->required();
  add->add_option("--adapter", agent_.adapter, "which program it is [command]")->type_name("NAME");
  add->add_option("--role", agent_.role, "a word of your own [developer]")->type_name("WORD");
  add->add_option("--model", agent_.model, "the model it works with")->type_name("NAME");
  add->add_option("-e,--env", env_, "variable of the agent; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  add->add_option("--config", agent_.config, "further settings of the adapter")->type_name("JSON");
  add->add_option("COMMAND", agent_.command, "after --: the program of the adapter command");
  Choose(*add, AddAgent{});
  Choose(*app.add_subcommand("list", "your agents and what they do"), ListAgents{});
  CLI::App* remove = app.add_subcommand("rm", "delete agents that do not work");
  remove->add_option("AGENT", remove_.agents, "names or ids")->required();
  Choose(*remove, RemoveAgents{});
}

void WorkOptions::AddTasksTo(CLI::App& app) {
  AddCommon(app, kTaskFooter);
  CLI::App* create = app.add_subcommand("create", "make a task, and start it if it has an agent");
  create->add_option("TEXT", task_.title, "what shall be done")->required();
  create->add_option("--description", task_.description, "more about it")->type_name("TEXT");
  create->add_option("--repo", task_.repo, "owner/name or a URL")->type_name("REPOSITORY");
  create->add_option("--base", task_.base, "the branch to start from [the default one]")
      ->type_name("BRANCH");
  create->add_option("--agent", task_.agent, "who does it")->type_name("AGENT");
  create->add_option("--squad", task_.squad, "whose free agent does it")->type_name("ID");
  create->add_option("--priority", task_.priority, "low, medium, high or urgent [medium]")
      ->type_name("WORD");
  create->add_flag("--draft", task_.draft, "the pull request is a draft");
  create->add_flag("--later", later_, "do not start it");
  create->add_flag("--watch", task_.watch, "show the work until it ends");
  Choose(*create, CreateTask{});
  AddOne(app, "watch", "show the work on a task until it ends", WatchTask{});
  AddOne(app, "show", "one task and its attempts", ShowTask{});
  AddOne(app, "cancel", "call the work on a task off", CancelTask{});
  AddOne(app, "pause", "let the work on a task stand still", PauseTask{})
      .add_option("--reason", pause_.reason, "why; shown with the task")
      ->type_name("TEXT");
  AddOne(app, "resume", "let it go on where it was", ResumeTask{});
  CLI::App* list = app.add_subcommand("list", "your tasks, newest first");
  list->add_option("--status", tasks_.status, "only those")->type_name("COLUMN");
  list->add_option("--agent", tasks_.agent, "only those of this agent")->type_name("AGENT");
  list->add_option("--text", tasks_.text, "only those with this in their title")->type_name("TEXT");
  Choose(*list, ListTasks{});
}

void WorkOptions::AddRunsTo(CLI::App& app) {
  AddCommon(app, kRunFooter);
  AddOne(app, "show", "one run with its steps", ShowRun{});
  AddOne(app, "retry", "let a run that failed go on", RetryRun{})
      .add_option("--step", retry_.step, "go on there [where it stopped]")
      ->type_name("NAME");
  CLI::App* list = app.add_subcommand("list", "your runs, newest first");
  list->add_option("--state", runs_.state, "only those")->type_name("STATE");
  list->add_option("--task", runs_.task, "only those of this task")->type_name("ID");
  Choose(*list, ListRuns{});
}

Result<WorkCommand> WorkOptions::Build(const Environment& environment) {
  WorkCommand command{.server = FindServer(environment, url_), .json = json_, .action = action_};
  if (auto* add = std::get_if<AddAgent>(&command.action)) {
    *add = agent_;
    TRY_ASSIGN(add->env, ParsePairs(env_, "-e"));
  }
  if (auto* remove = std::get_if<RemoveAgents>(&command.action)) *remove = remove_;
  if (auto* create = std::get_if<CreateTask>(&command.action)) {
    *create = task_;
    create->start = !later_ && (!task_.agent.empty() || !task_.squad.empty());
    if (create->watch && !create->start)
      return Fail(Code::kInvalidArgument,
                  "--watch: the task does not start; name an agent or a squad, without --later");
  }
  if (auto* list = std::get_if<ListTasks>(&command.action)) *list = tasks_;
  if (auto* list = std::get_if<ListRuns>(&command.action)) *list = runs_;
  if (auto* watch = std::get_if<WatchTask>(&command.action)) watch->id = id_;
  if (auto* show = std::get_if<ShowTask>(&command.action)) show->id = id_;
  if (auto* cancel = std::get_if<CancelTask>(&command.action)) cancel->id = id_;
  if (auto* pause = std::get_if<PauseTask>(&command.action)) *pause = {id_, pause_.reason};
  if (auto* resume = std::get_if<ResumeTask>(&command.action)) resume->id = id_;
  if (auto* show = std::get_if<ShowRun>(&command.action)) show->id = id_;
  if (auto* retry = std::get_if<RetryRun>(&command.action)) *retry = {id_, retry_.step};
  return command;
}

}  // namespace caisson::cli
