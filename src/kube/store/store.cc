#include "kube/store/store.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/callback_scope.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/api/patch/edit_text.h"
#include "kube/store/backend.h"

namespace swell::store {
namespace {

// One transaction of the backend: large enough to share an fsync widely, small enough to bound
// how long anybody waits for it.
constexpr size_t kBatchWrites = 4096;
constexpr size_t kBatchBytes = 16 << 20;
// A watch that starts far back is served in slices, so that others get their turn.
constexpr size_t kReplaySlice = 1000;
// So are the answers to a group of writes: other requests are served in between.
constexpr size_t kNotifySlice = 8;
// The next group waits for more writes if at least kGatherFrom were answered and fewer than
// kGatherTo wait. It waits for a commit's time divided by kGatherPart; see StoreImpl::Gather.
constexpr size_t kGatherFrom = 4;
constexpr size_t kGatherTo = 64;
constexpr int kGatherPart = 4;
constexpr Duration kGatherMost = std::chrono::milliseconds(1);

struct ObjectKey {
  std::string ns;
  std::string name;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  auto operator<=>(const ObjectKey&) const = default;
};

// One object's place in the index. latest == durable unless writes are pending.
struct Slot {
  EntryPtr durable;
  EntryPtr latest;
  size_t pending = 0;
};

using EventPtr = std::shared_ptr<const Event>;
struct Watcher;

using Slots = std::map<ObjectKey, Slot>;

struct Resource {
  Slots slots;                   // also of objects whose creation is pending
  size_t count = 0;              // durable ones
  std::deque<EventPtr> history;  // this resource's part of the ring
  std::vector<std::shared_ptr<Watcher>> watchers;
  int dispatching = 0;
};

struct Watcher {
  Resource* resource = nullptr;  // valid while the store lives
  std::string ns;
  std::function<void(const Event&)> on_event;
  uint64_t seen = 0;             // newest version delivered or put into the backlog
  std::deque<EventPtr> backlog;  // not empty: live events queue behind
  bool replaying = false;        // a turn that delivers of the backlog is under way
  bool paused = false;
  bool ended = false;
};

void RemoveEnded(Resource& resource) {
  if (resource.dispatching > 0) return;
  auto& watchers = resource.watchers;
  watchers.erase(
      std::remove_if(watchers.begin(), watchers.end(), [](const auto& w) { return w->ended; }),
      watchers.end());
}

class WatchHandle final : public Watch {
 public:
  // `replay` is called while the store lives.
  WatchHandle(std::shared_ptr<Watcher> watcher,
              CallbackScope::Guard store,
              std::function<void()> replay)
      : watcher_(std::move(watcher)), store_(std::move(store)), replay_(std::move(replay)) {}
  ~WatchHandle() override {
    watcher_->ended = true;
    watcher_->backlog.clear();
    if (!store_.closed()) RemoveEnded(*watcher_->resource);
  }

  void Pause() override { watcher_->paused = true; }
  void Resume() override {
    watcher_->paused = false;
    if (!store_.closed()) replay_();
  }
  size_t waiting() const override { return watcher_->backlog.size(); }

 private:
  std::shared_ptr<Watcher> watcher_;
  CallbackScope::Guard store_;
  const std::function<void()> replay_;
};

Status Expired(uint64_t version, uint64_t oldest) {
  return Status(Code::kExpired, StrCat("too old resource version: ", version, " (", oldest, ")"));
}

Status TooLarge(uint64_t version, uint64_t current) {
  StatusDetails details;
  details.causes.push_back({"ResourceVersionTooLarge", "", "Too large resource version"});
  details.retry_after_s = 1;
  return Status(Code::kTimeout,
                StrCat("Too large resource version: ", version, ", current: ", current),
                std::move(details));
}

class StoreImpl final : public Store {
 public:
  StoreImpl(Executor& executor, std::unique_ptr<Backend> backend, const Options& options)
      : executor_(executor), backend_(std::move(backend)), options_(options) {}

