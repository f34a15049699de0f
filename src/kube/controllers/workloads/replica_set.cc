#include "kube/controllers/workloads/replica_set.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::controllers {
namespace {

constexpr int64_t kBurst = 500;  // creations or deletions of one pass
constexpr size_t kSuffix = 5;
constexpr size_t kMaxNameBase = 63 - kSuffix;

std::string CreatedToken(std::string_view ns, std::string_view name) {
  return StrCat("+", ns, "/", name);
}
std::string DeletedToken(const json::Value& pod) { return StrCat("-", api::Uid(pod)); }

// A ReplicationController's selector is a plain map, and may be left out.
json::Value WithSelector(const json::Value& set, const std::string& kind) {
  json::Value shown = set;
  if (kind == "ReplicationController") {
    json::Object labels = json::GetObject(set, {"spec", "selector"});
    if (labels.empty()) labels = json::GetObject(set, {"spec", "template", "metadata", "labels"});
    json::Set(shown, {"spec", "selector"}, json::Object{{"matchLabels", std::move(labels)}});
  }
  return shown;
}

bool HasLabels(const json::Value& pod, const json::Object& labels) {
  return std::all_of(labels.begin(), labels.end(), [&pod](const auto& label) {
    const json::Value* own =
        json::Find(pod, {"metadata", "labels", {label.key().data(), label.key().size()}});
    return own != nullptr && *own == label.value();
  });
}

}  // namespace

ReplicaKind ReplicaSets() {
  return {client::resources::kReplicaSets, "ReplicaSet", "replicaset-controller"};
}
ReplicaKind ReplicationControllers() {
  return {client::resources::kReplicationControllers, "ReplicationController",
          "replication-controller"};
}

// One look at one set.
struct ReplicaSetController::Pass {
  std::string key;
  json::SharedValue set;
  std::vector<json::SharedValue> pods;  // active ones
  std::shared_ptr<WriteBatch> writes;
  WallTime now;
  int64_t wanted = 0;
  int64_t to_create = 0;
  std::string failure_reason, failure;  // of creating or deleting pods
  Duration requeue_after{0};
};

ReplicaSetController::ReplicaSetController(Context context, ReplicaKind kind)
    : context_(context),
      kind_(std::move(kind)),
      sets_(context_.informers.Of(kind_.resource)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(MakeRecorder(context_, kind_.component)),
      queue_(
          MakeQueue(context_, kind_.resource.plural, 64, this, &ReplicaSetController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, kind_.component),
      adoption_(pods_, client_) {
  auto add = [this](const json::SharedValue& set) { queue_.Add(api::KeyOf(*set)); };
  Follow(sets_, add, [this, add](const json::SharedValue& set) {
    expected_.Forget(api::KeyOf(*set));
    add(set);
  });
  pods_.AddHandlers({.on_add =
                         [this](const json::SharedValue& pod) {
                           expected_.Seen(CreatedToken(api::Namespace(*pod), api::Name(*pod)));
                           OnPod(*pod);
                         },
                     .on_update =
                         [this](const json::SharedValue& before, const json::SharedValue& pod) {
                           if (api::IsDeleting(*pod)) expected_.Seen(DeletedToken(*pod));
                           if (api::ControllerOf(*before) != std::nullopt) OnPod(*before);
                           OnPod(*pod);
                         },
                     .on_delete =
                         [this](const json::SharedValue& pod) {
                           expected_.Seen(CreatedToken(api::Namespace(*pod), api::Name(*pod)));
                           expected_.Seen(DeletedToken(*pod));
                           OnPod(*pod);
                         }});
}

void ReplicaSetController::OnPod(const json::Value& pod) {
  if (const auto owner = api::ControllerOf(pod)) {
    if (owner->kind == kind_.kind) queue_.Add(StrCat(api::Namespace(pod), "/", owner->name));
    return;
  }
  if (json::GetObject(pod, {"metadata", "labels"}).empty()) return;
  // Somebody may want to adopt it.
  const std::string prefix = StrCat(api::Namespace(pod), "/");
  for (auto it = sets_.objects().lower_bound(prefix);
       it != sets_.objects().end() && it->first.starts_with(prefix); ++it) {
    queue_.Add(it->first);
  }
}

std::vector<json::SharedValue> ReplicaSetController::PodsOf(const json::Value& set) {
  std::vector<json::SharedValue> pods = adoption_.OwnedBy(WithSelector(set, kind_.kind));
  std::erase_if(pods, [](const json::SharedValue& pod) { return !IsActive(*pod); });
  return pods;
}

void ReplicaSetController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue set = sets_.Get(key);
  if (!set) return done(Duration::zero());
  const Duration wait = expected_.Remaining(key, context_.clock.Steady());
  if (wait > Duration::zero()) return done(wait);
  auto pass = std::make_shared<Pass>();
  pass->key = key;
  pass->set = set;
  pass->pods = PodsOf(*set);
  pass->now = context_.clock.Now();
  pass->writes = MakeBatch(std::move(done));
  pass->wanted = json::GetInt(*set, {"spec", "replicas"}, 1);
  const int64_t missing = pass->wanted - static_cast<int64_t>(pass->pods.size());
  if (missing > 0 && !api::IsDeleting(*set)) {
    pass->to_create = std::min(missing, kBurst);
    CreatePods(pass, 1);
    return;
  }
  if (missing < 0 && !api::IsDeleting(*set)) DeletePods(*pass, std::min(-missing, kBurst));
  WriteStatus(*pass);
}

// Every try has a name of its own. With it in the text each failure would be another one: a change
// of the status, which is looked at without waiting, and an event.
std::string Nameless(std::string text, const std::string& name, const std::string& base) {
  const size_t at = text.find(name);
  if (at != std::string::npos) text.replace(at, name.size(), base);
  return text;
}

void ReplicaSetController::CreatePods(const std::shared_ptr<Pass>& pass, int64_t batch) {
  const int64_t count = std::min(batch, pass->to_create);
  if (count <= 0 || !pass->failure.empty()) return WriteStatus(*pass);
  pass->to_create -= count;
  const json::Value& set = *pass->set;
  const std::string ns(api::Namespace(set));
  std::string base = StrCat(api::Name(set), "-");
  if (base.size() > kMaxNameBase) base.resize(kMaxNameBase);
  auto pending = std::make_shared<int64_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = StrCat(base, context_.random.NameSuffix(kSuffix));
    json::Value pod = PodOf(set, name);
    json::Set(pod, {"metadata", "generateName"}, base);
    expected_.Add(pass->key, CreatedToken(ns, name), context_.clock.Steady());
    client_.Create(client::resources::kPods, ns, pod,
                   pass->writes->Track([this, pass, pending, ns, name, base,
                                        batch](const Result<json::SharedValue>& made) {
                     if (made.ok()) {
                       events_.Record(*pass->set, "Normal", "SuccessfulCreate",
                                      StrCat("Created pod: ", name));
                     } else {
                       expected_.Seen(CreatedToken(ns, name));
                       pass->failure_reason = "FailedCreate";
                       pass->failure = Nameless(made.status().message(), name, base);
                       events_.Record(*pass->set, "Warning", "FailedCreate",
                                      StrCat("Error creating: ", pass->failure));
                     }
                     if (--*pending == 0) CreatePods(pass, batch * 2);
                   }));
  }
}

