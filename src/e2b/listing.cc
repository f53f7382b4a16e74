#include "e2b/listing.h"

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::e2b {
namespace {

constexpr std::string_view kSeparator = "__";
constexpr int64_t kMaxLimit = 100;

tl::unexpected<Error> BadCursor() { return Fail(Code::kInvalidArgument, "Invalid next token"); }

Result<Time> DecodeStartedAfter(std::string text) {
  // The '+' of an offset that was not percent-encoded arrives as a space.
  if (auto space = text.rfind(' '); space != std::string::npos && space > 10) text[space] = '+';
  auto time = ParseTime(text);
  if (!time)
    return Fail(Code::kInvalidArgument, "startedAfter must be an RFC 3339 time, not '{}'", text);
  return time;
}

Status DecodeStates(const http::Query& query, sandbox::ListFilter& filter) {
  bool any = false, running = false, paused = false;
  for (const auto& [name, value] : query.all()) {
    if (name != "state") continue;
    for (std::string_view state : Split(value, ',')) {
      any = true;
      if (state == "running")
        running = true;
      else if (state == "paused")
        paused = true;
      else
        return Fail(Code::kInvalidArgument, "state must be running or paused, not '{}'", state);
    }
  }
  if (!any) return {};
  filter.running = running;
  filter.paused = paused;
  return {};
}

Status DecodeOrder(std::string_view text, sandbox::ListFilter& filter) {
  if (text != "asc" && text != "desc")
    return Fail(Code::kInvalidArgument, "order must be asc or desc, not '{}'", text);
  filter.ascending = text == "asc";
  return {};
}

}  // namespace

bool Cursor::IsBefore(Time other_started_at, std::string_view other_id) const {
  if (other_started_at == started_at && other_id == id) return false;
  bool precedes = other_started_at != started_at ? other_started_at > started_at : other_id < id;
  return ascending ? precedes : !precedes;
}

std::string EncodeCursor(const Cursor& cursor) {
  std::string text = fmt::format("{}{}{}", FormatTime(cursor.started_at), kSeparator, cursor.id);
  if (cursor.ascending) text += "__asc";
  return Base64UrlEncode(text);
}

Result<Cursor> DecodeCursor(std::string_view encoded) {
  auto text = Base64Decode(encoded);
  if (!text) return BadCursor();
  Cursor cursor;
  std::string_view rest = *text;
  if (rest.ends_with("__asc")) {
    cursor.ascending = true;
    rest.remove_suffix(5);
  }
  size_t at = rest.find(kSeparator);
  if (at == std::string_view::npos) return BadCursor();
  auto time = ParseTime(rest.substr(0, at));
  if (!time) return BadCursor();
  cursor.started_at = *time;
  cursor.id = rest.substr(at + kSeparator.size());
  if (cursor.id.empty()) return BadCursor();
  return cursor;
}

Result<sandbox::StringMap> DecodeMetadata(std::string_view text) {
  sandbox::StringMap metadata;
  auto pairs = PercentDecode(text, /*plus_is_space=*/true);
  if (!pairs) return Fail(Code::kInvalidArgument, "metadata is not URL-encoded");
  if (pairs->empty()) return metadata;
  for (std::string_view pair : Split(*pairs, '&')) {
    size_t equals = pair.find('=');
    auto key = PercentDecode(pair.substr(0, equals));
    auto value = PercentDecode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (equals == std::string_view::npos || !key || !value)
      return Fail(Code::kInvalidArgument,
                  "metadata must be key=value pairs joined by '&', each part URL-encoded");
    metadata.insert_or_assign(*key, *value);
  }
  return metadata;
}

Result<PageQuery> DecodePageQuery(const http::Query& query, bool ascending) {
  PageQuery page;
  if (auto text = query.Get("limit")) {
    auto limit = ParseInt<int64_t>(*text);
    if (!limit || *limit < 1 || *limit > kMaxLimit)
      return Fail(Code::kInvalidArgument, "limit must be a number from 1 to {}", kMaxLimit);
    page.limit = static_cast<size_t>(*limit);
  }
  if (auto text = query.Get("nextToken"); text && !text->empty()) {
    TRY_ASSIGN(page.after, DecodeCursor(*text));
    if (page.after->ascending != ascending) return BadCursor();
  }
  return page;
}

Result<ListQuery> DecodeListQuery(const http::Query& query) {
  ListQuery list;
  if (auto text = query.Get("metadata")) {
    TRY_ASSIGN(list.filter.metadata, DecodeMetadata(*text));
  }
  TRY(DecodeStates(query, list.filter));
  if (auto text = query.Get("order")) TRY(DecodeOrder(*text, list.filter));
  if (auto text = query.Get("startedAfter")) {
    TRY_ASSIGN(list.filter.started_after, DecodeStartedAfter(std::string(*text)));
  }
  if (auto text = query.Get("template")) {
    if (text->find(':') != std::string_view::npos)
      return Fail(Code::kInvalidArgument, "template must be an id or an alias without a tag");
    list.filter.template_name = *text;
  }
  TRY_ASSIGN(list.page, DecodePageQuery(query, list.filter.ascending));
  return list;
}

Page CutPage(std::vector<sandbox::Info> sorted, const ListQuery& query) {
  Page page;
  for (sandbox::Info& info : sorted) {
    if (query.page.after && !query.page.after->IsBefore(info.started_at, info.id)) continue;
    if (page.items.size() == query.page.limit) {
      const sandbox::Info& last = page.items.back();
      page.next_token = EncodeCursor({last.started_at, last.id, query.filter.ascending});
      break;
    }
    page.items.push_back(std::move(info));
  }
  return page;
}

}  // namespace caisson::e2b
