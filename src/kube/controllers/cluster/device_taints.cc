#include "kube/controllers/cluster/device_taints.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/eviction.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr int64_t kLongest = 1'000'000'000;  // seconds

bool Executes(const json::Value& taint) {
  return json::GetString(taint, {"effect"}) == "NoExecute";
}

bool AnyExecutes(const json::Value& slice) {
  for (const json::Value& device : json::GetArray(slice, {"spec", "devices"})) {
    const json::Array& taints = json::GetArray(device, {"taints"});
    if (std::any_of(taints.begin(), taints.end(), Executes)) return true;
  }
  return false;
}

constexpr std::string_view kInProgress = "EvictionInProgress";
constexpr Duration kRulesDelay = std::chrono::seconds(1);

struct RuleReport {
  bool in_progress = false;
  std::string_view reason;
  std::string message;
};

std::string Pods(int64_t count) { return StrCat(count, count == 1 ? " pod" : " pods"); }

RuleReport ReportOf(std::string_view effect, int64_t victims, int64_t evicted) {
  if (effect == "NoExecute") {
    return {victims > 0, victims > 0 ? "PodsToEvict" : "NoPodsToEvict",
            StrCat(Pods(victims), " to evict; ", Pods(evicted),
                   " evicted since the controller started")};
  }
  if (effect == "None") {
    return {false, "EffectNone",
            StrCat("with the effect NoExecute, ", Pods(victims), " would be evicted")};
  }
  return {false, "EvictsNoPods", StrCat("the effect ", effect, " evicts no pods")};
}

// The rule's conditions with the report in them; nothing when they say it already.
std::optional<json::Array> ConditionsWith(const json::Value& rule,
                                          const RuleReport& report,
                                          WallTime now) {
  json::Array conditions = json::GetArray(rule, {"status", "conditions"});
  bool changed = api::SetCondition(conditions, kInProgress, report.in_progress ? "True" : "False",
                                   report.reason, report.message, now);
  const int64_t generation = json::GetInt(rule, {"metadata", "generation"});
  for (json::Value& condition : conditions) {
    if (json::GetString(condition, {"type"}) != kInProgress) continue;
    changed = changed || json::GetInt(condition, {"observedGeneration"}) != generation;
    json::Set(condition, {"observedGeneration"}, generation);
  }
  return changed ? std::optional(std::move(conditions)) : std::nullopt;
}

bool IsObserved(const json::Value& rule) {
  const auto condition = api::FindCondition(rule, kInProgress);
  return condition && json::GetInt(*condition->document, {"observedGeneration"}) ==
                          json::GetInt(rule, {"metadata", "generation"});
}

std::string TaintText(const json::Value& taint) {
  const std::string_view value = json::GetString(taint, {"value"});
  return StrCat(json::GetString(taint, {"key"}), value.empty() ? "" : "=", value, ":NoExecute");
}

// Until when the taint is tolerated; nullopt: for ever. The shortest time that applies counts.
std::optional<WallTime> BorneUntil(const json::Value& taint,
                                   const std::vector<api::DeviceToleration>& tolerations) {
  const WallTime since = api::ParseTime(json::GetString(taint, {"timeAdded"})).value_or(WallTime{});
  std::optional<int64_t> least;
  for (const api::DeviceToleration& one : tolerations) {
    // A toleration with an empty effect lets devices be allocated, but does not keep
    // kube-controller-manager from evicting.
    if (one.effect != "NoExecute" || !one.Tolerates(taint)) continue;
    if (!one.seconds) return std::nullopt;
    const int64_t seconds = std::clamp<int64_t>(*one.seconds, 0, kLongest);
    least = std::min(least.value_or(seconds), seconds);
  }
  return since + std::chrono::seconds(least.value_or(0));
}

}  // namespace

