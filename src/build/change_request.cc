#include "build/change_request.h"

#include <algorithm>
#include <array>

namespace caisson::build {
namespace {

constexpr size_t kShortest = 4;
constexpr double kHalf = 0.5;
constexpr std::array kUsual = {"also", "build", "change", "could",  "from", "have", "into",
                               "make", "more",  "page",   "please", "that", "them", "then",
                               "this", "want",  "what",   "when",   "with", "your"};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Other alphabets count as letters, byte by byte.
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

// "colours" has to do with "colour", and the other way round.
bool Mentions(const std::set<std::string>& words, const std::set<std::string>& text) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::any_of(text, [&](const std::string& one) {
      return one.starts_with(word) || word.starts_with(one);
    });
  });
}

}  // namespace

std::set<std::string> TellingWords(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  auto end = [&] {
    if (word.size() >= kShortest && std::ranges::find(kUsual, word) == kUsual.end())
      words.insert(word);
    word.clear();
  };
  for (char c : text) {
    if (c = Lower(c); IsLetter(c))
      word += c;
    else
      end();
  }
  end();
  return words;
}

void Judge(ChangeRequest& request, const std::vector<FileDifference>& changes) {
  std::set<std::string> words = TellingWords(request.change_description);
  if (words.empty() || changes.empty()) return;
  int64_t all = 0, fitting = 0;
  for (const FileDifference& change : changes) {
    int64_t lines = std::max<int64_t>(change.additions + change.deletions, 1);
    all += lines;
    if (Mentions(words, TellingWords(change.path)) || Mentions(words, TellingWords(change.patch)))
      fitting += lines;
    else
      request.beside_it.push_back(change.path);
  }
  request.alignment_score = static_cast<double>(fitting) / static_cast<double>(all);
  request.scope_creep_detected = *request.alignment_score < kHalf;
}

}  // namespace caisson::build
