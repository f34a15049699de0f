// JobController's second half: the objects a job is made of, and a pass's writes.
#include <algorithm>

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/job_controller.h"
#include "controllers/job_pass.h"
#include "json/patch.h"

namespace swell::controllers {
namespace {

// Somebody else was there first, or it is gone already: the next pass sees how things are.
bool Harmless(Code code) { return code == Code::kAlreadyExists || code == Code::kNotFound; }

json::Value PodSets(const JobSpec& spec) {
  json::Array sets;
  bool by_role = std::any_of(spec.replicas.begin(), spec.replicas.end(),
                             [](const ReplicaSpec& replica) { return replica.min_member; });
  int64_t total = spec.TotalReplicas();
  int64_t need = std::min(spec.min_available.value_or(total), total);
  for (const ReplicaSpec& replica : spec.replicas) {
    int64_t min_member = std::min(need, replica.replicas);
    need -= min_member;
    if (by_role) {
      min_member = std::min(replica.min_member.value_or(replica.replicas), replica.replicas);
    }
    sets.push_back(json::Object{{"name", ToLower(replica.type)}, {"minMember", min_member}});
  }
  return sets;
}

// Members beyond the minimum whose class is not the gang's, as a group of their own.
json::Value SurplusSets(const JobSpec& spec) {
  json::Array sets;
  for (const ReplicaSpec& replica : spec.replicas) {
    sets.push_back(json::Object{{"name", ToLower(replica.type)}, {"minMember", 0}});
  }
  return sets;
}

// Members from this role's first one to the job's last.
int64_t Ordinals(const JobSpec& spec, const ReplicaSpec& replica) {
  int64_t left = 0;
  for (size_t i = spec.replicas.size(); i-- > 0;) {
    left += spec.replicas[i].replicas;
    if (spec.replicas[i].type == replica.type) break;
  }
  return left;
}

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

json::Value JobController::MakePod(const Pass& pass,
                                   const ReplicaSpec& replica,
                                   int64_t index) const {
  json::Value pod = replica.pod_template;
  json::Set(pod, {"apiVersion"}, "v1");
  json::Set(pod, {"kind"}, "Pod");
  json::Object labels = json::GetObject(pod, {"metadata", "labels"});
  for (auto& [key, value] : kind_->Labels(*pass.job, replica, index)) labels[key] = value;
  if (pass.spec.grouped) {
    labels[keys::kPodGroup] = pass.GroupOf(replica, index);
    labels[keys::kPodSet] = ToLower(replica.type);
  }
  if (!pass.spec.project.empty()) labels[keys::kProject] = pass.spec.project;
  std::string name = replica.PodName(pass.name, index);
  json::Set(pod, {"metadata", "name"}, name);
  json::Set(pod, {"metadata", "namespace"}, pass.ns);
  json::Set(pod, {"metadata", "labels"}, std::move(labels));
  if (pass.spec.elastic && api::Annotation(pod, keys::kMemberPriority).empty()) {
    // The first members are given up last: the first of all is where the others meet.
    json::Set(pod, {"metadata", "annotations", keys::kMemberPriority},
              std::to_string(Ordinals(pass.spec, replica) - index));
  }
  if (pass.spec.active_deadline_seconds) {
    json::Set(pod, {"metadata", "annotations", keys::kMaxRunSeconds},
              std::to_string(*pass.spec.active_deadline_seconds));
  }
  if (std::string_view user = api::Annotation(*pass.job, keys::kUser); !user.empty()) {
    json::Set(pod, {"metadata", "annotations", keys::kUser}, user);
  }
  json::Set(pod, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(*pass.job)});
  std::string_view restart = "Never";
  if (replica.restart_policy == RestartPolicy::kOnFailure) restart = "OnFailure";
  if (replica.restart_policy == RestartPolicy::kAlways) restart = "Always";
  json::Set(pod, {"spec", "restartPolicy"}, restart);
  if (!json::Find(pod, {"spec", "hostname"})) json::Set(pod, {"spec", "hostname"}, name);
  const std::string_view priority = pass.spec.ClassOf(replica, index);
  const bool own = replica.Favoured(index);
  if (!priority.empty() && (own || !json::Find(pod, {"spec", "priorityClassName"}))) {
    json::Set(pod, {"spec", "priorityClassName"}, priority);
  }
  if (!json::Find(pod, {"spec", "schedulerName"}))
    json::Set(pod, {"spec", "schedulerName"}, "swell");
  kind_->PreparePod(*pass.job, pass.spec, replica, index, pod);
  return pod;
}

json::Value JobController::MakePodGroup(const Pass& pass, const std::string& name) const {
  const bool gang = name == pass.name;
  std::string_view priority = pass.gang_class;
  if (!gang) {
    priority = std::string_view(name).substr(pass.name.size() + 1);
    if (priority == kNoClass) priority = {};
  }
  bool fail = pass.spec.on_preemption == OnPreemption::kFail;
  json::Object spec = pass.spec.group_fields;
  spec["podSets"] = gang ? PodSets(pass.spec) : SurplusSets(pass.spec);
  spec["onPreemption"] = fail ? "Fail" : "Requeue";
  // A job that fails at its first loss gives up no more places than are needed.
  if (!spec.contains("preemptUnit")) spec["preemptUnit"] = fail ? "Pod" : "Gang";
  if (!priority.empty()) spec["priorityClassName"] = priority;
  if (!pass.spec.project.empty()) spec["project"] = pass.spec.project;
  return json::Object{{"apiVersion", "swell.dev/v1"},
                      {"kind", "PodGroup"},
                      {"metadata", json::Object{{"name", name},
                                                {"namespace", pass.ns},
                                                {"ownerReferences",
                                                 json::Array{api::MakeOwnerReference(*pass.job)}}}},
                      {"spec", std::move(spec)}};
}

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
    WriteGroups(pass, writes);
  }
  writes->End(Status::Ok());
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
  json::Value wanted = MakePodGroup(*pass, name);
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
