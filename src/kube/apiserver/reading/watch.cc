#include "kube/apiserver/reading/watch.h"

#include "base/strings.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/reading/list_options.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"
#include "kube/apiserver/webhooks/webhook.h"

namespace swell::apiserver {
namespace {

// What is there at once is sent in chunks of this size, or of one object's.
constexpr size_t kPieceBytes = 64 << 10;
// Kubernetes' own default: between 30 and 60 minutes, so that not all clients come back at once.
constexpr int64_t kLeastTimeoutS = 1800;
constexpr int64_t kMostTimeoutS = 7LL * 24 * 3600;
// Some more than a history holds: who has this much before him is too slow.
constexpr size_t kWaitingMost = 200'000;

Status TooSlow() { return Status(Code::kTooManyRequests, "the receiver of the watch is too slow"); }

size_t SlotOf(uint64_t version, uint64_t form, size_t slots) {
  return static_cast<size_t>((version * 31 + form) % slots);
}

uint64_t FormKey(const Call& call) {
  const std::string text = StrCat(
      call.kind->gvk.ApiVersion(), "/", call.kind->gvk.kind, "/", static_cast<int>(call.form.as),
      static_cast<int>(call.form.include), call.form.meta_version, "/", call.kind->defaults_from);
  return StableHash(text) | 1;
}

std::string EventText(std::string_view type, std::string_view object) {
  std::string text;
  text.reserve(object.size() + 40);
  text += "{\"type\":\"";
  text += type;
  text += "\",\"object\":";
  text += object;
  text += "}\n";
  return text;
}

}  // namespace

api::Chunk EventCache::Find(uint64_t version, uint64_t form) const {
  const Slot& slot = slots_[SlotOf(version, form, kSlots)];
  return slot.version == version && slot.form == form ? slot.bytes : nullptr;
}

void EventCache::Put(uint64_t version, uint64_t form, api::Chunk bytes) {
  slots_[SlotOf(version, form, kSlots)] = {version, form, std::move(bytes)};
}

Watcher::Watcher(Core& core, CallPtr call, Selection selection, uint64_t id)
    : core_(core),
      watches_(core.Get<Watches>()),
      call_(std::move(call)),
      selection_(std::move(selection)),
      id_(id),
      form_(FormKey(*call_)) {}

Status Watcher::Begin(const Start& start) {
  bookmarks_ = start.bookmarks;
  const std::string resource = call_->storage->StoreResource();
  uint64_t since = start.version;
  store::Listing listing;
  if (start.initial) {
    SWELL_ASSIGN_OR_RETURN(
        listing, core_.store.List(resource, call_->info.ns, [this](const store::Entry& entry) {
          return selection_.Matches(entry);
        }));
    since = listing.version;
  }
  SWELL_ASSIGN_OR_RETURN(
      watch_, core_.store.WatchFrom(resource, call_->info.ns, since,
                                    [this](const store::Event& event) { OnEvent(event); }));
  sent_version_ = since;
  call_->StartStream(200, "application/json");
  timeout_.Start(start.timeout, [this] { End(Status::Ok()); });
  if (start.initial) start_ = std::move(listing);
  if (start.initial_end) start_end_ = since;
  SendStart();
  return Status::Ok();
}

void Watcher::SendStart() {
  const auto self = shared_from_this();
  if (start_) {
    if (start_at_ == 0) {
      const Status known = ConvertAhead(core_, *call_, start_->entries, *call_->kind);
      if (!known.ok() && Waits(known)) return;
    }
    while (start_at_ < start_->entries.size()) {
      if (!SendInitial()) return End(TooSlow());
      if (Paced()) return;
    }
  }
  start_.reset();
  const auto end = std::exchange(start_end_, std::nullopt);
  if (end && !SendInitialEnd(*end)) End(TooSlow());
}

bool Watcher::Waits(const Status& status) {
  if (!IsWaitingForCallout(status) || !call_->callouts) return false;
  Wait();
  call_->callouts->WhenAnswered([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Resume();
  });
  return true;
}

bool Watcher::Paced() {
  if (unpaced_bytes_ < kPieceBytes && call_->HasRoom()) return false;
  unpaced_bytes_ = 0;
  const bool paced = call_->WhenRoom([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Resume();
  });
  if (paced) Wait();
  return paced;
}

void Watcher::Wait() {
  waiting_ = true;
  watch_->Pause();
}

void Watcher::Resume() {
  const auto self = shared_from_this();
  if (call_->finished()) return;
  waiting_ = false;
  if (watch_->waiting() > kWaitingMost) return End(TooSlow());
  if (start_ || start_end_) SendStart();
  if (!waiting_ && again_) Deliver(*std::exchange(again_, std::nullopt));
  if (waiting_ || call_->finished()) return;
  // Answers are about versions that have now been sent.
  call_->callouts.reset();
  watch_->Resume();
}

void Watcher::BeginTooLate(const Status& why) {
  call_->StartStream(200, "application/json");
  SendError(why);
  End(Status::Ok());
}

// The next of the starting state, in one large chunk.
bool Watcher::SendInitial() {
  std::string buffer;
  while (start_at_ < start_->entries.size() && buffer.size() < kPieceBytes) {
    const store::EntryPtr entry = std::move(start_->entries[start_at_++]);
    if (SharesObject(*entry)) {
      if (!call_->SendObject("ADDED", entry->Content())) return false;
      continue;
    }
    auto bytes = EventBytes("ADDED", entry->version, *entry, false);
    if (!bytes.ok()) {
      SendError(bytes.status());
      return false;
    }
    buffer += **bytes;
  }
  return buffer.empty() || Send(api::MakeChunk(std::move(buffer)));
}

bool Watcher::Send(const api::Chunk& chunk) {
  unpaced_bytes_ += chunk->size();
  return call_->Send(chunk);
}

void Watcher::OnEvent(const store::Event& event) {
  // Sending may end this watch, and with it this object.
  const auto self = shared_from_this();
  // What waits is of the past, this one among it.
  const bool past = watch_->waiting() > 0;
  Deliver(event);
  if (past && !waiting_) Paced();
}

void Watcher::Deliver(const store::Event& event) {
  const bool before = event.previous && selection_.Matches(*event.previous);
  const bool deleted = event.type == store::EventType::kDeleted;
  const bool after = !deleted && selection_.Matches(*event.entry);
  Result<bool> alive = true;
  if (after) {
    alive = SendEvent(before ? "MODIFIED" : "ADDED", event.version, *event.entry, false);
  } else if (before) {
    // Left the selection: the last state that was in it, at the version of leaving. A deletion's
    // entry carries that already, unless the last write also changed what is selected by.
    const bool own = deleted && selection_.Matches(*event.entry);
    alive = SendEvent("DELETED", event.version, own ? *event.entry : *event.previous, !own);
  }
  if (!alive.ok()) {
    if (Waits(alive.status())) {
      again_ = event;
      return;
    }
    SendError(alive.status());
  }
  sent_version_ = std::max(sent_version_, event.version);
  if (!alive.ok() || !*alive) End(TooSlow());
}

Result<api::Chunk> Watcher::EventBytes(std::string_view type,
                                       uint64_t version,
                                       const store::Entry& entry,
                                       bool reversion) {
  const bool table = call_->form.as == OutputForm::As::kTable;
  const bool columns = table && !columns_sent_;
  const uint64_t form = StableHash(type, form_ + (columns ? 2 : 0) + (reversion ? 4 : 0)) | 1;
  if (api::Chunk cached = watches_.events.Find(version, form)) {
    columns_sent_ = true;
    return cached;
  }
  std::string object;
  if (!reversion && call_->form.raw() && StoredAsIs(core_, *call_, entry)) {
    object = EventText(type, *entry.text);
  } else {
    SWELL_ASSIGN_OR_RETURN(json::Value value, ObjectOf(core_, *call_, entry));
    if (reversion) {
      json::Set(value, {"metadata", "resourceVersion"}, json::Value(std::to_string(version)));
    }
    SWELL_ASSIGN_OR_RETURN(value, FormOf(core_, *call_, std::move(value), columns));
    object = EventText(type, json::Print(value));
  }
  columns_sent_ = true;
  auto chunk = api::MakeChunk(std::move(object));
  watches_.events.Put(version, form, chunk);
  return chunk;
}

bool Watcher::SharesObject(const store::Entry& entry) const {
  return call_->TakesObjects() && StoredAsIs(core_, *call_, entry);
}

Result<bool> Watcher::SendEvent(std::string_view type,
                                uint64_t version,
                                const store::Entry& entry,
                                bool reversion) {
  if (!reversion && SharesObject(entry)) return call_->SendObject(type, entry.Content());
  SWELL_ASSIGN_OR_RETURN(const api::Chunk bytes, EventBytes(type, version, entry, reversion));
  return Send(bytes);
}

json::Value Watcher::BookmarkObject(uint64_t version) const {
  json::Object metadata;
  metadata["resourceVersion"] = std::to_string(version);
  metadata["creationTimestamp"] = nullptr;
  json::Object object;
  const bool partial = call_->form.as == OutputForm::As::kMetadata;
  object["kind"] = partial ? "PartialObjectMetadata" : std::string_view(call_->kind->gvk.kind);
  object["apiVersion"] =
      partial ? StrCat("meta.k8s.io/", call_->form.meta_version) : call_->kind->gvk.ApiVersion();
  object["metadata"] = std::move(metadata);
  return object;
}

void Watcher::SendBookmark() {
  // Everything up to the durable version has been delivered: store watches are told of a version
  // before it is the newest.
  const auto self = shared_from_this();
  const uint64_t version = std::max(sent_version_, core_.store.Version());
  const auto chunk = api::MakeChunk(EventText("BOOKMARK", json::Print(BookmarkObject(version))));
  if (!call_->Send(chunk)) End(TooSlow());
}

bool Watcher::SendInitialEnd(uint64_t version) {
  json::Value object = BookmarkObject(version);
  json::Set(object, {"metadata", "annotations", "k8s.io/initial-events-end"}, json::Value("true"));
  return call_->Send(api::MakeChunk(EventText("BOOKMARK", json::Print(object))));
}

void Watcher::SendError(const Status& status) {
  call_->Send(api::MakeChunk(EventText("ERROR", json::Print(StatusToJson(status)))));
}

void Watcher::End(const Status& why) {
  const auto self = shared_from_this();
  watch_.reset();
  // Releases the call, which removes this watcher from Watches::open.
  call_->EndStream(why);
  watches_.open.erase(id_);
}

namespace {

Status ForbiddenOption(std::string field, std::string_view why) {
  return OptionsError("ListOptions", ForbiddenValue(std::move(field), why));
}

Result<Watcher::Start> StartOf(Core& core, const Call& call) {
  Watcher::Start start;
  const std::string_view text = call.query.Get("resourceVersion");
  SWELL_ASSIGN_OR_RETURN(start.version, ParseVersion(text));
  start.bookmarks = call.query.Bool("allowWatchBookmarks");
  const bool send_initial = call.query.Bool("sendInitialEvents");
  const std::string_view match = call.query.Get("resourceVersionMatch");
  const bool asked = call.query.Find("sendInitialEvents").has_value();
  if (asked && match != "NotOlderThan") {
    return ForbiddenOption("resourceVersionMatch",
                           "sendInitialEvents requires setting resourceVersionMatch to "
                           "NotOlderThan");
  }
  if (!asked && !match.empty()) {
    return ForbiddenOption("resourceVersionMatch",
                           "resourceVersionMatch is forbidden for watch unless sendInitialEvents "
                           "is provided");
  }
  SWELL_ASSIGN_OR_RETURN(const std::optional<int64_t> timeout, call.query.Count("timeoutSeconds"));
  const int64_t seconds =
      timeout.value_or(0) > 0
          ? *timeout
          : kLeastTimeoutS + static_cast<int64_t>(core.random.Below(kLeastTimeoutS));
  start.timeout = std::chrono::seconds(std::min<int64_t>(seconds, kMostTimeoutS));
  if (start.version > core.store.Version()) {
    return TooNewVersionError(start.version, core.store.Version());
  }
  start.initial = asked ? send_initial : start.version == 0;
  start.initial_end = asked && send_initial && start.bookmarks;
  return start;
}

void ScheduleBookmarks(Core& core) {
  auto& watches = core.Get<Watches>();
  if (watches.bookmark_timer.pending() || core.options.bookmark_interval <= Duration{0}) return;
  watches.bookmark_timer.Start(core.options.bookmark_interval, [&core, &watches] {
    std::vector<std::shared_ptr<Watcher>> watchers;
    for (const auto& [id, watcher] : watches.open) {
      if (watcher->wants_bookmarks()) watchers.push_back(watcher);
    }
    for (const auto& watcher : watchers) watcher->SendBookmark();
    if (!watches.open.empty()) ScheduleBookmarks(core);
  });
}

}  // namespace

void HandleWatch(Core& core, const CallPtr& call) {
  auto& watches = core.Get<Watches>();
  call->form.yaml = false;
  call->form.pretty = false;
  auto selection = Selection::Parse(*call);
  if (!selection.ok()) {
    call->Fail(selection.status());
    return;
  }
  const auto start = StartOf(core, *call);
  if (!start.ok()) {
    call->Fail(start.status());
    return;
  }
  if (watches.open.size() >= core.options.watches_max) {
    call->Fail(Status(Code::kTooManyRequests, "too many watches are open; try again later",
                      {"", "", "", "", {}, 1}));
    return;
  }
  const uint64_t id = watches.next++;
  auto watcher = std::make_shared<Watcher>(core, call, std::move(*selection), id);
  watches.open.emplace(id, watcher);
  call->OnRelease([weak = core.weak_from_this(), id] {
    if (const auto alive = weak.lock()) alive->Get<Watches>().open.erase(id);
  });
  const Status begun = watcher->Begin(*start);
  if (begun.ok()) {
    ScheduleBookmarks(core);
    return;
  }
  if (begun.code() == Code::kExpired || begun.code() == Code::kGone) {
    watcher->BeginTooLate(
        Status(Code::kExpired, StrCat("too old resource version: ", start->version, " (",
                                      core.store.OldestWatchable(), ")")));
    return;
  }
  call->Fail(begun);
  watches.open.erase(id);
}

}  // namespace swell::apiserver
