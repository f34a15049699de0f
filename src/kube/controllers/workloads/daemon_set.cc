#include "kube/controllers/workloads/daemon_set.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/node.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "daemonset-controller";
constexpr size_t kSuffix = 5;

struct Tolerated {
  std::string_view key;
  std::string_view effect;
};
// A daemon's pod stays through the troubles of its node.
constexpr Tolerated kTolerated[] = {
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
};

json::Array TolerationsOf(const json::Value& pod_spec) {
  json::Array tolerations = json::GetArray(pod_spec, {"tolerations"});
  for (const Tolerated& one : kTolerated) {
    json::Value toleration =
        json::Object{{"key", one.key}, {"operator", "Exists"}, {"effect", one.effect}};
    if (std::find(tolerations.begin(), tolerations.end(), toleration) == tolerations.end()) {
      tolerations.push_back(std::move(toleration));
    }
  }
  return tolerations;
}

bool Tolerates(const json::Array& tolerations, const api::Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&taint](const json::Value& one) { return api::Tolerates(one, taint); });
}

// A term's expressions over labels; those over fields know the node's name alone.
bool MatchesTerm(const json::Value& term, const json::Value& node) {
  static const json::Value kNone = json::Object{};
  const json::Value* labels = json::Find(node, {"metadata", "labels"});
  const json::Value name = json::Object{{"metadata.name", api::Name(node)}};
  const std::pair<const char*, const json::Value*> lists[] = {
      {"matchExpressions", labels != nullptr ? labels : &kNone}, {"matchFields", &name}};
  bool any = false;
  for (const auto& [field, values] : lists) {
    const json::Array& expressions = json::GetArray(term, {field});
    if (expressions.empty()) continue;
    any = true;
    const json::Value as_selector = json::Object{{"matchExpressions", expressions}};
    const auto selector = api::LabelSelector::FromJson(&as_selector);
    if (!selector.ok() || !selector->Matches(*values)) return false;
  }
  return any;
}

