#include "scheduling/scheduler_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/sched_convert.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "swell-scheduler";
const client::Resource kTopologies{"swell.dev", "v1", "topologies", false};

std::string DeviceList(const std::vector<int>& devices) {
  std::string out;
  for (int device : devices) {
    if (!out.empty()) out += ',';
    out += std::to_string(device);
  }
  return out;
}

// kube-apiserver works on a request for 34 s at most, whatever became of who sent it.
constexpr Duration kLostWrite = std::chrono::seconds(40);

constexpr Duration kWatchLag = std::chrono::seconds(1);

// Some 5 ms: the store waits for the end of a turn to hear of its next group.
constexpr size_t kBindingsAtOnce = 256;
// So many are enough for the store to be busy all the time; what they take is soon used again.
constexpr size_t kBindingsOpenMax = 8 * kBindingsAtOnce;

// `share`: in GPUs, of a pod that asked for memory; else 0.
json::Value BindingOf(const sched::Decision& decision, double share) {
  auto [ns, name] = SplitKey(decision.pod);
  json::Object metadata{{"name", name}, {"namespace", ns}, {"uid", decision.pod_uid}};
  json::Object annotations;
  if (!decision.gpu_devices.empty()) {
    annotations[keys::kGpuDevices] = DeviceList(decision.gpu_devices);
  }
  if (share > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", share);
    annotations[keys::kGpuShare] = text;
  }
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata", std::move(metadata)},
      {"target", json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", decision.node}}}};
}

// The server went away, or its store did, while it worked: the write may have been made.
bool IsUnknown(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kInternal;
}

// `shrinks`: its group keeps its minimum and goes on.
std::string_view EvictionReason(std::string_view rule, bool shrinks) {
  if (shrinks) return "Shrunk";
  return rule == "reclaim" ? "Reclaimed" : "Preempted";
}

}  // namespace

