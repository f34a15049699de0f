#include "jobs/pass/job_writes.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/pass/job_dependents.h"
#include "json/patch.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

// After this a pod that was created but never seen is created again: it may have been deleted while
// the watch was broken.
constexpr Duration kWatchLag = std::chrono::seconds(30);
// How often a job looks whether the Service of another owner that has the name of one of its own is
// still there.
constexpr Duration kReadServiceAgain = std::chrono::seconds(10);

// Objects that are created together.
struct Creation {
  size_t open = 0;  // not answered yet
  std::vector<std::string> names;
};

// Whether every field of `wanted` is in `known` with the same value; the server may add more, in
// items of lists, too.
bool ContainsAll(const json::Value& known, const json::Value& wanted) {
  if (known.is_array() && wanted.is_array()) {
    return std::ranges::equal(known.get_array(), wanted.get_array(), ContainsAll);
  }
  if (!wanted.is_object()) return json::Equal(known, wanted);
  for (const auto& [key, value] : wanted.get_object()) {
    const json::Value* found = json::Find(known, {std::string_view(key.data(), key.size())});
    if (found == nullptr || !ContainsAll(*found, value)) return false;
  }
  return true;
}

// Refused for what it is, not because it is there already or its namespace goes.
bool IsRefused(const Result<json::SharedValue>& created) {
  if (created.ok()) return false;
  const Code code = created.status().code();
  return code != Code::kAlreadyExists && code != Code::kNotFound;
}

// The API server takes no pod whose account does not exist.
void LeaveOutAccounts(const std::set<std::string>& accounts, std::vector<json::Value>& pods) {
  for (json::Value& pod : pods) {
    const std::string account(json::GetString(pod, {"spec", "serviceAccountName"}));
    if (accounts.contains(account)) json::Remove(pod, {"spec", "serviceAccountName"});
  }
}

}  // namespace

JobWrites::JobWrites(controllers::Context& context, const JobKind& kind, Answers answers)
    : clock_(context.clock),
      kind_(kind),
      answers_(std::move(answers)),
      pods_(context.informers.Of(client::resources::kPods)),
      groups_(context.informers.Of(client::resources::kPodGroups)),
      services_(context.informers.Of(client::resources::kServices)),
      events_(controllers::MakeRecorder(context, ToLower(kind.kind()) + "-controller")),
      client_(
          context.executor, context.server, context.user, ToLower(kind.kind()) + "-controller") {}

void JobWrites::OnPodSeen(const std::string& job_uid, std::string_view pod) {
  expected_.Seen(StrCat(job_uid, "/", pod));
}

void JobWrites::Forget(const std::string& job_uid) {
  refused_.erase(job_uid);
  told_.erase(job_uid);
  expected_.Forget(job_uid);
}

// The status is written before the writes that follow from it. Writes that only add objects need
// not wait for it.
void JobWrites::Write(const PassPtr& pass, client::WorkQueue::Done done) {
  auto writes = controllers::MakeBatch(std::move(done));
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
    client_.Patch(kind_.resource(), pass->ns, pass->name, client::PatchType::kMerge, patch,
                  writes->Track([this, pass, writes, rest](const Result<json::SharedValue>& job) {
                    if (!job.ok()) return;
                    answers_.on_annotated(*pass);
                    WriteStatus(pass, **job, writes, rest);
                  }));
  }
  writes->Close();
}

