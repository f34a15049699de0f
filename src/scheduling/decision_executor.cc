#include "scheduling/decision_executor.h"

#include <cstdio>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"
#include "kube/api/rest/binder.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

using sched_inputs::SplitKey;

std::string DeviceList(const std::vector<int>& devices) {
  std::string out;
  for (int device : devices) {
    if (!out.empty()) out += ',';
    out += std::to_string(device);
  }
  return out;
}

// kube-apiserver works on a request for 34 s at most, whatever became of its sender.
constexpr Duration kLostWrite = std::chrono::seconds(40);
constexpr Duration kConfirmEvery = std::chrono::seconds(1);
constexpr Duration kWatchLag = std::chrono::seconds(1);

// Takes the store some 5 ms. It waits for the end of a turn before it takes the next batch.
constexpr size_t kBindingsAtOnce = 256;
// Enough to keep the store busy; their memory is soon used again.
constexpr size_t kBindingsSentMax = 8 * kBindingsAtOnce;

// `share`: in GPUs, of a pod that requests GPU memory; else 0.
json::Value BindingOf(const sched::Decision& decision, double share) {
  auto [ns, name] = SplitKey(decision.pod);
  json::Object metadata{{"name", name}, {"namespace", ns}, {"uid", decision.pod_uid}};
  json::Object annotations;
  if (!decision.gpu_devices.empty()) {
    annotations[api::keys::kGpuDevices] = DeviceList(decision.gpu_devices);
  }
  if (share > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", share);
    annotations[api::keys::kGpuShare] = text;
  }
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata", std::move(metadata)},
      {"target", json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", decision.node}}}};
}

// The server or its store went away while it worked: the write may have been made.
bool IsUnknown(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kInternal;
}

}  // namespace

DecisionExecutor::DecisionExecutor(controllers::Context context,
                                   sched::Model& model,
                                   DeviceClaims& devices,
                                   SchedulingEvents& events,
                                   PendingReporter& reporter,
                                   SchedulerLoopStats& stats,
                                   Hooks hooks)
    : context_(std::move(context)),
      model_(model),
      devices_(devices),
      events_(events),
      reporter_(reporter),
      stats_(stats),
      hooks_(std::move(hooks)),
      pods_(context_.informers.Of(client::resources::kPods)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      volume_waits_(context_),
      evictions_(context_,
                 client_,
                 {.done = [this] { OnEvicted(); },
                  .failed = [this](const sched::Decision& eviction,
                                   const Status& why) { OnEvictionFailed(eviction, why); }}),
      client_(context_.executor,
              context_.server,
              context_.user,
              "swell-scheduler",
              /*urgent=*/true) {}

void DecisionExecutor::Execute(const sched::CycleResult& result) {
  const std::map<std::string_view, bool> shrinks = Shrinks(result);
  SchedulingEvents::PodsOfBinds pods(result.decisions.size());
  std::set<std::pair<std::string, std::string>> waited_for;  // nodes, and whose pods wait
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    if (decision.type != sched::Decision::Type::kBind) SendBatch();
    switch (decision.type) {
      case sched::Decision::Type::kBind:
        pods[i] = pods_.Get(decision.pod);
        Bind(decision, pods[i]);
        break;
      case sched::Decision::Type::kNominate:
        Nominate(decision);
        waited_for.emplace(decision.node, SplitKey(decision.pod).first);
        break;
      case sched::Decision::Type::kEvict:
        Evict(decision, shrinks.at(decision.group));
        break;
    }
  }
  SendBatch();
  SendEvictions();
  for (const auto& [node, ns] : waited_for) evictions_.Hasten(node, ns);
  events_.OnCycle(result, pods);
  for (const std::string& pod : result.nominations_cleared) ClearNomination(pod);
}

// By group: whether it keeps its minimum without the pods that are evicted.
std::map<std::string_view, bool> DecisionExecutor::Shrinks(const sched::CycleResult& result) const {
  std::set<std::string_view> evicted;
  std::map<std::string_view, bool> shrinks;
  for (const sched::Decision& decision : result.decisions) {
    if (decision.type != sched::Decision::Type::kEvict) continue;
    evicted.insert(decision.pod);
    shrinks[decision.group] = false;
  }
  for (auto& [group, keeps] : shrinks) keeps = events_.KeepsMinimum(std::string(group), evicted);
  return shrinks;
}

const std::string* DecisionExecutor::OpenBindingUid(const std::string& key) const {
  const auto open = open_bindings_.find(key);
  return open == open_bindings_.end() ? nullptr : &open->second.pod_uid;
}

bool DecisionExecutor::OnPodDeleted(const std::string& key) {
  return volume_waits_.GiveUp(key, Status(Code::kNotFound, "the pod is gone")) ||
         open_bindings_.contains(key);
}

