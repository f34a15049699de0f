// JobController: the writes of a pass.
#include <algorithm>

#include "base/strings.h"
#include "jobs/job_controller.h"
#include "jobs/job_dependents.h"
#include "jobs/job_pass.h"
#include "json/patch.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::controllers {
namespace {

// Whether every field of `wanted` is in `known` with the same value; the server may add more.
bool ContainsAll(const json::Value& known, const json::Value& wanted) {
  if (!wanted.is_object()) return json::Equal(known, wanted);
  for (const auto& [key, value] : wanted.get_object()) {
    const json::Value* found = json::Find(known, {std::string_view(key.data(), key.size())});
    if (found == nullptr || !ContainsAll(*found, value)) return false;
  }
  return true;
}

}  // namespace

// The status is written before the writes that follow from it. Writes that only add objects need
// not wait for it.
void JobController::Write(const std::shared_ptr<Pass>& pass, client::WorkQueue::Done done) {
  auto writes = MakeBatch(std::move(done));
  writes->RequeueAfter(pass->requeue_after);
  auto rest = [this, pass, writes] { WriteRest(pass, writes); };
  if (pass->OnlyAdds()) {
    WriteRest(pass, writes);
    WriteStatus(pass, *pass->job, writes, [] {});
  } else if (pass->annotations.empty()) {
    WriteStatus(pass, *pass->job, writes, rest);
  } else {
    json::Value patch = json::Object{
        {"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(*pass->job)},
                                  {"annotations", pass->annotations}}}};
    client_.Patch(kind_->resource(), pass->ns, pass->name, client::PatchType::kMerge, patch,
                  writes->Track([this, pass, writes, rest](const Result<json::SharedValue>& job) {
                    if (!job.ok()) return;
                    counted_.insert(pass->dealt_with.begin(), pass->dealt_with.end());
                    WriteStatus(pass, **job, writes, rest);
                  }));
  }
  writes->Close();
}