void JobWrites::WriteStatus(const PassPtr& pass,
                            const json::Value& job,
                            const BatchPtr& writes,
                            const std::function<void()>& then) {
  const json::Value* before = api::FindStatus(job);
  json::Value patch =
      json::MakeMergePatch(before ? *before : json::Value(json::Object{}), pass->status);
  if (pass->delete_job || patch.get_object().empty()) return then();
  json::Value document =
      json::Object{{"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(job)}}},
                   {"status", std::move(patch)}};
  client_.Patch(kind_.resource(), pass->ns, pass->name, client::PatchType::kMerge, document,
                writes->Track([then](const Result<json::SharedValue>& result) {
                  if (result.ok()) then();
                }),
                "status");
}

void JobWrites::WriteRest(const PassPtr& pass, const BatchPtr& writes) {
  answers_.on_status(*pass);
  for (const JobPass::Event& event : pass->events) {
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
        {"metadata", json::Object{{"uid", api::Uid(*pod)},
                                  {"annotations", json::Object{{api::keys::kStopRequested,
                                                                "the job has failed"}}}}},
        {"spec", json::Object{{"activeDeadlineSeconds", 1}}}};
    client_.Patch(client::resources::kPods, pass->ns, api::Name(*pod), client::PatchType::kMerge,
                  patch, writes->Track());
  }
  for (const json::SharedValue& pod : pass->free_pods) {
    const json::Value patch = json::Object{
        {"metadata",
         json::Object{{"uid", api::Uid(*pod)},
                      {"annotations", json::Object{{api::keys::kPreemptsFrom, nullptr}}}}}};
    client_.Patch(client::resources::kPods, pass->ns, api::Name(*pod), client::PatchType::kMerge,
                  patch, writes->Track());
  }
  if (pass->delete_job) {
    client_.Delete(
        kind_.resource(), pass->ns, pass->name,
        {.propagation = "Background", .precondition_uid = std::string(api::Uid(*pass->job))},
        writes->Track());
  }
  if (pass->want_group) {
    WriteServices(pass, writes);
    WriteMembers(pass, writes);
  }
}

// Pods come after what they need; what that is follows from how many there are.
void JobWrites::WriteMembers(const PassPtr& pass, const BatchPtr& writes) {
  Result<std::vector<json::Value>> dependents = std::vector<json::Value>();
  if (!pass->create_pods.empty() || pass->Shrinks()) {
    dependents = kind_.Dependents(*pass->job, pass->spec);
  }
  auto refused = [this, pass, writes](const Status& status) {
    OnRefused(*pass, "FailedCreate", StrCat("Error creating: ", status.message()));
    writes->Fail(status);
  };
  if (!dependents.ok()) return refused(dependents.status());
  if (dependents->empty()) return WriteGroups(pass, writes);
  PutDependents(client_, *pass->job, std::move(dependents).value(),
                [this, pass, writes, refused, ended = writes->Track()](
                    const Status& put, const std::set<std::string>& without_accounts) {
                  LeaveOutAccounts(without_accounts, pass->create_pods);
                  if (put.ok()) {
                    WriteGroups(pass, writes);
                  } else {
                    refused(put);
                  }
                  ended(json::SharedValue());
                });
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): PutDependents keeps what it is given

void JobWrites::SayCreated(const JobPass& pass,
                           std::string_view reason,
                           std::string_view what,
                           const std::vector<std::string>& names) {
  const std::string group = kind_.resource().group;
  if (names.empty() || (group != "kubeflow.org" && !group.ends_with("kubedl.io"))) return;
  constexpr size_t kNamed = 4;
  const size_t named = std::min(names.size(), kNamed);
  const std::string more =
      names.size() > named ? StrCat(" and ", names.size() - named, " more") : "";
  events_.Record(
      *pass.job, "Normal", reason,
      StrCat("Created ", what, names.size() > 1 ? "s: " : ": ",
             Join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named)}, ", "),
             more));
}

