#include "store/database.h"

namespace caisson::store {

Status Database::Run(std::string_view sql, const std::vector<Value>& values) {
  TRY_ASSIGN(Statement statement, Query(sql, values));
  TRY(statement.Step());
  return {};
}

}  // namespace caisson::store