json::SharedValue DecisionExecutor::FindWaiting(const std::string& key) const {
  json::SharedValue pod = pods_.Get(key);
  if (!pod || api::IsDeleting(*pod) || open_bindings_.contains(key)) return nullptr;
  return api::IsBound(*pod) ? nullptr : pod;
}

void DecisionExecutor::Bind(const sched::Decision& decision, const json::SharedValue& pod) {
  open_bindings_[decision.pod] = {decision.pod_uid, std::nullopt};
  if (pod && api::HasVolumes(*pod)) {
    auto made = [this, decision, pod](const Status& status) {
      if (!status.ok()) return FailBinding(decision, status);
      GiveDevices(decision, pod);
      SendBatch();
    };
    if (volume_waits_.Begin(*pod, decision.node, made)) return;
  }
  GiveDevices(decision, pod);
}

// A pod is bound when its claims have their devices.
void DecisionExecutor::GiveDevices(const sched::Decision& decision, const json::SharedValue& pod) {
  if (!pod || !api::HasDeviceClaims(*pod)) return SendBinding(decision, pod);
  devices_.Give(pod, decision.node, decision.gpu_devices,
                scope_.Wrap([this, decision, pod](const Result<std::vector<int>>& gpus) {
                  if (!gpus.ok()) return FailBinding(decision, gpus.status());
                  sched::Decision given = decision;
                  given.gpu_devices = *gpus;
                  SendBinding(given, pod);
                  SendBatch();
                }));
}

double DecisionExecutor::ShareOf(const sched::Decision& decision,
                                 const json::SharedValue& pod) const {
  if (!pod || api::Annotation(*pod, api::keys::kGpuMemory).empty()) return 0;
  const auto view = model_.Pod(decision.pod);
  return view ? view->gpus : 0;
}

void DecisionExecutor::SendBinding(const sched::Decision& decision, const json::SharedValue& pod) {
  if (context_.server->capabilities().binder != nullptr) {
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

void DecisionExecutor::SendBatch() {
  if (to_bind_.empty() || batch_posted_ || bindings_sent_ >= kBindingsSentMax) return;
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
  bindings_sent_ += bindings.size();
  auto bound = [this, number, batch = batch.get()](size_t i, const api::RestResponse& response) {
    const bool fine = response.status < 300;
    batch->answers.emplace_back(
        i,
        fine ? Status::Ok() : client::StatusFromResponse(response.status, response.BodyString()));
    // Handles all answers of this turn at once, after their watch events.
    if (batch->answers.size() > 1) return;
    context_.executor.Post(scope_.Wrap([this, number] { OnBatchAnswers(number); }));
  };
  // Bindings are only queued for a server that takes batches of them.
  auto* const binder = context_.server->capabilities().binder;
  SWELL_CHECK(binder != nullptr);
  batch->call = binder->Bind(context_.user, std::move(bindings), bound);
  if (to_bind_.empty()) return;
  batch_posted_ = true;
  context_.executor.Post(scope_.Wrap([this] {
    batch_posted_ = false;
    SendBatch();
  }));
}

void DecisionExecutor::OnBatchAnswers(uint64_t number) {
  const auto found = batches_.find(number);
  if (found == batches_.end()) return;
  const std::shared_ptr<Batch> batch = found->second;
  for (const auto& [i, status] : std::exchange(batch->answers, {})) {
    --batch->open;
    --bindings_sent_;
    OnBound(batch->decisions[i], batch->pods[i], status);
    batch->pods[i] = nullptr;
  }
  if (batch->open == 0) batches_.erase(number);
  SendBatch();
}

void DecisionExecutor::OnBound(const sched::Decision& decision,
                               const json::SharedValue& pod,
                               const Status& status) {
  if (!status.ok()) {
    const Duration wait = IsUnknown(status.code()) ? kLostWrite : Duration::zero();
    return ConfirmBinding(decision, status, context_.clock.Steady() + wait);
  }
  refused_in_a_row_ = 0;
  ++stats_.binds;
  if (pod) events_.OnBound(decision, *pod);
  ResolveBinding(decision);
}

// Asks the pod itself. The server may have made a write that it refused: the first answer may have
// been lost, and a conflict is the answer to the request that was sent again. To forget the binding
// at once would give its place away twice.
void DecisionExecutor::ConfirmBinding(const sched::Decision& binding,
                                      const Status& why,
                                      SteadyTime until) {
  auto [ns, name] = SplitKey(binding.pod);
  auto later = [this, binding, why, until] {
    context_.executor.After(kConfirmEvery, scope_.Wrap([this, binding, why, until] {
      ConfirmBinding(binding, why, until);
    }));
  };
  client_.Get(client::resources::kPods, ns, name,
              [this, binding, why, until, later](const Result<json::SharedValue>& pod) {
                // A server that starts may refuse for a while what it will allow.
                if (!pod.ok() && pod.status().code() != Code::kNotFound) return later();
                bool bound = pod.ok() && api::IsBound(**pod);
                if (!bound && context_.clock.Steady() < until) return later();
                if (!bound) return FailBinding(binding, why);
                ResolveBinding(binding);  // the watch brings the rest
              });
}

// The outcome is known: the model may now be told of the pod's end and of the next pod of its name.
void DecisionExecutor::ResolveBinding(const sched::Decision& binding) {
  auto open = open_bindings_.extract(binding.pod);
  json::SharedValue pod = pods_.Get(binding.pod);
  if (!pod) {
    model_.RemovePod(binding.pod);
    return hooks_.changed();
  }
  if (api::Uid(*pod) != binding.pod_uid) return hooks_.on_pod(*pod);
  if (open.empty() || !open.mapped().eviction) return;
  Evict(open.mapped().eviction->decision, open.mapped().eviction->shrinks);
  SendEvictions();
}

void DecisionExecutor::FailBinding(const sched::Decision& binding, const Status& why) {
  open_bindings_[binding.pod].eviction.reset();
  ResolveBinding(binding);
  OnRefused(binding, why);
}

void DecisionExecutor::Nominate(const sched::Decision& decision) {
  json::SharedValue pod = pods_.Get(decision.pod);
  if (!pod || api::NominatedNode(*pod) == decision.node) return;
  reporter_.Nominate(decision.pod, decision.node);
}

void DecisionExecutor::ClearNomination(const std::string& key) {
  reporter_.Nominate(key, "");
  json::SharedValue pod = pods_.Get(key);
  if (!pod || api::NominatedNode(*pod).empty()) return;
  auto [ns, name] = SplitKey(key);
  json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(*pod)}}},
                                   {"status", json::Object{{"nominatedNodeName", nullptr}}}};
  client_.Patch(client::resources::kPods, ns, name, client::PatchType::kMerge, patch, {}, "status");
}

