// How a struct is a row of a table: the table's name, and which field is which column. Each row
// struct has a `kTable`; its first column is the primary key.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "store/database.h"

namespace caisson::store {

template <class Row, class T>
struct Column {
  std::string_view name;
  T Row::* field;
};

template <class Row, class... T>
struct Table {
  std::string_view name;
  std::tuple<Column<Row, T>...> columns;
};

template <class Row, class... T>
constexpr Table<Row, T...> MakeTable(std::string_view name, Column<Row, T>... columns) {
  return {name, {columns...}};
}

// The column that holds `field`.
template <class Row, class T>
std::string_view ColumnName(T Row::* field) {
  std::string_view name;
  auto look = [&](const auto& column) {
    if constexpr (std::is_same_v<decltype(column.field), T Row::*>)
      if (column.field == field) name = column.name;
  };
  std::apply([&](const auto&... column) { (look(column), ...); }, Row::kTable.columns);
  return name;
}

// Which rows, in what order. Conditions are joined by AND; values are always bound, never part of
// the text.
template <class Row>
class Select {
 public:
  template <class T, class V>
  Select& Eq(T Row::* field, const V& value) {
    return Add(ColumnName(field), " = ?", ToValue(value));
  }
  template <class T, class V>
  Select& NotEq(T Row::* field, const V& value) {
    return Add(ColumnName(field), " <> ?", ToValue(value));
  }
  template <class T, class V>
  Select& Less(T Row::* field, const V& value) {
    return Add(ColumnName(field), " < ?", ToValue(value));
  }
  template <class T, class V>
  Select& Greater(T Row::* field, const V& value) {
    return Add(ColumnName(field), " > ?", ToValue(value));
  }
  // An empty list matches nothing.
  template <class T, class V>
  Select& In(T Row::* field, const std::vector<V>& values) {
    std::string marks;
    for (const V& value : values) {
      marks += marks.empty() ? "?" : ", ?";
      values_.push_back(ToValue(value));
    }
    return AddText(ColumnName(field), marks.empty() ? " IN (NULL)" : " IN (" + marks + ")");
  }
  template <class T>
  Select& IsNull(T Row::* field) {
    return AddText(ColumnName(field), " IS NULL");
  }
  template <class T>
  Select& NotNull(T Row::* field) {
    return AddText(ColumnName(field), " IS NOT NULL");
  }
  // Part of the text, upper and lower case alike.
  template <class T>
  Select& Contains(T Row::* field, std::string_view part) {
    std::string pattern = "%";
    for (char c : part) {
      if (c == '%' || c == '_' || c == '\\') pattern += '\\';
      pattern += c;
    }
    values_.emplace_back(pattern + '%');
    Join("lower(");
    where_ += std::string(ColumnName(field)) + ") LIKE lower(?) ESCAPE '\\'";
    return *this;
  }
  template <class T>
  Select& Order(T Row::* field, bool descending = false) {
    order_ += order_.empty() ? " ORDER BY " : ", ";
    order_ += std::string(ColumnName(field)) + (descending ? " DESC" : "");
    return *this;
  }
  Select& Limit(int64_t rows) {
    limit_ = rows;
    return *this;
  }
  Select& Offset(int64_t rows) {
    offset_ = rows;
    return *this;
  }

  // " WHERE ..." or "".
  const std::string& where() const { return where_; }
  const std::vector<Value>& values() const { return values_; }
  // " ORDER BY ... LIMIT ...".
  std::string tail() const {
    std::string text = order_;
    if (limit_ >= 0) text += " LIMIT " + std::to_string(limit_);
    if (offset_ > 0) text += " OFFSET " + std::to_string(offset_);
    return text;
  }

 private:
  Select& Add(std::string_view column, std::string_view condition, Value value) {
    values_.push_back(std::move(value));
    return AddText(column, condition);
  }
  Select& AddText(std::string_view column, std::string_view condition) {
    Join(column);
    where_ += condition;
    return *this;
  }
  void Join(std::string_view text) {
    where_ += where_.empty() ? " WHERE " : " AND ";
    where_ += text;
  }

  std::string where_, order_;
  std::vector<Value> values_;
  int64_t limit_ = -1, offset_ = 0;
};

// One column's new value, for Transaction::Set().
struct Assignment {
  std::string column;
  Value value;
};
template <class Row, class T, class V>
Assignment Assign(T Row::* field, const V& value) {
  return {std::string(ColumnName(field)), ToValue(value)};
}

}  // namespace caisson::store
