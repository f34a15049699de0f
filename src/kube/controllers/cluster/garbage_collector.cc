#include "kube/controllers/cluster/garbage_collector.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/controllers/cluster/cluster_resources.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";
constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kComponent = "garbage-collector";
constexpr Duration kSyncCheckEvery = std::chrono::milliseconds(5);
constexpr Duration kUnseenOwnerCheckEvery = std::chrono::seconds(30);

}  // namespace

// What is known of an object's owners, filled owner by owner.
struct GarbageCollector::Verdict {
  Done done;
  bool solid = false;
  bool unseen = false;             // an owner is there, and its watch has not told of it yet
  std::set<std::string> dangling;  // owners' uids
  std::set<std::string> waiting;   // owners that wait, in the foreground, for their dependents
};

GarbageCollector::GarbageCollector(Context context, const api::Scheme& scheme)
    : context_(context),
      scheme_(scheme),
      // MakeQueue would look at each object every few milliseconds until the caches are filled.
      // ReconcileLater looks once for all.
      queue_(context_.executor,
             context_.metrics,
             "garbage",
             64,
             [this](const std::string& uid, Done done) { Reconcile(uid, std::move(done)); }),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)) {
  // Later, not at once: Start adds handlers to informers, this one too.
  auto start = [this] {
    context_.executor.Post(scope_.Wrap([this] {
      if (started_) Start();
    }));
  };
  context_.informers.Of(client::resources::kCrds)
      .AddHandlers(
          {.on_add = [start](const json::SharedValue&) { start(); },
           .on_update = [start](const json::SharedValue&, const json::SharedValue&) { start(); },
           .on_delete = {}});
}

void GarbageCollector::Start() {
  started_ = true;
  for (const client::Resource& resource : ClusterResources(scheme_, Events::kLeftOut)) {
    if (seen_.insert(resource).second) Watch(resource);
  }
}

void GarbageCollector::Watch(const client::Resource& resource) {
  client::Informer* informer = context_.informers.Find(resource);
  bool own = informer == nullptr;
  if (own) {
    auto& made = own_[resource];
    made = std::make_unique<client::Informer>(context_.executor, context_.server, context_.user,
                                              resource, client::InformerOptions{},
                                              context_.random.Next());
    informer = made.get();
  }
  watched_.push_back(informer);
  informer->AddHandlers(
      {.on_add = [this, resource](const json::SharedValue& it) { OnObject(resource, *it); },
       .on_update = [this, resource](const json::SharedValue&,
                                     const json::SharedValue& it) { OnObject(resource, *it); },
       .on_delete = [this](const json::SharedValue& it) { OnGone(*it); }});
  if (own) informer->Start();
}

bool GarbageCollector::synced() const {
  return context_.informers.synced() &&
         std::all_of(watched_.begin(), watched_.end(),
                     [](const client::Informer* informer) { return informer->synced(); });
}

void GarbageCollector::OnObject(const client::Resource& resource, const json::Value& object) {
  std::string uid(api::Uid(object));
  Node node{.resource = resource,
            .ns = std::string(api::Namespace(object)),
            .name = std::string(api::Name(object)),
            .version = std::string(json::GetString(object, {"metadata", "resourceVersion"})),
            .owners = api::Owners(object),
            .deleting = api::IsDeleting(object),
            .foreground = api::HasFinalizer(object, kForegroundFinalizer),
            .orphan = api::HasFinalizer(object, kOrphanFinalizer)};
  auto [it, fresh] = nodes_.try_emplace(uid);
  Node& known = it->second;
  bool owners_changed =
      fresh || known.owners.size() != node.owners.size() ||
      !std::equal(known.owners.begin(), known.owners.end(), node.owners.begin(),
                  [](const auto& a, const auto& b) {
                    return a.uid == b.uid && a.block_owner_deletion == b.block_owner_deletion;
                  });
  bool stirred = owners_changed || known.deleting != node.deleting;
  if (owners_changed) {
    // Owners that lose a dependent may be waiting for just that.
    for (const api::OwnerReference& owner : known.owners) queue_.Add(owner.uid);
    Link(uid, known.owners, false);
    Link(uid, node.owners, true);
  }
  known = std::move(node);
  if (stirred && (!known.owners.empty() || known.deleting)) queue_.Add(uid);
  if (stirred && known.deleting) AddDependents(uid);
}

void GarbageCollector::OnGone(const json::Value& object) {
  auto it = nodes_.find(std::string(api::Uid(object)));
  if (it == nodes_.end()) return;
  Link(it->first, it->second.owners, false);
  for (const api::OwnerReference& owner : it->second.owners) queue_.Add(owner.uid);
  AddDependents(it->first);
  nodes_.erase(it);
}