SchedulerLoop::SchedulerLoop(Context context, sched::Settings settings)
    : context_(std::move(context)),
      scheduler_(settings),
      metrics_(context_.metrics, context_.clock, model_, scheduler_, stats_),
      pods_(context_.informers.Of(client::resources::kPods)),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      priorities_(context_.informers.Of(client::resources::kPriorityClasses)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      pools_(context_.informers.Of(client::resources::kNodePools)),
      topologies_(context_.informers.Of(kTopologies)),
      budgets_(context_.informers.Of(client::resources::kPodDisruptionBudgets)),
      claims_(context_.informers.Of(client::resources::kPersistentVolumeClaims)),
      volumes_(context_.informers.Of(client::resources::kPersistentVolumes)),
      classes_(context_.informers.Of(client::resources::kStorageClasses)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      teller_(context_, events_, [this](const std::string& pod) { return FindWaiting(pod); }),
      volume_waits_(context_),
      evictions_(context_,
                 client_,
                 {.done =
                      [this] {
                        refused_in_a_row_ = 0;
                        ++stats_.evictions;
                      },
                  .failed = [this](const sched::Decision& eviction,
                                   const Status& why) { OnEvictionFailed(eviction, why); }}),
      client_(context_.executor,
              context_.server,
              context_.user,
              std::string(kComponent),
              /*urgent=*/true) {
  WatchNodes();
  WatchQueues();
  WatchGroups();
  WatchPods();
  WatchVolumes();
}

void SchedulerLoop::Start() {
  context_.informers.WhenSynced(scope_.Wrap([this] {
    started_ = true;
    RecallPastUse();
    LookAtPlacedVolumes();
    Wake();
  }));
}

// Changes of one instant share a cycle: it runs after everything already posted.
void SchedulerLoop::Wake() {
  if (!started_ || cycle_posted_) return;
  cycle_posted_ = true;
  context_.executor.Post(scope_.Wrap([this] {
    cycle_posted_ = false;
    Cycle();
  }));
}

void SchedulerLoop::Cycle() {
  WallTime now = context_.clock.Now();
  const SteadyTime began = context_.clock.Steady();
  sched::CycleResult result = scheduler_.RunCycle(model_, now);
  Carry(result);
  metrics_.OnCycle(context_.clock.Steady() - began);
  if (on_cycle_) on_cycle_();
  wake_timer_.Cancel();
  if (result.more && refused_in_a_row_ > 0) {
    // What is refused at once, as to one who does not lead, would be decided and refused for ever.
    RetryLater();
  } else if (result.more) {
    Wake();
  } else if (result.wake_at) {
    Duration delay = std::max<Duration>(*result.wake_at - now, std::chrono::milliseconds(10));
    wake_timer_.Start(delay, [this] { Wake(); });
  }
}

void SchedulerLoop::Carry(const sched::CycleResult& result) {
  std::set<std::string_view> evicted;
  std::map<std::string_view, bool> shrinks;
  for (const sched::Decision& decision : result.decisions) {
    if (decision.type != sched::Decision::Type::kEvict) continue;
    evicted.insert(decision.pod);
    shrinks[decision.group] = false;
  }
  for (auto& [group, keeps] : shrinks) keeps = KeepsMinimum(std::string(group), evicted);
  PodsOfBinds pods(result.decisions.size());
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    if (decision.type != sched::Decision::Type::kBind) SendBindings();
    switch (decision.type) {
      case sched::Decision::Type::kBind:
        pods[i] = pods_.Get(decision.pod);
        Bind(decision, pods[i]);
        break;
      case sched::Decision::Type::kNominate:
        Nominate(decision);
        break;
      case sched::Decision::Type::kEvict:
        Evict(decision, shrinks[decision.group]);
        break;
    }
  }
  SendBindings();
  SendEvictions();
  TellStarts(result, pods);
  TellSizes(result, pods);
  for (const std::string& pod : result.nominations_cleared) ClearNomination(pod);
  for (const sched::Waiting& waiting : result.waiting) teller_.Tell(waiting);
  teller_.TellHints();
  // Noticed and over in one cycle: only how it ended counts.
  std::map<std::string_view, WallTime> stale;
  for (const sched::CycleResult::Stale& one : result.stale) stale[one.group] = one.since;
  for (const auto& [group, since] : stale) TellTime(std::string(group), "staleSince", since);
  const std::set<std::string_view> moved(result.moved.begin(), result.moved.end());
  const WallTime now = context_.clock.Now();
  for (std::string_view group : moved) TellTime(std::string(group), "movedAt", now);
}

// Whether the group still has its minimum in every set when these pods are gone.
bool SchedulerLoop::KeepsMinimum(const std::string& group,
                                 const std::set<std::string_view>& evicted) const {
  json::SharedValue object = group.empty() ? nullptr : groups_.Get(group);
  if (!object) return false;
  std::map<std::string, int64_t, std::less<>> staying;
  for (const json::SharedValue& pod : pods_.ByIndex("group", group)) {
    bool placed = !json::GetString(*pod, {"spec", "nodeName"}).empty();
    if (!placed || HasEnded(*pod) || api::IsDeleting(*pod) || WasPreempted(*pod)) continue;
    if (!evicted.contains(api::KeyOf(*pod))) {
      ++staying[std::string(api::Label(*pod, keys::kPodSet))];
    }
  }
  int64_t all = 0;
  for (const json::Value& set : json::GetArray(*object, {"spec", "podSets"})) {
    auto found = staying.find(json::GetString(set, {"name"}));
    int64_t here = found == staying.end() ? 0 : found->second;
    if (here < json::GetInt(set, {"minMember"}, 1)) return false;
    all += here;
  }
  return all > 0;
}

// Whose group had no place and has some now: since its pods came. After a preemption, an eviction
// or a failure these are new ones.
void SchedulerLoop::TellStarts(const sched::CycleResult& result, const PodsOfBinds& pods) {
  std::set<std::string_view> told;
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    const json::SharedValue& pod = pods[i];
    if (!pod || (!decision.group.empty() && !told.insert(decision.group).second)) continue;
    json::SharedValue group = decision.group.empty() ? nullptr : groups_.Get(decision.group);
    if (group && json::GetInt(*group, {"status", "scheduled"}) > 0) continue;
    const Duration waited =
        std::max<Duration>(context_.clock.Now() - api::CreationTime(*pod), Duration::zero());
    metrics_.OnStart(model_.QueueOfPod(decision.pod), waited);
    if (witness_.started) witness_.started(*pod, waited);
  }
}