  Status Load() {
    SWELL_ASSIGN_OR_RETURN(Backend::Loaded loaded, backend_->Load());
    for (EntryPtr& entry : loaded.entries) {
      Resource& resource = resources_[entry->key.resource];
      Slot& slot = resource.slots[{entry->key.ns, entry->key.name}];
      if (slot.durable != nullptr) {
        return Status(Code::kInternal, StrCat("the database holds ", entry->key.resource, " ",
                                              entry->key.ns, "/", entry->key.name, " twice"));
      }
      ++resource.count;
      slot.durable = slot.latest = std::move(entry);
    }
    // Never 0: in a watch after a list, 0 would mean "from now on" and skip events.
    durable_version_ = oldest_ = std::max<uint64_t>(loaded.version, 1);
    next_version_ = durable_version_ + 1;
    return Status::Ok();
  }

  EntryPtr Latest(const Key& key) const override {
    const Slot* slot = FindSlot(key);
    return slot ? slot->latest : nullptr;
  }
  EntryPtr Get(const Key& key) const override {
    const Slot* slot = FindSlot(key);
    return slot ? slot->durable : nullptr;
  }
  Result<Listing> List(const std::string& resource,
                       const std::string& ns,
                       const std::function<bool(const Entry&)>& filter,
                       size_t limit,
                       const std::optional<Key>& after,
                       uint64_t at_version,
                       bool count) const override;
  size_t Count(const std::string& resource) const override {
    auto it = resources_.find(resource);
    return it == resources_.end() ? 0 : it->second.count;
  }

  uint64_t PeekVersion() const override { return next_version_; }
  uint64_t Version() const override { return durable_version_; }
  uint64_t OldestWatchable() const override { return oldest_; }
  Snapshot TakeSnapshot() const override {
    Snapshot snapshot;
    snapshot.version = durable_version_;
    for (const auto& [name, resource] : resources_) {
      for (const auto& [key, slot] : resource.slots) {
        if (slot.durable != nullptr) snapshot.entries.push_back(slot.durable);
      }
    }
    return snapshot;
  }
  StoreStats stats() const override {
    StoreStats stats = stats_;
    stats.pending = accepted_.size() + in_flight_.size();
    stats.history_events = history_order_.size();
    stats.history_bytes = history_bytes_;
    return stats;
  }

  void Write(EventType type, EntryPtr entry, std::function<void(const Status&)> done) override;
  void WhenDurable(std::function<void(const Status&)> done) override;
  Result<std::unique_ptr<Watch>> WatchFrom(const std::string& resource,
                                           const std::string& ns,
                                           uint64_t since,
                                           std::function<void(const Event&)> on_event) override;

 private:
  struct Pending {
    EventType type;
    EntryPtr entry;
    Resource* resource;
    Slots::iterator slot;  // which stays as long as it has anything pending
    std::function<void(const Status&)> done;
  };

  const Slot* FindSlot(const Key& key) const {
    auto it = resources_.find(key.resource);
    if (it == resources_.end()) return nullptr;
    auto slot = it->second.slots.find({key.ns, key.name});
    return slot == it->second.slots.end() ? nullptr : &slot->second;
  }

  // Runs fn on the executor unless the store is gone by then.
  void PostIfAlive(std::function<void()> fn) { executor_.Post(scope_.Wrap(std::move(fn))); }

  void Flush();
  bool Gather(size_t answered);
  void OnCommitted(const Status& status);
  void Notify();
  bool NotifySome(size_t most);
  void RollBack(const Status& status);
  EventPtr Apply(const Pending& write);
  void Remember(Resource& resource, const EventPtr& event);
  void ForgetOldest();
  void ForgetAged();
  void Dispatch(Resource& resource, const EventPtr& event);
  void Replay(const std::shared_ptr<Watcher>& watcher);
  void ReplayLater(const std::shared_ptr<Watcher>& watcher);