void GarbageCollector::Link(const std::string& uid,
                            const std::vector<api::OwnerReference>& owners,
                            bool add) {
  for (const api::OwnerReference& owner : owners) {
    if (add) {
      dependents_[owner.uid].insert(uid);
      continue;
    }
    auto it = dependents_.find(owner.uid);
    if (it == dependents_.end()) continue;
    it->second.erase(uid);
    if (it->second.empty()) dependents_.erase(it);
  }
}

// A reference from another namespace names an owner that is not there: it must not hold what
// others own, whose uid its author may have learned.
bool GarbageCollector::Blocks(const Node& dependent,
                              const std::string& owner_uid,
                              const Node& owner) {
  if (owner.resource.namespaced && dependent.ns != owner.ns) return false;
  return std::any_of(dependent.owners.begin(), dependent.owners.end(),
                     [&owner_uid](const api::OwnerReference& reference) {
                       return reference.uid == owner_uid && reference.block_owner_deletion;
                     });
}

void GarbageCollector::AddDependents(const std::string& uid) {
  auto it = dependents_.find(uid);
  if (it == dependents_.end()) return;
  for (const std::string& dependent : it->second) queue_.Add(dependent);
}

// One look for all that wait, which may be every object there is while a server is away.
void GarbageCollector::ReconcileLater(const std::string& uid) {
  later_.insert(uid);
  if (!sync_timer_.pending()) AwaitSync();
}

void GarbageCollector::AwaitSync() {
  if (synced()) {
    for (const std::string& uid : std::exchange(later_, {})) queue_.Add(uid);
  } else {
    sync_timer_.Start(kSyncCheckEvery, [this] { AwaitSync(); });
  }
}

void GarbageCollector::Reconcile(const std::string& uid, Done done) {
  auto it = nodes_.find(uid);
  if (it == nodes_.end()) return done(Duration::zero());
  // Only with everything in view is "nobody depends on it" or "its owner is unknown" worth
  // anything.
  if (!synced()) {
    ReconcileLater(uid);
    return done(Duration::zero());
  }
  const Node& node = it->second;
  if (node.deleting) {
    if (node.orphan) return ReconcileOrphan(uid, node, std::move(done));
    if (node.foreground) return ReconcileForeground(uid, node, std::move(done));
    return done(Duration::zero());
  }
  if (node.owners.empty()) return done(Duration::zero());
  auto verdict = std::make_shared<Verdict>();
  verdict->done = std::move(done);
  CheckOwners(uid, std::move(verdict), 0);
}

// Goes through the owners from `next` on; those that the graph does not know are looked up.
void GarbageCollector::CheckOwners(const std::string& uid,
                                   std::shared_ptr<Verdict> verdict,
                                   size_t next) {
  auto it = nodes_.find(uid);
  if (it == nodes_.end()) return verdict->done(Duration::zero());
  const Node& node = it->second;
  for (; next < node.owners.size(); ++next) {
    const api::OwnerReference& owner = node.owners[next];
    auto known = nodes_.find(owner.uid);
    if (known != nodes_.end() &&
        (known->second.ns == node.ns || !known->second.resource.namespaced)) {
      if (known->second.deleting && known->second.foreground) {
        verdict->waiting.insert(owner.uid);
      } else {
        verdict->solid = true;
      }
      continue;
    }
    auto resource = ResourceOfKind(scheme_, owner.api_version, owner.kind);
    if (!resource || (resource->namespaced && node.ns.empty())) {
      // A kind that the cluster does not serve (now): nothing may be concluded.
      verdict->solid = true;
      continue;
    }
    client_.Get(
        *resource, resource->namespaced ? node.ns : "", owner.name,
        [this, uid, verdict, next, owner_uid = owner.uid](const Result<json::SharedValue>& found) {
          if (!found.ok() && found.status().code() != Code::kNotFound) {
            return verdict->done(found.status());
          }
          if (found.ok() && api::Uid(**found) == owner_uid) {
            verdict->solid = verdict->unseen = true;
          } else {
            verdict->dangling.insert(owner_uid);
          }
          CheckOwners(uid, verdict, next + 1);
        });
    return;
  }
  Carry(uid, *verdict);
}

void GarbageCollector::Carry(const std::string& uid, const Verdict& verdict) {
  const Node& node = nodes_.at(uid);
  if (verdict.solid) {
    std::set<std::string> drop = verdict.dangling;
    drop.insert(verdict.waiting.begin(), verdict.waiting.end());
    // An owner that goes before its watch tells of it is never said to be gone.
    if (drop.empty()) {
      return verdict.done(verdict.unseen ? kUnseenOwnerCheckEvery : Duration::zero());
    }
    return DropOwners(uid, drop, verdict.done);
  }
  // A dependent that itself has blocking dependents goes in the foreground too, so that the owner
  // at the top sees all of them gone.
  bool has_dependents = dependents_.contains(uid);
  std::string_view propagation =
      !verdict.waiting.empty() && has_dependents ? "Foreground" : "Background";
  if (node.orphan) propagation = "Orphan";
  if (node.foreground) propagation = "Foreground";
  DeleteNode(uid, node, propagation, verdict.done);
}