bool WantsNode(const json::Value& pod_spec, const json::Value& node) {
  const std::string_view fixed = json::GetString(pod_spec, {"nodeName"});
  if (!fixed.empty() && fixed != api::Name(node)) return false;
  for (const auto& [key, value] : json::GetObject(pod_spec, {"nodeSelector"})) {
    const json::Value* label = json::Find(node, {"metadata", "labels", {key.data(), key.size()}});
    if (label == nullptr || *label != value) return false;
  }
  const json::Value* required = json::Find(
      pod_spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return true;
  const json::Array& terms = json::GetArray(*required, {"nodeSelectorTerms"});
  return std::any_of(terms.begin(), terms.end(),
                     [&node](const json::Value& term) { return MatchesTerm(term, node); });
}

enum class Fit { kNo, kStays, kRuns };

// Whether a pod of this spec runs on the node; kStays: a running one may continue.
Fit FitOf(const json::Value& pod_spec, const json::Array& tolerations, const json::Value& node) {
  if (!WantsNode(pod_spec, node)) return Fit::kNo;
  Fit fit = Fit::kRuns;
  for (const api::Taint& taint : api::TaintsOf(node)) {
    if (taint.effect == "PreferNoSchedule" || Tolerates(tolerations, taint)) continue;
    if (taint.effect == "NoExecute") return Fit::kNo;
    fit = Fit::kStays;
  }
  return fit;
}

// The node that the pod is on or meant for.
std::string NodeOf(const json::Value& pod) {
  const std::string_view bound = api::NodeName(pod);
  if (!bound.empty()) return std::string(bound);
  const json::Array& terms =
      json::GetArray(pod, {"spec", "affinity", "nodeAffinity",
                           "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  for (const json::Value& term : terms) {
    for (const json::Value& field : json::GetArray(term, {"matchFields"})) {
      const json::Array& values = json::GetArray(field, {"values"});
      if (values.size() == 1 && values[0].is_string()) {
        return std::string(json::View(values[0].get_string()));
      }
    }
  }
  return {};
}

// Replaces the terms' own fields: this node and no other.
void TieToNode(json::Value& pod, const std::string& node) {
  const json::Value only = json::Object{
      {"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value(node)}}};
  const json::Path terms_path = {"spec", "affinity", "nodeAffinity",
                                 "requiredDuringSchedulingIgnoredDuringExecution",
                                 "nodeSelectorTerms"};
  json::Array terms = json::GetArray(pod, terms_path);
  if (terms.empty()) terms.push_back(json::Object());
  for (json::Value& term : terms) json::Set(term, {"matchFields"}, json::Array{only});
  json::Set(pod, terms_path, std::move(terms));
}

std::string CreatedToken(std::string_view ns, std::string_view name) {
  return StrCat("+", ns, "/", name);
}
std::string DeletedToken(const json::Value& pod) { return StrCat("-", api::Uid(pod)); }

}  // namespace

struct DaemonSetController::Pass {
  std::string key;
  json::SharedValue set;
  std::shared_ptr<WriteBatch> writes;
  WallTime now;
  json::Array tolerations;
  std::map<std::string, std::vector<json::SharedValue>> pods;  // by node, the oldest first
  std::set<std::string> runs, stays;                           // nodes
  Revision update;
  Duration least{0}, requeue_after{0};
  std::set<std::string> going;  // uids of pods deleted in this pass

  bool IsUpdated(const json::Value& pod) const {
    return api::Label(pod, kRevisionLabel) == update.hash;
  }
};

DaemonSetController::DaemonSetController(Context context)
    : context_(context),
      sets_(context_.informers.Of(client::resources::kDaemonSets)),
      pods_(context_.informers.Of(client::resources::kPods)),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      queue_(MakeQueue(context_, "daemonsets", 16, this, &DaemonSetController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)),
      adoption_(pods_, client_),
      revisions_(context_, client_) {
  Follow(sets_, Queued(queue_),
         [this](const json::SharedValue& it) { expected_.Forget(api::KeyOf(*it)); });
  auto pod = OwnerQueued(queue_, "DaemonSet");
  pods_.AddHandlers({.on_add =
                         [this, pod](const json::SharedValue& it) {
                           expected_.Seen(CreatedToken(api::Namespace(*it), api::Name(*it)));
                           pod(it);
                         },
                     .on_update =
                         [this, pod](const json::SharedValue&, const json::SharedValue& it) {
                           if (api::IsDeleting(*it)) expected_.Seen(DeletedToken(*it));
                           pod(it);
                         },
                     .on_delete =
                         [this, pod](const json::SharedValue& it) {
                           expected_.Seen(CreatedToken(api::Namespace(*it), api::Name(*it)));
                           expected_.Seen(DeletedToken(*it));
                           pod(it);
                         }});
  auto every = [this](const json::SharedValue&) {
    for (const auto& [key, set] : sets_.objects()) queue_.Add(key);
  };
  nodes_.AddHandlers({.on_add = every,
                      .on_update =
                          [every](const json::SharedValue& before, const json::SharedValue& node) {
                            // Heartbeats change nothing here.
                            const bool same = json::GetObject(*before, {"metadata", "labels"}) ==
                                                  json::GetObject(*node, {"metadata", "labels"}) &&
                                              json::GetArray(*before, {"spec", "taints"}) ==
                                                  json::GetArray(*node, {"spec", "taints"});
                            if (!same) every(node);
                          },
                      .on_delete = every});
}

void DaemonSetController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue set = sets_.Get(key);
  if (!set || api::IsDeleting(*set)) return done(Duration::zero());
  const Duration wait = expected_.Remaining(key, context_.clock.Steady());
  if (wait > Duration::zero()) return done(wait);
  Pass pass;
  pass.key = key;
  pass.set = set;
  pass.now = context_.clock.Now();
  pass.writes = MakeBatch(std::move(done));
  Observe(pass);
  Manage(pass);
  if (json::GetString(*set, {"spec", "updateStrategy", "type"}) != "OnDelete") RollOver(pass);
  WriteStatus(pass);
  if (pass.requeue_after.count() > 0) pass.writes->RequeueAfter(pass.requeue_after);
  pass.writes->Close();
}

void DaemonSetController::Observe(Pass& pass) {
  const json::Value spec = json::GetObject(*pass.set, {"spec", "template", "spec"});
  pass.tolerations = TolerationsOf(spec);
  pass.least = std::chrono::seconds(json::GetInt(*pass.set, {"spec", "minReadySeconds"}));
  for (const auto& [name, node] : nodes_.objects()) {
    const Fit fit = FitOf(spec, pass.tolerations, *node);
    if (fit == Fit::kRuns) pass.runs.insert(name);
    if (fit != Fit::kNo) pass.stays.insert(name);
  }
  for (const json::SharedValue& pod : adoption_.OwnedBy(*pass.set)) {
    pass.pods[NodeOf(*pod)].push_back(pod);
  }
  for (auto& [node, pods] : pass.pods) {
    std::stable_sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
      return api::CreationTime(*a).unix_ns < api::CreationTime(*b).unix_ns;
    });
  }
  pass.update = revisions_.Ensure(*pass.set, *pass.writes);
}

// One pod on every node that should have one, none anywhere else.
void DaemonSetController::Manage(Pass& pass) {
  for (const auto& [node, pods] : pass.pods) {
    bool kept = false;
    for (const json::SharedValue& pod : pods) {
      if (api::IsDeleting(*pod)) {
        kept = true;  // its successor waits for the place
      } else if (HasEnded(*pod) || !pass.stays.contains(node) || kept) {
        DeletePod(pass, pod);
        kept = true;
      } else {
        kept = true;
      }
    }
  }
  for (const std::string& node : pass.runs) {
    if (!pass.pods.contains(node)) CreatePod(pass, node);
  }
}

