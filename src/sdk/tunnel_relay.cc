#include "sdk/tunnel_relay.h"

#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "sdk/envd_call.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kKeepalive = "30";  // seconds
constexpr milliseconds kStartTimeout{60'000}, kSendTimeout{60'000}, kKillTimeout{5'000};
constexpr milliseconds kEndTimeout{5'000}, kEndInterval{50};
// A connection that rested longer may be closed by the other side just when it is used again.
constexpr milliseconds kRest{3'000};
constexpr size_t kMaxAnswer = 64 << 10;
constexpr size_t kMaxComplaint = 1'000;

// $0: the program, $@: its arguments. Settings and modules of whoever works inside do not count.
constexpr std::string_view kLaunch =
    "command -v python3 >/dev/null || { echo 'there is no python3 in it' >&2; exit 1; }; "
    "exec python3 -I -c \"$0\" \"$@\"";

// Listens on a port, and carries its connections over its own input and output. The arguments are
// the port, how many bytes of a connection may be under way, and how many connections there may be.
constexpr std::string_view kProgram = R"py(
import asyncio, errno, itertools, struct, sys
PORT, WINDOW, MOST = map(int, sys.argv[1:4])
PIECE = 65536
HEAD = struct.Struct("!IBI")
READY, OPEN, DATA, END, CLOSED, CREDIT = range(6)
numbers, connections = itertools.count(1), {}
async def main():
    loop = asyncio.get_running_loop()
    source = asyncio.StreamReader(limit=4 * PIECE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin.buffer)
    pipe, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout.buffer)
    sink, turn = asyncio.StreamWriter(pipe, flow, None, loop), asyncio.Lock()
    async def send(number, kind, data=b""):
        async with turn:
            sink.write(HEAD.pack(number, kind, len(data)) + data)
            await sink.drain()
    class Connection:
        def __init__(self, reader, writer):
            self.reader, self.writer, self.number = reader, writer, next(numbers)
            self.inbox, self.credit, self.more = asyncio.Queue(), WINDOW, asyncio.Event()
        async def outwards(self):
            while True:
                while not self.credit:
                    self.more.clear()
                    await self.more.wait()
                data = await self.reader.read(min(self.credit, PIECE))
                if not data:
                    return await send(self.number, END)
                self.credit -= len(data)
                await send(self.number, DATA, data)
        async def inwards(self):
            while data := await self.inbox.get():
                self.writer.write(data)
                await self.writer.drain()
                await send(self.number, CREDIT, struct.pack("!I", len(data)))
            if data is None:
                raise ConnectionResetError
            self.writer.write_eof()
    async def serve(reader, writer):
        if len(connections) >= MOST:
            return writer.close()
        one = Connection(reader, writer)
        connections[one.number] = one
        await send(one.number, OPEN)
        both = [asyncio.ensure_future(one.outwards()), asyncio.ensure_future(one.inwards())]
        done, left = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
        for task in left:
            task.cancel()
        if any(task.exception() for task in done):
            await send(one.number, CLOSED)
        del connections[one.number]
        writer.close()
    for attempt in range(100):
        try:
            await asyncio.start_server(serve, "127.0.0.1", PORT, backlog=MOST)
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE or attempt == 99:
                sys.exit(f"port {PORT} cannot be listened on: {error.strerror}")
            await asyncio.sleep(0.05)
    await send(0, READY)
    try:
        while True:
            number, kind, size = HEAD.unpack(await source.readexactly(HEAD.size))
            data = await source.readexactly(size) if size else b""
            one = connections.get(number)
            if one and kind == CREDIT:
                one.credit += struct.unpack("!I", data)[0]
                one.more.set()
            elif one:
                one.inbox.put_nowait({DATA: data, END: b""}.get(kind))
    except asyncio.IncompleteReadError:
        pass
asyncio.run(main())
)py";

json::object ByTag(const std::string& tag) { return {{"process", json::object{{"tag", tag}}}}; }
json::object ByPid(int64_t pid) { return {{"process", json::object{{"pid", pid}}}}; }

Task<Status> KillProcess(std::shared_ptr<Transport> transport, json::object message) {
  message["signal"] = "SIGNAL_SIGKILL";
  CO_TRY(co_await WithDeadline(
      kKillTimeout, "ending the relay",
      CallEnvd(std::move(transport), "process.Process/SendSignal", std::move(message))));
  co_return Status();
}

// One of a server that was killed still has the port.
Task<Status> EndOlder(std::shared_ptr<Transport> transport, std::string tag) {
  for (auto late = Clock::now() + kEndTimeout;;) {
    Status killed = co_await KillProcess(transport, ByTag(tag));
    if (!killed) {
      if (killed.error().code() == Code::kNotFound) co_return Status();
      co_return killed;
    }
    if (Clock::now() > late)
      co_return Fail(Code::kUnavailable, "the relay that listens in the sandbox does not end");
    co_await SleepFor(kEndInterval);
  }
}

}  // namespace

