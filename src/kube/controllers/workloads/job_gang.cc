#include "kube/controllers/workloads/job_gang.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

using client::resources::kGangs;
using client::resources::kWorkloads;

constexpr std::string_view kTemplate = "pods";
constexpr size_t kNameMax = 253;

// Differs from the names for an earlier job of the same name.
std::string NameFor(const json::Value& job) {
  const std::string hash = std::to_string(StableHash(api::Uid(job)) % 10'000'000'000ULL);
  return StrCat(api::Name(job).substr(0, kNameMax - hash.size() - 1), "-", hash);
}

const json::Value* Scheduling(const json::Value& job) {
  const json::Value* said = json::Find(job, {"spec", "scheduling"});
  return said != nullptr && said->is_object() ? said : nullptr;
}

// The fewest pods of the gang; 0: its pods are placed one by one.
int64_t MinCount(const json::Value& job) {
  const json::Value* gang = json::Find(job, {"spec", "scheduling", "schedulingPolicy", "gang"});
  if (gang == nullptr || !gang->is_object()) return 0;
  const int64_t parallelism = json::GetInt(job, {"spec", "parallelism"}, 1);
  return json::GetInt(*gang, {"minCount"}, std::max<int64_t>(1, parallelism));
}

// The fields that the template of the group and the group share.
json::Object GroupSpec(const json::Value& job) {
  json::Object spec;
  const int64_t least = MinCount(job);
  spec["schedulingPolicy"] = least > 0 ? json::Object{{"gang", json::Object{{"minCount", least}}}}
                                       : json::Object{{"basic", json::Object()}};
  for (std::string_view field : {"schedulingConstraints", "disruptionMode", "resourceClaims"}) {
    const json::Value* said = json::Find(*Scheduling(job), {field});
    if (said != nullptr && !said->is_null()) spec[field] = *said;
  }
  const std::string_view priority =
      json::GetString(job, {"spec", "template", "spec", "priorityClassName"});
  if (!priority.empty()) spec["priorityClassName"] = priority;
  return spec;
}

bool IsOf(const json::Value& object, const json::Value& job) {
  const auto owner = api::ControllerOf(object);
  return owner && owner->uid == api::Uid(job);
}

json::Value OwnerEntry(std::string_view kind, const json::Value& object) {
  return json::Object{{"apiVersion", kWorkloads.ApiVersion()},
                      {"kind", kind},
                      {"name", api::Name(object)},
                      {"uid", api::Uid(object)}};
}

}  // namespace

bool SaysHowItIsScheduled(const json::Value& job) {
  return Scheduling(job) != nullptr && !api::ControllerOf(job) &&
         json::Find(job, {"spec", "template", "spec", "schedulingGroup"}) == nullptr;
}

void JoinGroup(json::Value& pod, const json::Value& group) {
  json::Set(pod, {"spec", "schedulingGroup"}, json::Object{{"podGroupName", api::Name(group)}});
  json::Array owners = json::GetArray(pod, {"metadata", "ownerReferences"});
  owners.push_back(OwnerEntry("PodGroup", group));
  json::Set(pod, {"metadata", "ownerReferences"}, std::move(owners));
}

JobGang::JobGang(Context& context,
                 client::Client& client,
                 client::EventRecorder& events,
                 client::WorkQueue& jobs)
    : workloads_(context.informers.Of(kWorkloads)),
      groups_(context.informers.Of(kGangs)),
      client_(client),
      events_(events) {
  Follow(workloads_, OwnerQueued(jobs, "Job"));
  Follow(groups_, OwnerQueued(jobs, "Job"));
}

