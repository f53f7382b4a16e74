// A transaction of the store, in terms of rows. A job that is given one must change nothing but the
// database: it may be run again from its start (PostgreSQL: after a deadlock).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/event_row.h"
#include "store/table.h"

namespace caisson::store {

class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}

  // kAlreadyExists: the key or another unique value is taken; kNotFound: it refers to a row that
  // does not exist.
  template <class Row>
  Status Insert(const Row& row);
  // Replaces the row with the same key; kNotFound if there is none.
  template <class Row>
  Status Update(const Row& row);
  // By the key.
  template <class Row, class Key>
  Result<std::optional<Row>> Get(const Key& key);
  // The same; kNotFound with "there is no <what> <key>" if there is none.
  template <class Row>
  Result<Row> Need(const std::string& key, std::string_view what);
  template <class Row>
  Result<std::vector<Row>> List(const Select<Row>& select);
  template <class Row>
  Result<std::optional<Row>> First(Select<Row> select);
  template <class Row>
  Result<int64_t> Count(const Select<Row>& select);
  // Changes columns of all rows that match: compare-and-set. Returns how many did.
  template <class Row>
  Result<int64_t> Set(const Select<Row>& select, const std::vector<Assignment>& assignments);
  // Returns how many there were.
  template <class Row>
  Result<int64_t> Delete(const Select<Row>& select);
  // For tables whose key is a number that grows: inserts, sets row.id, returns it.
  template <class Row>
  Result<int64_t> Append(Row& row);

  // Appends to the event log. Ids grow in the order of commits, so that a reader who has seen n has
  // seen everything before n.
  Result<int64_t> Emit(EventRow event);
  // True once Emit() was called.
  bool emitted() const { return emitted_; }

  // For the sources of store/ that need SQL of their own.
  Database& database() { return database_; }

 private:
  Database& database_;
  bool emitted_ = false;
};

// ---- implementation ------------------------------------------------------------------------

namespace internal {

inline void Read(const Statement& from, int column, std::string& to) { to = from.Text(column); }
inline void Read(const Statement& from, int column, double& to) { to = from.Real(column); }
inline void Read(const Statement& from, int column, int64_t& to) { to = from.Int(column); }
inline void Read(const Statement& from, int column, bool& to) { to = from.Bool(column); }
inline void Read(const Statement& from, int column, Time& to) { to = from.TimeAt(column); }
template <class T>
void Read(const Statement& from, int column, std::optional<T>& to) {
  to.reset();
  if (!from.IsNull(column)) Read(from, column, to.emplace());
}

template <class Row>
Row ReadRow(const Statement& from) {
  Row row;
  int at = 0;
  std::apply([&](const auto&... column) { (Read(from, at++, row.*column.field), ...); },
             Row::kTable.columns);
  return row;
}

template <class Row>
std::vector<Value> ValuesOf(const Row& row) {
  return std::apply(
      [&](const auto&... column) { return std::vector<Value>{ToValue(row.*column.field)...}; },
      Row::kTable.columns);
}

template <class Row>
std::vector<std::string_view> ColumnsOf() {
  return std::apply(
      [](const auto&... column) { return std::vector<std::string_view>{column.name...}; },
      Row::kTable.columns);
}

// "a, b, c" from the column `first` on.
std::string JoinColumns(const std::vector<std::string_view>& columns, size_t first);
// "INSERT INTO t (a, b) VALUES (?, ?)".
std::string InsertText(std::string_view table, const std::vector<std::string_view>& columns,
                       size_t first);
// "UPDATE t SET b = ?, c = ? WHERE a = ?".
std::string UpdateText(std::string_view table, const std::vector<std::string_view>& columns);
std::string SetText(std::string_view table, const std::vector<Assignment>& assignments);

template <class Row>
std::string SelectText() {
  return "SELECT " + JoinColumns(ColumnsOf<Row>(), 0) + " FROM " + std::string(Row::kTable.name);
}

}  // namespace internal

template <class Row>
Status Transaction::Insert(const Row& row) {
  static const std::string text =
      internal::InsertText(Row::kTable.name, internal::ColumnsOf<Row>(), 0);
  return database_.Run(text, internal::ValuesOf(row));
}

template <class Row>
Status Transaction::Update(const Row& row) {
  static const std::string text =
      internal::UpdateText(Row::kTable.name, internal::ColumnsOf<Row>());
  std::vector<Value> values = internal::ValuesOf(row);
  std::rotate(values.begin(), values.begin() + 1, values.end());  // the key comes last
  TRY(database_.Run(text, values));
  if (database_.changes() == 0)
    return Fail(Code::kNotFound, "there is no such row in {}", Row::kTable.name);
  return {};
}

template <class Row>
Result<std::vector<Row>> Transaction::List(const Select<Row>& select) {
  static const std::string text = internal::SelectText<Row>();
  TRY_ASSIGN(Statement rows,
             database_.Query(text + select.where() + select.tail(), select.values()));
  std::vector<Row> found;
  for (;;) {
    TRY_ASSIGN(bool more, rows.Step());
    if (!more) return found;
    found.push_back(internal::ReadRow<Row>(rows));
  }
}

template <class Row>
Result<std::optional<Row>> Transaction::First(Select<Row> select) {
  TRY_ASSIGN(std::vector<Row> rows, List(select.Limit(1)));
  if (rows.empty()) return std::optional<Row>();
  return std::optional<Row>(std::move(rows.front()));
}

template <class Row, class Key>
Result<std::optional<Row>> Transaction::Get(const Key& key) {
  return First(Select<Row>().Eq(std::get<0>(Row::kTable.columns).field, key));
}

template <class Row>
Result<Row> Transaction::Need(const std::string& key, std::string_view what) {
  TRY_ASSIGN(std::optional<Row> row, Get<Row>(key));
  if (!row) return Fail(Code::kNotFound, "there is no {} {}", what, key);
  return std::move(*row);
}

template <class Row>
Result<int64_t> Transaction::Count(const Select<Row>& select) {
  TRY_ASSIGN(Statement rows, database_.Query("SELECT count(*) FROM " +
                                                 std::string(Row::kTable.name) + select.where(),
                                             select.values()));
  TRY(rows.Step());
  return rows.Int(0);
}

template <class Row>
Result<int64_t> Transaction::Set(const Select<Row>& select,
                                 const std::vector<Assignment>& assignments) {
  std::vector<Value> values;
  for (const Assignment& one : assignments) values.push_back(one.value);
  values.insert(values.end(), select.values().begin(), select.values().end());
  TRY(database_.Run(internal::SetText(Row::kTable.name, assignments) + select.where(), values));
  return database_.changes();
}

template <class Row>
Result<int64_t> Transaction::Delete(const Select<Row>& select) {
  TRY(database_.Run("DELETE FROM " + std::string(Row::kTable.name) + select.where(),
                    select.values()));
  return database_.changes();
}

template <class Row>
Result<int64_t> Transaction::Append(Row& row) {
  static const std::string text =
      internal::InsertText(Row::kTable.name, internal::ColumnsOf<Row>(), 1) + " RETURNING id";
  std::vector<Value> values = internal::ValuesOf(row);
  values.erase(values.begin());
  TRY_ASSIGN(Statement rows, database_.Query(text, values));
  TRY(rows.Step());
  row.id = rows.Int(0);
  // The statement is not done before it has said so.
  TRY(rows.Step());
  return row.id;
}

}  // namespace caisson::store