TunnelRelay::TunnelRelay(const EnvdClient& client, uint16_t port, TunnelLimits limits)
    : transport_(client.transport_),
      port_(port),
      limits_(limits),
      tag_(fmt::format("caisson-tunnel-{}", port)) {}

Task<Status> TunnelRelay::Start() {
  CO_TRY(co_await EndOlder(transport_, tag_));
  Status begun = co_await WithDeadline(kStartTimeout, "listening in the sandbox", Begin());
  // It may have come up without our hearing of it.
  if (!begun && begun.error().code() != Code::kFailedPrecondition)
    (void)co_await KillProcess(transport_, ByTag(tag_));
  co_return begun;
}

Task<Status> TunnelRelay::Begin() {
  json::array args{"-c", kLaunch, kProgram};
  for (size_t number : {size_t{port_}, limits_.window, limits_.connections})
    args.emplace_back(std::to_string(number));
  json::object message{{"process", json::object{{"cmd", "/bin/sh"}, {"args", std::move(args)}}},
                       {"tag", tag_},
                       {"stdin", true}};
  // Not as the user whom agents work as: theirs do not end it by accident.
  auto head =
      EnvdHead(*transport_, "POST", "/process.Process/Start", "application/connect+json", "root");
  head.headers.Set("Keepalive-Ping-Interval", kKeepalive);
  CO_TRY_ASSIGN(auto connection, co_await transport_->Connect());
  CO_TRY_ASSIGN(
      ProcessStream stream,
      co_await ProcessStream::Open(std::move(connection), std::move(head), std::move(message)));
  CO_TRY_ASSIGN(auto first, co_await stream.Next());
  if (!first || first->kind != ProcessEvent::Kind::kStarted)
    co_return Fail(Code::kDataLoss, "the sandbox did not say that the relay has started");
  pid_ = first->pid;
  events_.emplace(std::move(stream));
  CO_TRY_ASSIGN(TunnelFrame frame, co_await Next());
  if (frame.kind != TunnelFrame::Kind::kReady)
    co_return Fail(Code::kDataLoss, "the relay in the sandbox did not say that it is ready");
  co_return Status();
}

Task<Result<TunnelFrame>> TunnelRelay::Next() {
  for (;;) {
    CO_TRY_ASSIGN(auto frame, frames_.Next());
    if (frame) co_return std::move(*frame);
    CO_TRY_ASSIGN(auto event, co_await events_->Next());
    if (event && event->kind == ProcessEvent::Kind::kStdout) frames_.Add(event->data);
    if (event && event->kind == ProcessEvent::Kind::kStderr)
      complaint_.append(event->data, 0, kMaxComplaint - std::min(complaint_.size(), kMaxComplaint));
    if (!event || event->kind == ProcessEvent::Kind::kEnded)
      co_return Fail(Code::kFailedPrecondition,
                     "the sandbox cannot be listened in: its relay has ended{}{}",
                     complaint_.empty() ? "" : ": ", ToUtf8(Trim(complaint_)));
  }
}

Task<Status> TunnelRelay::Send(std::string bytes) {
  json::object message = ByPid(pid_);
  message["input"] = json::object{{"stdin", Base64Encode(bytes)}};
  co_return co_await WithDeadline(kSendTimeout, "writing to the relay",
                                  Call("process.Process/SendInput", std::move(message)));
}

// Over one connection as long as it is busy: with a server far away, making one takes most of the
// time.
Task<Status> TunnelRelay::Call(std::string procedure, json::object message) {
  if (!input_ || Clock::now() - used_at_ > kRest || !input_->Reusable()) {
    CO_TRY_ASSIGN(input_, co_await transport_->Connect());
  }
  CO_TRY_ASSIGN(
      http::Response answer,
      co_await input_->Fetch(EnvdHead(*transport_, "POST", "/" + procedure, "application/json"),
                             json::serialize(message), kMaxAnswer));
  used_at_ = Clock::now();
  if (answer.status != 200) co_return tl::unexpected(ErrorOfAnswer(answer.status, answer.body));
  co_return Status();
}

Task<Status> TunnelRelay::Kill() {
  Status killed = co_await KillProcess(transport_, ByPid(pid_));
  if (!killed && killed.error().code() == Code::kNotFound) co_return Status();
  co_return killed;
}

}  // namespace caisson::sdk