void JobGang::Ensure(const json::SharedValue& job,
                     bool fresh,
                     const Done& done,
                     const Ready& ready) {
  if (!SaysHowItIsScheduled(*job)) return ready(nullptr);
  const std::string name = NameFor(*job);
  const std::string key = StrCat(api::Namespace(*job), "/", name);
  const json::SharedValue workload = workloads_.Get(key);
  const json::SharedValue group = groups_.Get(key);
  const bool ours = (!workload || IsOf(*workload, *job)) && (!group || IsOf(*group, *job));
  if (!ours) return ready(nullptr);
  if (fresh && !workload) return MakeWorkload(job, name, done);
  if (fresh && !group) return MakeGroup(job, *workload, name, done);
  if (workload) {
    const json::Array& templates = json::GetArray(*workload, {"spec", "podGroupTemplates"});
    const bool follows =
        !templates.empty() && FollowMinCount(*job, kWorkloads, *workload, templates[0],
                                             "/spec/podGroupTemplates/0", done);
    if (follows) return;
  }
  const json::Value* spec = group ? json::Find(*group, {"spec"}) : nullptr;
  if (spec != nullptr && FollowMinCount(*job, kGangs, *group, *spec, "/spec", done)) return;
  ready(group);
}

client::ObjectCallback JobGang::Made(const json::SharedValue& job,
                                     std::string_view kind,
                                     const std::string& name,
                                     const Done& done) {
  return [this, job, kind = std::string(kind), name, done](const Result<json::SharedValue>& made) {
    if (made.ok()) {
      events_.Record(*job, "Normal", StrCat(kind, "Created"),
                     StrCat("Created ", kind, " ", name, " for Job ", api::Name(*job)));
      return done(Duration::zero());
    }
    // The informer is behind.
    if (made.status().code() == Code::kAlreadyExists) return done(kNotSynced);
    events_.Record(*job, "Warning", StrCat("Failed", kind, "Create"),
                   StrCat("Failed to create ", kind, " for Job ", api::Name(*job), ": ",
                          made.status().message()));
    done(made.status());
  };
}

void JobGang::MakeWorkload(const json::SharedValue& job,
                           const std::string& name,
                           const Done& done) {
  json::Object pods = GroupSpec(*job);
  pods["name"] = kTemplate;
  const json::Value workload = json::Object{
      {"apiVersion", kWorkloads.ApiVersion()},
      {"kind", "Workload"},
      {"metadata", json::Object{{"name", name},
                                {"namespace", api::Namespace(*job)},
                                {"ownerReferences", json::Array{api::MakeOwnerReference(*job)}}}},
      {"spec", json::Object{{"controllerRef", json::Object{{"apiGroup", "batch"},
                                                           {"kind", "Job"},
                                                           {"name", api::Name(*job)}}},
                            {"podGroupTemplates", json::Array{std::move(pods)}}}}};
  client_.Create(kWorkloads, api::Namespace(*job), workload, Made(job, "Workload", name, done));
}

void JobGang::MakeGroup(const json::SharedValue& job,
                        const json::Value& workload,
                        const std::string& name,
                        const Done& done) {
  json::Object spec = GroupSpec(*job);
  spec["workloadRef"] = json::Object{{"workloadName", name}, {"templateName", kTemplate}};
  const json::Value group = json::Object{
      {"apiVersion", kGangs.ApiVersion()},
      {"kind", "PodGroup"},
      {"metadata",
       json::Object{{"name", name},
                    {"namespace", api::Namespace(*job)},
                    {"ownerReferences", json::Array{api::MakeOwnerReference(*job),
                                                    OwnerEntry("Workload", workload)}}}},
      {"spec", std::move(spec)}};
  client_.Create(kGangs, api::Namespace(*job), group, Made(job, "PodGroup", name, done));
}

bool JobGang::FollowMinCount(const json::Value& job,
                             const client::Resource& resource,
                             const json::Value& object,
                             const json::Value& spec,
                             std::string_view path,
                             const Done& done) {
  const int64_t wanted = MinCount(job);
  const int64_t has = json::GetInt(spec, {"schedulingPolicy", "gang", "minCount"});
  if (wanted == 0 || has == 0 || wanted == has) return false;
  const json::Value patch =
      json::Array{json::Object{{"op", "replace"},
                               {"path", StrCat(path, "/schedulingPolicy/gang/minCount")},
                               {"value", wanted}}};
  client_.Patch(resource, api::Namespace(object), api::Name(object), client::PatchType::kJson,
                patch, Ends(done));
  return true;
}

}  // namespace swell::controllers
