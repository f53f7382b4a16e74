// The part of Config about the work platform: people, runs, tasks, sessions, builds, GitHub, money.
#pragma once

#include <cstdint>
#include <string>

namespace caisson {

struct WorkSettings {
  // ---- the work platform: database, people, API ---------------------------------------
  int64_t database_pool_min = 5;           // connections to PostgreSQL that are kept open
  int64_t database_pool_max = 20;          // and the most there are
  int64_t database_wait_s = 30;            // at the start, for a PostgreSQL that is not up yet
  int64_t login_access_minutes = 30;       // a login's access token is good for so long,
  int64_t login_refresh_days = 7;          // its refresh token for so long
  int64_t login_failures_per_minute = 10;  // per address and per name; more are refused
  std::string cors_origins;  // pages elsewhere that may use /api/v1: "https://a, https://b"
  int64_t api_max_body_bytes = 10 << 20;
  int64_t api_max_json_depth = 10;
  int64_t api_max_string = 10'000;     // characters of one text in a request
  int64_t api_max_array = 1'000;       // entries of one list in a request
  int64_t idempotency_hours = 24;      // answers to a POST with an Idempotency-Key are kept so long
  int64_t audit_retention_days = 365;  // 0 = for ever
  // ---- events
  int64_t events_retention_days = 30;  // 0 = for ever
  int64_t sse_heartbeat_ms = 15'000;
  int64_t sse_queue = 1'000;        // events that wait for a slow client
  int64_t sse_max_per_user = 10;    // streams at once
  bool sse_compression = false;     // gzip for clients that accept it
  int64_t log_archive_hours = 168;  // older output lies compressed beside the database; 0 = never
  // ---- runs: at once; 0 = unlimited
  int64_t flow_workers = 16;          // steps that this server runs at once
  int64_t flow_lease_ms = 30'000;     // a step whose server is silent for so long is taken over
  int64_t node_lost_s = 600;          // after that, the runs of a silent server; 0 = never
  int64_t flow_max_per_repo = 0;      // steps at once that belong to one repository,
  int64_t flow_max_per_agent = 1;     // one agent,
  int64_t flow_max_per_user = 0;      // one user
  int64_t flow_attempts = 4;          // of one step, when what failed may work the next time
  int64_t flow_retry_min_ms = 2'000;  // wait before the second attempt; it doubles
  int64_t flow_retry_max_ms = 60'000;
  int64_t run_retention_days = 90;   // runs that have ended are deleted after so long; 0 = never
  int64_t flow_queue_ttl_s = 0;      // a run that waits longer for its start is ended; 0 = never
  int64_t flow_starts_per_repo = 0;  // runs begun per minute of one repository; 0 = unlimited
  int64_t start_rate_limit = 0;      // tasks, messages and builds started per minute and user
  // ---- tasks, agents, git
  std::string provider = "local";  // who supplies their sandboxes: "local", "e2b"
  std::string task_template = "base";
  int64_t task_sandbox_timeout_s = 86'400;  // longest life of a task's sandbox
  int64_t reconcile_interval_s = 60;        // rows are compared with what the provider has
  int64_t health_interval_s = 30;           // sandboxes of running tasks are asked
  bool task_keep_sandbox = false;           // true: it is paused at the end, not destroyed
  int64_t agent_timeout_s = 3'600;          // an agent that works longer is stopped
  int64_t agent_heartbeat_s = 120;  // an outside agent that is silent for so long loses its task
  int64_t command_timeout_s = 300;  // of /api/v1/sandboxes/{id}/execute, and the most it may ask
  int64_t command_output_bytes = 1 << 20;  // of its answer; the stream has no such limit
  int64_t file_max_bytes = 1 << 30;        // of one file through /api/v1/sandboxes/{id}/files
  // What execute may run: "off", "deny", "allow" (of a list), or "member=deny, admin=off"
  std::string command_policy = "deny";
  std::string command_list = "shutdown, reboot, poweroff, halt, kexec";
  std::string workspace = "/home/user/workspace";  // repositories are cloned below it
  std::string branch_template = "task-{id}";       // {id}, {number}, {agent}, {slug}
  std::string git_user_name = "Caisson Bot";
  std::string git_user_email = "bot@caisson.localhost";
  int64_t git_timeout_ms = 120'000;  // of one git command
  int64_t clone_timeout_ms = 30'000;
  int64_t clone_depth = 0;                          // 0 = the whole history
  int64_t git_attempts = 3;                         // of what the network let down
  int64_t git_retry_min_ms = 1'000;                 // wait before the second attempt; it doubles
  int64_t git_lock_wait_ms = 5'000;                 // for another operation in the same checkout
  int64_t git_diff_bytes = 1 << 20;                 // of a diff; the rest is cut
  int64_t broker_max_connections = 32;              // of one sandbox to its broker
  int64_t broker_idle_timeout_ms = 60'000;          // a connection to it without a request
  int64_t broker_stall_timeout_ms = 300'000;        // a transfer in which nothing moves
  std::string git_private_hosts;                    // HOST[:PORT], ...: of the own network
  std::string git_ssh_key_file;                     // a deploy key: repositories are reached by SSH
  std::string git_ssh_known_hosts;                  // a file; hosts that are not in it are refused
  std::string commit_template = "{type}: {title}";  // {type}, {title}, {number}, {agent}, {id}
  std::string pull_request = "task_done";           // when: "task_done", "first_commit", "never"
  std::string pull_request_identity = "bot";        // who opens it: "bot", "user", "app"
  bool pull_request_draft = false;
  bool delete_merged_branch = false;
  int64_t task_changes_max_bytes = 2 << 20;  // of a task's changes that are kept; the rest is cut
  // ---- checkouts kept for the next task
  int64_t checkout_cache_max = 0;        // of all repositories; 0 = none are kept
  int64_t checkout_cache_keep = 10;      // the most used repositories keep theirs for ever,
  int64_t checkout_cache_busy_s = 7200;  // those used twice within 10 minutes for so long,
  int64_t checkout_cache_idle_s = 1800;  // those used twice within an hour for so long
  int64_t checkout_cache_sweep_s = 60;   // how often the others are looked for
  int64_t share_default_hours = 168;     // a link to a task is good for so long,
  int64_t share_max_hours = 8'760;       // at most for so long
  int64_t share_max_per_task = 20;       // links at once
  int64_t share_rate_per_minute = 300;   // requests by such links, per address
  // ---- sessions
  std::string session_template = "base";
  int64_t session_idle_pause_s = 300;         // unused for so long its sandbox is paused; 0 = never
  int64_t session_idle_end_s = 3'600;         // unused for so long:
  std::string session_idle_end = "keep";      // "keep", or "destroy" its sandbox
  int64_t session_check_interval_ms = 5'000;  // how often idle ones are looked for
  int64_t session_provision_wait_s = 60;      // a message waits so long for the sandbox
  int64_t session_queue = 20;                 // messages of one session that wait for the agent
  int64_t session_max_running_per_user = 0;   // sandboxes of sessions at once; 0 = unlimited
  bool session_commit = true;                 // every answer that changes files is committed
  std::string session_pull_request = "first_commit";  // a draft one: "first_commit", "never"
  std::string session_branch_template = "session-{slug}-{id}";
  int64_t session_archive_days = 30;  // unused for so long it is archived; 0 = never
  std::string session_title_model;    // names sessions by their first message; "" = their words do
  // ---- the editor of a sandbox, a program inside it behind our login; "" = there is none
  std::string editor_command;
  int64_t editor_port = 13'337;
  // ---- terminals on the page
  int64_t terminal_idle_minutes = 60;          // unseen for so long a shell is ended; 0 = never
  int64_t terminal_history_bytes = 256 << 10;  // of its output, shown again to who comes back
  int64_t terminal_queue_bytes = 1 << 20;      // that wait for a slow viewer; more: it is cut off
  int64_t terminal_max_per_sandbox = 20;       // shells of one sandbox
  int64_t terminal_max_viewers = 10;           // of one shell at once
  int64_t terminal_ping_s = 30;                // silent viewers are asked whether they live
  // ---- builds
  std::string build_template = "base";
  std::string build_workspace = "/home/user/project";
  std::string build_runner = "command";       // when a request does not say: "command", "llm"
  int64_t build_lifetime_s = 3'600;           // of its sandbox, from its start
  int64_t build_viewing_s = 1'800;            // a ready preview answers so long,
  int64_t build_viewing_warning_s = 300;      // is told about so long before the end,
  std::string build_after_viewing = "pause";  // and then its sandbox: "pause", "kill", "keep"
  int64_t build_runner_timeout_s = 1'800;
  int64_t build_install_timeout_s = 300;
  int64_t build_check_timeout_s = 300;
  int64_t build_ready_timeout_s = 120;  // until the preview answers
  int64_t build_ready_interval_ms = 500;
  int64_t build_max_files = 2'000;
  int64_t build_max_file_bytes = 1 << 20;
  int64_t build_max_total_bytes = 20 << 20;
  int64_t build_log_lines = 50'000;      // kept of one build
  int64_t build_log_line_chars = 2'000;  // of one line; the rest is cut
  int64_t build_log_hours = 24;          // then they are deleted,
  std::string build_log_archive;         // or first put into this directory as NDJSON
  int64_t build_keep_versions = 0;       // the newest of a project; older ones go; 0 = all
  int64_t build_queue = 100;             // builds that wait, of all users
  std::string build_tier = "free";       // of users who have none
  // NAME=concurrent per user/per project/per day/iterations/queue boost; 0 = unlimited
  std::string build_tiers = "free=2/2/5/2/0, plus=3/3/50/3/2, pro=10/5/200/5/5, none=0/0/0/0/0";
  std::string browser = "auto";  // takes screenshots: a program, "auto", "none"
  int64_t screenshot_timeout_ms = 30'000;
  // ---- the model that the runner "llm" asks: any server with OpenAI's chat completions
  std::string llm_base_url;  // "https://host/v1"; "" = there is none
  std::string llm_api_key;   // SECURITY: it never leaves the server
  std::string llm_model;
  int64_t llm_timeout_ms = 120'000;
  int64_t llm_max_tokens = 16'000;  // of one answer
  int64_t llm_attempts = 3;         // of an answer that cannot be read
  // ---- GitHub
  std::string github_token;  // SECURITY: these four never leave the server
  std::string github_webhook_secret, github_app_key_file, e2b_api_key;
  std::string github_app_id, github_installation_id;
  int64_t webhook_history = 1'000;     // refused or failed deliveries that are remembered
  int64_t pull_request_check_s = 300;  // how often those in review are asked about; 0 = never
  std::string github_api_url = "https://api.github.com";
  std::string github_url = "https://github.com";  // repositories are cloned from there
  int64_t github_timeout_ms = 30'000;
  std::string e2b_api_url = "https://api.e2b.app";
  std::string e2b_template_id = "base";
  std::string model_routes;  // "NAME=https://host KEYVARIABLE" per line or comma; docs/agents.md
  // ---- money
  std::string sandbox_hour_dollars = "0.015";
  std::string budget_month_dollars = "0";  // of one user; 0 = none
  int64_t budget_alert_pct = 75;
  std::string budget_action = "warn";  // "warn", "stop", "pace": what happens at 100 %
  int64_t budget_overrun_pct = 110;  // "pace": of a day's part; built-in agents are ended above it
  int64_t budget_day_s = 86'400;     // how long a day of the budget is, from midnight (UTC) on
  std::string tier_models;           // NAME=model, ...: answers sessions of users of this tier
  // ---- signing in by GitHub: an OAuth app; without an id there is no such way
  std::string github_oauth_client_id;
  std::string github_oauth_client_secret;  // SECURITY: it never leaves the server
  std::string github_oauth_client_secret_file;
  std::string github_oauth_allowed_users;  // logins, separated by commas; "" = everybody
  int64_t preferences_max_bytes = 16'384;  // of what a page keeps for its user
  // ---- alerts: 0 = none of this kind
  int64_t alert_check_s = 60;
  int64_t alert_p95_ms = 2'000;               // the 95th of 100 requests took longer,
  int64_t alert_error_pct = 5;                // more of them failed,
  int64_t alert_active_sandboxes = 10;        // more sandboxes run,
  int64_t alert_operations_per_minute = 100;  // more requests changed something
};

}  // namespace caisson