// Of elastic groups that gave places away or got more: once for the group, for people.
void SchedulerLoop::TellSizes(const sched::CycleResult& result, const PodsOfBinds& pods) {
  struct Change {
    int64_t evicted = 0, grown = 0;
    bool waited = false;  // who asked for members that come at once has told of them
    std::string by, because, rule;
  };
  std::map<std::string_view, Change> changes;
  std::set<std::string_view> evicted;
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    Change& change = changes[decision.group.empty() ? decision.pod : decision.group];
    if (decision.type == sched::Decision::Type::kEvict) {
      evicted.insert(decision.pod);
      ++change.evicted;
      change.by = Beneficiary(decision);
      change.because = decision.Reason();
    } else if (decision.type == sched::Decision::Type::kBind) {
      ++change.grown;
      change.rule = decision.rule;
      change.waited =
          change.waited || (pods[i] && api::FindCondition(*pods[i], "PodScheduled") != nullptr);
    }
  }
  for (const auto& [key, change] : changes) {
    std::string name(key);
    if (change.evicted > 0) {
      SWELL_LOG_INFO("scheduler", "evicting", {"group", name},
                     {"pods", std::to_string(change.evicted)}, {"for", change.by},
                     {"because", change.because});
    }
    if (change.grown > 0) {
      SWELL_LOG_INFO("scheduler", "placing", {"group", name},
                     {"pods", std::to_string(change.grown)}, {"rule", change.rule});
    }
    json::SharedValue group = name.empty() ? nullptr : groups_.Get(name);
    // A group that starts does not grow.
    if (!group || json::GetInt(*group, {"status", "scheduled"}) == 0) continue;
    int64_t before = 0, total = 0;
    for (const json::SharedValue& pod : pods_.ByIndex("group", name)) {
      if (HasEnded(*pod)) continue;
      ++total;
      bool placed = !json::GetString(*pod, {"spec", "nodeName"}).empty();
      before += placed && !api::IsDeleting(*pod) && !WasPreempted(*pod);
    }
    if (change.evicted > 0 && KeepsMinimum(name, evicted)) {
      events_.Record(*group, "Normal", "Shrunk",
                     StrCat("Preempted ", change.evicted, " of ", before, " members for ",
                            change.by, "; ", before - change.evicted, " go on"));
    }
    if (change.waited && KeepsMinimum(name, {})) {
      events_.Record(
          *group, "Normal", "Grown",
          StrCat("Grew from ", before, " to ", before + change.grown, " of ", total, " members"));
    }
  }
}

void SchedulerLoop::Bind(const sched::Decision& decision, const json::SharedValue& pod) {
  binding_[decision.pod] = {decision.pod_uid, std::nullopt};
  if (pod && !json::GetArray(*pod, {"spec", "volumes"}).empty()) {
    auto made = [this, decision, pod](const Status& status) {
      if (!status.ok()) return Fail(decision, status);
      SendBinding(decision, pod);
      SendBindings();
    };
    if (volume_waits_.Begin(*pod, decision.node, made)) return;
  }
  SendBinding(decision, pod);
}

// How much of a GPU an amount of its memory is depends on the node, and nobody asks for it in GPUs:
// whoever counts what pods hold finds it in the pod.
double SchedulerLoop::ShareOf(const sched::Decision& decision, const json::SharedValue& pod) const {
  if (!pod || api::Annotation(*pod, keys::kGpuMemory).empty()) return 0;
  const auto view = model_.Pod(decision.pod);
  return view ? view->gpus : 0;
}

void SchedulerLoop::SendBinding(const sched::Decision& decision, const json::SharedValue& pod) {
  if (context_.binder) {
    to_bind_.emplace_back(decision, pod);
    return;
  }
  auto [ns, name] = SplitKey(decision.pod);
  client_.CreateSubresource(client::resources::kPods, ns, name, "binding",
                            BindingOf(decision, ShareOf(decision, pod)),
                            [this, decision, pod](const Result<json::SharedValue>& result) {
                              OnBound(decision, pod, result.status());
                            });
}

