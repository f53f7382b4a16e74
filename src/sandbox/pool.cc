#include "sandbox/pool.h"

#include "base/log.h"
#include "base/text.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kMaxWanted = 10'000;
// While users' own creations are at work the pool waits, but not for ever: it would never fill on a
// server that is always busy.
constexpr std::chrono::milliseconds kYield{10};
constexpr std::chrono::milliseconds kLongestYield{500};
constexpr std::chrono::milliseconds kFirstPause{500};
constexpr std::chrono::milliseconds kLongestPause{30'000};
// An envd that is slower than this to take its settings is not handed out.
constexpr std::chrono::milliseconds kIntroductionTimeout{2'000};

// "4" is from 4 to 4, "2-10" from 2 to 10.
std::optional<std::pair<size_t, size_t>> ParseRange(std::string_view text) {
  size_t dash = text.find('-');
  auto least = ParseInt<size_t>(Trim(text.substr(0, dash)));
  auto most = dash == text.npos ? least : ParseInt<size_t>(Trim(text.substr(dash + 1)));
  if (!least || !most || *least > *most || *most > kMaxWanted) return std::nullopt;
  return std::pair(*least, *most);
}

}  // namespace

Result<Pool> Pool::Parse(std::string_view setting, const TemplateCatalog& templates) {
  Pool pool;
  if (Trim(setting).empty()) return pool;
  for (std::string_view item : Split(setting, ',')) {
    size_t equals = item.rfind('=');
    auto range =
        equals == std::string_view::npos ? std::nullopt : ParseRange(Trim(item.substr(equals + 1)));
    if (!range)
      return Fail(Code::kInvalidArgument,
                  "setting warm_pool: '{}' is neither TEMPLATE=NUMBER nor TEMPLATE=LEAST-MOST",
                  item);
    const Template* from = templates.Find(Trim(item.substr(0, equals)));
    if (!from)
      return Fail(Code::kInvalidArgument, "setting warm_pool: there is no template '{}'",
                  Trim(item.substr(0, equals)));
    auto [least, most] = *range;
    if (most > 0) pool.shelves_[from->id] = {.least = least, .most = most, .wanted = least};
  }
  return pool;
}

std::string Pool::NextMissing() const {
  for (const auto& [id, shelf] : shelves_)
    if (shelf.ready.size() < shelf.wanted) return id;
  return "";
}

size_t Pool::ready() const {
  size_t count = 0;
  for (const auto& [id, shelf] : shelves_) count += shelf.ready.size();
  return count;
}

int64_t Pool::memory_mb() const {
  int64_t sum = 0;
  for (const auto& record : All()) sum += record->row.memory_mb;
  return sum;
}

void Pool::Put(std::shared_ptr<Record> record) {
  auto it = shelves_.find(record->row.template_id);
  if (it != shelves_.end()) it->second.ready.push_back(std::move(record));
}

std::shared_ptr<Record> Pool::Take(const std::string& template_id) {
  auto it = shelves_.find(template_id);
  if (it == shelves_.end()) return nullptr;
  Shelf& shelf = it->second;
  shelf.asked = true;
  if (shelf.ready.empty()) {
    ++misses_;
    shelf.wanted = std::min(shelf.most, std::max<size_t>(2 * shelf.wanted, 1));
    return nullptr;
  }
  ++hits_;
  auto record = std::move(shelf.ready.front());
  shelf.ready.pop_front();
  return record;
}

std::vector<std::shared_ptr<Record>> Pool::Relax() {
  std::vector<std::shared_ptr<Record>> surplus;
  for (auto& [id, shelf] : shelves_) {
    if (!std::exchange(shelf.asked, false) && shelf.wanted > shelf.least) --shelf.wanted;
    for (; shelf.ready.size() > shelf.wanted; shelf.ready.pop_back())
      surplus.push_back(std::move(shelf.ready.back()));
  }
  return surplus;
}

std::shared_ptr<Record> Pool::TakeAny() {
  for (auto& [id, shelf] : shelves_) {
    if (shelf.ready.empty()) continue;
    auto record = std::move(shelf.ready.back());
    shelf.ready.pop_back();
    return record;
  }
  return nullptr;
}

std::shared_ptr<Record> Pool::Remove(std::string_view id) {
  for (auto& [template_id, shelf] : shelves_)
    for (auto it = shelf.ready.begin(); it != shelf.ready.end(); ++it)
      if ((*it)->row.id == id) {
        auto record = std::move(*it);
        shelf.ready.erase(it);
        return record;
      }
  return nullptr;
}

std::vector<std::shared_ptr<Record>> Pool::All() const {
  std::vector<std::shared_ptr<Record>> all;
  for (const auto& [id, shelf] : shelves_)
    all.insert(all.end(), shelf.ready.begin(), shelf.ready.end());
  return all;
}

// ---- looking after it ---------------------------------------------------------------------------

Task<void> Manager::Impl::KeepPool() {
  std::chrono::milliseconds interval(std::max<int64_t>(config_.pool_check_interval_ms, 1));
  auto pause = kFirstPause;
  auto next_check = std::chrono::steady_clock::now() + interval;
  for (;;) {
    std::string missing = pool_.NextMissing();
    if (missing.empty() || !HasRoomForPool(missing)) {
      co_await pool_changed_.Wait(next_check);
      // Shielded, so that a sandbox that is half made when the server stops is not forgotten.
    } else if (Status filled = co_await Shield(operations_, "fill pool", FillPool(missing));
               filled) {
      pause = kFirstPause;
    } else {
      LogWarn("a sandbox could not be made ready ahead of time",
              {{"template", missing}, {"error", filled.error().message()}});
      co_await SleepFor(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
    if (std::chrono::steady_clock::now() < next_check) continue;
    co_await CheckPool();
    next_check = std::chrono::steady_clock::now() + interval;
  }
}

bool Manager::Impl::HasRoomForPool(const std::string& template_id) const {
  const Template* from = templates_.Find(template_id);
  store::SandboxRow row;
  if (!from || !ChooseLimits(BoundsOf(""), *from, {}, row)) return false;
  Load now = CurrentLoad();
  auto ready = static_cast<int64_t>(pool_.ready());
  return CheckDisk() &&
         (config_.max_sandboxes <= 0 || now.sandboxes + ready < config_.max_sandboxes) &&
         (config_.max_promised_memory_mb <= 0 ||
          now.memory_mb + pool_.memory_mb() + row.memory_mb <= config_.max_promised_memory_mb);
}

Task<Status> Manager::Impl::FillPool(std::string template_id) {
  auto until = std::chrono::steady_clock::now() + kLongestYield;
  while (!creating_.empty() && !stopping_ && std::chrono::steady_clock::now() < until)
    co_await SleepFor(kYield);
  CreateOptions options;
  options.template_name = template_id;
  CO_TRY_ASSIGN(store::SandboxRow row, Prepare(options, nullptr));
  CO_TRY_ASSIGN(engine::Spec spec, MakeSpec(row));
  Place place(creating_, row.id, {.memory_mb = row.memory_mb});
  std::string id = row.id;
  auto made = co_await engine_.Create(std::move(spec),
                                      std::chrono::milliseconds(config_.create_timeout_ms));
  if (!made) {
    if (made.error().code() == Code::kDeadlineExceeded)
      background_.Spawn("destroy", DestroyLater(id));
    co_return tl::unexpected(std::move(made).error());
  }
  if (place->exited) co_return Fail(Code::kUnavailable, "the sandbox ended while it was starting");
  if (stopping_) {
    co_await DestroyNow(id);
    co_return Fail(Code::kUnavailable, "the server is stopping");
  }
  pool_.Put(MakeRecord(std::move(row), secret_));
  co_return Status();
}

Task<void> Manager::Impl::CheckPool() {
  for (const auto& record : pool_.Relax()) Discard(record);
  std::chrono::milliseconds timeout(config_.envd_timeout_ms);
  for (const auto& record : pool_.All()) {
    if (!record->running) continue;
    Status healthy = co_await WithDeadline(timeout, "asking envd", CheckHealth(record));
    // It may have been handed out, or have ended, in the meantime.
    if (healthy || !pool_.Remove(record->row.id)) continue;
    LogWarn("a sandbox that was kept ready is not well and is replaced",
            {{"sandbox", record->row.id}, {"error", healthy.error().message()}});
    Discard(record);
  }
}

void Manager::Impl::Discard(std::shared_ptr<Record> record) {
  record->running = false;
  record->spare_sockets.clear();
  operations_.Spawn("discard", DestroyNow(record->row.id));
  pool_changed_.Notify();
}

// ---- handing over -------------------------------------------------------------------------------

std::shared_ptr<Record> Manager::Impl::TakeReady(const store::SandboxRow& row) {
  // What is settled when a sandbox starts must be what it was started with.
  store::SandboxRow plain;
  const Template* from = templates_.Find(row.template_id);
  bool usual = from && ChooseLimits(BoundsOf(""), *from, {}, plain) && HaveSameLimits(plain, row) &&
               row.allow_internet && row.network_json.empty();
  auto ready = usual ? pool_.Take(row.template_id) : nullptr;
  if (usual) pool_changed_.Notify();
  return ready;
}

Task<Status> Manager::Impl::Introduce(std::shared_ptr<Record> ready, store::SandboxRow row) {
  if (row.env.empty() && row.secure) co_return Status();
  std::string id = ready->row.id;
  co_return co_await WithDeadline(kIntroductionTimeout, "giving a sandbox its settings",
                                  InitEnvd(std::move(row), id, /*reset_identity=*/false));
}

}  // namespace caisson::sandbox
