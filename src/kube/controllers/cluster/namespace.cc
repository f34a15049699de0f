#include "kube/controllers/cluster/namespace.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/cluster/cluster_resources.h"
#include "kube/controllers/queue.h"

namespace swell::controllers {
namespace {

// While pods use their grace period and finalizers are worked on.
constexpr Duration kRequeueAfter = std::chrono::seconds(1);
constexpr int64_t kPage = 500;

bool IsTerminating(const json::Value& ns) {
  return api::IsDeleting(ns) && !json::GetArray(ns, {"spec", "finalizers"}).empty();
}

bool IsPods(const client::Resource& resource) {
  return resource.group.empty() && resource.plural == "pods";
}

}  // namespace

struct NamespaceController::Sweep {
  std::string name;
  json::SharedValue ns;
  Done done;
  std::vector<client::Resource> resources;
  size_t next = 0;
  std::vector<std::string> remaining_texts;  // "pods. has 2 resource instances"
  std::map<std::string, int64_t> finalizers;
  std::vector<std::string> errors;

  // A resource that went away meanwhile holds nothing.
  void Note(const Status& status) {
    if (!status.ok() && status.code() != Code::kNotFound) errors.push_back(status.message());
  }
  void Count(const client::Resource& resource, const client::ObjectList& rest);
};

void NamespaceController::Sweep::Count(const client::Resource& resource,
                                       const client::ObjectList& rest) {
  if (rest.items.empty()) return;
  remaining_texts.push_back(StrCat(resource.plural, ".", resource.group, " has ", rest.items.size(),
                                   " resource instances"));
  for (const json::SharedValue& item : rest.items) {
    for (const json::Value& finalizer : json::GetArray(*item, {"metadata", "finalizers"})) {
      if (finalizer.is_string()) ++finalizers[std::string(json::View(finalizer.get_string()))];
    }
  }
}

NamespaceController::NamespaceController(Context context, const api::Scheme& scheme)
    : context_(context),
      scheme_(scheme),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      queue_(MakeQueue(context_, "namespaces", 4, this, &NamespaceController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "namespace-controller") {
  auto look = [this](const json::SharedValue& ns) {
    if (IsTerminating(*ns)) queue_.Add(std::string(api::Name(*ns)));
  };
  Follow(namespaces_, look);
}

void NamespaceController::Reconcile(const std::string& name, Done done) {
  json::SharedValue ns = namespaces_.Get(name);
  if (!ns || !IsTerminating(*ns)) return done(Duration::zero());
  auto sweep = std::make_shared<Sweep>();
  sweep->name = name;
  sweep->ns = ns;
  sweep->done = std::move(done);
  for (const client::Resource& resource : ClusterResources(scheme_, Events::kIncluded)) {
    if (resource.namespaced) sweep->resources.push_back(resource);
  }
  std::stable_partition(sweep->resources.begin(), sweep->resources.end(), IsPods);
  SweepNext(sweep);
}

// One resource after the other: what is there, its deletion, what is left. As long as pods are
// left, they need what is around them: network policies, secrets, services.
void NamespaceController::SweepNext(const std::shared_ptr<Sweep>& sweep) {
  const bool pods_left =
      sweep->next == 1 && !(sweep->remaining_texts.empty() && sweep->errors.empty());
  if (pods_left || sweep->next == sweep->resources.size()) return Finish(sweep);
  const client::Resource& resource = sweep->resources[sweep->next++];
  client_.List(resource, sweep->name, {.limit = kPage},
               [this, sweep, resource](const Result<client::ObjectList>& list) {
                 sweep->Note(list.status());
                 if (!list.ok() || list->items.empty()) return SweepNext(sweep);
                 bool all_deleting = true;
                 for (const json::SharedValue& item : list->items) {
                   all_deleting = all_deleting && api::IsDeleting(*item);
                 }
                 if (!all_deleting) return DeleteAll(sweep, resource);
                 sweep->Count(resource, *list);
                 SweepNext(sweep);
               });
}

void NamespaceController::DeleteAll(const std::shared_ptr<Sweep>& sweep,
                                    const client::Resource& resource) {
  client_.Call({.method = "DELETE",
                .path = resource.Path(sweep->name),
                .query = "propagationPolicy=Background"},
               [this, sweep, resource](const Result<api::RestResponse>& response) {
                 sweep->Note(response.status());
                 CountRest(sweep, resource);
               });
}

void NamespaceController::CountRest(const std::shared_ptr<Sweep>& sweep,
                                    const client::Resource& resource) {
  client_.List(resource, sweep->name, {.limit = kPage},
               [this, sweep, resource](const Result<client::ObjectList>& list) {
                 sweep->Note(list.status());
                 if (list.ok()) sweep->Count(resource, *list);
                 SweepNext(sweep);
               });
}

void NamespaceController::Finish(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->remaining_texts.empty() && sweep->errors.empty()) return Finalize(sweep);
  json::Array conditions = json::GetArray(*sweep->ns, {"status", "conditions"});
  if (!SetConditions(*sweep, conditions)) return sweep->done(kRequeueAfter);
  json::Value patch = json::Object{{"status", json::Object{{"conditions", std::move(conditions)}}}};
  // For people only: whether it succeeds changes nothing.
  client_.Patch(
      client::resources::kNamespaces, "", sweep->name, client::PatchType::kMerge, patch,
      [sweep](const Result<json::SharedValue>&) { sweep->done(kRequeueAfter); }, "status");
}

// Says of each thing that may hold the namespace up whether it does. False: it was said already.
bool NamespaceController::SetConditions(const Sweep& sweep, json::Array& conditions) const {
  struct Obstacle {
    std::string_view type;
    std::string_view passed_reason, passed;
    std::string_view reason;
    std::string why;  // empty: it does not
  };
  std::vector<std::string> finalizers;
  for (const auto& [name, count] : sweep.finalizers) {
    finalizers.push_back(StrCat(name, " in ", count, " resource instances"));
  }
  auto told = [](std::string_view start, std::vector<std::string> parts) {
    std::sort(parts.begin(), parts.end());
    return parts.empty() ? std::string() : StrCat(start, ": ", Join(parts, ", "));
  };
  const Obstacle obstacles[] = {
      {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
       "All resources successfully discovered", "", ""},
      {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
       "All legacy kube types successfully parsed", "", ""},
      {"NamespaceDeletionContentFailure", "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization", "ContentDeletionFailed",
       told(StrCat("Failed to delete all resource types, ", sweep.errors.size(), " remaining"),
            sweep.errors)},
      {"NamespaceContentRemaining", "ContentRemoved", "All content successfully removed",
       "SomeResourcesRemain", told("Some resources are remaining", sweep.remaining_texts)},
      {"NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
       "All content-preserving finalizers finished", "SomeFinalizersRemain",
       told("Some content in the namespace has finalizers remaining", finalizers)}};
  const WallTime now = context_.clock.Now();
  bool changed = false;
  for (const Obstacle& it : obstacles) {
    const bool there = !it.why.empty();
    changed |= api::SetCondition(conditions, it.type, there ? "True" : "False",
                                 there ? it.reason : it.passed_reason,
                                 there ? std::string_view(it.why) : it.passed, now);
  }
  return changed;
}

void NamespaceController::Finalize(const std::shared_ptr<Sweep>& sweep) {
  json::Value ns = *sweep->ns;
  json::Array kept;
  for (const json::Value& finalizer : json::GetArray(ns, {"spec", "finalizers"})) {
    if (finalizer != json::Value("kubernetes")) kept.push_back(finalizer);
  }
  json::Set(ns, {"spec", "finalizers"}, std::move(kept));
  json::Remove(ns, {"metadata", "resourceVersion"});
  client_.Update(
      client::resources::kNamespaces, ns,
      [sweep](const Result<json::SharedValue>& result) {
        bool fine = result.ok() || result.status().code() == Code::kNotFound;
        sweep->done(fine ? Result<Duration>(Duration::zero()) : result.status());
      },
      "finalize");
}

}  // namespace swell::controllers