// A part of them at a time: the store writes it down while the next is made, and others get their
// turn in between.
void SchedulerLoop::SendBindings() {
  if (to_bind_.empty() || bindings_posted_ || bindings_open_ >= kBindingsOpenMax) return;
  const uint64_t number = ++last_batch_;
  const auto batch = batches_[number] = std::make_shared<Batch>();
  std::vector<json::Value> bindings;
  while (!to_bind_.empty() && bindings.size() < kBindingsAtOnce) {
    const auto& [decision, pod] = to_bind_.front();
    bindings.push_back(BindingOf(decision, ShareOf(decision, pod)));
    batch->decisions.push_back(std::move(to_bind_.front().first));
    batch->pods.push_back(std::move(to_bind_.front().second));
    to_bind_.pop_front();
  }
  batch->open = bindings.size();
  bindings_open_ += bindings.size();
  auto bound = [this, number, batch = batch.get()](size_t i, const api::RestResponse& response) {
    const bool fine = response.status < 300;
    batch->answers.emplace_back(
        i,
        fine ? Status::Ok() : client::StatusFromResponse(response.status, response.BodyString()));
    // Once for all that are answered in this turn, after what the watch says of them.
    if (batch->answers.size() > 1) return;
    context_.executor.Post(scope_.Wrap([this, number] { HearOfBindings(number); }));
  };
  batch->call = context_.binder->Bind(context_.user, std::move(bindings), bound);
  if (to_bind_.empty()) return;
  bindings_posted_ = true;
  context_.executor.Post(scope_.Wrap([this] {
    bindings_posted_ = false;
    SendBindings();
  }));
}

void SchedulerLoop::HearOfBindings(uint64_t number) {
  const auto found = batches_.find(number);
  if (found == batches_.end()) return;
  const std::shared_ptr<Batch> batch = found->second;
  for (const auto& [i, status] : std::exchange(batch->answers, {})) {
    --batch->open;
    --bindings_open_;
    OnBound(batch->decisions[i], batch->pods[i], status);
    batch->pods[i] = nullptr;
  }
  if (batch->open == 0) batches_.erase(number);
  SendBindings();
}

void SchedulerLoop::OnBound(const sched::Decision& decision,
                            const json::SharedValue& pod,
                            const Status& status) {
  if (!status.ok()) {
    const Duration wait = IsUnknown(status.code()) ? kLostWrite : Duration::zero();
    return Confirm(decision, status, context_.clock.Steady() + wait);
  }
  refused_in_a_row_ = 0;
  ++stats_.binds;
  if (pod) {
    events_.Record(*pod, "Normal", "Scheduled",
                   StrCat("Successfully assigned ", decision.pod, " to ", decision.node));
  }
  Settle(decision);
}

// It is known what became of the binding: the model may hear of the pod's end, and of the next one.
void SchedulerLoop::Settle(const sched::Decision& binding) {
  auto open = binding_.extract(binding.pod);
  json::SharedValue pod = pods_.Get(binding.pod);
  if (!pod) {
    model_.RemovePod(binding.pod);
    return Wake();
  }
  if (api::Uid(*pod) != binding.pod_uid) return OnPod(*pod);
  if (open.empty() || !open.mapped().eviction) return;
  Evict(open.mapped().eviction->decision, open.mapped().eviction->shrinks);
  SendEvictions();
}

void SchedulerLoop::Nominate(const sched::Decision& decision) {
  json::SharedValue pod = pods_.Get(decision.pod);
  if (!pod || json::GetString(*pod, {"status", "nominatedNodeName"}) == decision.node) return;
  teller_.Hint(decision.pod, decision.node);
}

void SchedulerLoop::ClearNomination(const std::string& key) {
  teller_.Hint(key, "");
  json::SharedValue pod = pods_.Get(key);
  if (!pod || json::GetString(*pod, {"status", "nominatedNodeName"}).empty()) return;
  auto [ns, name] = SplitKey(key);
  json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(*pod)}}},
                                   {"status", json::Object{{"nominatedNodeName", nullptr}}}};
  client_.Patch(client::resources::kPods, ns, name, client::PatchType::kMerge, patch, {}, "status");
}

void SchedulerLoop::Evict(const sched::Decision& decision, bool shrinks) {
  if (volume_waits_.GiveUp(decision.pod, Status(Code::kConflict, decision.Reason()))) return;
  if (auto open = binding_.find(decision.pod); open != binding_.end()) {
    open->second.eviction = {decision, shrinks};
    return;
  }
  metrics_.OnEviction(decision);
  to_evict_.push_back(decision);
  if (json::SharedValue pod = pods_.Get(decision.pod)) {
    if (witness_.preempted) witness_.preempted(*pod, decision);
    events_.Record(*pod, "Normal", EvictionReason(decision.rule, shrinks), decision.Reason());
  }
}

