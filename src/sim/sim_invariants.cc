#include "sim/sim_invariants.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/lease_term.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/pod_facts.h"
#include "sim/foreign_scheduler.h"

namespace swell::sim {
namespace {

constexpr std::string_view kJobKinds[] = {"pytorchjobs.kubeflow.org", "trainingjobs.swell.dev",
                                          "jobs.batch"};
constexpr std::string_view kEnds[] = {"Succeeded", "Failed", "Complete"};

constexpr std::string_view kUsers = "users";

std::string KeyOf(const store::Entry& entry) { return StrCat(entry.key.ns, "/", entry.key.name); }

std::string EndOf(const json::Value& job) {
  for (std::string_view end : kEnds) {
    if (api::ConditionIsTrue(job, end)) return std::string(end);
  }
  return "";
}

}  // namespace

int GpusOf(const json::Value& pod) {
  int64_t gpus = 0;
  for (const json::Value& container : api::Containers(pod)) {
    std::string_view text = json::GetString(container, {"resources", "limits", "nvidia.com/gpu"});
    gpus += ParseInt(text).value_or(0);
  }
  return static_cast<int>(gpus);
}

Invariants::Invariants(SimExecutor& executor,
                       SimHistory& history,
                       std::map<std::string, int> gpus_of_nodes)
    : executor_(executor), history_(history), gpus_of_nodes_(std::move(gpus_of_nodes)) {
  history_.OnChange([this](const store::Change& change) { OnChange(change); });
  history_.OnAnswer([this](uint64_t number, const api::RestRequest& request, int http_status) {
    const bool made = http_status < 300;
    if (request.path.ends_with("/binding")) OnBinding(number, request, made);
    if (made) OnPodWrite(request);
  });
}

void Invariants::OnChange(const store::Change& change) {
  const std::string& resource = change.entry->key.resource;
  if (resource == "pods") return OnPod(change);
  if (resource == "podgroups.swell.dev") return OnGroup(change);
  if (resource == "leases.coordination.k8s.io") return OnLease(change);
  if (std::find(std::begin(kJobKinds), std::end(kJobKinds), resource) != std::end(kJobKinds)) {
    OnJob(change);
  }
}

void Invariants::OnPod(const store::Change& change) {
  const std::string key = KeyOf(*change.entry);
  if (change.type == store::EventType::kDeleted) {
    pods_.erase(key);
    return Deleted(key);
  }
  json::SharedValue object = change.entry->Parsed();
  const std::string_view group = api::Label(*object, api::keys::kPodGroup);
  Pod& pod = pods_[key];
  const Pod before = pod.uid == api::Uid(*object) ? pod : Pod();
  pod = Pod{.uid = std::string(api::Uid(*object)),
            .ns = change.entry->key.ns,
            .node = std::string(api::NodeName(*object)),
            .group = group.empty() ? key : StrCat(change.entry->key.ns, "/", group),
            .preempted_by = std::string(api::Annotation(*object, api::keys::kPreemptedBy)),
            .bound_at = before.node.empty() ? change.entry->version : before.bound_at,
            .bound_since = before.node.empty() ? executor_.Steady() : before.bound_since,
            .gpus = GpusOf(*object),
            .ended = api::HasEnded(*object),
            .deleting = api::IsDeleting(*object),
            .foreign = api::SchedulerName(*object) == ForeignScheduler::kName};
  for (std::string_view device : Split(api::Annotation(*object, api::keys::kGpuDevices), ',')) {
    if (auto index = ParseInt(device)) pod.devices.insert(static_cast<int>(*index));
  }
  if (before.ended && !pod.ended) history_.Violation(StrCat("pod ", key, " lives again"));
  if (!before.node.empty() && before.node != pod.node) {
    history_.Violation(StrCat("pod ", key, " went from ", before.node, " to ", pod.node));
  }
  if (pod.preempted_by.empty()) pod.preempted_by = before.preempted_by;  // with its group
  if (!pod.preempted_by.empty() && before.preempted_by.empty()) Evicted(key, pod);
  if (pod.node.empty()) return;
  if (before.node.empty()) {
    ++bindings_;
    Started(key, pod.group);
    CheckRoom(key, pod);
  }
  CheckNode(pod.node);
  CheckLimit(pod.ns);
}

void Invariants::Evicted(const std::string& key, const Pod& pod) {
  ++evictions_;
  if (pod.node.empty()) {
    history_.Violation(StrCat("pod ", key, " has no place, and is evicted for ", pod.preempted_by));
  }
  if (pod.foreign) history_.Violation(StrCat("pod ", key, " of another scheduler is evicted"));
  if (!ResolvedRecently(pod.preempted_by)) {
    open_.push_back({key, pod.uid, pod.preempted_by, executor_.Steady()});
  }
}

// Members of a gang are marked in its status (scheduling/group_marks.h).
void Invariants::OnMarks(const std::string& group, const json::Value& object) {
  for (const api::EvictionRecord& record : api::EvictionRecords(object)) {
    if (record.by.empty()) continue;  // it is only below its minimum
    for (const std::string_view uid : record.pods) {
      for (auto& [key, pod] : pods_) {
        if (pod.group != group || pod.uid != uid) continue;
        if (!pod.preempted_by.empty()) continue;
        pod.preempted_by = record.by;
        Evicted(key, pod);
      }
    }
  }
}

void Invariants::OnGroup(const store::Change& change) {
  const std::string key = KeyOf(*change.entry);
  if (change.type == store::EventType::kDeleted) {
    groups_.erase(key);
    return Deleted(key);
  }
  json::SharedValue group = change.entry->Parsed();
  groups_[key] = api::MinMembers(*group);
  OnMarks(key, *group);
}

void Invariants::OnJob(const store::Change& change) {
  const std::string key = StrCat(change.entry->key.resource, " ", KeyOf(*change.entry));
  if (change.type == store::EventType::kDeleted) {
    jobs_.erase(key);
    return;
  }
  json::SharedValue job = change.entry->Parsed();
  const std::string now = StrCat(api::Uid(*job), " ", EndOf(*job));
  std::string& before = jobs_[key];
  const bool same = before.starts_with(api::Uid(*job)) && !before.empty();
  if (same && !before.ends_with(' ') && before != now) {
    history_.Violation(StrCat(key, " was over (", before, "), and is ", now));
  }
  before = now;
}

void Invariants::OnLease(const store::Change& change) {
  const std::string term = api::LeaseTerm::Of(*change.entry->Parsed()).ToString();
  if (!terms_.emplace(term, change.entry->version).second) return;
  leases_[KeyOf(*change.entry)].emplace_back(change.entry->version, term);
}

std::string Invariants::TermAt(const api::LeaseTerm& lease, uint64_t version) const {
  std::string term;
  const auto terms = leases_.find(StrCat(lease.ns, "/", lease.name));
  if (terms == leases_.end()) return term;
  for (const auto& [began, one] : terms->second) {
    if (began <= version) term = one;
  }
  return term;
}

// Users mean whatever pod has the name.
void Invariants::OnPodWrite(const api::RestRequest& request) {
  if (request.path.find("/pods/") == std::string::npos || request.user_agent == kUsers) return;
  if (request.method != "PATCH" && request.method != "PUT" && request.method != "DELETE") return;
  const auto body = json::Parse(request.body);
  const bool says = body.ok() && (!json::GetString(*body, {"preconditions", "uid"}).empty() ||
                                  !json::GetString(*body, {"metadata", "uid"}).empty());
  if (says) return;
  history_.Violation(StrCat(request.user_agent, " asks for ", request.method, " ", request.path,
                            ", and not which pod: ", request.body));
}

// It is answered: what was true of its pod then has been heard here.
void Invariants::OnBinding(uint64_t number, const api::RestRequest& request, bool made) {
  if (request.user.name == ForeignScheduler::kName) return;
  const auto query = api::ParseQuery(request.query);
  const auto binding = json::Parse(request.body);
  if (!query.ok() || !binding.ok()) return history_.Violation("a binding cannot be read");
  const std::map<std::string, std::string> asked(query->begin(), query->end());
  const auto term = asked.find(std::string(api::kLeaseTermParameter));
  if (term == asked.end() || !terms_.contains(term->second)) {
    return history_.Violation(StrCat("a binding in no term: ", request.query));
  }
  const std::string key = StrCat(api::Namespace(*binding), "/", api::Name(*binding));
  const std::string uid(api::Uid(*binding));
  uint64_t& last = last_asked_[StrCat(term->second, " ", uid)];
  if (number < last) {
    history_.Violation(
        StrCat("pod ", key, " was to be bound again before an earlier binding came"));
  }
  last = std::max(last, number);
  const auto pod = pods_.find(key);
  if (pod == pods_.end() || pod->second.node.empty() || pod->second.uid != uid) return;
  const auto asked_in = api::LeaseTerm::Parse(term->second);
  if (made && asked_in && TermAt(*asked_in, pod->second.bound_at) != term->second) {
    history_.Violation(StrCat("pod ", key, " was bound as asked in a term that was over"));
  }
  const uint64_t began = terms_[term->second];
  if (pod->second.bound_at >= began) return;
  history_.Violation(StrCat("pod ", key, " is to be bound by a leader since ", began,
                            ", and was bound in ", pod->second.bound_at));
}

// A pod that ended, or is not bound, holds nothing. What both schedulers took the node sorts out.
void Invariants::CheckNode(const std::string& node) {
  auto capacity = gpus_of_nodes_.find(node);
  int used = 0;
  std::map<int, std::string> owners;
  for (const auto& [key, pod] : pods_) {
    if (pod.node != node || pod.ended || pod.foreign) continue;
    used += pod.gpus;
    for (int device : pod.devices) {
      auto [it, first] = owners.emplace(device, key);
      if (first) continue;
      history_.Violation(
          StrCat("device ", device, " of ", node, " is promised to ", it->second, " and ", key));
    }
  }
  if (capacity != gpus_of_nodes_.end() && used > capacity->second) {
    history_.Violation(StrCat("pods on ", node, " hold ", used, " of ", capacity->second, " GPUs"));
  }
}

void Invariants::CheckRoom(const std::string& key, const Pod& pod) {
  if (pod.foreign || pod.gpus == 0 || CalmFor() <= kHalfPlacedMax) return;
  int used = 0;
  for (const auto& [other, one] : pods_) {
    const bool known = other == key || executor_.Steady() - one.bound_since > kKnownAfter;
    if (known && one.node == pod.node && !one.ended) used += one.gpus;
  }
  const int has = gpus_of_nodes_.at(pod.node);
  if (used <= has) return;
  history_.Violation(StrCat("pod ", key, " went to ", pod.node, ", where ", used, " of ", has,
                            " GPUs are taken with it"));
}

void Invariants::CheckLimit(const std::string& ns) {
  auto limit = limits_.find(ns);
  if (limit == limits_.end()) return;
  int used = 0;
  for (const auto& [key, pod] : pods_) {
    if (pod.ns == ns && !pod.node.empty() && !pod.ended) used += pod.gpus;
  }
  if (used > limit->second) {
    history_.Violation(StrCat(ns, " holds ", used, " GPUs; its limit is ", limit->second));
  }
}

// An eviction may wait until it is known that its victim was bound, and who needed the place may
// have found another meanwhile, or be gone.
bool Invariants::ResolvedRecently(const std::string& beneficiary) const {
  auto of = pods_.find(beneficiary);
  for (const std::string& who : {beneficiary, of == pods_.end() ? beneficiary : of->second.group}) {
    auto at = resolved_at_.find(who);
    if (at != resolved_at_.end() && executor_.Steady() - at->second < kDecidedBefore) return true;
  }
  return false;
}

void Invariants::Started(const std::string& pod, const std::string& group) {
  resolved_at_[pod] = resolved_at_[group] = executor_.Steady();
  std::erase_if(open_, [&](const Eviction& eviction) {
    auto of = pods_.find(eviction.beneficiary);
    const std::string& wanted = of == pods_.end() ? eviction.beneficiary : of->second.group;
    return eviction.beneficiary == pod || wanted == group;
  });
}

void Invariants::Deleted(const std::string& key) {
  resolved_at_[key] = executor_.Steady();
  std::erase_if(open_, [&](const Eviction& eviction) { return eviction.beneficiary == key; });
}

void Invariants::Check() {
  std::map<std::string, int64_t> bound, live;
  for (const auto& [key, pod] : pods_) {
    if (pod.node.empty()) continue;
    ++bound[pod.group];
    if (!pod.ended) ++live[pod.group];
  }
  for (const auto& [key, wanted] : groups_) {
    const int64_t has = bound[key];
    if (live[key] == 0 || has >= wanted) {
      half_.erase(key);
      continue;
    }
    const SteadyTime since =
        std::max(half_.emplace(key, executor_.Steady()).first->second, disturbed_);
    if (executor_.Steady() - since <= kHalfPlacedMax) continue;
    history_.Violation(StrCat("gang ", key, " has ", has, " of ", wanted, " members for ",
                              (executor_.Steady() - since) / std::chrono::seconds(1), " s"));
    half_[key] = executor_.Steady();
  }
  std::erase_if(half_, [this](const auto& one) { return !groups_.contains(one.first); });
  CheckVictims();
}

void Invariants::CheckVictims() {
  for (Eviction& eviction : open_) {
    const auto victim = pods_.find(eviction.victim);
    if (victim == pods_.end() || victim->second.uid != eviction.uid) continue;
    if (victim->second.ended || victim->second.deleting) continue;
    const SteadyTime since = std::max(eviction.since, disturbed_);
    if (executor_.Steady() - since <= kMarkedMax) continue;
    history_.Violation(StrCat("pod ", eviction.victim, " is to make room for ",
                              eviction.beneficiary, ", which waits, and is not asked to go"));
    eviction.since = executor_.Steady();
  }
}

void Invariants::CheckEnd() {
  for (const Eviction& eviction : open_) {
    history_.Violation(StrCat(eviction.victim, " was evicted for ", eviction.beneficiary,
                              ", which never started"));
  }
  for (const std::string& job : OpenJobs()) history_.Violation(StrCat(job, " has not ended"));
}

std::vector<std::string> Invariants::OpenJobs() const {
  std::vector<std::string> open;
  for (const auto& [key, state] : jobs_) {
    if (state.ends_with(' ')) open.push_back(key);
  }
  return open;
}

bool Invariants::Succeeded(const std::string& job) const {
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return false;
  return known->second.ends_with(" Succeeded") || known->second.ends_with(" Complete");
}

}  // namespace swell::sim
