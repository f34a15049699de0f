#include "projects/usage_ledger.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/config_map.h"
#include "kube/controllers/pod_facts.h"

namespace swell::projects {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;
constexpr Duration kRetry = std::chrono::seconds(10);
// Pods that were bound before are charged from here on, at most.
constexpr Duration kCatchUpMax = std::chrono::hours(24);
constexpr Duration kLastFlushMax = std::chrono::seconds(2);

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

// Its node found it gone, and says when it found that.
bool NobodySawItsEnd(const json::Value& pod) {
  const std::vector<api::ContainerStatus> statuses = api::ContainerStatuses(pod);
  return std::any_of(statuses.begin(), statuses.end(), [](const api::ContainerStatus& status) {
    return status.reason == "ContainerStatusUnknown";
  });
}

// Replicas of a service come and go; no job begins or ends with them.
bool Serves(const api::OwnerReference& owner) {
  return owner.kind == "ReplicaSet" || owner.kind == "StatefulSet" || owner.kind == "DaemonSet";
}

bool Holds(const json::Value& pod) { return api::IsBound(pod) && !api::HasEnded(pod); }

}  // namespace

std::string_view UserOfPod(const json::Value& pod) {
  return api::Annotation(pod, api::keys::kUser);
}

UsageLedger::UsageLedger(controllers::Context context, const sched::Model& model, std::string ns)
    : context_(std::move(context)),
      model_(model),
      ns_(std::move(ns)),
      pods_(context_.informers.Of(client::resources::kPods)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      gpu_seconds_({"swell_gpu_seconds_total",
                    MetricType::kCounter,
                    "Seconds of GPUs that the project held, by what they were used for.",
                    {"project", "use"}},
                   0),
      client_(context_.executor, context_.server, context_.user, "usage-ledger") {
  registration_ =
      RegisterMetrics(context_.metrics, [this](MetricPage& page) { page.Add(gpu_seconds_); });
}

void UsageLedger::Start() {
  context_.informers.WhenSynced(scope_.Wrap([this] { Load(); }));
}

void UsageLedger::Load() {
  client_.List(client::resources::kConfigMaps, ns_,
               {.label_selector = StrCat(client::kUsageLabel, "=day")},
               [this](const Result<client::ObjectList>& list) {
                 if (list.ok()) return OnLoaded(*list);
                 SWELL_LOG_WARNING("usage", "the record cannot be read; will retry",
                                   {"error", list.status().ToString()});
                 timer_.Start(kRetry, [this] { Load(); });
               });
}

void UsageLedger::OnLoaded(const client::ObjectList& list) {
  const WallTime now = context_.clock.Now();
  const std::string oldest =
      client::UsageConfigMapName(client::UsageDate(now - std::chrono::hours(24) * kDaysKept));
  const std::string yesterday = client::UsageDate(now - std::chrono::hours(24));
  // An account that begins charges nothing of what was before.
  charged_until_ = list.items.empty() ? now : now - kCatchUpMax;
  for (const json::SharedValue& item : list.items) {
    if (api::Name(*item) < oldest) {
      client_.Delete(client::resources::kConfigMaps, ns_, api::Name(*item), {}, {});
      continue;
    }
    if (api::Name(*item) < client::UsageConfigMapName(yesterday)) continue;
    auto day = client::UsageDay::FromConfigMap(*item);
    if (!day.ok()) {
      SWELL_LOG_WARNING("usage", "a day's record is begun anew", {"error", day.status().message()});
      continue;
    }
    charged_until_ = std::clamp(day->until, charged_until_, now);
    days_[day->date] = std::move(*day);
  }
  awake_since_ = now;
  loaded_ = true;
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::IsBound(*pod) && api::HasEnded(*pod)) ChargeEnded(HoldingOf(*pod), *pod);
  }
  controllers::Follow(
      groups_, [this](const json::SharedValue& group) { OnGroup(*group); },
      [this](const json::SharedValue& group) { waiting_gangs_.erase(api::KeyOf(*group)); });
  controllers::Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) { OnGone(*pod); });
  FlushAfter(kFlushEvery);
}

UsageLedger::Holding UsageLedger::HoldingOf(const json::Value& pod) const {
  Holding holding;
  holding.key = api::KeyOf(pod);
  holding.project = model_.QueueOfPod(holding.key);
  if (holding.project.empty()) holding.project = api::Label(pod, api::keys::kProject);
  holding.user = UserOfPod(pod);
  holding.job = jobs::JobOfPod(pod);
  if (const std::string_view group = api::Label(pod, api::keys::kPodGroup); !group.empty()) {
    holding.group = StrCat(api::Namespace(pod), "/", group);
  }
  // Pods are made anew after a preemption, the group stays.
  holding.submitted = api::CreationTime(pod);
  const auto group = holding.group.empty() ? nullptr : groups_.Get(holding.group);
  if (group != nullptr) holding.submitted = api::CreationTime(*group);
  const auto owner = api::ControllerOf(pod);
  if (!owner || !Serves(*owner)) holding.job_uid = owner ? owner->uid : api::Uid(pod);
  holding.use = jobs::GpuUseOf(pod, GangRuns(holding.group));
  holding.since = std::max(jobs::BoundAt(pod, context_.clock.Now()), charged_until_);
  holding.lost_in_place = jobs::LossInPlace(holding.since);
  if (const auto view = model_.Pod(holding.key)) {
    holding.gpus = view->gpus;
    holding.cpus = view->cpus;
  }
  return holding;
}

