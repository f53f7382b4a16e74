#include "events/output_search.h"

#include <algorithm>

namespace caisson::events {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool Holds(const std::string& line, const std::string& text) {
  auto alike = [](char a, char b) { return Lower(a) == b; };
  return !std::ranges::search(line, text, alike).empty();
}

// Shared with the store's thread.
struct Search {
  OutputQuery query;
  OutputHits hits;

  bool Take(OutputLine line) {
    if (!query.stream.empty() && line.is_stderr != (query.stream == "stderr")) return true;
    ++hits.looked_at;
    if (Holds(line.text, query.text)) hits.lines.push_back(std::move(line));
    return hits.lines.size() < query.limit;
  }
};

}  // namespace

Task<Result<OutputHits>> FindOutput(Reader& reader, OutputQuery query) {
  auto deadline = std::chrono::steady_clock::now() + query.patience;
  std::ranges::transform(query.text, query.text.begin(), Lower);
  OutputWalk walk(reader, query.filter, query.after);
  auto search = std::make_shared<Search>(Search{.query = std::move(query), .hits = {}});
  OutputHits& hits = search->hits;
  for (bool over = false; !over && !hits.next;) {
    CO_TRY_ASSIGN(auto part, co_await walk.Next([search](OutputLine line) {
      return search->Take(std::move(line));
    }));
    over = part.over;
    bool enough = hits.lines.size() >= search->query.limit;
    if (!over && (enough || std::chrono::steady_clock::now() > deadline)) hits.next = part.last;
  }
  std::ranges::sort(hits.lines, {},
                    [](const OutputLine& line) { return std::pair(line.event, line.place); });
  co_return std::move(hits);
}

}  // namespace caisson::events
