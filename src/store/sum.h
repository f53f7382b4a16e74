// The sum of a column, made by the database.
#pragma once

#include <string>

#include "store/transaction.h"

namespace caisson::store {

// 0 if no row matches.
template <class Row>
Result<double> Sum(Transaction& transaction, const Select<Row>& select, double Row::* field) {
  std::string text =
      fmt::format("SELECT coalesce(sum({}), 0.0) FROM {}", ColumnName(field), Row::kTable.name);
  TRY_ASSIGN(Statement rows, transaction.database().Query(text + select.where(), select.values()));
  TRY(rows.Step());
  return rows.Real(0);
}

}  // namespace caisson::store