  Executor& executor_;
  const std::unique_ptr<Backend> backend_;
  const Options options_;
  std::map<std::string, Resource> resources_;  // addresses stay

  uint64_t next_version_ = 0;
  uint64_t durable_version_ = 0;
  std::deque<Pending> accepted_;  // not handed to the backend yet
  std::vector<Pending> in_flight_;
  std::deque<Pending> unnotified_;  // durable; nobody has been told
  bool committing_ = false;
  bool notifying_ = false;
  bool flush_posted_ = false;
  TimerId gathering_ = kNoTimer;
  size_t gathered_at_ = 0;  // as many writes as that are waited for

  std::deque<Resource*> history_order_;  // whose event comes next in the ring
  size_t history_bytes_ = 0;
  uint64_t oldest_ = 0;
  uint64_t aged_ = 0;    // what was there when the timer was set
  bool ageing_ = false;  // it is set: as long as there is history
  StoreStats stats_;     // what is counted
  CallbackScope scope_;
};

void StoreImpl::Write(EventType type, EntryPtr entry, std::function<void(const Status&)> done) {
  const size_t waiting = accepted_.size() + in_flight_.size() + unnotified_.size();
  if (waiting >= options_.pending_writes_max) {
    Status full(Code::kTooManyRequests,
                StrCat("the store has ", waiting, " writes waiting for the disk already"));
    if (done) PostIfAlive([done = std::move(done), full] { done(full); });
    return;
  }
  SWELL_CHECK_MSG(entry->version == next_version_, entry->key.resource + " " + entry->key.name);
  ++next_version_;
  Resource& resource = resources_[entry->key.resource];
  const auto at = resource.slots.try_emplace({entry->key.ns, entry->key.name}).first;
  Slot& slot = at->second;
  SWELL_CHECK_MSG((type == EventType::kAdded) == (slot.latest == nullptr), entry->key.name);
  slot.latest = type == EventType::kDeleted ? nullptr : entry;
  ++slot.pending;
  accepted_.push_back({type, std::move(entry), &resource, at, std::move(done)});
  const bool gathering = gathering_ != kNoTimer && accepted_.size() < gathered_at_;
  if (!committing_ && !flush_posted_ && !gathering) {
    // Posted, so that what else this turn of the executor writes shares the transaction.
    flush_posted_ = true;
    PostIfAlive([this] {
      flush_posted_ = false;
      Flush();
    });
  }
}

void StoreImpl::WhenDurable(std::function<void(const Status&)> done) {
  Pending* last = !accepted_.empty()     ? &accepted_.back()
                  : !in_flight_.empty()  ? &in_flight_.back()
                  : !unnotified_.empty() ? &unnotified_.back()
                                         : nullptr;
  if (last == nullptr) {
    PostIfAlive([done = std::move(done)] { done(Status::Ok()); });
    return;
  }
  last->done = [first = std::move(last->done),
                then = scope_.Wrap(std::move(done))](const Status& status) {
    if (first) first(status);
    then(status);
  };
}

void StoreImpl::Flush() {
  executor_.Cancel(std::exchange(gathering_, kNoTimer));
  if (committing_ || accepted_.empty()) return;
  committing_ = true;
  std::vector<Change> batch;
  size_t bytes = 0;
  while (!accepted_.empty() && batch.size() < kBatchWrites && bytes < kBatchBytes) {
    Pending& write = accepted_.front();
    bytes += write.entry->text->size();
    batch.push_back({write.type, write.entry});
    in_flight_.push_back(std::move(write));
    accepted_.pop_front();
  }
  backend_->Commit(std::move(batch),
                   scope_.Wrap([this](const Status& status) { OnCommitted(status); }));
}

// A client whose write was answered often has the next one ready. If the disk began without it, it
// would wait for that commit and then for its own: with a dozen writers each group would hold half
// of them. So this waits for a part of a commit's time, at most until all of them are there.
bool StoreImpl::Gather(size_t answered) {
  const Duration wait = std::min(backend_->CommitTime() / kGatherPart, kGatherMost);
  if (answered < kGatherFrom || accepted_.size() >= kGatherTo || wait <= Duration::zero()) {
    return false;
  }
  gathered_at_ = std::min(accepted_.size() + answered, kGatherTo);
  gathering_ = executor_.After(wait, scope_.Wrap([this] { Flush(); }));
  return true;
}

void StoreImpl::OnCommitted(const Status& status) {
  committing_ = false;
  if (!status.ok()) {
    ++stats_.failed_commits;
    stats_.last_failure = status.message();
    // Slots are rolled back to what is durable: what is, is told first.
    if (NotifySome(SIZE_MAX)) RollBack(status);
    return;
  }
  stats_.last_failure.clear();
  ++stats_.commits;
  const size_t committed = in_flight_.size();
  stats_.writes += committed;
  std::move(in_flight_.begin(), in_flight_.end(), std::back_inserter(unnotified_));
  in_flight_.clear();
  // The next group first: the disk works while the events go out.
  if (!Gather(committed)) Flush();
  if (!notifying_) Notify();
}

void StoreImpl::Notify() {
  notifying_ = false;
  if (!NotifySome(kNotifySlice) || unnotified_.empty()) return;
  notifying_ = true;
  PostIfAlive([this] { Notify(); });
}

// In the order of their versions. False: the store is gone.
bool StoreImpl::NotifySome(size_t most) {
  const CallbackScope::Guard guard = scope_.guard();
  for (; most > 0 && !unnotified_.empty(); --most) {
    const Pending write = std::move(unnotified_.front());
    unnotified_.pop_front();
    const EventPtr event = Apply(write);
    Dispatch(*write.resource, event);
    if (guard.closed()) return false;
    if (!write.done) continue;
    write.done(Status::Ok());
    // cppcheck-suppress identicalConditionAfterEarlyExit ; the caller may end the store
    if (guard.closed()) return false;
  }
  return true;
}

void StoreImpl::RollBack(const Status& status) {
  std::vector<Pending> failed = std::move(in_flight_);
  in_flight_.clear();
  // What was accepted meanwhile may have been made from what has just been lost.
  std::move(accepted_.begin(), accepted_.end(), std::back_inserter(failed));
  accepted_.clear();
  for (const Pending& write : failed) {
    Slot& slot = write.slot->second;
    slot.latest = slot.durable;
    if (--slot.pending == 0 && slot.durable == nullptr) write.resource->slots.erase(write.slot);
  }
  const CallbackScope::Guard guard = scope_.guard();
  for (Pending& write : failed) {
    if (write.done) write.done(status);
    if (guard.closed()) return;
  }
}

EventPtr StoreImpl::Apply(const Pending& write) {
  Slot& slot = write.slot->second;
  EventPtr event = std::make_shared<const Event>(
      Event{write.type, write.entry->version, write.entry, slot.durable});
  slot.durable = write.type == EventType::kDeleted ? nullptr : write.entry;
  --slot.pending;
  if (write.type == EventType::kAdded) ++write.resource->count;
  if (write.type == EventType::kDeleted) --write.resource->count;
  if (slot.durable == nullptr && slot.pending == 0) write.resource->slots.erase(write.slot);
  durable_version_ = write.entry->version;
  Remember(*write.resource, event);
  return event;
}

void StoreImpl::Remember(Resource& resource, const EventPtr& event) {
  resource.history.push_back(event);
  history_order_.push_back(&resource);
  history_bytes_ += event->entry->text->size();
  while (!history_order_.empty() && (history_order_.size() > options_.history_events ||
                                     history_bytes_ > options_.history_bytes)) {
    ForgetOldest();
  }
  if (!ageing_) ForgetAged();
}

void StoreImpl::ForgetOldest() {
  std::deque<EventPtr>& history = history_order_.front()->history;
  oldest_ = history.front()->version;
  history_bytes_ -= history.front()->entry->text->size();
  history.pop_front();
  history_order_.pop_front();
}

void StoreImpl::ForgetAged() {
  while (!history_order_.empty() && history_order_.front()->history.front()->version <= aged_) {
    ForgetOldest();
  }
  aged_ = durable_version_;
  ageing_ = !history_order_.empty();
  if (!ageing_) return;
  executor_.After(options_.history_age, scope_.Wrap([this] { ForgetAged(); }));
}

void StoreImpl::Dispatch(Resource& resource, const EventPtr& event) {
  const CallbackScope::Guard guard = scope_.guard();
  ++resource.dispatching;
  // By index: a callback may add watches (which have seen this event) and end others.
  for (size_t i = 0; i < resource.watchers.size(); ++i) {
    std::shared_ptr<Watcher> watcher = resource.watchers[i];
    if (watcher->ended || watcher->seen >= event->version) continue;
    watcher->seen = event->version;
    if (!watcher->ns.empty() && watcher->ns != event->entry->key.ns) continue;
    if (watcher->paused || !watcher->backlog.empty()) {
      watcher->backlog.push_back(event);
      continue;
    }
    watcher->on_event(*event);
    if (guard.closed()) return;
  }
  --resource.dispatching;
  RemoveEnded(resource);
}

Result<std::unique_ptr<Watch>> StoreImpl::WatchFrom(const std::string& resource_name,
                                                    const std::string& ns,
                                                    uint64_t since,
                                                    std::function<void(const Event&)> on_event) {
  if (since == 0) since = durable_version_;
  if (since < oldest_) return Expired(since, oldest_);
  if (since > durable_version_) return TooLarge(since, durable_version_);
  Resource& resource = resources_[resource_name];
  auto watcher = std::make_shared<Watcher>();
  watcher->resource = &resource;
  watcher->ns = ns;
  watcher->on_event = std::move(on_event);
  watcher->seen = durable_version_;
  auto first = std::upper_bound(resource.history.begin(), resource.history.end(), since,
                                [](uint64_t v, const EventPtr& e) { return v < e->version; });
  for (auto it = first; it != resource.history.end(); ++it) {
    if (ns.empty() || (*it)->entry->key.ns == ns) watcher->backlog.push_back(*it);
  }
  resource.watchers.push_back(watcher);
  ReplayLater(watcher);
  return std::unique_ptr<Watch>(std::make_unique<WatchHandle>(
      watcher, scope_.guard(), [this, watcher] { ReplayLater(watcher); }));
}

void StoreImpl::ReplayLater(const std::shared_ptr<Watcher>& watcher) {
  if (watcher->replaying || watcher->paused || watcher->ended || watcher->backlog.empty()) return;
  watcher->replaying = true;
  PostIfAlive([this, watcher] {
    watcher->replaying = false;
    Replay(watcher);
  });
}

void StoreImpl::Replay(const std::shared_ptr<Watcher>& watcher) {
  const CallbackScope::Guard guard = scope_.guard();
  for (size_t i = 0; i < kReplaySlice && !watcher->paused && !watcher->backlog.empty(); ++i) {
    // Taken off only after it was delivered: live events queue behind as long as there is one.
    EventPtr event = watcher->backlog.front();
    watcher->on_event(*event);
    if (guard.closed()) return;
    if (!watcher->ended) watcher->backlog.pop_front();
  }
  ReplayLater(watcher);
}

// ---- Lists --------------------------------------------------------------------------------------

// Walks the durable objects of a resource in order, with an older version's states laid over.
class Cursor {
 public:
  using Overlay = std::map<ObjectKey, EntryPtr>;  // nullptr: was not there