// Old pods go as far as `maxUnavailable` allows, broken ones first.
void DaemonSetController::RollOver(Pass& pass) {
  const auto wanted = static_cast<int64_t>(pass.runs.size());
  int64_t room = ScaledValue(
      json::Find(*pass.set, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), wanted,
      true, 1);
  std::vector<json::SharedValue> old;
  for (const std::string& node : pass.runs) {
    const auto pods = pass.pods.find(node);
    const bool here = pods != pass.pods.end() && !api::IsDeleting(*pods->second.front()) &&
                      !pass.going.contains(std::string(api::Uid(*pods->second.front())));
    const bool available =
        here && IsAvailable(*pods->second.front(), pass.least, pass.now, pass.requeue_after);
    if (!available) --room;
    if (!here || pass.IsUpdated(*pods->second.front())) continue;
    if (available) {
      old.push_back(pods->second.front());
    } else {
      DeletePod(pass, pods->second.front());
    }
  }
  for (const json::SharedValue& pod : old) {
    if (room-- <= 0) return;
    DeletePod(pass, pod);
  }
}

void DaemonSetController::CreatePod(Pass& pass, const std::string& node) {
  const json::Value& set = *pass.set;
  const std::string base = StrCat(api::Name(set), "-");
  const std::string name = StrCat(base, context_.random.NameSuffix(kSuffix));
  json::Value pod = PodOf(set, name);
  json::Set(pod, {"metadata", "generateName"}, base);
  json::Set(pod, {"metadata", "labels", kRevisionLabel}, pass.update.hash);
  json::Set(pod, {"metadata", "labels", "pod-template-generation"},
            std::to_string(json::GetInt(set, {"metadata", "generation"})));
  json::Set(pod, {"spec", "tolerations"}, pass.tolerations);
  TieToNode(pod, node);
  const std::string token = CreatedToken(api::Namespace(set), name);
  expected_.Add(pass.key, token, context_.clock.Steady());
  client_.Create(client::resources::kPods, api::Namespace(set), pod,
                 pass.writes->Track(
                     [this, set = pass.set, name, token](const Result<json::SharedValue>& made) {
                       if (made.ok()) {
                         events_.Record(*set, "Normal", "SuccessfulCreate",
                                        StrCat("Created pod: ", name));
                         return;
                       }
                       expected_.Seen(token);
                       events_.Record(*set, "Warning", "FailedCreate",
                                      StrCat("Error creating: ", made.status().message()));
                     }));
}

void DaemonSetController::DeletePod(Pass& pass, const json::SharedValue& pod) {
  if (!pass.going.insert(std::string(api::Uid(*pod))).second) return;
  expected_.Add(pass.key, DeletedToken(*pod), context_.clock.Steady());
  client_.Delete(
      client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
      {.precondition_uid = std::string(api::Uid(*pod))},
      pass.writes->Track([this, set = pass.set, pod](const Result<json::SharedValue>& gone) {
        if (gone.ok()) {
          events_.Record(*set, "Normal", "SuccessfulDelete",
                         StrCat("Deleted pod: ", api::Name(*pod)));
        } else {
          expected_.Seen(DeletedToken(*pod));
        }
      }));
}

void DaemonSetController::WriteStatus(Pass& pass) {
  int64_t current = 0;
  int64_t ready = 0;
  int64_t available = 0;
  int64_t updated = 0;
  int64_t misplaced = 0;
  for (const auto& [node, pods] : pass.pods) {
    if (!pass.runs.contains(node)) {
      misplaced += pods.empty() || pass.stays.contains(node) ? 0 : 1;
      continue;
    }
    const json::Value& pod = *pods.front();
    ++current;
    if (api::IsDeleting(pod)) continue;
    ready += IsReady(pod) ? 1 : 0;
    available += IsAvailable(pod, pass.least, pass.now, pass.requeue_after) ? 1 : 0;
    updated += pass.IsUpdated(pod) ? 1 : 0;
  }
  const auto desired = static_cast<int64_t>(pass.runs.size());
  json::Value status =
      json::Object{{"currentNumberScheduled", current},
                   {"numberMisscheduled", misplaced},
                   {"desiredNumberScheduled", desired},
                   {"numberReady", ready},
                   {"observedGeneration", json::GetInt(*pass.set, {"metadata", "generation"})}};
  if (updated > 0) json::Set(status, {"updatedNumberScheduled"}, updated);
  if (available > 0) json::Set(status, {"numberAvailable"}, available);
  if (desired > available) json::Set(status, {"numberUnavailable"}, desired - available);
  revisions_.Trim(*pass.set, {pass.update.name}, *pass.writes);
  const json::Value* known = json::Find(*pass.set, {"status"});
  if (known != nullptr && json::Equal(*known, status)) return;
  json::Value updated_set = *pass.set;
  json::Set(updated_set, {"status"}, std::move(status));
  client_.Update(client::resources::kDaemonSets, updated_set, pass.writes->Track(), "status");
}

}  // namespace swell::controllers
