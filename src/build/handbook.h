// What the user of a version wants to read: written from its row, its files and the versions before
// it. Nothing is run and no model is asked.
#pragma once

#include <string>
#include <vector>

#include "build/file_change.h"
#include "build/readiness.h"
#include "store/build_rows.h"

namespace caisson::build {

struct Handbook {
  struct Question {
    std::string question, answer;
  };
  struct Change {
    std::string version, description;
    Time at;
  };
  std::string overview;
  std::vector<std::string> features;
  std::vector<std::string> getting_started;  // step by step
  std::vector<Question> faq;
  std::vector<Change> changelog;  // from the second version on, newest first
};

// `versions`: the ready ones of the project up to this one.
Handbook WriteHandbook(const store::BuildRow& build, const Files& files, const DeployPath& path,
                       const std::vector<store::BuildRow>& versions);
// All of it as one text.
std::string Markdown(const std::string& project, const Handbook& handbook);

}  // namespace caisson::build