void DecisionExecutor::Evict(const sched::Decision& decision, bool shrinks) {
  if (volume_waits_.GiveUp(decision.pod, Status(Code::kConflict, decision.Reason()))) return;
  if (auto open = open_bindings_.find(decision.pod); open != open_bindings_.end()) {
    open->second.eviction = {decision, shrinks};
    return;
  }
  to_evict_.push_back(decision);
  events_.OnEviction(decision, shrinks);
}

void DecisionExecutor::SendEvictions() { evictions_.Take(std::exchange(to_evict_, {})); }

void DecisionExecutor::OnEvicted() {
  refused_in_a_row_ = 0;
  ++stats_.evictions;
}

// The model falls back to the last watch event. A pod is evicted only after it was bound, so until
// the watch shows that binding, to forget the eviction would give the pod's place away.
void DecisionExecutor::OnEvictionFailed(const sched::Decision& eviction, const Status& why) {
  json::SharedValue pod = pods_.Get(eviction.pod);
  bool behind = pod && api::Uid(*pod) == eviction.pod_uid && !api::IsBound(*pod);
  if (!behind) return OnRefused(eviction, why);
  context_.executor.After(kWatchLag,
                          scope_.Wrap([this, eviction, why] { OnEvictionFailed(eviction, why); }));
}

void DecisionExecutor::OnRefused(const sched::Decision& decision, const Status& why) {
  ++stats_.refused;
  SWELL_LOG_WARNING("scheduler", "decision refused", {"pod", decision.pod},
                    {"error", why.ToString()});
  // Decisions made since about another pod of that name stand.
  json::SharedValue pod = pods_.Get(decision.pod);
  if (pod && api::Uid(*pod) == decision.pod_uid) model_.Forget(decision.pod);
  ++refused_in_a_row_;
  hooks_.refused();
}

void DecisionExecutor::WriteGroupTimes(const sched::CycleResult& result) {
  // A group may become stale and recover within one cycle: only the last state counts.
  std::map<std::string_view, WallTime> stale;
  for (const sched::CycleResult::Stale& one : result.stale) stale[one.group] = one.since;
  for (const auto& [group, since] : stale) WriteGroupTime(std::string(group), "staleSince", since);
  const std::set<std::string_view> moved(result.moved.begin(), result.moved.end());
  const WallTime now = context_.clock.Now();
  for (std::string_view group : moved) WriteGroupTime(std::string(group), "movedAt", now);
}

// Time zero removes the field.
void DecisionExecutor::WriteGroupTime(const std::string& key,
                                      std::string_view field,
                                      WallTime time) {
  std::string text = time.unix_ns != 0 ? api::FormatTime(time) : "";
  json::SharedValue group = groups_.Get(key);
  if (!group || json::GetString(*group, {"status", field}) == text) return;
  auto [ns, name] = SplitKey(key);
  json::Value value = text.empty() ? json::Value(nullptr) : json::Value(text);
  json::Value patch = json::Object{{"status", json::Object{{field, std::move(value)}}}};
  client_.Patch(client::resources::kPodGroups, ns, name, client::PatchType::kMerge, patch, {},
                "status");
}

}  // namespace swell::scheduling
