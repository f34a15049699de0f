// JobController's second half: a pass's writes.
#include <algorithm>

#include "base/strings.h"
#include "jobs/job_controller.h"
#include "jobs/job_dependents.h"
#include "jobs/job_pass.h"
#include "json/patch.h"
#include "kube/api/meta/meta.h"

namespace swell::controllers {
namespace {

// Somebody else was there first, or it is gone already: the next pass sees how things are.
bool Harmless(Code code) { return code == Code::kAlreadyExists || code == Code::kNotFound; }

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

// Counts and conditions first, then what they are the reason for. What is only added needs none.
void JobController::Write(const std::shared_ptr<Pass>& pass, client::WorkQueue::Done done) {
  auto writes = std::make_shared<Writes>();
  writes->done = std::move(done);
  writes->look_again = pass->look_again;
  if (pass->OnlyAdds()) {
    writes->Begin();
    WriteRest(pass, writes);
    return WriteStatus(pass, *pass->job, writes, [writes] { writes->End(Status::Ok()); });
  }
  auto rest = [this, pass, writes] { WriteRest(pass, writes); };
  if (pass->count_restart_of.empty()) return WriteStatus(pass, *pass->job, writes, rest);
  json::Value patch = json::Object{
      {"metadata",
       json::Object{
           {"resourceVersion", json::GetString(*pass->job, {"metadata", "resourceVersion"})},
           {"annotations", json::Object{{keys::kRestarts, std::to_string(pass->restarts)}}}}}};
  client_.Patch(kind_->resource(), pass->ns, pass->name, client::PatchType::kMerge, patch,
                [this, pass, writes, rest](const Result<json::SharedValue>& job) {
                  if (!job.ok()) return writes->End(job.status());
                  counted_.insert(pass->count_restart_of.begin(), pass->count_restart_of.end());
                  WriteStatus(pass, **job, writes, rest);
                });
}

void JobController::WriteStatus(const std::shared_ptr<Pass>& pass,
                                const json::Value& job,
                                const std::shared_ptr<Writes>& writes,
                                const std::function<void()>& then) {
  const json::Value* before = json::Find(job, {"status"});
  json::Value patch =
      json::MakeMergePatch(before ? *before : json::Value(json::Object{}), pass->status);
  if (pass->delete_job || patch.get_object().empty()) return then();
  json::Value document = json::Object{
      {"metadata",
       json::Object{{"resourceVersion", json::GetString(job, {"metadata", "resourceVersion"})}}},
      {"status", std::move(patch)}};
  client_.Patch(
      kind_->resource(), pass->ns, pass->name, client::PatchType::kMerge, document,
      [writes, then](const Result<json::SharedValue>& result) {
        if (result.ok()) return then();
        bool gone = result.status().code() == Code::kNotFound;
        writes->End(gone ? Status::Ok() : result.status());
      },
      "status");
}

void JobController::WriteRest(const std::shared_ptr<Pass>& pass,
                              const std::shared_ptr<Writes>& writes) {
  if (pass->vanished_seen) vanished_.erase(std::string(api::Uid(*pass->job)));
  for (const Pass::Telling& telling : pass->tell) {
    events_.Record(*pass->job, telling.type, telling.reason, telling.message);
  }
  auto ended = [writes](const Result<json::SharedValue>& result) {
    writes->End(result.ok() || Harmless(result.status().code()) ? Status::Ok() : result.status());
  };
  for (const json::SharedValue& pod : pass->delete_pods) {
    writes->Begin();
    client_.Delete(client::resources::kPods, pass->ns, api::Name(*pod),
                   {.precondition_uid = std::string(api::Uid(*pod))}, ended);
  }
  for (const json::SharedValue& pod : pass->stop_pods) {
    writes->Begin();
    // Swell's agent reads the annotation; any kubelet stops a pod whose deadline is over. Both end
    // it with phase Failed and leave it listed.
    json::Value patch = json::Object{
        {"metadata",
         json::Object{{"uid", api::Uid(*pod)},
                      {"annotations", json::Object{{keys::kStopRequested, "the job has failed"}}}}},
        {"spec", json::Object{{"activeDeadlineSeconds", 1}}}};
    client_.Patch(client::resources::kPods, pass->ns, api::Name(*pod), client::PatchType::kMerge,
                  patch, ended);
  }
  if (pass->delete_job) {
    writes->Begin();
    client_.Delete(
        kind_->resource(), pass->ns, pass->name,
        {.propagation = "Background", .precondition_uid = std::string(api::Uid(*pass->job))},
        ended);
  }
  if (pass->want_group) {
    WriteServices(pass, writes);
    WriteMembers(pass, writes);
  }
  writes->End(Status::Ok());
}

// Pods come after what they need; what that is follows from how many there are.
void JobController::WriteMembers(const std::shared_ptr<Pass>& pass,
                                 const std::shared_ptr<Writes>& writes) {
  std::vector<json::Value> dependents;
  if (!pass->create_pods.empty()) dependents = kind_->Dependents(*pass->job, pass->spec);
  if (dependents.empty()) return WriteGroups(pass, writes);
  writes->Begin();
  PutDependents(client_, *pass->job, std::move(dependents),
                [this, pass, writes](const Status& put) {
                  if (put.ok()) WriteGroups(pass, writes);
                  if (!put.ok()) {
                    events_.Record(*pass->job, "Warning", "FailedCreate",
                                   StrCat("Error creating: ", put.message()));
                  }
                  writes->End(put);
                });
}

void JobController::WriteServices(const std::shared_ptr<Pass>& pass,
                                  const std::shared_ptr<Writes>& writes) {
  auto ended = [writes](const Result<json::SharedValue>& result) {
    bool fine = result.ok() || Harmless(result.status().code());
    writes->End(fine ? Status::Ok() : result.status());
  };
  std::set<std::string> wanted;
  for (json::Value& service : kind_->Services(*pass->job, pass->spec)) {
    std::string name(api::Name(service));
    wanted.insert(name);
    if (services_.Get(StrCat(pass->ns, "/", name))) continue;
    json::Set(service, {"metadata", "ownerReferences"},
              json::Array{api::MakeOwnerReference(*pass->job)});
    writes->Begin();
    client_.Create(client::resources::kServices, pass->ns, service, ended);
  }
  // Of members that there are no more.
  for (const json::SharedValue& service : services_.ByIndex("owner", api::Uid(*pass->job))) {
    if (wanted.contains(std::string(api::Name(*service))) || api::IsDeleting(*service)) continue;
    writes->Begin();
    client_.Delete(client::resources::kServices, pass->ns, api::Name(*service),
                   {.precondition_uid = std::string(api::Uid(*service))}, ended);
  }
}

void JobController::CreatePods(const std::shared_ptr<Pass>& pass,
                               const std::shared_ptr<Writes>& writes,
                               const std::string& group) {
  for (const json::Value& pod : pass->create_pods) {
    if (pass->spec.grouped && api::Label(pod, keys::kPodGroup) != group) continue;
    writes->Begin();
    client_.Create(client::resources::kPods, pass->ns, pod,
                   [this, pass, writes](const Result<json::SharedValue>& result) {
                     if (result.ok() && !pods_.Get(api::KeyOf(**result))) {
                       made_[std::string(api::Uid(*pass->job))].insert_or_assign(
                           std::string(api::Name(**result)), context_.clock.Steady());
                     }
                     bool fine = result.ok() || Harmless(result.status().code());
                     if (!fine) {
                       events_.Record(*pass->job, "Warning", "FailedCreatePod",
                                      StrCat("Error creating: ", result.status().message()));
                     }
                     writes->End(fine ? Status::Ok() : result.status());
                   });
  }
}

void JobController::WriteGroups(const std::shared_ptr<Pass>& pass,
                                const std::shared_ptr<Writes>& writes) {
  if (!pass->spec.grouped) return CreatePods(pass, writes, "");
  std::set<std::string> groups{pass->name};
  if (pass->spec.tiered()) {
    for (const ReplicaSpec& replica : pass->spec.replicas) {
      for (int64_t k = 0; k < replica.replicas; ++k) groups.insert(pass->GroupOf(replica, k));
    }
  }
  for (const std::string& group : groups) WriteGroupAndPods(pass, writes, group);
}

// A pod whose group is not there yet waits for it. A group that changes comes first: it says how
// many of the new pods have to start together.
void JobController::WriteGroupAndPods(const std::shared_ptr<Pass>& pass,
                                      const std::shared_ptr<Writes>& writes,
                                      const std::string& name) {
  json::Value wanted = MakePodGroup(PartsOf(*pass), name);
  json::SharedValue known = groups_.Get(StrCat(pass->ns, "/", name));
  const json::Value* known_spec = known ? json::Find(*known, {"spec"}) : nullptr;
  if (known_spec && ContainsAll(*known_spec, *json::Find(wanted, {"spec"}))) {
    return CreatePods(pass, writes, name);
  }
  writes->Begin();
  if (!known) {
    client_.Create(client::resources::kPodGroups, pass->ns, wanted,
                   [writes](const Result<json::SharedValue>& result) {
                     bool there = result.status().code() == Code::kAlreadyExists;
                     writes->End(there ? Status::Ok() : result.status());
                   });
    return CreatePods(pass, writes, name);
  }
  json::Value patch = json::Object{{"spec", *json::Find(wanted, {"spec"})}};
  client_.Patch(client::resources::kPodGroups, pass->ns, name, client::PatchType::kMerge, patch,
                [this, pass, writes, name](const Result<json::SharedValue>& result) {
                  if (result.ok()) CreatePods(pass, writes, name);
                  writes->End(result.status());
                });
}

}  // namespace swell::controllers
