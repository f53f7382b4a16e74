#include "cli/build_options.h"

#include "cli/account_options.h"

namespace caisson::cli {
namespace {

constexpr const char* kFooter =
    "A build is files that are installed, checked and served by a sandbox, with a preview URL.\n"
    "docs/builds.md has all of it.\n"
    "\n"
    "Examples:\n"
    "  caisson build create shop ./my-site --watch\n"
    "  caisson build create shop --goal \"A page that counts down to Friday\" --agent ada\n"
    "  caisson build rollback ID build_v0_1";

}  // namespace

CLI::App& BuildOptions::Add(CLI::App& app, const char* name, const char* help, BuildAction action) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([this, action] { action_ = action; });
  return *sub;
}

void BuildOptions::AddTo(CLI::App& app) {
  app.fallthrough();  // --url and --json may also follow the sub-command
  app.require_subcommand(1);
  app.footer(kFooter);
  app.add_option("--url", url_, "the server")->type_name("URL");
  app.add_flag("--json", json_, "print JSON, as the server answers");
  CLI::App& create = Add(app, "create", "build a project", CreateBuild{});
  create.add_option("PROJECT", create_.project, "a name of yours")->required();
  create.add_option("DIRECTORY", create_.directory, "its files are built");
  create.add_option("--goal", create_.goal, "what shall be built, or changed")->type_name("TEXT");
  create.add_option("--runner", create_.runner, "who writes the files: command or llm")
      ->type_name("NAME");
  create.add_option("--agent", create_.agent, "the agent of the runner command")->type_name("ID");
  create.add_option("--parent", create_.parent, "the build to go on from")->type_name("ID");
  create.add_option("-e,--env", env_, "variable of its commands; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  create.add_flag("--watch", create_.watch, "show the log until it ends");
  CLI::App& list = Add(app, "list", "your builds, newest first", ListBuilds{});
  list.add_option("--project", list_.project, "only those of this project")->type_name("NAME");
  list.add_option("--state", list_.state, "only those")->type_name("STATE");
  auto one = [this](CLI::App& sub) { sub.add_option("ID", id_)->required(); };
  one(Add(app, "show", "one build", ShowBuild{}));
  CLI::App& logs = Add(app, "logs", "what it said", ShowBuildLog{});
  one(logs);
  logs.add_flag("-f,--follow", log_.follow, "until it ends");
  CLI::App& back = Add(app, "rollback", "bring an older version back", RollBackBuild{});
  one(back);
  back.add_option("VERSION", rollback_.version, "build_v0_1")->required();
  CLI::App& diff = Add(app, "diff", "what is different from another version", DiffBuild{});
  one(diff);
  diff.add_option("--against", diff_.against, "the other build [the one before]")->type_name("ID");
  CLI::App& download = Add(app, "download", "its files as a .tar.gz", DownloadBuild{});
  one(download);
  download.add_option("FILE", file_, "where to, - is standard output")->required();
  one(Add(app, "cancel", "call a build off", CancelBuild{}));
  one(Add(app, "delete", "delete one that is over, with all it keeps", DeleteBuild{}));
}

Result<BuildCommand> BuildOptions::Build(const Environment& environment) {
  BuildCommand command{.server = FindServer(environment, url_), .json = json_, .action = action_};
  if (auto* create = std::get_if<CreateBuild>(&command.action)) {
    *create = create_;
    TRY_ASSIGN(create->env, ParsePairs(env_, "-e"));
    if (create->directory.empty() == create->goal.empty())
      return Fail(Code::kInvalidArgument, "say what to build: a directory, or --goal");
  }
  if (auto* list = std::get_if<ListBuilds>(&command.action)) *list = list_;
  if (auto* show = std::get_if<ShowBuild>(&command.action)) show->id = id_;
  if (auto* log = std::get_if<ShowBuildLog>(&command.action)) *log = {id_, log_.follow};
  if (auto* back = std::get_if<RollBackBuild>(&command.action)) *back = {id_, rollback_.version};
  if (auto* diff = std::get_if<DiffBuild>(&command.action)) *diff = {id_, diff_.against};
  if (auto* download = std::get_if<DownloadBuild>(&command.action)) *download = {id_, file_};
  if (auto* cancel = std::get_if<CancelBuild>(&command.action)) cancel->id = id_;
  if (auto* gone = std::get_if<DeleteBuild>(&command.action)) gone->id = id_;
  return command;
}

}  // namespace caisson::cli
