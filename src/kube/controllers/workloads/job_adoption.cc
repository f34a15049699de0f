#include "kube/controllers/workloads/job_adoption.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/workloads/batch_rules.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

bool HasPlaceFor(const json::Value& job, const json::Value& pod) {
  if (json::GetString(job, {"spec", "completionMode"}) != "Indexed") return true;
  const int64_t index = CompletionIndex(pod);
  return index >= 0 && index < json::GetInt(job, {"spec", "completions"});
}

// What is written to the pod, unless it has changed meanwhile.
json::Value PatchOf(const json::Value& pod, json::Array owners, json::Array finalizers) {
  return json::Object{{"metadata", json::Object{{"uid", api::Uid(pod)},
                                                {"resourceVersion", api::ResourceVersionText(pod)},
                                                {"ownerReferences", std::move(owners)},
                                                {"finalizers", std::move(finalizers)}}}};
}

}  // namespace

JobAdoption::JobAdoption(Context& context, client::Client& client, std::string finalizer)
    : jobs_(context.informers.Of(client::resources::kJobs)),
      pods_(context.informers.Of(client::resources::kPods)),
      client_(client),
      finalizer_(std::move(finalizer)) {}

std::vector<std::string> JobAdoption::JobsFor(const json::Value& orphan) const {
  std::vector<std::string> keys;
  for (const json::SharedValue& job : jobs_.ByIndex("uid", JobUidLabel(orphan))) {
    keys.push_back(api::KeyOf(*job));
  }
  for (const json::SharedValue& job : jobs_.ByIndex("manual-selector", api::Namespace(orphan))) {
    const auto selector = api::LabelSelector::FromJson(json::Find(*job, {"spec", "selector"}));
    if (selector.ok() && Selects(*selector, orphan)) keys.push_back(api::KeyOf(*job));
  }
  return keys;
}

bool JobAdoption::AdoptAndRelease(const json::Value& job, const client::WorkQueue::Done& done) {
  const auto selector = api::LabelSelector::FromJson(json::Find(job, {"spec", "selector"}));
  const bool over = api::ConditionIsTrue(job, "Complete") || api::ConditionIsTrue(job, "Failed");
  if (!selector.ok() || selector->everything() || over || api::IsDeleting(job)) return false;
  std::vector<std::pair<json::SharedValue, json::Value>> changes;
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(job))) {
    if (!Selects(*selector, *pod)) changes.emplace_back(pod, Released(job, *pod));
  }
  for (const json::SharedValue& pod : OrphansOf(job)) {
    if (!Selects(*selector, *pod) || api::IsDeleting(*pod) || !HasPlaceFor(job, *pod)) continue;
    changes.emplace_back(pod, Adopted(job, *pod));
  }
  if (changes.empty()) return false;
  const auto writes = MakeBatch(done);
  for (const auto& [pod, patch] : changes) {
    client_.Patch(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                  client::PatchType::kMerge, patch, writes->Track());
  }
  writes->Close();
  return true;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the client keeps the callbacks it is given

// A selector that the server made is found by the job's uid, among thousands of other orphans.
std::vector<json::SharedValue> JobAdoption::OrphansOf(const json::Value& job) const {
  return json::GetBool(job, {"spec", "manualSelector"})
             ? pods_.ByIndex("orphans", api::Namespace(job))
             : pods_.ByIndex("orphans-of-job", api::Uid(job));
}

json::Value JobAdoption::Adopted(const json::Value& job, const json::Value& pod) const {
  json::Array finalizers = json::GetArray(pod, {"metadata", "finalizers"});
  const json::Value own(finalizer_);
  if (std::find(finalizers.begin(), finalizers.end(), own) == finalizers.end()) {
    finalizers.push_back(own);
  }
  return PatchOf(pod, OwnersWith(pod, job), std::move(finalizers));
}

json::Value JobAdoption::Released(const json::Value& job, const json::Value& pod) const {
  json::Array finalizers;
  for (const json::Value& one : json::GetArray(pod, {"metadata", "finalizers"})) {
    if (one != json::Value(finalizer_)) finalizers.push_back(one);
  }
  return PatchOf(pod, OwnersWithout(pod, job), std::move(finalizers));
}

}  // namespace swell::controllers