void JobWrites::WriteServices(const PassPtr& pass, const BatchPtr& writes) {
  const auto created = std::make_shared<Creation>();
  std::set<std::string> wanted;
  for (json::Value& service : kind_.Services(*pass->job, pass->spec)) {
    std::string name(api::Name(service));
    wanted.insert(name);
    if (const json::SharedValue there = services_.Get(StrCat(pass->ns, "/", name))) {
      UpdateService(pass, *there, service, writes);
      continue;
    }
    json::Set(service, {"metadata", "ownerReferences"},
              json::Array{api::MakeOwnerReference(*pass->job)});
    ++created->open;
    client_.Create(
        client::resources::kServices, pass->ns, service,
        writes->Track([this, pass, created, name](const Result<json::SharedValue>& result) {
          if (result.ok()) {
            created->names.push_back(name);
            ForgetSaid(*pass, name);
          }
          if (IsRefused(result)) {
            SayOfService(*pass, name, "FailedCreateService",
                         StrCat("Error creating: ", result.status().message()));
          }
          if (--created->open > 0) return;
          SayCreated(*pass, "SuccessfulCreateService", "service", created->names);
        }));
  }
  // Members that no longer exist leave their services behind.
  for (const json::SharedValue& service : services_.ByIndex("owner", api::Uid(*pass->job))) {
    if (wanted.contains(std::string(api::Name(*service))) || api::IsDeleting(*service)) continue;
    client_.Delete(client::resources::kServices, pass->ns, api::Name(*service),
                   {.precondition_uid = std::string(api::Uid(*service))}, writes->Track());
  }
}

// The job runs without it, and its name leads elsewhere.
void JobWrites::LeaveService(const PassPtr& pass,
                             const json::Value& there,
                             const BatchPtr& writes) {
  // Nothing tells when it goes.
  writes->RequeueAfter(kReadServiceAgain);
  const auto owner = api::ControllerOf(there);
  // That of a deleted job of this name and kind is about to go.
  if (owner && kind_.Owns(*owner) && owner->name == pass->name) return;
  const std::string name(api::Name(there));
  const std::string whose =
      owner ? StrCat("belongs to ", owner->kind, " ", owner->name, " (", owner->api_version, ")")
            : "exists and does not belong to the job";
  SayOfService(*pass, name, "FailedCreateService",
               StrCat("Service ", name, " ", whose,
                      ", so this name leads to what that Service selects. Delete it, or give the "
                      "job another name."));
}

// A job's ports may change while it runs. Fields that are as they should be are not written.
void JobWrites::UpdateService(const PassPtr& pass,
                              const json::Value& there,
                              const json::Value& service,
                              const BatchPtr& writes) {
  const auto owner = api::ControllerOf(there);
  if (!owner || owner->uid != pass->uid()) return LeaveService(pass, there, writes);
  json::Object changed;
  for (const auto& [key, value] : json::GetObject(service, {"spec"})) {
    const std::string_view field(key.data(), key.size());
    const json::Value* known = json::Find(there, {"spec", field});
    if (known == nullptr || !ContainsAll(*known, value)) changed[field] = value;
  }
  const std::string name(api::Name(there));
  if (changed.empty()) return ForgetSaid(*pass, name);
  const json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(there)}}},
                                         {"spec", std::move(changed)}};
  client_.Patch(client::resources::kServices, pass->ns, name, client::PatchType::kMerge, patch,
                writes->Track([this, pass, name](const Result<json::SharedValue>& result) {
                  if (!IsRefused(result)) return;
                  SayOfService(*pass, name, "FailedUpdateService",
                               StrCat("Error updating: ", result.status().message()));
                }));
}

void JobWrites::ForgetSaid(const JobPass& pass, const std::string& service) {
  const auto said = told_.find(pass.uid());
  if (said != told_.end()) said->second.erase(service);
}

void JobWrites::SayOfService(const JobPass& pass,
                             const std::string& service,
                             std::string_view reason,
                             std::string message) {
  std::string& said = told_[pass.uid()][service];
  if (said == message) return;
  events_.Record(*pass.job, "Warning", reason, message);
  said = std::move(message);
}