void SchedulerLoop::SendEvictions() { evictions_.Take(std::exchange(to_evict_, {})); }

// What is forgotten falls back to what the watch said last. A pod is evicted only once it is bound,
// so until the watch says so, too, forgetting would give its place away.
void SchedulerLoop::OnEvictionFailed(const sched::Decision& eviction, const Status& why) {
  json::SharedValue pod = pods_.Get(eviction.pod);
  bool behind = pod && api::Uid(*pod) == eviction.pod_uid &&
                json::GetString(*pod, {"spec", "nodeName"}).empty();
  if (!behind) return OnRefused(eviction, why);
  context_.executor.After(kWatchLag,
                          scope_.Wrap([this, eviction, why] { OnEvictionFailed(eviction, why); }));
}

json::SharedValue SchedulerLoop::FindWaiting(const std::string& key) const {
  json::SharedValue pod = pods_.Get(key);
  if (!pod || api::IsDeleting(*pod) || binding_.contains(key)) return nullptr;
  return json::GetString(*pod, {"spec", "nodeName"}).empty() ? pod : nullptr;
}

void SchedulerLoop::TellTime(const std::string& key, std::string_view field, WallTime time) {
  std::string text = time.unix_ns != 0 ? api::FormatTime(time) : "";
  json::SharedValue group = groups_.Get(key);
  if (!group || json::GetString(*group, {"status", field}) == text) return;
  auto [ns, name] = SplitKey(key);
  json::Value value = text.empty() ? json::Value(nullptr) : json::Value(text);
  json::Value patch = json::Object{{"status", json::Object{{field, std::move(value)}}}};
  client_.Patch(client::resources::kPodGroups, ns, name, client::PatchType::kMerge, patch, {},
                "status");
}

// A binding that was refused keeps its place until the pod says that it is not bound: an answer may
// have been lost and the write made, and a request sent again after that is told of a conflict. To
// forget it at once would give the place away twice.
void SchedulerLoop::Confirm(const sched::Decision& binding, const Status& why, SteadyTime until) {
  auto [ns, name] = SplitKey(binding.pod);
  auto later = [this, binding, why, until] {
    context_.executor.After(std::chrono::seconds(1), scope_.Wrap([this, binding, why, until] {
      Confirm(binding, why, until);
    }));
  };
  client_.Get(client::resources::kPods, ns, name,
              [this, binding, why, until, later](const Result<json::SharedValue>& pod) {
                // A server that starts may refuse for a while what it will allow.
                if (!pod.ok() && pod.status().code() != Code::kNotFound) return later();
                bool bound = pod.ok() && !json::GetString(**pod, {"spec", "nodeName"}).empty();
                if (!bound && context_.clock.Steady() < until) return later();
                if (!bound) return Fail(binding, why);
                // The watch tells the rest.
                Settle(binding);
              });
}

void SchedulerLoop::Fail(const sched::Decision& binding, const Status& why) {
  binding_[binding.pod].eviction.reset();
  Settle(binding);
  OnRefused(binding, why);
}

// The world moved on between the decision and the write.
void SchedulerLoop::OnRefused(const sched::Decision& decision, const Status& why) {
  ++stats_.refused;
  SWELL_LOG_WARNING("scheduler", "decision refused", {"pod", decision.pod},
                    {"error", why.ToString()});
  // What was decided since about another pod of that name stands.
  json::SharedValue pod = pods_.Get(decision.pod);
  if (pod && api::Uid(*pod) == decision.pod_uid) model_.Forget(decision.pod);
  ++refused_in_a_row_;
  RetryLater();
}

// Decides again, ever later while decisions are refused: 20 ms doubling to 5 s.
void SchedulerLoop::RetryLater() {
  const int shift = std::clamp(refused_in_a_row_ - 1, 0, 8);
  retry_timer_.Start(std::chrono::milliseconds(20LL << shift), [this] { Wake(); });
}

}  // namespace swell::controllers