void JobController::WriteStatus(const std::shared_ptr<Pass>& pass,
                                const json::Value& job,
                                const WritesPtr& writes,
                                const std::function<void()>& then) {
  const json::Value* before = api::FindStatus(job);
  json::Value patch =
      json::MakeMergePatch(before ? *before : json::Value(json::Object{}), pass->status);
  if (pass->delete_job || patch.get_object().empty()) return then();
  json::Value document =
      json::Object{{"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(job)}}},
                   {"status", std::move(patch)}};
  client_.Patch(kind_->resource(), pass->ns, pass->name, client::PatchType::kMerge, document,
                writes->Track([then](const Result<json::SharedValue>& result) {
                  if (result.ok()) then();
                }),
                "status");
}

void JobController::WriteRest(const std::shared_ptr<Pass>& pass, const WritesPtr& writes) {
  if (pass->vanished_seen) vanished_.erase(std::string(api::Uid(*pass->job)));
  for (const Pass::Event& event : pass->events) {
    events_.Record(*pass->job, event.type, event.reason, event.message);
  }
  for (const json::SharedValue& pod : pass->delete_pods) {
    client_.Delete(client::resources::kPods, pass->ns, api::Name(*pod),
                   {.precondition_uid = std::string(api::Uid(*pod))}, writes->Track());
  }
  for (const json::SharedValue& pod : pass->stop_pods) {
    // Swell's agent reads the annotation; any kubelet stops a pod whose deadline is over. Both end
    // it with phase Failed and leave it listed.
    json::Value patch = json::Object{
        {"metadata",
         json::Object{{"uid", api::Uid(*pod)},
                      {"annotations", json::Object{{keys::kStopRequested, "the job has failed"}}}}},
        {"spec", json::Object{{"activeDeadlineSeconds", 1}}}};
    client_.Patch(client::resources::kPods, pass->ns, api::Name(*pod), client::PatchType::kMerge,
                  patch, writes->Track());
  }
  for (const json::SharedValue& pod : pass->free_pods) {
    const json::Value patch = json::Object{
        {"metadata", json::Object{{"uid", api::Uid(*pod)},
                                  {"annotations", json::Object{{keys::kPreemptsFrom, nullptr}}}}}};
    client_.Patch(client::resources::kPods, pass->ns, api::Name(*pod), client::PatchType::kMerge,
                  patch, writes->Track());
  }
  if (pass->delete_job) {
    client_.Delete(
        kind_->resource(), pass->ns, pass->name,
        {.propagation = "Background", .precondition_uid = std::string(api::Uid(*pass->job))},
        writes->Track());
  }
  if (pass->want_group) {
    WriteServices(pass, writes);
    WriteMembers(pass, writes);
  }
}

// Pods come after what they need; what that is follows from how many there are.
void JobController::WriteMembers(const std::shared_ptr<Pass>& pass, const WritesPtr& writes) {
  std::vector<json::Value> dependents;
  if (!pass->create_pods.empty() || pass->Shrinks()) {
    dependents = kind_->Dependents(*pass->job, pass->spec);
  }
  if (dependents.empty()) return WriteGroups(pass, writes);
  PutDependents(client_, *pass->job, std::move(dependents),
                [this, pass, writes, ended = writes->Track()](const Status& put) {
                  if (put.ok()) {
                    WriteGroups(pass, writes);
                  } else {
                    Refused(*pass, "FailedCreate", StrCat("Error creating: ", put.message()));
                    writes->Fail(put);
                  }
                  ended(json::SharedValue());
                });
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): PutDependents keeps what it is given

void JobController::WriteServices(const std::shared_ptr<Pass>& pass, const WritesPtr& writes) {
  std::set<std::string> wanted;
  for (json::Value& service : kind_->Services(*pass->job, pass->spec)) {
    std::string name(api::Name(service));
    wanted.insert(name);
    if (services_.Get(StrCat(pass->ns, "/", name))) continue;
    json::Set(service, {"metadata", "ownerReferences"},
              json::Array{api::MakeOwnerReference(*pass->job)});
    client_.Create(client::resources::kServices, pass->ns, service, writes->Track());
  }
  // Members that no longer exist leave their services behind.
  for (const json::SharedValue& service : services_.ByIndex("owner", api::Uid(*pass->job))) {
    if (wanted.contains(std::string(api::Name(*service))) || api::IsDeleting(*service)) continue;
    client_.Delete(client::resources::kServices, pass->ns, api::Name(*service),
                   {.precondition_uid = std::string(api::Uid(*service))}, writes->Track());
  }
}

void JobController::CreatePods(const std::shared_ptr<Pass>& pass,
                               const WritesPtr& writes,
                               const std::string& group) {
  for (const json::Value& pod : pass->create_pods) {
    if (pass->spec.grouped && api::Label(pod, keys::kPodGroup) != group) continue;
    client_.Create(
        client::resources::kPods, pass->ns, pod,
        writes->Track([this, pass](const Result<json::SharedValue>& result) {
          if (result.ok() && !pods_.Get(api::KeyOf(**result))) {
            const std::string uid(api::Uid(*pass->job));
            expected_.Add(uid, StrCat(uid, "/", api::Name(**result)), context_.clock.Steady());
          }
          const Code code = result.ok() ? Code::kOk : result.status().code();
          if (result.ok() || code == Code::kAlreadyExists || code == Code::kNotFound) return;
          if (code == Code::kForbidden) GiveBackMemory(pass, result.status());
          Refused(*pass, "FailedCreatePod", StrCat("Error creating: ", result.status().message()));
        }));
  }
}

// An event now, and a condition in the next pass, which the failed write brings.
void JobController::Refused(const Pass& pass, std::string_view reason, const std::string& message) {
  events_.Record(*pass.job, "Warning", reason, message);
  refused_[std::string(api::Uid(*pass.job))] = message;
}

void JobController::WriteGroups(const std::shared_ptr<Pass>& pass, const WritesPtr& writes) {
  if (!pass->spec.grouped) return CreatePods(pass, writes, "");
  std::set<std::string> groups{pass->name};
  if (pass->spec.tiered()) {
    for (const ReplicaSpec& replica : pass->spec.replicas) {
      for (int64_t k = 0; k < replica.replicas; ++k) groups.insert(pass->GroupOf(replica, k));
    }
  }
  for (const std::string& group : groups) WriteGroupAndPods(pass, writes, group);
}

// Jobs of two kinds may have one name, but not one PodGroup: the later job waits for it.
bool JobController::IsOfAnotherJob(const Pass& pass, const json::Value& group) {
  const std::optional<api::OwnerReference> owner = api::ControllerOf(group);
  if (!owner || owner->uid == api::Uid(*pass.job)) return false;
  // The group of a deleted job of this name and kind is about to go.
  if (!Owns(*owner)) {
    Refused(pass, "FailedCreate",
            StrCat("PodGroup ", api::Name(group), " belongs to ", owner->kind, " ", owner->name,
                   " (", owner->api_version, "). Delete that job, or give this one another name."));
  }
  return true;
}

// A pod whose group is not there yet waits for it. A group that changes comes first: it says how
// many of the new pods have to start together.
void JobController::WriteGroupAndPods(const std::shared_ptr<Pass>& pass,
                                      const WritesPtr& writes,
                                      const std::string& name) {
  json::Value wanted = MakePodGroup(PartsOf(*pass), name);
  json::SharedValue known = groups_.Get(StrCat(pass->ns, "/", name));
  if (known && IsOfAnotherJob(*pass, *known)) {
    return writes->Fail(Status(Code::kAlreadyExists, StrCat("PodGroup ", name, " is in use")));
  }
  const json::Value* known_spec = known ? json::Find(*known, {"spec"}) : nullptr;
  if (known_spec && ContainsAll(*known_spec, *json::Find(wanted, {"spec"}))) {
    return CreatePods(pass, writes, name);
  }
  if (!known) {
    client_.Create(client::resources::kPodGroups, pass->ns, wanted,
                   writes->Track([writes](const Result<json::SharedValue>& result) {
                     const bool exists = result.status().code() == Code::kAlreadyExists;
                     if (!exists) writes->Fail(result.status());
                   }));
    return CreatePods(pass, writes, name);
  }
  json::Value patch = json::Object{{"spec", *json::Find(wanted, {"spec"})}};
  // A group that was deleted meanwhile is an error here: the next pass creates it again.
  client_.Patch(client::resources::kPodGroups, pass->ns, name, client::PatchType::kMerge, patch,
                writes->Track([this, pass, writes, name](const Result<json::SharedValue>& result) {
                  writes->Fail(result.status());
                  if (result.ok()) CreatePods(pass, writes, name);
                }));
}

}  // namespace swell::controllers