// A place that its pod lost while nobody looked is not charged for that time: a cluster that is
// stopped over night ends its pods in the evening, and finds that out in the morning.
void UsageLedger::ChargeEnded(const Holding& holding, const json::Value& pod) {
  if (holding.since < awake_since_ && NobodySawItsEnd(pod)) return;
  Charge(holding, jobs::EndedAt(pod, context_.clock.Now()));
}

void UsageLedger::AddLost(const Holding& who, double gpu_s) {
  if (gpu_s <= 0) return;
  for (client::UsageRow* row : {&RowNow(who), &JobNow(who)}) row->lost_gpu_s += gpu_s;
}

void UsageLedger::OnPod(const json::Value& pod) {
  if (!Holds(pod)) return OnGone(pod);
  const auto found = holdings_.find(api::Uid(pod));
  if (found != holdings_.end()) {
    AddLost(found->second, found->second.lost_in_place.Take(pod, found->second.gpus));
    return SetUse(found->second, pod);
  }
  Holding& holding = holdings_.emplace(api::Uid(pod), HoldingOf(pod)).first->second;
  held_[holding.job_uid] += holding.gpus;
  AddLost(holding, holding.lost_in_place.Take(pod, holding.gpus));
}

// What came before is charged to the use that it had.
void UsageLedger::SetUse(Holding& holding, const json::Value& pod) {
  const client::GpuUse use = jobs::GpuUseOf(pod, GangRuns(holding.group));
  if (use == holding.use) return;
  const WallTime now = context_.clock.Now();
  Charge(holding, now);
  holding.since = std::max(holding.since, now);
  holding.use = use;
}

bool UsageLedger::GangRuns(std::string_view group) const {
  return group.empty() || !waiting_gangs_.contains(group);
}

void UsageLedger::OnGroup(const json::Value& group) {
  const std::string key = api::KeyOf(group);
  const bool waits =
      json::GetInt(group, {"status", "running"}) <
      json::GetInt(group, {"status", "minMember"}) - json::GetInt(group, {"status", "succeeded"});
  if (waits == waiting_gangs_.contains(key)) return;
  if (waits) {
    waiting_gangs_.insert(key);
  } else {
    waiting_gangs_.erase(key);
  }
  for (const json::SharedValue& pod : pods_.ByIndex("group", key)) {
    const auto found = holdings_.find(api::Uid(*pod));
    if (found != holdings_.end()) SetUse(found->second, *pod);
  }
}

void UsageLedger::OnGone(const json::Value& pod) {
  const auto found = holdings_.find(api::Uid(pod));
  if (found == holdings_.end()) return;
  const Holding& holding = found->second;
  ChargeEnded(holding, pod);
  AddLost(holding,
          jobs::LostGpuSeconds(pod, holding.gpus, jobs::EndedAt(pod, context_.clock.Now())));
  Release(holding);
  holdings_.erase(found);
  FlushSoon();
}

// Null for a day that is over and written: a clock that was set back charges nothing twice.
client::UsageDay* UsageLedger::DayOf(WallTime time) {
  const std::string date = client::UsageDate(time);
  if (!days_.empty() && date < days_.begin()->first && days_.size() > 1) return nullptr;
  client::UsageDay& day = days_[date];
  day.date = date;
  unwritten_.insert(date);
  return &day;
}

void UsageLedger::Charge(const Holding& holding, WallTime until) {
  WallTime from = holding.since;
  // At most 25 hours (kCatchUpMax).
  while (until - from > Duration::zero()) {
    const WallTime hour_end{(from.unix_ns / kHourNs + 1) * kHourNs};
    const WallTime to = std::min(hour_end, until);
    if (client::UsageDay* day = DayOf(from)) {
      client::UsageRow& row = day->Row(holding.project, holding.user, client::UsageHour(from));
      client::UsageRow& of_job = day->Job(holding.project, holding.user, holding.job);
      for (client::UsageRow* one : {&row, &of_job}) {
        one->gpu_s += holding.gpus * Seconds(to - from);
        one->cpu_s += holding.cpus * Seconds(to - from);
        one->Of(holding.use) += holding.gpus * Seconds(to - from);
      }
      NoteJob(*day, holding, from, to);
      gpu_seconds_.At({holding.project, client::GpuUseName(holding.use)}) +=
          holding.gpus * Seconds(to - from);
      const Duration asleep = std::min(to, awake_since_) - from;
      if (asleep > Duration::zero()) {
        day->capacity_gpu_s[static_cast<size_t>(client::UsageHour(from))] +=
            holding.gpus * Seconds(asleep);
      }
    }
    from = to;
  }
}

