#include "controllers/cluster/namespace.h"

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/cluster/cluster_resources.h"

namespace swell::controllers {
namespace {

// While pods use their grace period and finalizers are worked on.
constexpr Duration kLookAgain = std::chrono::seconds(1);
constexpr int64_t kPage = 500;

bool IsTerminating(const json::Value& ns) {
  return api::IsDeleting(ns) && !json::GetArray(ns, {"spec", "finalizers"}).empty();
}

}  // namespace

struct NamespaceController::Sweep {
  std::string name;
  json::SharedValue ns;
  Done done;
  std::vector<client::Resource> resources;
  size_t next = 0;
  int64_t remaining = 0;
  std::string remaining_text;   // "pods. has 2 resource instances"
  std::string finalizers_text;  // "x in 1 resource instances"
  std::map<std::string, int64_t> finalizers;
  Status first_error;
};

NamespaceController::NamespaceController(Context context, const api::Scheme& scheme)
    : context_(context),
      scheme_(scheme),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      queue_(context_.executor,
             context_.metrics,
             "namespaces",
             4,
             [this](const std::string& name, Done done) { Reconcile(name, std::move(done)); }),
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
  for (const client::Resource& resource : ClusterResources(scheme_, true)) {
    if (resource.namespaced) sweep->resources.push_back(resource);
  }
  SweepNext(sweep);
}

// One resource after the other: what is there, then its deletion.
void NamespaceController::SweepNext(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->next == sweep->resources.size()) return Finish(sweep);
  const client::Resource& resource = sweep->resources[sweep->next++];
  client_.List(
      resource, sweep->name, {.limit = kPage},
      [this, sweep, resource](const Result<client::ObjectList>& list) {
        if (!list.ok()) {
          // A resource that went away meanwhile holds nothing.
          if (list.status().code() != Code::kNotFound && sweep->first_error.ok()) {
            sweep->first_error = list.status();
          }
          return SweepNext(sweep);
        }
        if (list->items.empty()) return SweepNext(sweep);
        auto count = static_cast<int64_t>(list->items.size());
        sweep->remaining += count;
        if (!sweep->remaining_text.empty()) sweep->remaining_text += ", ";
        sweep->remaining_text +=
            StrCat(resource.plural, ".", resource.group, " has ", count, " resource instances");
        bool all_deleting = true;
        for (const json::SharedValue& item : list->items) {
          all_deleting = all_deleting && api::IsDeleting(*item);
          for (const json::Value& finalizer : json::GetArray(*item, {"metadata", "finalizers"})) {
            if (finalizer.is_string()) {
              ++sweep->finalizers[std::string(json::View(finalizer.get_string()))];
            }
          }
        }
        if (all_deleting) return SweepNext(sweep);
        DeleteAll(sweep, resource);
      });
}

void NamespaceController::DeleteAll(const std::shared_ptr<Sweep>& sweep,
                                    const client::Resource& resource) {
  client_.Call({.method = "DELETE",
                .path = resource.Path(sweep->name),
                .query = "propagationPolicy=Background"},
               [this, sweep](const Result<api::RestResponse>& response) {
                 if (!response.ok() && response.status().code() != Code::kNotFound &&
                     sweep->first_error.ok()) {
                   sweep->first_error = response.status();
                 }
                 SweepNext(sweep);
               });
}

void NamespaceController::Finish(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->remaining == 0 && sweep->first_error.ok()) return Finalize(sweep);
  json::Array conditions = json::GetArray(*sweep->ns, {"status", "conditions"});
  WallTime now = context_.clock.Now();
  std::string finalizers;
  for (const auto& [name, count] : sweep->finalizers) {
    finalizers +=
        StrCat(finalizers.empty() ? "" : ", ", name, " in ", count, " resource instances");
  }
  bool changed = false;
  bool failed = !sweep->first_error.ok();
  changed |=
      api::SetCondition(conditions, "NamespaceDeletionContentFailure", failed ? "True" : "False",
                        failed ? "ContentDeletionFailed" : "ContentDeleted",
                        failed ? sweep->first_error.message()
                               : "All content successfully deleted, may be waiting on finalization",
                        now);
  changed |= api::SetCondition(
      conditions, "NamespaceContentRemaining", sweep->remaining > 0 ? "True" : "False",
      sweep->remaining > 0 ? "SomeResourcesRemain" : "ContentRemoved",
      sweep->remaining > 0 ? StrCat("Some resources are remaining: ", sweep->remaining_text)
                           : "All content successfully removed",
      now);
  changed |= api::SetCondition(
      conditions, "NamespaceFinalizersRemaining", finalizers.empty() ? "False" : "True",
      finalizers.empty() ? "ContentHasNoFinalizers" : "SomeFinalizersRemain",
      finalizers.empty()
          ? std::string("All content-preserving finalizers finished")
          : StrCat("Some content in the namespace has finalizers remaining: ", finalizers),
      now);
  if (!changed) return sweep->done(kLookAgain);
  json::Value patch = json::Object{{"status", json::Object{{"conditions", std::move(conditions)}}}};
  // For people only: whether it succeeds changes nothing.
  client_.Patch(
      client::resources::kNamespaces, "", sweep->name, client::PatchType::kMerge, patch,
      [sweep](const Result<json::SharedValue>&) { sweep->done(kLookAgain); }, "status");
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