DeviceTaintEviction::DeviceTaintEviction(Context context)
    : context_(std::move(context)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claims_(context_.informers.Of(client::resources::kResourceClaims)),
      slices_(context_.informers.Of(client::resources::kResourceSlices)),
      rules_(context_.informers.Of(client::resources::kDeviceTaintRules)),
      queue_(MakeQueue(context_, "device-taints", 16, this, &DeviceTaintEviction::Reconcile)),
      rule_queue_(
          MakeQueue(context_, "device-taint-rules", 4, this, &DeviceTaintEviction::ReconcileRule)),
      events_(MakeRecorder(context_, "device-taint-eviction")),
      client_(
          context_.executor, context_.server, context_.user, "device-taint-eviction-controller") {
  Follow(
      slices_, [this](const json::SharedValue& it) { OnSlice(it); },
      [this](const json::SharedValue& it) { tainting_slices_.erase(std::string(api::Name(*it))); });
  Follow(
      rules_, [this](const json::SharedValue& it) { OnRule(it); },
      [this](const json::SharedValue& it) {
        tainting_rules_.erase(std::string(api::Name(*it)));
        evicted_.erase(std::string(api::Name(*it)));
      });
  Follow(
      pods_, [this](const json::SharedValue& it) { OnPod(*it); },
      [this](const json::SharedValue& it) {
        if (api::HasDeviceClaims(*it)) QueueRules();
      });
  Follow(claims_, [this](const json::SharedValue& it) { OnClaim(*it); });
}

void DeviceTaintEviction::OnSlice(const json::SharedValue& slice) {
  const std::string name(api::Name(*slice));
  if (!AnyExecutes(*slice)) {
    tainting_slices_.erase(name);
    return;
  }
  tainting_slices_.insert_or_assign(name, slice);
  QueueUsers();
}

void DeviceTaintEviction::OnRule(const json::SharedValue& rule) {
  const std::string name(api::Name(*rule));
  rule_queue_.Add(name);
  const json::Value* taint = json::Find(*rule, {"spec", "taint"});
  if (taint == nullptr || !Executes(*taint)) {
    tainting_rules_.erase(name);
    return;
  }
  tainting_rules_.insert_or_assign(name, rule);
  QueueUsers();
}

void DeviceTaintEviction::OnPod(const json::Value& pod) {
  if (Idle() || !api::IsBound(pod) || !api::HasDeviceClaims(pod)) return;
  queue_.Add(api::KeyOf(pod));
  QueueRules();
}

void DeviceTaintEviction::OnClaim(const json::Value& claim) {
  if (Idle()) return;
  for (const api::ClaimConsumer& user : api::ConsumersOf(claim)) {
    if (user.resource == "pods") queue_.Add(StrCat(api::Namespace(claim), "/", user.name));
  }
  QueueRules();
}

void DeviceTaintEviction::QueueRules() {
  for (const auto& [name, rule] : tainting_rules_) rule_queue_.AddAfter(name, kRulesDelay);
}

void DeviceTaintEviction::QueueUsers() {
  for (const auto& [key, pod] : pods_.objects()) OnPod(*pod);
}

// Only slices of the pool's latest generation count.
bool DeviceTaintEviction::IsCurrent(const json::Value& slice) const {
  const auto is_newer = [&](const json::Value& other) {
    return json::GetString(other, {"spec", "driver"}) ==
               json::GetString(slice, {"spec", "driver"}) &&
           json::GetString(other, {"spec", "pool", "name"}) ==
               json::GetString(slice, {"spec", "pool", "name"}) &&
           json::GetInt(other, {"spec", "pool", "generation"}) >
               json::GetInt(slice, {"spec", "pool", "generation"});
  };
  return std::none_of(slices_.objects().begin(), slices_.objects().end(),
                      [&](const auto& entry) { return is_newer(*entry.second); });
}

void DeviceTaintEviction::AddDevice(const api::AllocatedDevice& device,
                                    std::optional<Eviction>& out) const {
  const std::vector<api::DeviceToleration> tolerations =
      api::TolerationsOfDevices(*device.document);
  auto add = [&](const json::Value& taint, const std::string& rule) {
    const std::optional<WallTime> until = BorneUntil(taint, tolerations);
    if (until && (!out || *until < out->at)) out = Eviction{*until, TaintText(taint), rule};
  };
  for (const auto& [name, rule] : tainting_rules_) {
    if (api::RuleTaints(*rule, device.driver, device.pool, device.device)) {
      add(*json::Find(*rule, {"spec", "taint"}), name);
    }
  }
  for (const auto& [name, slice] : tainting_slices_) {
    if (json::GetString(*slice, {"spec", "driver"}) != device.driver ||
        json::GetString(*slice, {"spec", "pool", "name"}) != device.pool || !IsCurrent(*slice)) {
      continue;
    }
    for (const json::Value& offered : json::GetArray(*slice, {"spec", "devices"})) {
      if (json::GetString(offered, {"name"}) != device.device) continue;
      for (const json::Value& taint : json::GetArray(offered, {"taints"})) {
        if (Executes(taint)) add(taint, "");
      }
    }
  }
}

std::optional<DeviceTaintEviction::Eviction> DeviceTaintEviction::EvictionOf(
    const json::Value& pod) const {
  std::optional<Eviction> out;
  for (const api::PodClaim& wanted : api::DeviceClaimsOf(pod)) {
    if (wanted.claim.empty()) continue;
    const json::SharedValue claim = claims_.Get(StrCat(api::Namespace(pod), "/", wanted.claim));
    if (!claim || !api::IsReservedFor(*claim, api::Uid(pod))) continue;
    const std::string owner = api::PodOfClaim(*claim);
    if (!owner.empty() && owner != api::Uid(pod)) continue;
    for (const api::AllocatedDevice& device : api::AllocatedDevices(*claim)) {
      AddDevice(device, out);
    }
  }
  return out;
}

void DeviceTaintEviction::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue pod = pods_.Get(key);
  if (!pod || !api::IsBound(*pod) || api::HasEnded(*pod) || api::IsDeleting(*pod)) {
    return done(Duration::zero());
  }
  const std::optional<Eviction> eviction = EvictionOf(*pod);
  if (!eviction) return done(Duration::zero());
  const WallTime now = context_.clock.Now();
  if (eviction->at > now) return done(eviction->at - now);
  Evict(pod, *eviction, done);
}

