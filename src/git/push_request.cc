#include "git/push_request.h"

#include <algorithm>

#include "base/text.h"
#include "git/pkt_line.h"
#include "git/repository.h"

namespace caisson::git {
namespace {

constexpr std::string_view kHeads = "refs/heads/";
constexpr std::string_view kTags = "refs/tags/";

bool IsObjectId(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

tl::unexpected<Error> NoPush() {
  return Fail(Code::kInvalidArgument, "This is not a push that is understood here.");
}

// "task-7" covers itself, "task-7/x" and "task-7-x", and not "task-70".
bool Covers(std::string_view prefix, std::string_view branch) {
  if (prefix.empty() || !branch.starts_with(prefix)) return false;
  branch.remove_prefix(prefix.size());
  return branch.empty() || branch.front() == '/' || branch.front() == '-';
}

}  // namespace

// SECURITY: git's own parser on the other side reads the same bytes. Whatever could be read in two
// ways is refused: other kinds of packets, certificates, capabilities behind a later command.
Status PushRequest::Feed(std::string_view data) {
  bytes_ += data;
  while (!done_) {
    TRY_ASSIGN(auto packet, ReadPacket(std::string_view(bytes_).substr(parsed_)));
    if (!packet && bytes_.size() > kMaxBytes)
      return Fail(Code::kOutOfRange, "The list of refs to push is longer than {} bytes.",
                  kMaxBytes);
    if (!packet) return {};
    parsed_ += packet->size;
    if (parsed_ > kMaxBytes)
      return Fail(Code::kOutOfRange, "The list of refs to push is longer than {} bytes.",
                  kMaxBytes);
    if (packet->flush)
      done_ = true;
    else
      TRY(TakeLine(packet->payload));
  }
  return {};
}

Status PushRequest::TakeLine(std::string_view line) {
  size_t zero = line.find('\0');
  if (zero != std::string_view::npos) {
    if (!updates_.empty() || !capabilities_.empty()) return NoPush();
    std::string_view list = line.substr(zero + 1);
    if (list.find('\0') != std::string_view::npos) return NoPush();
    if (list.ends_with('\n')) list.remove_suffix(1);
    for (std::string_view one : Split(list, ' '))
      if (!one.empty()) capabilities_.emplace_back(one);
    line = line.substr(0, zero);
  } else if (line.ends_with('\n')) {
    line.remove_suffix(1);
  }
  if (line.starts_with("shallow ")) {
    // Tells where the sender's history ends; changes nothing by itself.
    if (zero != std::string_view::npos || !IsObjectId(line.substr(8))) return NoPush();
    return {};
  }
  size_t first = line.find(' ');
  if (first == std::string_view::npos) return NoPush();
  size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos) return NoPush();
  RefUpdate update{std::string(line.substr(0, first)),
                   std::string(line.substr(first + 1, second - first - 1)),
                   std::string(line.substr(second + 1))};
  bool fits = IsObjectId(update.old_id) && update.new_id.size() == update.old_id.size() &&
              IsObjectId(update.new_id) && !update.ref.empty();
  if (!fits) return NoPush();
  if (updates_.size() == kMaxUpdates)
    return Fail(Code::kOutOfRange, "A push changes at most {} refs here.", kMaxUpdates);
  updates_.push_back(std::move(update));
  return {};
}

bool PushRequest::Has(std::string_view capability) const {
  return std::any_of(capabilities_.begin(), capabilities_.end(), [&](std::string_view one) {
    return one.substr(0, one.find('=')) == capability;
  });
}

std::string WhyRefused(const PushRule& rule, const RefUpdate& update) {
  std::string_view ref = update.ref;
  if (rule.tags && ref.starts_with(kTags) && !update.is_delete())
    return CheckBranchName(ref.substr(kTags.size())) ? "" : "not a name";
  if (!ref.starts_with(kHeads)) return "only branches may be pushed from this sandbox";
  std::string_view branch = ref.substr(kHeads.size());
  // Also what git would refuse itself: nothing unclean goes on.
  if (!CheckBranchName(branch)) return "not a name of a branch";
  for (const std::string& prefix : rule.branch_prefixes)
    if (Covers(prefix, branch)) return "";
  if (rule.branch_prefixes.empty()) return "this sandbox may not push";
  return fmt::format("this sandbox may push only to {}", fmt::join(rule.branch_prefixes, ", "));
}

std::string RefusalReport(const PushRequest& push, const std::vector<std::string>& why,
                          std::string_view note) {
  std::string report;
  if (push.Has("report-status") || push.Has("report-status-v2")) {
    report = Packet("unpack ok\n");
    for (size_t i = 0; i < push.updates().size(); ++i) {
      // SECURITY: the ref is the sender's own text; a line of it must stay one line.
      std::string ref = push.updates()[i].ref;
      std::replace_if(
          ref.begin(), ref.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20; },
          '?');
      report += Packet(fmt::format("ng {} {}\n", ref, why[i]));
    }
    report += kFlush;
  }
  if (!push.Has("side-band-64k") && !push.Has("side-band")) return report;
  // Each packet of the report travels in pieces of a size that both side bands take.
  constexpr size_t kPiece = 990;
  std::string out = Packet("\2" + std::string(note.substr(0, kPiece)) + "\n");
  for (size_t at = 0; at < report.size(); at += kPiece)
    out += Packet("\1" + report.substr(at, kPiece));
  return out + std::string(kFlush);
}

}  // namespace caisson::git
