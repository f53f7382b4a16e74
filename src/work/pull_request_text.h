// Title and body of the pull request of a task.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace caisson::work {

struct PullRequestText {
  std::string title;                 // of the task
  std::string description;           // of the task
  std::string summary;               // the agent's last word
  std::vector<std::string> commits;  // messages, newest first
  std::string agent;
  std::string task_id;
  int64_t task_number = 0;
  Time at;
};

// The subject of the newest commit, or the task's title.
std::string PullRequestTitle(const PullRequestText& text);
// SECURITY: what people and agents wrote is quoted so that it cannot mention anybody, hide text in
// comments or bring markup of its own.
std::string PullRequestBody(const PullRequestText& text);

}  // namespace caisson::work