void JobWrites::CreatePods(const PassPtr& pass, const BatchPtr& writes, const std::string& group) {
  const auto created = std::make_shared<Creation>();
  for (const json::Value& pod : pass->create_pods) {
    if (pass->spec.grouped && api::Label(pod, api::keys::kPodGroup) != group) continue;
    ++created->open;
    client_.Create(client::resources::kPods, pass->ns, pod,
                   writes->Track([this, pass, created](const Result<json::SharedValue>& result) {
                     if (result.ok()) created->names.emplace_back(api::Name(**result));
                     if (--created->open == 0) {
                       SayCreated(*pass, "SuccessfulCreatePod", "pod", created->names);
                     }
                     if (result.ok() && !pods_.Get(api::KeyOf(**result))) {
                       const std::string uid = pass->uid();
                       expected_.Add(uid, StrCat(uid, "/", api::Name(**result)), clock_.Steady());
                     }
                     if (!IsRefused(result)) return;
                     if (result.status().code() == Code::kForbidden)
                       GiveBackMemory(pass, result.status());
                     OnRefused(*pass, "FailedCreatePod",
                               StrCat("Error creating: ", result.status().message()));
                   }));
  }
}

// An event now, and a condition in the next pass, which the failed write brings.
void JobWrites::OnRefused(const JobPass& pass,
                          std::string_view reason,
                          const std::string& message) {
  events_.Record(*pass.job, "Warning", reason, message);
  refused_[std::string(api::Uid(*pass.job))] = message;
}

void JobWrites::WriteGroups(const PassPtr& pass, const BatchPtr& writes) {
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
bool JobWrites::IsOfAnotherJob(const JobPass& pass, const json::Value& group) {
  const std::optional<api::OwnerReference> owner = api::ControllerOf(group);
  if (!owner || owner->uid == api::Uid(*pass.job)) return false;
  // The group of a deleted job of this name and kind is about to go.
  if (!kind_.Owns(*owner)) {
    OnRefused(
        pass, "FailedCreate",
        StrCat("PodGroup ", api::Name(group), " belongs to ", owner->kind, " ", owner->name, " (",
               owner->api_version, "). Delete that job, or give this one another name."));
  }
  return true;
}

// A pod whose group is not there yet waits for it. A group that changes comes first: it says how
// many of the new pods have to start together.
void JobWrites::WriteGroupAndPods(const PassPtr& pass,
                                  const BatchPtr& writes,
                                  const std::string& name) {
  json::Value wanted = MakePodGroup(pass->Parts(), name);
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

bool JobWrites::IsExpected(JobPass& pass, const std::string& pod) {
  const std::string token = StrCat(api::Uid(*pass.job), "/", pod);
  const auto added = expected_.AddedAt(token);
  if (!added) return false;
  const Duration left = *added + kWatchLag - clock_.Steady();
  if (left <= Duration::zero()) {
    expected_.Seen(token);
    return false;
  }
  pass.RequeueAfter(left);
  return true;
}

void JobWrites::NoteRefusal(JobPass& pass) {
  const std::string uid = pass.uid();
  if (pass.create_pods.empty()) refused_.erase(uid);
  const auto refused = refused_.find(uid);
  if (refused != refused_.end()) {
    pass.SetFirst(kReplicaFailure, true, "FailedCreate", refused->second);
  } else if (pass.create_pods.empty() && pass.IsTrue(kReplicaFailure)) {
    pass.SetFirst(kReplicaFailure, false, "Created", "No member waits to be created any more.");
  }
}

// A limit of the namespace, or its quota, refuses the memory: the pods get what the job says.
void JobWrites::GiveBackMemory(const PassPtr& pass, const Status& refused) {
  if (refused.message().find("memory") == std::string::npos ||
      api::Annotation(*pass->job, api::keys::kMemoryRaised).empty() ||
      !api::Annotation(*pass->job, api::keys::kMemoryRefused).empty()) {
    return;
  }
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(*pass->job)},
                                {"annotations",
                                 json::Object{{api::keys::kMemoryRefused, refused.message()}}}}}};
  client_.Patch(kind_.resource(), pass->ns, pass->name, client::PatchType::kMerge, patch,
                [this, pass](const Result<json::SharedValue>& job) {
                  if (!job.ok()) return answers_.on_again(pass->key);
                  events_.Record(*pass->job, "Warning", "MemoryNotRaised",
                                 StrCat("Pods with more memory were refused, so they are made "
                                        "with the memory that the job says: ",
                                        api::Annotation(**job, api::keys::kMemoryRefused)));
                });
}

}  // namespace swell::jobs