void ReplicaSetController::DeletePods(Pass& pass, int64_t count) {
  const auto ordered = InOrderOfRemoval(pass.pods, pass.now);
  for (int64_t i = 0; i < count; ++i) {
    const json::SharedValue& pod = ordered[static_cast<size_t>(i)];
    expected_.Add(pass.key, DeletedToken(*pod), context_.clock.Steady());
    client_.Delete(
        client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
        {.precondition_uid = std::string(api::Uid(*pod))},
        pass.writes->Track([this, pod, set = pass.set](const Result<json::SharedValue>& gone) {
          if (gone.ok()) {
            events_.Record(*set, "Normal", "SuccessfulDelete",
                           StrCat("Deleted pod: ", api::Name(*pod)));
          } else {
            expected_.Seen(DeletedToken(*pod));
          }
        }));
  }
}

void ReplicaSetController::WriteStatus(Pass& pass) {
  const json::Value& set = *pass.set;
  const auto least = std::chrono::seconds(json::GetInt(set, {"spec", "minReadySeconds"}));
  const json::Object& labels = json::GetObject(set, {"spec", "template", "metadata", "labels"});
  int64_t ready = 0;
  int64_t available = 0;
  int64_t labeled = 0;
  for (const json::SharedValue& pod : pass.pods) {
    ready += IsReady(*pod) ? 1 : 0;
    available += IsAvailable(*pod, least, pass.now, pass.requeue_after) ? 1 : 0;
    labeled += HasLabels(*pod, labels) ? 1 : 0;
  }
  const json::Value* known = json::Find(set, {"status"});
  json::Value status = known != nullptr && known->is_object() ? *known : json::Object{};
  json::Set(status, {"replicas"}, static_cast<int64_t>(pass.pods.size()));
  for (const auto& [field, value] : {std::pair("fullyLabeledReplicas", labeled),
                                     {"readyReplicas", ready},
                                     {"availableReplicas", available}}) {
    if (value > 0) {
      json::Set(status, {field}, value);
    } else {
      json::Remove(status, {field});
    }
  }
  json::Set(status, {"observedGeneration"}, json::GetInt(set, {"metadata", "generation"}));
  if (!pass.failure.empty()) {
    SetStatusCondition(status, "ReplicaFailure", true, pass.failure_reason, pass.failure, pass.now);
    pass.writes->Fail(Status(Code::kForbidden, pass.failure));
  } else {
    RemoveStatusCondition(status, "ReplicaFailure");
  }
  if (pass.requeue_after.count() > 0) pass.writes->RequeueAfter(pass.requeue_after);
  if (known == nullptr || !json::Equal(*known, status)) {
    json::Value updated = set;
    json::Set(updated, {"status"}, std::move(status));
    client_.Update(kind_.resource, updated, pass.writes->Track(), "status");
  }
  pass.writes->Close();
}

}  // namespace swell::controllers
