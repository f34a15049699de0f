// Events expire: each is removed once its last write is older than Options::event_ttl.
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>

#include "base/log.h"
#include "base/strings.h"
#include "base/timer.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr size_t kBatch = 500;
constexpr auto kLeastPause = std::chrono::seconds(1);
constexpr auto kMostPause = std::chrono::seconds(60);

WallTime LastSeen(const json::Value& event) {
  WallTime latest = api::CreationTime(event);
  for (const char* field : {"lastTimestamp", "eventTime"}) {
    const auto time = api::ParseTime(json::GetString(event, {field}));
    if (time) latest = std::max(latest, *time);
  }
  const auto series = api::ParseTime(json::GetString(event, {"series", "lastObservedTime"}));
  return series ? std::max(latest, *series) : latest;
}

void Remove(Core& core, const api::KindInfo& kind, const store::EntryPtr& entry) {
  json::Value object = *entry->Parsed();
  WriteObject(core, kind, store::EventType::kDeleted, std::move(object),
              [](const Status& status, const store::EntryPtr& removed) {
                if (status.ok()) return;
                SWELL_LOG_WARNING("apiserver", "event not expired",
                                  {"event", removed->key.ns + "/" + removed->key.name},
                                  {"error", status.ToString()});
              });
}

// Events in the order of their last write.
struct EventExpiry final : CorePart {
  explicit EventExpiry(Executor& executor) : timer(executor) {}

  struct Written {
    store::Key key;
    uint64_t version;
    WallTime at;
  };
  std::deque<Written> written;
  Timer timer;
};

void Expire(Core& core);

void Schedule(Core& core, Duration pause) {
  core.Get<EventExpiry>().timer.Start(pause, [&core] { Expire(core); });
}

void Expire(Core& core) {
  auto& written = core.Get<EventExpiry>().written;
  const api::KindPtr kind = core.scheme->StorageKind("", "events");
  const WallTime limit = core.clock.Now() - core.options.event_ttl;
  size_t removed = 0;
  while (kind && !written.empty() && written.front().at <= limit && removed < kBatch) {
    const EventExpiry::Written event = std::move(written.front());
    written.pop_front();
    const auto entry = core.store.Latest(event.key);
    // Written again since: a later record of it is further back.
    if (!entry || entry->version != event.version) continue;
    Remove(core, *kind, entry);
    ++removed;
  }
  const Duration ordinary =
      std::clamp<Duration>(core.options.event_ttl / 10, kLeastPause, kMostPause);
  Schedule(core, removed == kBatch ? Duration(kLeastPause) : ordinary);
}

// Limits the events that users make, by namespace. The cluster's own events are not counted, so a
// user who floods a namespace hides none of them.
struct EventBudgets final : CorePart {
  static constexpr double kBurst = 2000;
  static constexpr double kPerSecond = 2;
  static constexpr size_t kNamespacesMax = 10'000;

  struct Budget {
    double events = kBurst;
    SteadyTime at;
  };
  std::map<std::string, Budget, std::less<>> of_namespace;

  bool Spend(const std::string& ns, SteadyTime now) {
    if (of_namespace.size() >= kNamespacesMax) of_namespace.clear();
    Budget& budget = of_namespace.try_emplace(ns, Budget{kBurst, now}).first->second;
    const double seconds = std::chrono::duration<double>(now - budget.at).count();
    budget.events = std::min(kBurst, budget.events + seconds * kPerSecond);
    budget.at = now;
    if (budget.events < 1) return false;
    budget.events -= 1;
    return true;
  }
};

bool IsOfUser(const Admission& admission) {
  return admission.call != nullptr && !IsSystem(admission.call->user) &&
         !IsNode(admission.call->user);
}

// They live for an hour, and no quota counts them.
Status CheckEventSize(const Admission& admission) {
  constexpr size_t kBytesMax = 16 << 10;
  if (!IsOfUser(admission) || admission.call->request.body.size() <= kBytesMax) return Status::Ok();
  return Status(Code::kTooLarge, StrCat("an event has at most ", kBytesMax >> 10, " KiB"));
}

Status CheckEventRate(const Admission& admission) {
  if (!IsOfUser(admission) || admission.dry_run) return Status::Ok();
  if (admission.core.Get<EventBudgets>().Spend(admission.ns, admission.core.clock.Steady())) {
    return Status::Ok();
  }
  StatusDetails details;
  details.retry_after_s = 1;
  return Status(Code::kTooManyRequests,
                StrCat("limit reached on type Namespace for key ", admission.ns,
                       ": users may make 2,000 events at once, and then two in a second"),
                std::move(details));
}

Status UpdateEvent(Admission& admission, json::Value&, const json::Value&) {
  return CheckEventSize(admission);
}

// An event that is made in the newer group obeys that group's rules, although it is core's that is
// handled.
Status CreateEvent(Admission& admission, json::Value& event) {
  SWELL_RETURN_IF_ERROR(CheckEventSize(admission));
  SWELL_RETURN_IF_ERROR(CheckEventRate(admission));
  if (admission.call == nullptr || admission.call->kind == nullptr) return Status::Ok();
  const api::KindInfo& requested = *admission.call->kind;
  if (requested.gvk.kind != "Event" || requested.gvk.group.empty()) return Status::Ok();
  const auto errors = api::ValidateObject(requested, event, nullptr);
  return errors.empty() ? Status::Ok() : InvalidError(admission.kind, admission.name, errors);
}

void EventWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  if (!ok || type == store::EventType::kDeleted) return;
  core.Get<EventExpiry>().written.push_back({entry->key, entry->version, core.clock.Now()});
}

}  // namespace

void RegisterEvents(Core& core) {
  core.hooks.Add("events", {.create = CreateEvent,
                            .update = UpdateEvent,
                            .written = EventWritten,
                            .create_on_update = true});
  core.Add(std::make_unique<EventBudgets>());
  auto& written = core.Add(std::make_unique<EventExpiry>(core.executor)).written;
  if (core.options.event_ttl <= Duration{0}) return;
  const auto stored = core.store.List("events", "");
  if (stored.ok()) {
    for (const store::EntryPtr& entry : stored->entries) {
      written.push_back({entry->key, entry->version, LastSeen(*entry->Parsed())});
    }
    std::sort(written.begin(), written.end(),
              [](const auto& a, const auto& b) { return a.at < b.at; });
  }
  Schedule(core, std::clamp<Duration>(core.options.event_ttl / 10, kLeastPause, kMostPause));
}

}  // namespace swell::apiserver
