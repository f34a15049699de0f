#include "kube/controllers/context.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

// Pods that nobody controls, by the job whose pods carry such a label.
std::string OrphanOfJob(const json::Value& pod) {
  return api::ControllerOf(pod) ? "" : std::string(JobUidLabel(pod));
}

void IndexPods(client::Informer& pods) {
  pods.AddIndex("node", [](const json::Value& pod) { return std::string(api::NodeName(pod)); });
  pods.AddIndex("group", [](const json::Value& pod) {
    std::string_view group = api::Label(pod, api::keys::kPodGroup);
    return group.empty() ? "" : StrCat(api::Namespace(pod), "/", group);
  });
  pods.AddIndex("orphans-of-job", OrphanOfJob);
}

void IndexJobs(client::Informer& jobs) {
  jobs.AddIndex("uid", [](const json::Value& job) { return std::string(api::Uid(job)); });
  jobs.AddIndex("manual-selector", [](const json::Value& job) {
    const bool manual = json::GetBool(job, {"spec", "manualSelector"});
    return manual ? std::string(api::Namespace(job)) : "";
  });
}

void IndexVolumes(client::Informer& volumes) { volumes.AddIndex("claim", api::ClaimKeyOf); }

// By the controller's uid, and by namespace those that no controller owns.
void IndexByOwner(client::Informer& objects) {
  objects.AddIndex("owner", [](const json::Value& object) {
    auto owner = api::ControllerOf(object);
    return owner ? owner->uid : "";
  });
  objects.AddIndex("orphans", [](const json::Value& object) {
    return api::ControllerOf(object) ? "" : std::string(api::Namespace(object));
  });
}

}  // namespace

Informers::Informers(Executor& executor,
                     std::shared_ptr<api::RestHandler> server,
                     api::UserInfo user,
                     uint64_t seed)
    : executor_(executor), server_(std::move(server)), user_(std::move(user)), seed_(seed) {}

void Informers::UseVersion(const std::string& group, const std::string& version) {
  versions_[group] = version;
}

client::Informer& Informers::Of(const client::Resource& resource) {
  auto& informer = informers_[resource];
  if (!informer) {
    client::Resource served = resource;
    if (auto it = versions_.find(resource.group); it != versions_.end())
      served.version = it->second;
    informer = std::make_unique<client::Informer>(executor_, server_, user_, std::move(served),
                                                  client::InformerOptions{}, ++seed_);
    if (resource.plural == "pods") IndexPods(*informer);
    if (resource.group == "batch" && resource.plural == "jobs") IndexJobs(*informer);
    if (resource.plural == "persistentvolumes") IndexVolumes(*informer);
    if (resource.namespaced) IndexByOwner(*informer);
    unstarted_.push_back(informer.get());
  }
  return *informer;
}

client::Informer* Informers::Find(const client::Resource& resource) const {
  auto it = informers_.find(resource);
  return it == informers_.end() ? nullptr : it->second.get();
}

std::vector<client::Resource> Informers::resources() const {
  std::vector<client::Resource> all;
  for (const auto& [resource, informer] : informers_) all.push_back(resource);
  return all;
}

void Informers::Start() {
  for (client::Informer* informer : std::exchange(unstarted_, {})) informer->Start();
}

bool Informers::synced() const {
  for (const auto& [resource, informer] : informers_) {
    if (!informer->synced()) return false;
  }
  return true;
}

void Informers::WhenSynced(std::function<void()> done) {
  for (auto& [resource, informer] : informers_) {
    if (informer->synced()) continue;
    informer->WhenSynced([this, done = std::move(done)]() mutable { WhenSynced(std::move(done)); });
    return;
  }
  done();
}

client::EventRecorder MakeRecorder(Context& context, std::string component) {
  return client::EventRecorder(context.executor, context.clock, context.server, context.user,
                               std::move(component), context.random.Next());
}

void Follow(client::Informer& informer, const ObjectHandler& now, ObjectHandler gone) {
  informer.AddHandlers(
      {.on_add = now,
       .on_update = [now](const json::SharedValue&, const json::SharedValue& it) { now(it); },
       .on_delete = std::move(gone)});
}

ObjectHandler Queued(client::WorkQueue& queue) {
  return [&queue](const json::SharedValue& it) { queue.Add(api::KeyOf(*it)); };
}

ObjectHandler OwnerQueued(client::WorkQueue& queue, std::string kind) {
  return [&queue, kind = std::move(kind)](const json::SharedValue& it) {
    const auto owner = api::ControllerOf(*it);
    if (owner && owner->kind == kind) queue.Add(StrCat(api::Namespace(*it), "/", owner->name));
  };
}

}  // namespace swell::controllers
