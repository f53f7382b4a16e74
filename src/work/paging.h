// Lists by pages.
#pragma once

#include "store/transaction.h"
#include "work/platform.h"

namespace caisson::work {

// One page of what the query finds, in its order.
template <class Row>
Result<Listed<Row>> ListPage(store::Transaction& tx, store::Select<Row> select, const Page& page) {
  Listed<Row> listed;
  TRY_ASSIGN(listed.total, tx.Count(select));
  TRY_ASSIGN(listed.items, tx.List(select.Limit(page.limit).Offset(page.offset)));
  return listed;
}

// The same, of what `view(tx, row)` makes of each row.
template <class Item, class Row>
Result<Listed<Item>> ListPage(store::Transaction& tx, const store::Select<Row>& select,
                              const Page& page, Result<Item> (*view)(store::Transaction&, Row)) {
  TRY_ASSIGN(Listed<Row> rows, ListPage(tx, select, page));
  Listed<Item> listed{.total = rows.total};
  for (Row& row : rows.items) {
    TRY_ASSIGN(Item item, view(tx, std::move(row)));
    listed.items.push_back(std::move(item));
  }
  return listed;
}

}  // namespace caisson::work
