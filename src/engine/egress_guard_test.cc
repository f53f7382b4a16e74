// What sandboxes with rules of their own reach, for real: see network_fixture.h. The test process
// is the engine; a nameserver lives in "the internet".
#include "engine/egress_guard.h"

#include <gmock/gmock.h>
#include <sys/epoll.h>

#include "engine/dns_message.h"
#include "engine/dns_stream.h"
#include "engine/network_fixture.h"

namespace caisson::engine {
namespace {

constexpr const char* kOther = "203.0.113.81";
constexpr int kDnsPort = 5353;

std::string EncodeName(std::string_view dotted) {
  std::string out;
  for (std::string_view label : Split(dotted, '.')) {
    out += static_cast<char>(label.size());
    out += label;
  }
  return out + '\0';
}
std::string MakeQuery(std::string_view name) {
  return std::string("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12) + EncodeName(name) +
         std::string("\x00\x01\x00\x01", 4);
}

// What the nameserver says: an address for some names, else that there is none.
std::string AnswerTo(const std::string& message) {
  auto query = ParseDnsQuery(message);
  if (!query) return "";
  std::map<std::string, const char*> names{
      {"good.example", kPublic}, {"evil.example", kOther}, {"private.example", kResolver}};
  std::string name = ToLower(query->question.name);
  bool alias = name == "alias.example";
  auto found = names.find(alias ? "good.example" : name);
  if (found == names.end()) return BuildDnsError(*query, kDnsNameError);
  std::string out = BuildDnsError(*query, 0);
  out[7] = alias ? 2 : 1;
  std::string owner = "\xc0\x0c";
  if (alias) {
    std::string target = EncodeName("good.example");
    out += owner + std::string("\x00\x05\x00\x01\x00\x00\x00\x01\x00", 9) +
           static_cast<char>(target.size()) + target;
    owner = target;
  }
  in_addr address{};
  inet_pton(AF_INET, found->second, &address);
  return out + owner + std::string("\x00\x01\x00\x01\x00\x00\x00\x01\x00\x04", 10) +
         std::string(reinterpret_cast<char*>(&address), 4);
}

void ServeNames(const char* at) {
  int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Address(at, kDnsPort);
  int on = 1;
  setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(udp, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      bind(tcp, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(tcp, 8) != 0)
    _exit(1);
  while (true) {
    pollfd fds[2] = {{udp, POLLIN, 0}, {tcp, POLLIN, 0}};
    poll(fds, 2, -1);
    sockaddr_in from{};
    socklen_t size = sizeof from;
    if (fds[0].revents) {
      char data[512];
      ssize_t n = recvfrom(udp, data, sizeof data, 0, reinterpret_cast<sockaddr*>(&from), &size);
      std::string answer =
          AnswerTo(std::string(data, static_cast<size_t>(std::max<ssize_t>(n, 0))));
      sendto(udp, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
    if (fds[1].revents) {
      DnsStream stream{UniqueFd(accept(tcp, nullptr, nullptr))};
      std::optional<std::string> query;
      while (!query && !stream.ended()) {
        pollfd p{stream.fd(), POLLIN, 0};
        poll(&p, 1, -1);
        query = stream.Read();
      }
      if (query) stream.Write(AnswerTo(*query));
    }
  }
}

// In the sandbox: asks so many times before it hears the first answer. "y" for each address.
std::string ResolveAtOnce(const std::string& name, size_t times) {
  DnsQuery query = *ParseDnsQuery(MakeQuery(name));
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in to = Address("198.18.0.1", 53);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return strerror(errno);
  std::string message = BuildDnsQuery(query, query.id), text;
  for (size_t i = 0; i < times; ++i) (void)!send(fd.get(), message.data(), message.size(), 0);
  pollfd p{fd.get(), POLLIN, 0};
  while (text.size() < times && poll(&p, 1, static_cast<int>(kPatience.count())) == 1) {
    char data[1024];
    ssize_t n = recv(fd.get(), data, sizeof data, 0);
    if (n < 0) return strerror(errno);
    auto answer = ParseDnsAnswer({data, static_cast<size_t>(n)}, query, query.id);
    text += answer && !answer->addresses.empty() ? "y" : "n";
  }
  return text;
}

// In the sandbox: "1.2.3.4", or "code N", or "timeout".
std::string Resolve(const std::string& name, bool tcp = false) {
  DnsQuery query = *ParseDnsQuery(MakeQuery(name));
  UniqueFd fd(socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0));
  sockaddr_in to = Address("198.18.0.1", 53);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return strerror(errno);
  int raw = fd.get();
  DnsStream stream(std::move(fd));
  std::string message = BuildDnsQuery(query, query.id);
  if (tcp)
    stream.Write(message);
  else
    (void)!send(raw, message.data(), message.size(), 0);
  std::optional<std::string> answer;
  pollfd p{raw, POLLIN, 0};
  while (!answer) {
    if (poll(&p, 1, static_cast<int>(kPatience.count())) == 0) return "timeout";
    if (tcp) {
      answer = stream.Read();
      if (stream.ended()) return "closed";
    } else {
      char data[1024];
      ssize_t n = recv(raw, data, sizeof data, 0);
      if (n < 0) return strerror(errno);
      answer.emplace(data, static_cast<size_t>(n));
    }
  }
  auto parsed = ParseDnsAnswer(*answer, query, query.id);
  if (!parsed) return "broken";
  if (parsed->addresses.empty()) return fmt::format("code {}", parsed->code);
  return FormatIpv4(parsed->addresses[0].address);
}

class EgressGuardTest : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    if (HasFatalFailure()) return;
    Shell(internet_->fd(), fmt::format("ip addr add {}/24 dev pub0", kOther));
    servers_.push_back(internet_->Start([] { ServeNames(kResolver); }));
    config_.dns = fmt::format("{}:{}", kResolver, kDnsPort);
    loop_ = *EventLoop::Create();
    firewall_.emplace(*Firewall::Open(root_.rules.table));
    StartGuard();
  }
  void StartGuard() {
    guard_.reset();
    auto guard = EgressGuard::Create(config_, root_, *table_, *link_);
    ASSERT_TRUE(guard) << guard.error().message();
    guard_ = std::move(*guard);
    Status started = guard_->Start(
        *loop_, [](const std::string& id) { return std::vector{*ParseInt<int>(id.substr(3))}; },
        [this](Blocked blocked) { blocked_.push_back(std::move(blocked)); });
    ASSERT_TRUE(started) << started.error().message();
  }
  void TearDown() override {
    guard_.reset();
    NetworkTest::TearDown();
  }

  struct Guarded {
    NetworkTest::Sandbox inside;
    engine::Sandbox sandbox;
    int fd() const { return inside.fd(); }
  };
  // A sandbox with these rules, made in the order in which launchers do it.
  Guarded MakeGuarded(const Egress& egress) {
    Guarded made;
    made.inside = Make(fmt::format("sb{}", ++count_));
    // For the test's own purpose the id tells where its processes are.
    made.sandbox.instance = {.id = fmt::format("pid{}", made.inside.space->pid()),
                             .pid = made.inside.space->pid()};
    made.sandbox.address = made.inside.slot.sandbox_address();
    made.sandbox.egress = egress;
    Status done =
        firewall_->Replace(made.sandbox.address, EgressPolicy(Egress{}), EgressPolicy(egress));
    EXPECT_TRUE(done) << done.error().message();
    guard_->Add(made.sandbox);
    return made;
  }

  // Runs the body in the sandbox while the engine goes on working here.
  std::string Inside(const Guarded& guarded, const std::function<std::string()>& body) {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
      alarm(120);
      std::string text = setns(guarded.fd(), CLONE_NEWNET) ? "setns failed" : body();
      _exit(write(fds[1], text.data(), text.size()) < 0);
    }
    close(fds[1]);
    UniqueFd end(fds[0]);
    std::string text;
    bool done = false;
    EXPECT_TRUE(loop_->Watch(end.get(), EPOLLIN, [&] {
      char buffer[4096];
      ssize_t n = read(end.get(), buffer, sizeof buffer);
      if (n > 0) text.append(buffer, static_cast<size_t>(n));
      done = n <= 0;
    }));
    while (!done) loop_->RunOnce(Clock::now() + kPatience);
    loop_->Unwatch(end.get());
    waitpid(pid, nullptr, 0);
    return text;
  }
  std::string ResolveIn(const Guarded& guarded, const std::string& name, bool tcp = false) {
    return Inside(guarded, [&] { return Resolve(name, tcp); });
  }
  std::string Connect(const Guarded& guarded, const std::string& host, int type = SOCK_STREAM) {
    return Inside(guarded, [&] { return Ask(type, host, kPort); });
  }
  void PumpUntil(const std::function<bool()>& done) {
    auto deadline = Clock::now() + kPatience;
    while (!done() && Clock::now() < deadline) loop_->RunOnce(Clock::now() + milliseconds(20));
  }

  std::unique_ptr<EventLoop> loop_;
  std::optional<Firewall> firewall_;
  std::unique_ptr<EgressGuard> guard_;
  std::vector<Blocked> blocked_;
  int count_ = 0;
  const std::string reached_ = fmt::format("tcp {}", kHost);
};

TEST_F(EgressGuardTest, WithoutRulesEveryNameAndAddressIsFree) {
  Guarded sandbox = MakeGuarded({});
  for (bool tcp : {false, true}) {
    EXPECT_EQ(ResolveIn(sandbox, "good.example", tcp), kPublic);
    EXPECT_EQ(ResolveIn(sandbox, "alias.example", tcp), kPublic);
    EXPECT_EQ(ResolveIn(sandbox, "nothing.example", tcp), "code 3");
  }
  EXPECT_EQ(Connect(sandbox, kPublic), reached_);
  EXPECT_EQ(Connect(sandbox, kOther), reached_);
  EXPECT_TRUE(blocked_.empty());
  EXPECT_EQ(Inside(sandbox, [] { return Ask(SOCK_STREAM, "198.18.0.1", kPort); }),
            strerror(ECONNREFUSED));
}

TEST_F(EgressGuardTest, ANameAdmitsItsAddressesAndNothingElse) {
  Guarded sandbox =
      MakeGuarded({.allow = {"good.example", "private.example"}, .deny = {"0.0.0.0/0"}});
  Guarded other = MakeGuarded({.allow = {"evil.example"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(Connect(sandbox, kPublic), strerror(ECONNREFUSED)) << "nobody asked for its name yet";
  EXPECT_EQ(ResolveIn(sandbox, "GOOD.example."), kPublic);
  EXPECT_EQ(Connect(sandbox, kPublic), reached_);
  EXPECT_EQ(Connect(sandbox, kOther), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(other, kPublic), strerror(ECONNREFUSED)) << "another sandbox's name";
  for (bool tcp : {false, true}) {
    EXPECT_EQ(ResolveIn(sandbox, "evil.example", tcp), "code 3");
    EXPECT_EQ(ResolveIn(sandbox, "good.example.evil.example", tcp), "code 3");
  }
  // A name that is allowed leads to a private address: rebinding.
  EXPECT_EQ(ResolveIn(sandbox, "private.example"), kResolver);
  EXPECT_EQ(Connect(sandbox, kResolver), strerror(ECONNREFUSED));
  // Other nameservers are addresses like all others.
  EXPECT_EQ(Inside(sandbox, [] { return Ask(SOCK_STREAM, kOther, 53); }), strerror(ECONNREFUSED));
}

TEST_F(EgressGuardTest, NoInternetMeansNoNamesEither) {
  Guarded sandbox = MakeGuarded({.deny = {"0.0.0.0/0", "::/0"}});
  EXPECT_EQ(ResolveIn(sandbox, "good.example"), "code 3");
  EXPECT_EQ(Connect(sandbox, kPublic), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(sandbox, kPublic, SOCK_DGRAM), strerror(EHOSTUNREACH));
}

TEST_F(EgressGuardTest, AddressesAreAllowedAndDenied) {
  Guarded denied = MakeGuarded({.deny = {kOther}});
  EXPECT_EQ(Connect(denied, kPublic), reached_);
  EXPECT_EQ(Connect(denied, kOther), strerror(ECONNREFUSED));
  EXPECT_EQ(ResolveIn(denied, "evil.example"), kOther) << "names are not what was denied";
  Guarded allowed = MakeGuarded({.allow = {kOther}, .deny = {"203.0.113.0/24"}});
  EXPECT_EQ(Connect(allowed, kPublic), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(allowed, kOther), reached_);
  // Whatever is allowed: not what is private, nor the host.
  Guarded everything =
      MakeGuarded({.allow = {"0.0.0.0/0", kResolver, kHost}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(Connect(everything, kPublic), reached_);
  EXPECT_EQ(Connect(everything, kResolver), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(everything, "169.254.169.254"), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(everything, kHost), strerror(ECONNREFUSED));
}

TEST_F(EgressGuardTest, ChangesTakeEffectAtOnceAndCutWhatIsOpen) {
  Guarded sandbox = MakeGuarded({});
  int hold[2], go[2];
  ASSERT_EQ(pipe2(hold, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
  // A program with two open connections and a socket that has asked for names before.
  pid_t program = sandbox.inside.space->Start([&] {
    alarm(120);
    UniqueFd kept(socket(AF_INET, SOCK_STREAM, 0)), cut(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in first = Address(kPublic, kPort), second = Address(kOther, kPort);
    char buffer[64];
    std::string text;
    if (connect(kept.get(), reinterpret_cast<sockaddr*>(&first), sizeof first) ||
        connect(cut.get(), reinterpret_cast<sockaddr*>(&second), sizeof second) ||
        read(kept.get(), buffer, sizeof buffer) <= 0 || read(cut.get(), buffer, sizeof buffer) <= 0)
      text = "cannot connect";
    (void)!write(hold[1], "x", 1);
    (void)!read(go[0], buffer, 1);
    if (text.empty()) {
      (void)!send(cut.get(), "x", 1, MSG_NOSIGNAL);
      pollfd p{cut.get(), POLLIN, 0};
      poll(&p, 1, static_cast<int>(kPatience.count()));
      text = recv(cut.get(), buffer, sizeof buffer, MSG_DONTWAIT) < 0 ? strerror(errno) : "alive";
      text += send(kept.get(), "x", 1, MSG_NOSIGNAL) == 1 ? ", kept" : ", lost";
    }
    (void)!write(hold[1], text.data(), text.size());
  });
  servers_.push_back(program);
  char buffer[256];
  ASSERT_EQ(read(hold[0], buffer, 1), 1);
  Egress egress{.allow = {kPublic, "good.example"}, .deny = {"0.0.0.0/0"}};
  Status set = guard_->Set(sandbox.sandbox, egress);
  ASSERT_TRUE(set) << set.error().message();
  ASSERT_EQ(write(go[1], "x", 1), 1);
  ssize_t n = read(hold[0], buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(n)),
            fmt::format("{}, kept", strerror(ECONNRESET)));
  EXPECT_EQ(Connect(sandbox, kOther), strerror(ECONNREFUSED));
  EXPECT_EQ(Connect(sandbox, kPublic), reached_);
  EXPECT_EQ(ResolveIn(sandbox, "evil.example"), "code 3");
  // And back.
  ASSERT_TRUE(guard_->Set(sandbox.sandbox, {}));
  EXPECT_EQ(Connect(sandbox, kOther), reached_);
  EXPECT_EQ(ResolveIn(sandbox, "evil.example"), kOther);
  for (int fd : {hold[0], hold[1], go[0], go[1]}) close(fd);
}

TEST_F(EgressGuardTest, AdmittedAddressesGoWithTheirRule) {
  Guarded sandbox = MakeGuarded({.allow = {"good.example", "evil.example"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(ResolveIn(sandbox, "good.example"), kPublic);
  EXPECT_EQ(ResolveIn(sandbox, "evil.example"), kOther);
  EXPECT_EQ(Connect(sandbox, kOther), reached_);
  ASSERT_TRUE(guard_->Set(sandbox.sandbox, {.allow = {"good.example"}, .deny = {"0.0.0.0/0"}}));
  EXPECT_EQ(Connect(sandbox, kPublic), reached_) << "still allowed, still admitted";
  EXPECT_EQ(Connect(sandbox, kOther), strerror(ECONNREFUSED));
  // Its end leaves nothing to who gets its address next.
  guard_->Remove(sandbox.sandbox);
  EXPECT_THAT(*ReadNft({"list", "set", "inet", root_.rules.table.c_str(), kAdmittedSet}),
              testing::Not(testing::HasSubstr("elements")));
}

TEST_F(EgressGuardTest, ReportsWhatIsBlockedAndByWhom) {
  Guarded sandbox = MakeGuarded({.allow = {"good.example"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(Connect(sandbox, "169.254.169.254"), strerror(ECONNREFUSED));
  PumpUntil([&] { return !blocked_.empty(); });
  ASSERT_EQ(blocked_.size(), 1u);
  EXPECT_EQ(blocked_[0].id, sandbox.sandbox.instance.id);
  EXPECT_EQ(blocked_[0].destination, "169.254.169.254");
  EXPECT_EQ(blocked_[0].port, kPort);
  EXPECT_EQ(blocked_[0].protocol, "tcp");
  EXPECT_EQ(ResolveIn(sandbox, "Evil.example"), "code 3");
  PumpUntil([&] { return blocked_.size() > 1; });
  ASSERT_EQ(blocked_.size(), 2u);
  EXPECT_EQ(blocked_[1].destination, "Evil.example");
  EXPECT_EQ(blocked_[1].protocol, "dns");
  // The host, too; and a socket that lives on tells whose it is.
  pid_t program = sandbox.inside.space->Start([] {
    prctl(PR_SET_NAME, "prowler");
    Ask(SOCK_DGRAM, kHost, kPort);
    UniqueFd fd(socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in to = Address(kHost, 77);
    (void)!sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    pause();  // its socket tells whose it is only while it lives
  });
  servers_.push_back(program);
  sandbox.sandbox.instance.id = fmt::format("pid{}", program);
  guard_->Add(sandbox.sandbox);
  PumpUntil([&] { return blocked_.size() > 3; });
  ASSERT_EQ(blocked_.size(), 4u);
  EXPECT_EQ(blocked_[3].destination, kHost);
  EXPECT_EQ(blocked_[3].port, 77);
  EXPECT_EQ(blocked_[3].protocol, "udp");
  EXPECT_EQ(blocked_[3].command, "prowler");
  EXPECT_EQ(blocked_[3].pid, program);
}

TEST_F(EgressGuardTest, ReportsOnlySoManyPerMinute) {
  config_.blocked_events_per_minute = 3;
  Guarded sandbox = MakeGuarded({.deny = {"0.0.0.0/0"}});
  EXPECT_EQ(Inside(sandbox,
                   [] {
                     std::string last;
                     for (int i = 0; i < 8; ++i) last = Resolve("a.example");
                     return last;
                   }),
            "code 3");
  PumpUntil([&] { return blocked_.size() >= 3; });
  EXPECT_EQ(blocked_.size(), 3u);
}

TEST_F(EgressGuardTest, LimitsQueries) {
  config_.dns_queries_per_second = 5;
  StartGuard();
  Guarded sandbox = MakeGuarded({}), other = MakeGuarded({});
  // One after the other they might come slowly enough to be allowed.
  std::string codes = Inside(sandbox, [] { return ResolveAtOnce("good.example", 20); });
  EXPECT_EQ(codes.size(), 20u) << codes;
  EXPECT_GE(std::ranges::count(codes, 'y'), 5);
  EXPECT_GE(std::ranges::count(codes, 'n'), 1);
  EXPECT_EQ(ResolveIn(other, "good.example"), kPublic);
}

TEST_F(EgressGuardTest, RulesOutliveTheEngineAndItsResolver) {
  Guarded sandbox = MakeGuarded({.allow = {"good.example"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(ResolveIn(sandbox, "good.example"), kPublic);
  // A new engine: the table is loaded anew, with the rules of who lives.
  guard_.reset();
  root_ = NetworkRoot::SetUp(config_, {{sandbox.sandbox.address, sandbox.sandbox.egress}});
  ASSERT_TRUE(root_.available) << root_.reason;
  StartGuard();
  EXPECT_EQ(ResolveIn(sandbox, "evil.example"), "code 2") << "not known yet: nothing is resolved";
  guard_->Add(sandbox.sandbox);
  EXPECT_EQ(ResolveIn(sandbox, "evil.example"), "code 3");
  EXPECT_EQ(Connect(sandbox, kPublic), strerror(ECONNREFUSED)) << "to be resolved again";
  EXPECT_EQ(ResolveIn(sandbox, "good.example"), kPublic);
  EXPECT_EQ(Connect(sandbox, kPublic), reached_);
}

// A SOCKS5 proxy on the host that wants a password and tells the other side who it is.
void ServeSocks(int listener) {
  while (true) {
    UniqueFd client(accept(listener, nullptr, nullptr));
    auto take = [&](size_t size) {
      std::string text(size, '\0');
      if (recv(client.get(), text.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size))
        text.clear();
      return text;
    };
    auto say = [&](const std::string& text) {
      (void)!send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
    };
    if (take(4) != std::string("\5\2\0\2", 4)) continue;
    say("\5\2");
    bool known = take(11) == "\1\4user\4p:wd";
    say(std::string("\1") + (known ? '\0' : '\1'));
    std::string request = take(10);
    if (!known || request.size() != 10) continue;
    sockaddr_in to{.sin_family = AF_INET};
    memcpy(&to.sin_addr, request.data() + 4, 4);
    memcpy(&to.sin_port, request.data() + 8, 2);
    UniqueFd far(socket(AF_INET, SOCK_STREAM, 0));
    bool connected = connect(far.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    say(std::string("\5") + (connected ? '\0' : '\5') + std::string("\0\1\0\0\0\0\0\0", 8));
    char buffer[256];
    ssize_t n = connected ? read(far.get(), buffer, sizeof buffer) : 0;
    if (n > 0) say("proxied " + std::string(buffer, static_cast<size_t>(n)));
  }
}

TEST_F(EgressGuardTest, GoesOutThroughTheProxyOrNotAtAll) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at = Address("127.0.0.1", 1080);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  pid_t proxy = fork();
  if (proxy == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Not the guard's descriptors: the kernel's log has one listener at a time.
    dup2(listener.get(), 3);
    close_range(4, ~0u, 0);
    ServeSocks(3);
  }
  servers_.push_back(proxy);
  config_.egress_proxy = "user:p:wd@127.0.0.1:1080";
  StartGuard();
  std::string proxied = "proxied " + reached_;
  Guarded open = MakeGuarded({});
  EXPECT_EQ(Connect(open, kPublic), proxied);
  EXPECT_EQ(Connect(open, kPublic, SOCK_DGRAM), strerror(EHOSTUNREACH)) << "it takes TCP only";
  for (const char* never : {kHost, kResolver, "169.254.169.254"})
    EXPECT_EQ(Connect(open, never), strerror(ECONNREFUSED)) << never;
  EXPECT_EQ(ResolveIn(open, "good.example"), kPublic);
  Guarded named = MakeGuarded({.allow = {"good.example"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(Connect(named, kPublic), strerror(ECONNREFUSED));
  EXPECT_EQ(ResolveIn(named, "good.example"), kPublic);
  EXPECT_EQ(Connect(named, kPublic), proxied);
  EXPECT_EQ(Connect(named, kOther), strerror(ECONNREFUSED));
  PumpUntil([&] { return blocked_.size() >= 6; });
  ASSERT_EQ(blocked_.size(), 6u);
  EXPECT_EQ(blocked_.back().destination, kOther) << "reported as the program meant it";
}

TEST(ProxyTest, ReadsTheSettingAndKeepsThePasswordToItself) {
  auto proxy = ParseProxy("me:se:cr@t@127.0.0.1:1080");
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->username, "me");
  EXPECT_EQ(proxy->password, "se:cr@t");
  EXPECT_EQ(proxy->address.ss_family, AF_INET);
  EXPECT_TRUE(ParseProxy("[::1]:1080"));
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:x", ":1080",
                          "secret@127.0.0.1:1080", ":secret@127.0.0.1:1080"}) {
    auto refused = ParseProxy(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message().find("secret"), std::string::npos);
  }
}

TEST_F(EgressGuardTest, GarbageHurtsNobody) {
  Guarded sandbox = MakeGuarded({});
  EXPECT_EQ(Inside(sandbox,
                   [] {
                     UniqueFd udp(socket(AF_INET, SOCK_DGRAM, 0));
                     sockaddr_in to = Address("198.18.0.1", 53);
                     std::string good = MakeQuery("good.example");
                     for (size_t i = 0; i <= good.size(); ++i)
                       sendto(udp.get(), good.data(), i, 0, reinterpret_cast<sockaddr*>(&to),
                              sizeof to);
                     UniqueFd tcp(socket(AF_INET, SOCK_STREAM, 0));
                     if (connect(tcp.get(), reinterpret_cast<sockaddr*>(&to), sizeof to))
                       return std::string(strerror(errno));
                     (void)!send(tcp.get(), "\xff\xffgarbage", 9, MSG_NOSIGNAL);
                     return std::string("sent");
                   }),
            "sent");
  EXPECT_EQ(ResolveIn(sandbox, "good.example"), kPublic);
  EXPECT_EQ(ResolveIn(sandbox, "good.example", true), kPublic);
}

}  // namespace
}  // namespace caisson::engine