void UsageLedger::NoteJob(client::UsageDay& day,
                          const Holding& holding,
                          WallTime from,
                          WallTime to) const {
  if (holding.job_uid.empty() || holding.gpus <= 0) return;
  const auto held = held_.find(holding.job_uid);
  const double at_once = std::max(holding.gpus, held == held_.end() ? 0 : held->second);
  day.NoteJob({holding.project, holding.user, holding.job},
              {holding.job_uid, holding.submitted, at_once, from, to});
}

void UsageLedger::CountHeld() {
  held_.clear();
  for (const auto& [uid, holding] : holdings_) held_[holding.job_uid] += holding.gpus;
}

void UsageLedger::Release(const Holding& holding) {
  const auto held = held_.find(holding.job_uid);
  if (held == held_.end()) return;
  held->second -= holding.gpus;
  if (held->second < 1e-6) held_.erase(held);
}

void UsageLedger::ChargeAll(WallTime now) {
  for (auto& [uid, holding] : holdings_) {
    Charge(holding, now);
    holding.since = std::max(holding.since, now);
    if (const auto view = model_.Pod(holding.key)) {
      holding.gpus = view->gpus;
      holding.cpus = view->cpus;
    }
  }
  CountHeld();
  double gpus = 0;
  for (const sched::Model::NodeView& node : model_.Nodes()) gpus += node.gpus;
  for (WallTime from = std::max(charged_until_, awake_since_); now - from > Duration::zero();) {
    const WallTime to = std::min(WallTime{(from.unix_ns / kHourNs + 1) * kHourNs}, now);
    if (client::UsageDay* day = DayOf(from)) {
      day->capacity_gpu_s[static_cast<size_t>(client::UsageHour(from))] +=
          gpus * Seconds(to - from);
    }
    from = to;
  }
  charged_until_ = std::max(charged_until_, now);
  for (const std::string& date : unwritten_) days_[date].until = charged_until_;
}

client::UsageRow& UsageLedger::RowNow(const Holding& who) {
  static constexpr int kAnyHour = 0;
  const WallTime now = context_.clock.Now();
  client::UsageDay* day = DayOf(now);
  if (day == nullptr) return days_.begin()->second.Row(who.project, who.user, kAnyHour);
  return day->Row(who.project, who.user, client::UsageHour(now));
}

client::UsageRow& UsageLedger::JobNow(const Holding& who) {
  client::UsageDay* day = DayOf(context_.clock.Now());
  return (day == nullptr ? days_.begin()->second : *day).Job(who.project, who.user, who.job);
}

void UsageLedger::OnStarted(const json::Value& pod, Duration waited) {
  if (!loaded_) return;
  const Holding who = HoldingOf(pod);
  for (client::UsageRow* row : {&RowNow(who), &JobNow(who)}) {
    ++row->started;
    row->wait_s += Seconds(waited);
    row->wait_max_s = std::max(row->wait_max_s, Seconds(waited));
  }
  FlushSoon();
}

void UsageLedger::OnPreempted(const json::Value& pod) {
  if (!loaded_) return;
  const Holding who = HoldingOf(pod);
  for (client::UsageRow* row : {&RowNow(who), &JobNow(who)}) ++row->preempted;
  FlushSoon();
}

void UsageLedger::FlushAfter(Duration wait) {
  timer_.Start(wait, [this] { Flush(); });
}

void UsageLedger::FlushSoon() {
  if (!std::exchange(soon_, true)) FlushAfter(kFlushSoon);
}

void UsageLedger::Flush() {
  soon_ = false;
  FlushAfter(kFlushEvery);
  ChargeAll(context_.clock.Now());
  // A writer that is slow is given the newest state next time.
  if (!writing_) WriteNext();
}

void UsageLedger::FlushThen(std::function<void()> done) {
  if (!loaded_) return done();
  on_flushed_ = std::move(done);
  flush_timeout_.Start(kLastFlushMax, [this] { std::exchange(on_flushed_, {})(); });
  Flush();
}

void UsageLedger::WriteNext() {
  if (!unwritten_.empty()) return Write(*unwritten_.begin());
  if (!on_flushed_) return;
  flush_timeout_.Cancel();
  std::exchange(on_flushed_, {})();
}

// By value: the callers' date may be the one in `unwritten_`.
void UsageLedger::Write(std::string date) {
  writing_ = true;
  unwritten_.erase(date);
  controllers::PutConfigMap(
      client_, days_[date].ToConfigMap(ns_),
      [this, date](const Result<json::SharedValue>& done) { Written(done.status(), date); });
}

void UsageLedger::Written(const Status& status, const std::string& date) {
  writing_ = false;
  if (!status.ok()) {
    unwritten_.insert(date);
    SWELL_LOG_WARNING("usage", "a day's record is not written; will retry", {"date", date},
                      {"error", status.ToString()});
    return;
  }
  // Yesterday is done with once today is written, too.
  while (days_.size() > 2 && !unwritten_.contains(days_.begin()->first)) {
    days_.erase(days_.begin());
  }
  WriteNext();
}

}  // namespace swell::projects