void DeviceTaintEviction::Evict(const json::SharedValue& pod,
                                const Eviction& eviction,
                                const client::WorkQueue::Done& done) {
  events_.Record(*pod, "Normal", "DeviceTaintManagerEviction",
                 StrCat("Marking for deletion: a device of the pod has taint ", eviction.taint));
  EvictPod(client_, pod,
           DisruptionCondition("DeletionByDeviceTaintManager",
                               "Device Taint manager: deleting due to NoExecute taint",
                               api::FormatTime(context_.clock.Now())),
           [this, rule = eviction.rule, done](const Result<Duration>& outcome) {
             if (outcome.ok() && tainting_rules_.contains(rule)) ++evicted_[rule];
             done(outcome);
           });
}

int64_t DeviceTaintEviction::CountVictims(const json::Value& rule) const {
  const json::Value* spec_taint = json::Find(rule, {"spec", "taint"});
  if (spec_taint == nullptr) return 0;
  json::Value taint = *spec_taint;
  json::Set(taint, {"effect"}, "NoExecute");
  const auto goes = [&](const api::AllocatedDevice& device) {
    return api::RuleTaints(rule, device.driver, device.pool, device.device) &&
           BorneUntil(taint, api::TolerationsOfDevices(*device.document)).has_value();
  };
  std::set<std::string> pods;
  for (const auto& [key, claim] : claims_.objects()) {
    const std::vector<api::AllocatedDevice> devices = api::AllocatedDevices(*claim);
    if (std::none_of(devices.begin(), devices.end(), goes)) continue;
    for (const api::ClaimConsumer& user : api::ConsumersOf(*claim)) {
      if (user.resource != "pods") continue;
      const json::SharedValue pod = pods_.Get(StrCat(api::Namespace(*claim), "/", user.name));
      if (!pod || api::Uid(*pod) != user.uid || api::HasEnded(*pod)) continue;
      if (api::IsBound(*pod) && !api::IsDeleting(*pod)) pods.emplace(user.uid);
    }
  }
  return static_cast<int64_t>(pods.size());
}

// What others do to a rule without effect is not followed: it would be written again and again.
void DeviceTaintEviction::ReconcileRule(const std::string& name, client::WorkQueue::Done done) {
  const json::SharedValue rule = rules_.Get(name);
  if (!rule || api::IsDeleting(*rule)) return done(Duration::zero());
  const std::string_view effect = json::GetString(*rule, {"spec", "taint", "effect"});
  if (effect != "NoExecute" && IsObserved(*rule)) return done(Duration::zero());
  const auto evicted = evicted_.find(name);
  const RuleReport report =
      ReportOf(effect, CountVictims(*rule), evicted == evicted_.end() ? 0 : evicted->second);
  std::optional<json::Array> conditions = ConditionsWith(*rule, report, context_.clock.Now());
  if (!conditions) return done(Duration::zero());
  const json::Value patch =
      json::Object{{"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(*rule)}}},
                   {"status", json::Object{{"conditions", std::move(*conditions)}}}};
  client_.Patch(client::resources::kDeviceTaintRules, "", name, client::PatchType::kMerge, patch,
                Ends(std::move(done), {}, {Code::kNotFound, Code::kConflict}), "status");
}

}  // namespace swell::controllers
