#include "store/transaction.h"

namespace caisson::store {
namespace internal {

std::string JoinColumns(const std::vector<std::string_view>& columns, size_t first) {
  std::string text;
  for (size_t i = first; i < columns.size(); ++i)
    text.append(i == first ? "" : ", ").append(columns[i]);
  return text;
}

std::string InsertText(std::string_view table, const std::vector<std::string_view>& columns,
                       size_t first) {
  std::string marks;
  for (size_t i = first; i < columns.size(); ++i) marks += i == first ? "?" : ", ?";
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, JoinColumns(columns, first), marks);
}

std::string UpdateText(std::string_view table, const std::vector<std::string_view>& columns) {
  std::vector<Assignment> assignments;
  for (size_t i = 1; i < columns.size(); ++i) assignments.push_back({std::string(columns[i]), {}});
  return fmt::format("{} WHERE {} = ?", SetText(table, assignments), columns[0]);
}

std::string SetText(std::string_view table, const std::vector<Assignment>& assignments) {
  std::string list;
  for (const Assignment& one : assignments)
    list += (list.empty() ? "" : ", ") + one.column + " = ?";
  return fmt::format("UPDATE {} SET {}", table, list);
}

}  // namespace internal

Result<int64_t> Transaction::Emit(EventRow event) {
  if (!emitted_) TRY(database_.AnnounceEvents());
  emitted_ = true;
  return Append(event);
}

}  // namespace caisson::store
