// Builds, the files of their versions and their logs; build/ has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

struct BuildRow {
  std::string id;
  std::string owner_id;
  std::string project;  // a name of the user's; versions count per project
  std::string run_id;
  std::string correlation_id;    // in its logs and events
  std::string state = "queued";  // "queued", "scheduled", "starting", "scaffold", "code", "deps",
                                 // "checks", "ready", "failed"
  std::string runner;            // "command", "llm", "files"
  std::string goal;
  std::string options = "{}";  // a JSON object: agent_id, checks, start_command, port, env ...
  std::string tier;
  std::string parent_id;   // the build that this one goes on from, "" of a first one
  int64_t number = 0;      // the N of build_v0_N; 0 until it is ready
  std::string sandbox_id;  // the row in work_sandboxes
  std::string workspace_path;
  std::string framework;  // "vite", "flask", "static", ...
  std::string start_command;
  int64_t port = 0;
  std::string preview_url;
  std::string snapshot_id;  // of its files, once it is ready
  std::string screenshot;   // a file of the data directory, "" if there is none
  std::string
      error_category;         // "install_failure", "compile_error", "runtime_crash", "timeout", ...
  std::string error_message;  // the last lines of what failed
  std::string error_summary;  // in words for a person
  std::string debug_id;
  std::string restored_id;  // the build whose version was restored when this one failed
  int64_t iterations_used = 0;
  Time enqueued_at;
  std::optional<Time> scheduled_for;  // of state "scheduled"
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
  std::optional<Time> viewing_until;  // the preview answers at least until then
  std::optional<Time> viewed_at;      // when the preview was first looked at
  std::string preview_note;           // of the last try: "", "blocked", "resume_failed"
  std::string removal;                // "", "asked": shown to nobody any more, "done": it is empty

  static constexpr auto kTable = MakeTable(
      "builds", Column{"id", &BuildRow::id}, Column{"owner_id", &BuildRow::owner_id},
      Column{"project", &BuildRow::project}, Column{"run_id", &BuildRow::run_id},
      Column{"correlation_id", &BuildRow::correlation_id}, Column{"state", &BuildRow::state},
      Column{"runner", &BuildRow::runner}, Column{"goal", &BuildRow::goal},
      Column{"options", &BuildRow::options}, Column{"tier", &BuildRow::tier},
      Column{"parent_id", &BuildRow::parent_id}, Column{"number", &BuildRow::number},
      Column{"sandbox_id", &BuildRow::sandbox_id},
      Column{"workspace_path", &BuildRow::workspace_path},
      Column{"framework", &BuildRow::framework}, Column{"start_command", &BuildRow::start_command},
      Column{"port", &BuildRow::port}, Column{"preview_url", &BuildRow::preview_url},
      Column{"snapshot_id", &BuildRow::snapshot_id}, Column{"screenshot", &BuildRow::screenshot},
      Column{"error_category", &BuildRow::error_category},
      Column{"error_message", &BuildRow::error_message},
      Column{"error_summary", &BuildRow::error_summary}, Column{"debug_id", &BuildRow::debug_id},
      Column{"restored_id", &BuildRow::restored_id},
      Column{"iterations_used", &BuildRow::iterations_used},
      Column{"enqueued_at", &BuildRow::enqueued_at},
      Column{"scheduled_for", &BuildRow::scheduled_for},
      Column{"started_at", &BuildRow::started_at}, Column{"completed_at", &BuildRow::completed_at},
      Column{"viewing_until", &BuildRow::viewing_until}, Column{"viewed_at", &BuildRow::viewed_at},
      Column{"preview_note", &BuildRow::preview_note}, Column{"removal", &BuildRow::removal});
};

// All files of a version, not only those that changed.
struct BuildFileRow {
  std::string id;  // both in one text
  std::string build_id;
  std::string path;      // relative to the workspace
  std::string encoding;  // of the content: "" = text as it is, "base64"
  std::string content;

  static constexpr auto kTable = MakeTable(
      "build_files", Column{"id", &BuildFileRow::id}, Column{"build_id", &BuildFileRow::build_id},
      Column{"path", &BuildFileRow::path}, Column{"encoding", &BuildFileRow::encoding},
      Column{"content", &BuildFileRow::content});
};

struct BuildLogRow {
  int64_t id = 0;
  std::string build_id;
  int64_t line = 0;  // from 0, per build
  Time at;
  std::string source;  // "stdout", "stderr", "system"
  std::string phase;   // the state in which it came
  std::string text;    // without colours, without secrets
  std::string raw;     // with colours; "" = the same as text

  static constexpr auto kTable = MakeTable(
      "build_logs", Column{"id", &BuildLogRow::id}, Column{"build_id", &BuildLogRow::build_id},
      Column{"line", &BuildLogRow::line}, Column{"at", &BuildLogRow::at},
      Column{"source", &BuildLogRow::source}, Column{"phase", &BuildLogRow::phase},
      Column{"text", &BuildLogRow::text}, Column{"raw", &BuildLogRow::raw});
};

}  // namespace caisson::store