  Cursor(const Resource& resource, const Overlay& overlay, const ObjectKey& from, bool inclusive)
      : slots_(resource.slots), overlay_(overlay) {
    slot_ = inclusive ? slots_.lower_bound(from) : slots_.upper_bound(from);
    old_ = inclusive ? overlay_.lower_bound(from) : overlay_.upper_bound(from);
  }

  // The next entry, or nullptr at the end.
  const EntryPtr* Next() {
    while (slot_ != slots_.end() || old_ != overlay_.end()) {
      const EntryPtr* entry;
      bool old_first =
          old_ != overlay_.end() && (slot_ == slots_.end() || old_->first <= slot_->first);
      if (old_first) {
        if (slot_ != slots_.end() && slot_->first == old_->first) ++slot_;
        entry = &(old_++)->second;
      } else {
        entry = &(slot_++)->second.durable;
      }
      if (*entry != nullptr) return entry;
    }
    return nullptr;
  }

 private:
  const std::map<ObjectKey, Slot>& slots_;
  const Overlay& overlay_;
  std::map<ObjectKey, Slot>::const_iterator slot_;
  Overlay::const_iterator old_;
};

Result<Listing> StoreImpl::List(const std::string& resource_name,
                                const std::string& ns,
                                const std::function<bool(const Entry&)>& filter,
                                size_t limit,
                                const std::optional<Key>& after,
                                uint64_t at_version,
                                bool count) const {
  if (at_version == 0) at_version = durable_version_;
  if (at_version < oldest_) return Expired(at_version, oldest_);
  if (at_version > durable_version_) return TooLarge(at_version, durable_version_);
  Listing listing;
  listing.version = at_version;
  auto found = resources_.find(resource_name);
  if (found == resources_.end()) return listing;
  const Resource& resource = found->second;

  Cursor::Overlay overlay;
  for (auto it = resource.history.rbegin(); it != resource.history.rend(); ++it) {
    const Event& event = **it;
    if (event.version <= at_version) break;
    // From the newest to the oldest: what is left is the state before the first of them.
    overlay[{event.entry->key.ns, event.entry->key.name}] = event.previous;
  }
  ObjectKey from{ns, ""};
  bool resumes = false;
  if (after) {
    ObjectKey last{after->ns, after->name};
    resumes = last >= from;
    if (resumes) from = last;
  }
  Cursor cursor(resource, overlay, from, !resumes);
  while (const EntryPtr* entry = cursor.Next()) {
    if (!ns.empty() && (*entry)->key.ns != ns) break;
    if (filter && !filter(**entry)) continue;
    if (limit != 0 && listing.entries.size() == limit) {
      ++listing.remaining;
      if (!count) break;
    } else {
      listing.entries.push_back(*entry);
    }
  }
  listing.more = listing.remaining > 0;
  return listing;
}

}  // namespace

json::SharedValue Entry::Parsed() const {
  json::SharedValue value = parsed_.lock();
  if (value == nullptr) parsed_ = value = Parse(*text);
  return value;
}

json::SharedValue Entry::Content() const {
  json::SharedValue value = content_.lock();
  if (value != nullptr) return value;
  const auto without_writers = api::EditText(*text, {{"metadata", "managedFields", ""}});
  content_ = value = Parse(without_writers ? *without_writers : *text);
  return value;
}

json::SharedValue Entry::Parse(std::string_view text) const {
  auto parsed = json::Parse(text, {.depth = 256, .bytes = SIZE_MAX});
  if (!parsed.ok()) {
    // Only a damaged database leads here: the object is shown empty rather than taking everything
    // else down with it.
    SWELL_LOG_ERROR("store", "object cannot be parsed", {"resource", key.resource},
                    {"name", StrCat(key.ns, "/", key.name)}, {"error", parsed.status().message()});
    parsed = json::Value(json::Object());
  }
  return std::make_shared<const json::Value>(std::move(*parsed));
}

Result<std::unique_ptr<Store>> Store::Open(Executor& executor,
                                           std::unique_ptr<Backend> backend,
                                           const Options& options) {
  auto store = std::make_unique<StoreImpl>(executor, std::move(backend), options);
  SWELL_RETURN_IF_ERROR(store->Load());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace swell::store
