// Queries of the list route: filters, pages, cursors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "sandbox/manager.h"

namespace caisson::e2b {

// The last sandbox of a page; the next page begins after it.
struct Cursor {
  Time started_at;
  std::string id;
  bool ascending = false;

  // Whether the one with this time and id comes after the cursor: newest first, then by id;
  // ascending is the exact reverse.
  bool IsBefore(Time other_started_at, std::string_view other_id) const;
};
std::string EncodeCursor(const Cursor& cursor);
Result<Cursor> DecodeCursor(std::string_view text);

// The `metadata` parameter as it is after the query was decoded once: SDKs encode it three times.
Result<sandbox::StringMap> DecodeMetadata(std::string_view text);

// Which page of a list.
struct PageQuery {
  size_t limit = 100;
  std::optional<Cursor> after;
};
Result<PageQuery> DecodePageQuery(const http::Query& query, bool ascending = false);

struct ListQuery {
  sandbox::ListFilter filter;  // key_id is empty
  PageQuery page;
};
Result<ListQuery> DecodeListQuery(const http::Query& query);

struct Page {
  std::vector<sandbox::Info> items;
  std::string next_token;  // "" on the last page
};
// Cuts a page out of a sorted list.
Page CutPage(std::vector<sandbox::Info> sorted, const ListQuery& query);

}  // namespace caisson::e2b
