#include "engine/netlink.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

namespace caisson::engine {
namespace {

constexpr timeval kAnswerTimeout{.tv_sec = 2, .tv_usec = 0};

constexpr int kSendBuffer = 1 << 20;

size_t Padded(size_t size) { return NLMSG_ALIGN(size); }

}  // namespace

void NetlinkBatch::Append(const void* data, size_t size) {
  size_t at = bytes_.size();
  bytes_.resize(at + Padded(size));  // the padding is zero
  if (size) memcpy(bytes_.data() + at, data, size);
  Current()->nlmsg_len = static_cast<uint32_t>(bytes_.size() - current_);
}

nlmsghdr* NetlinkBatch::Current() { return reinterpret_cast<nlmsghdr*>(bytes_.data() + current_); }

void NetlinkBatch::BeginRaw(uint16_t type, uint16_t flags, const void* header, size_t size,
                            std::string_view doing) {
  doings_.push_back(doing);
  current_ = bytes_.size();
  bytes_.resize(current_ + sizeof(nlmsghdr));
  nlmsghdr* message = Current();
  message->nlmsg_type = type;
  message->nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK);
  message->nlmsg_seq = static_cast<uint32_t>(doings_.size());
  Append(header, size);
}

void NetlinkBatch::Add(uint16_t attribute, const void* data, size_t size) {
  rtattr header{.rta_len = static_cast<uint16_t>(RTA_LENGTH(size)), .rta_type = attribute};
  Append(&header, sizeof header);
  Append(data, size);
}

void NetlinkBatch::AddText(uint16_t attribute, std::string_view text) {
  std::string terminated(text);
  Add(attribute, terminated.c_str(), terminated.size() + 1);
}

void NetlinkBatch::AddIpv4(uint16_t attribute, uint32_t address) {
  AddU32(attribute, htonl(address));
}

void NetlinkBatch::Nest(uint16_t attribute) {
  nests_.push_back(bytes_.size());
  rtattr header{.rta_len = 0, .rta_type = static_cast<uint16_t>(attribute | NLA_F_NESTED)};
  Append(&header, sizeof header);
}

void NetlinkBatch::EndNest() {
  size_t start = nests_.back();
  nests_.pop_back();
  reinterpret_cast<rtattr*>(bytes_.data() + start)->rta_len =
      static_cast<uint16_t>(bytes_.size() - start);
}

void NetlinkBatch::AddRaw(const void* data, size_t size) { Append(data, size); }

NetlinkAttributes::NetlinkAttributes(const void* data, size_t size)
    : bytes_(static_cast<const char*>(data), size) {}

std::string_view NetlinkAttributes::Get(uint16_t type) const {
  std::string_view rest = bytes_;
  while (rest.size() >= sizeof(rtattr)) {
    rtattr header;
    memcpy(&header, rest.data(), sizeof header);
    if (header.rta_len < sizeof header || header.rta_len > rest.size()) break;
    if ((header.rta_type & NLA_TYPE_MASK) == type)
      return rest.substr(sizeof header, header.rta_len - sizeof header);
    rest.remove_prefix(std::min(rest.size(), Padded(header.rta_len)));
  }
  return {};
}

NetlinkAttributes NetlinkAttributes::Nest(uint16_t type) const {
  std::string_view inside = Get(type);
  return {inside.data(), inside.size()};
}

uint32_t NetlinkAttributes::GetU32(uint16_t type) const {
  std::string_view bytes = Get(type);
  uint32_t value = 0;
  if (bytes.size() >= sizeof value) memcpy(&value, bytes.data(), sizeof value);
  return ntohl(value);
}

uint16_t NetlinkAttributes::GetU16(uint16_t type) const {
  std::string_view bytes = Get(type);
  uint16_t value = 0;
  if (bytes.size() >= sizeof value) memcpy(&value, bytes.data(), sizeof value);
  return ntohs(value);
}

uint8_t NetlinkAttributes::GetU8(uint16_t type) const {
  std::string_view bytes = Get(type);
  return bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
}

Result<Netlink> Netlink::Open(int protocol) {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!fd) return FailErrno("cannot open a netlink socket");
  // Errors then do not carry the request back.
  int on = 1;
  setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof kAnswerTimeout) != 0)
    return FailErrno("cannot set the netlink timeout");
  // Room for the longest batch. Without the right to it, long ones fail.
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof kSendBuffer);
  return Netlink(std::move(fd));
}

Result<uint32_t> Netlink::SendAll(NetlinkBatch& batch) {
  sockaddr_nl kernel{.nl_family = AF_NETLINK};
  // Sequence numbers go on from batch to batch, so that a late answer to an earlier batch (after a
  // timeout) is not taken for one of this. Frames have the number before the first.
  uint32_t first = next_sequence_ + 1;
  next_sequence_ += static_cast<uint32_t>(batch.doings_.size()) + 1;
  for (size_t at = 0; at < batch.bytes_.size();) {
    auto* message = reinterpret_cast<nlmsghdr*>(batch.bytes_.data() + at);
    message->nlmsg_seq += first - 1;
    at += Padded(message->nlmsg_len);
  }
  if (sendto(fd_.get(), batch.bytes_.data(), batch.bytes_.size(), 0,
             reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0)
    return FailErrno("cannot talk to the kernel by netlink");
  return first;
}

Status Netlink::Run(NetlinkBatch& batch) {
  TRY_ASSIGN(uint32_t first, SendAll(batch));
  Status status;
  size_t answers = 0;
  while (answers < batch.doings_.size()) {
    alignas(nlmsghdr) char buffer[8192];
    ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("no answer from the kernel by netlink");
    auto left = static_cast<uint32_t>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      uint32_t index = message->nlmsg_seq - first;
      if (message->nlmsg_type != NLMSG_ERROR) continue;
      int error = -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
      // Nothing inside a transaction that cannot begin is answered.
      if (message->nlmsg_seq == first - 1 && error != 0)
        return tl::unexpected(ErrnoError("the kernel refuses a transaction", error));
      if (index >= batch.doings_.size()) continue;
      ++answers;
      if (error != 0 && status && !batch.doings_[index].empty())
        status = tl::unexpected(ErrnoError(std::string(batch.doings_[index]), error));
    }
  }
  return status;
}

Status Netlink::Dump(NetlinkBatch& request, const std::function<void(const nlmsghdr&)>& each) {
  TRY_ASSIGN(uint32_t sequence, SendAll(request));
  while (true) {
    alignas(nlmsghdr) char buffer[32 << 10];
    ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("no answer from the kernel by netlink");
    auto left = static_cast<uint32_t>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence) continue;
      if (message->nlmsg_type == NLMSG_DONE) return {};
      if (message->nlmsg_type == NLMSG_ERROR)
        return tl::unexpected(ErrnoError(std::string(request.doings_[0]),
                                         -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error));
      each(*message);
    }
  }
}

}  // namespace caisson::engine
