#include "cli/session_options.h"

namespace caisson::cli {
namespace {

constexpr const char* kFooter =
    "`send` prints the answer when it is there: status 0 if it was written to its end, 1 if not.\n"
    "\n"
    "Examples:\n"
    "  caisson session create --repo owner/name --agent ada\n"
    "  caisson session send ID \"Why is the build red?\"\n"
    "  caisson session history ID";

}  // namespace

CLI::App& SessionOptions::AddOne(CLI::App& app, const char* name, const char* help,
                                 SessionAction action) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option("ID", id_)->required();
  sub->callback([this, action] { action_ = action; });
  return *sub;
}

void SessionOptions::AddTo(CLI::App& app) {
  app.fallthrough();  // --url and --json may also follow the sub-command
  app.require_subcommand(1);
  app.footer(kFooter);
  app.add_option("--url", url_, "the server")->type_name("URL");
  app.add_flag("--json", json_, "print JSON, as the server answers");
  CLI::App* create = app.add_subcommand("create", "begin a session and print its id");
  create->add_option("TITLE", create_.title, "what it is about");
  create->add_option("--repo", create_.repo, "owner/name or a URL")->type_name("REPOSITORY");
  create->add_option("--base", create_.base, "the branch to start from [the default one]")
      ->type_name("BRANCH");
  create->add_option("--agent", create_.agent, "who answers")->type_name("AGENT");
  create->add_option("--model", create_.model, "the model it works with")->type_name("NAME");
  create->callback([this] { action_ = CreateSession{}; });
  CLI::App* list = app.add_subcommand("list", "your sessions, last used first");
  list->add_option("--status", list_.status, "only those")->type_name("STATUS");
  list->add_option("--text", list_.text, "only those with this in their title")->type_name("TEXT");
  list->callback([this] { action_ = ListSessions{}; });
  CLI::App& send = AddOne(app, "send", "say something and print the answer", SendMessage{});
  send.add_option("TEXT", send_.text, "the message")->required();
  send.add_flag("--plan", send_.plan, "the agent shall change no files");
  send.add_flag("--now", now_, "do not wait for the answer; print its id");
  AddOne(app, "stop", "stop the answer that is being written", StopAnswer{})
      .add_flag("--all", stop_.all, "also the messages that wait");
  AddOne(app, "history", "the last messages", ShowHistory{})
      .add_option("--limit", history_.limit, "how many [25]")
      ->type_name("N")
      ->check(CLI::Range(1, 200));
  AddOne(app, "pause", "save the work and put the sandbox away", PauseSession{});
  CLI::App* remove = app.add_subcommand("delete", "delete sessions and their sandboxes");
  remove->add_option("ID", delete_.ids)->required();
  remove->callback([this] { action_ = DeleteSessions{}; });
}

Result<SessionCommand> SessionOptions::Build(const Environment& environment) {
  SessionCommand command{.server = FindServer(environment, url_), .json = json_, .action = action_};
  if (auto* create = std::get_if<CreateSession>(&command.action)) *create = create_;
  if (auto* list = std::get_if<ListSessions>(&command.action)) *list = list_;
  if (auto* send = std::get_if<SendMessage>(&command.action))
    *send = {id_, send_.text, send_.plan, !now_};
  if (auto* stop = std::get_if<StopAnswer>(&command.action)) *stop = {id_, stop_.all};
  if (auto* history = std::get_if<ShowHistory>(&command.action)) *history = {id_, history_.limit};
  if (auto* pause = std::get_if<PauseSession>(&command.action)) pause->id = id_;
  if (auto* remove = std::get_if<DeleteSessions>(&command.action)) *remove = delete_;
  return command;
}

}  // namespace caisson::cli