void GarbageCollector::ReconcileForeground(const std::string& uid, const Node& node, Done done) {
  bool blocked = false;
  auto it = dependents_.find(uid);
  if (it != dependents_.end()) {
    for (const std::string& dependent : it->second) {
      const Node& child = nodes_.at(dependent);
      if (!child.deleting) queue_.Add(dependent);
      if (WaitsFor(dependent, uid)) continue;  // a circle would wait for ever
      blocked = blocked || Blocks(child, uid, node);
    }
  }
  if (blocked) return done(Duration::zero());  // each dependent that goes brings us back
  DropFinalizer(node, kForegroundFinalizer, std::move(done));
}

bool GarbageCollector::WaitsFor(const std::string& uid, const std::string& other) const {
  std::vector<std::string> open{uid};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    if (!seen.insert(next).second) continue;
    const Node& node = nodes_.at(next);
    const auto dependents = dependents_.find(next);
    if (!node.deleting || !node.foreground || dependents == dependents_.end()) continue;
    if (dependents->second.contains(other)) return true;
    open.insert(open.end(), dependents->second.begin(), dependents->second.end());
  }
  return false;
}

void GarbageCollector::ReconcileOrphan(const std::string& uid, const Node& node, Done done) {
  auto it = dependents_.find(uid);
  if (it == dependents_.end()) return DropFinalizer(node, kOrphanFinalizer, std::move(done));
  std::vector<std::string> children(it->second.begin(), it->second.end());
  auto pending = std::make_shared<size_t>(children.size());
  auto failed = std::make_shared<Status>();
  for (const std::string& child : children) {
    DropOwners(child, {uid}, [pending, failed, done](const Result<Duration>& result) {
      if (!result.ok()) *failed = result.status();
      if (--*pending > 0) return;
      // The children's updates bring us back, with nobody left to set free.
      done(failed->ok() ? Result<Duration>(Duration(std::chrono::milliseconds(10)))
                        : Result<Duration>(*failed));
    });
  }
}

void GarbageCollector::DropOwners(const std::string& uid,
                                  const std::set<std::string>& owners,
                                  Done done) {
  const Node& node = nodes_.at(uid);
  client_.Get(
      node.resource, node.ns, node.name,
      [this, uid, owners, resource = node.resource, done](const Result<json::SharedValue>& found) {
        if (!found.ok()) return done(Outcome(found.status()));
        const json::Value& object = **found;
        if (api::Uid(object) != uid) return done(Duration::zero());
        json::Array kept;
        for (const json::Value& owner : json::GetArray(object, {"metadata", "ownerReferences"})) {
          if (!owners.contains(std::string(json::GetString(owner, {"uid"})))) {
            kept.push_back(owner);
          }
        }
        json::Value left = kept.empty() ? json::Value(nullptr) : json::Value(std::move(kept));
        json::Value patch = json::Object{
            {"metadata", json::Object{{"resourceVersion",
                                       json::GetString(object, {"metadata", "resourceVersion"})},
                                      {"ownerReferences", std::move(left)}}}};
        client_.Patch(resource, api::Namespace(object), api::Name(object),
                      client::PatchType::kMerge, patch, Ends(done));
      });
}

void GarbageCollector::DropFinalizer(const Node& node, std::string_view finalizer, Done done) {
  client_.Get(
      node.resource, node.ns, node.name,
      [this, resource = node.resource, finalizer = std::string(finalizer),
       done](const Result<json::SharedValue>& found) {
        if (!found.ok()) return done(Outcome(found.status()));
        const json::Value& object = **found;
        if (!api::HasFinalizer(object, finalizer)) return done(Duration::zero());
        json::Array kept;
        for (const json::Value& one : json::GetArray(object, {"metadata", "finalizers"})) {
          if (one != json::Value(finalizer)) kept.push_back(one);
        }
        json::Value patch = json::Object{
            {"metadata", json::Object{{"resourceVersion",
                                       json::GetString(object, {"metadata", "resourceVersion"})},
                                      {"finalizers", std::move(kept)}}}};
        client_.Patch(resource, api::Namespace(object), api::Name(object),
                      client::PatchType::kMerge, patch, Ends(done));
      });
}

void GarbageCollector::DeleteNode(const std::string& uid,
                                  const Node& node,
                                  std::string_view propagation,
                                  Done done) {
  client_.Delete(node.resource, node.ns, node.name,
                 {.propagation = std::string(propagation), .precondition_uid = uid},
                 // A conflict: another object has the name now.
                 Ends(std::move(done), {}, {Code::kNotFound, Code::kConflict}));
}

}  // namespace swell::controllers
