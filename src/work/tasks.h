// Tasks: what shall be done, in which column of the board it stands, what it waits for.
#pragma once

#include <array>
#include <boost/json/object.hpp>

#include "store/work_rows.h"
#include "work/platform.h"
#include "work/start.h"
#include "work/start_limit.h"

namespace caisson::work {

namespace json = boost::json;

// The columns of the board, in their order.
struct Column {
  std::string_view status, title;
};
inline constexpr std::array kColumns = {
    Column{"backlog", "Backlog"},
    Column{"pending", "Pending"},
    Column{"in_progress", "In progress"},
    Column{"in_review", "In review"},
    Column{"done", "Done"},
    Column{"failed", "Failed"},
    Column{"canceled", "Canceled"},
};
inline constexpr std::array kPriorities = {"low", "medium", "high", "urgent"};

struct NewTask {
  std::string id = {};  // "" = a random one; a task that has it already is the answer
  std::string title, description, repo_url, base_branch;
  std::string priority = "medium";
  std::string status = "pending";  // or "backlog"
  std::optional<std::string> agent_id, squad_id;
  std::vector<std::string> blocked_by;
  json::object options;
};
struct TaskChange {  // only what is set is changed; "" as an id means none
  std::optional<std::string> title, description, repo_url, base_branch, priority, agent_id,
      squad_id;
  std::optional<std::vector<std::string>> blocked_by;  // all of them
  std::optional<json::object> options;
};
struct Move {
  std::string status;
  std::optional<double> position;  // nothing: the column's end
  std::string feedback;
  std::string execution_id = {};  // as of StartRequest
};
struct TaskFilter {
  std::vector<std::string> statuses, priorities;
  std::string agent_id, squad_id, repo, text;  // "" = any
  // Of its pull request: "open" (approved or not), "draft", "merged", "closed"; "any" = has one.
  std::string pull_request_state;
  Page page;
};
struct TaskView {
  store::TaskRow row;
  std::vector<std::string> blocked_by, blocks;  // ids
  int64_t queue_position = 0;                   // its turn, from 1; 0 = it does not wait for one
};
struct BoardColumn {
  Column column;
  int64_t count = 0;
  std::vector<TaskView> tasks;  // the first ones
};
struct Board {
  std::vector<BoardColumn> columns;
  // Work in progress: an agent works on one task at a time.
  int64_t agents = 0, free_agents = 0;
};

class Tasks {
 public:
  // `starts` outlives it.
  Tasks(Platform platform, StartLimit& starts) : platform_(platform), starts_(starts) {}

  Task<Result<TaskView>> Create(std::string owner_id, NewTask task);
  // Owner "": everybody's, for an administrator.
  Task<Result<Listed<TaskView>>> List(std::string owner_id, TaskFilter filter);
  Task<Result<TaskView>> Get(std::string owner_id, std::string id);
  Task<Result<TaskView>> Update(std::string owner_id, std::string id, TaskChange change);
  // kFailedPrecondition while it is worked on.
  Task<Status> Delete(std::string owner_id, std::string id);
  // Into "in_progress" starts it; out of it cancels the work. From "in_review" back to
  // "in_progress" needs feedback, the mover's or a reviewer's, which the agent gets.
  Task<Result<TaskView>> MoveTo(std::string owner_id, std::string id, Move move);
  // At most `per_column` tasks of each.
  Task<Result<Board>> GetBoard(std::string owner_id, std::string squad_id, int64_t per_column);

  // kResourceExhausted, as of the next one and of moves: the user starts too many.
  Task<Result<Started>> Start(StartRequest request);
  // Makes the task and starts it, or neither. `when_free`: as of StartRequest.
  Task<Result<Started>> CreateAndStart(std::string owner_id, NewTask task, bool when_free = false);
  // False if nothing was under way. One that waits for its turn does not wait any more.
  Task<Result<bool>> Cancel(std::string owner_id, std::string id, std::string reason);

  // ---- task_pause.cc
  // The work on it stands still: before its next step, or in the middle of the agent's, whose
  // sandbox is paused. Time that it stands counts neither for costs nor for limits of the agent. A
  // second time is fine. kFailedPrecondition: nothing is under way, or not in a sandbox of ours.
  Task<Result<TaskView>> Pause(std::string owner_id, std::string id, std::string reason);
  // It goes on where it was.
  Task<Result<TaskView>> Resume(std::string owner_id, std::string id);

 private:
  Platform platform_;
  StartLimit& starts_;
};

// kNotFound also if it is somebody else's.
Result<store::TaskRow> NeedTask(store::Transaction& tx, const std::string& owner_id,
                                const std::string& id);
Result<TaskView> ViewOf(store::Transaction& tx, store::TaskRow task);
// Writes the row with a new status at the end of its column, and tells it.
Status SetTaskStatus(store::Transaction& tx, Platform& platform, store::TaskRow& task,
                     const std::string& status);
// The place after the last one of a column.
Result<double> EndOfColumn(store::Transaction& tx, const std::string& owner_id,
                           const std::string& status);
// kInvalidArgument: a setting of a task that there is not, or with an impossible value.
Status CheckTaskOptions(const json::object& options);

}  // namespace caisson::work
