#include "jobs/kinds/mars_env.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/wrong_field.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;

constexpr std::string_view kWorker = "Worker";
constexpr std::string_view kTuning = "workerMemoryTuningPolicy";
constexpr std::string_view kCacheVolume = "mars-shared-cache";
// Every container of every worker mounts each. More than a node has disks is of no use.
constexpr size_t kSpillDirsMax = 32;

// The requests of the container that KubeDL takes for the one that computes.
api::Amounts MainAmounts(const json::Value& pod) {
  const json::Array& containers = api::Containers(pod);
  const auto named = std::find_if(
      containers.begin(), containers.end(),
      [](const json::Value& container) { return api::ContainerName(container) == "mars"; });
  return api::ContainerAmounts(named == containers.end() ? containers[0] : *named,
                               api::AmountField::kRequests);
}

int64_t AmountOf(const api::Amounts& amounts, std::string_view resource) {
  const auto found = amounts.find(resource);
  return found == amounts.end() ? 0 : found->second.Value();
}

// Workers are not in it: they connect to the others, and their number may change.
std::string ClusterDetail(const ConnectedMember& member, const json::Value& pod) {
  json::Object cluster = member.Cluster(StrCat(".", api::Namespace(member.job), ".svc"), kWorker);
  json::Object task{{"type", ToLower(member.role.type)}, {"index", member.index}};
  if (member.role.type == kWorker) {
    const api::Amounts all =
        api::PodAmounts(*json::Find(pod, {"spec"}), api::AmountField::kRequests);
    task["resources"] =
        json::Object{{"cpu_procs", AmountOf(all, "cpu")}, {"phy_mem", AmountOf(all, "memory")}};
  }
  return json::Print(json::Object{{"cluster", std::move(cluster)}, {"task", std::move(task)}});
}

// Whether the job has a volume of its own there, which then serves.
bool IsMounted(const json::Value& pod, std::string_view path) {
  const auto mounts = [path](const json::Value& container) {
    const json::Array& all = json::GetArray(container, {"volumeMounts"});
    return std::any_of(all.begin(), all.end(), [path](const json::Value& one) {
      return json::GetString(one, {"mountPath"}) == path;
    });
  };
  const json::Array& containers = api::Containers(pod);
  return std::any_of(containers.begin(), containers.end(), mounts);
}

// Volumes for what does not fit into memory, in the directories that the policy names.
void AddSpillDirs(const json::Value& policy, int64_t storage, json::Value& pod) {
  std::vector<std::string> paths;
  for (const json::Value& path : json::GetArray(policy, {"spillDirs"})) {
    paths.emplace_back(json::View(path.get_string()));
  }
  if (paths.empty()) return;
  json::Object source;
  if (storage > 0) {
    source["sizeLimit"] = std::to_string(storage / static_cast<int64_t>(paths.size()));
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (IsMounted(pod, paths[i])) continue;
    MountVolume(pod, json::Object{{"name", StrCat("mars-empty-dir-", i)}, {"emptyDir", source}},
                paths[i], {"containers"});
  }
  SetEnv(pod, "MARS_SPILL_DIRS", Join(paths, ","));
}

// 0: Mars decides.
int64_t CacheBytes(const json::Value& policy, int64_t memory) {
  if (const json::Value* size = json::Find(policy, {"workerCacheSize"})) {
    const auto bytes = api::Quantity::FromJson(*size);
    return bytes.ok() ? bytes->Value() : 0;
  }
  const int64_t percent = json::GetInt(policy, {"workerCachePercentage"});
  return memory / 100 * std::clamp<int64_t>(percent, 0, 100);
}

// The workers of a node share memory by files.
void TuneMemory(const json::Value& policy, const api::Amounts& amounts, json::Value& pod) {
  AddSpillDirs(policy, AmountOf(amounts, "ephemeral-storage"), pod);
  const std::string_view plasma = json::GetString(policy, {"plasmaStore"}, "/dev/shm");
  if (!plasma.empty()) SetEnv(pod, "MARS_PLASMA_DIRS", plasma);
  SetEnv(pod, "MARS_LOCK_FREE_FILEIO", json::GetBool(policy, {"lockFreeFileIO"}, true) ? "1" : "0");
  const int64_t bytes = CacheBytes(policy, AmountOf(amounts, "memory"));
  if (bytes == 0) return;
  SetEnv(pod, "MARS_CACHE_MEM_SIZE", std::to_string(bytes));
  if (plasma.empty() || IsMounted(pod, plasma)) return;
  const json::Object source{{"medium", "Memory"}, {"sizeLimit", std::to_string(bytes)}};
  MountVolume(pod, json::Object{{"name", kCacheVolume}, {"emptyDir", source}}, plasma,
              {"containers"});
}

Status CheckSpillDirs(const json::Array& dirs) {
  const std::string field = StrCat("spec.", kTuning, ".spillDirs");
  if (dirs.size() > kSpillDirsMax) {
    return controllers::WrongField(
        field, StrCat("Too many: ", dirs.size(), ": must have at most ", kSpillDirsMax, " items"));
  }
  for (size_t i = 0; i < dirs.size(); ++i) {
    if (dirs[i].is_string() && json::View(dirs[i].get_string()).starts_with('/')) continue;
    return controllers::WrongText(StrCat(field, "[", i, "]"),
                                  dirs[i].is_string() ? json::View(dirs[i].get_string()) : "",
                                  "must be an absolute path");
  }
  return Status::Ok();
}

}  // namespace

void SetMarsEnv(const ConnectedMember& member, json::Value& pod) {
  const api::Amounts amounts = MainAmounts(pod);
  // Without the variable Mars measures the machine. A variable of 0 would leave it nothing.
  for (const auto& [resource, name] :
       {std::pair{"cpu", "MARS_CPU_TOTAL"}, std::pair{"memory", "MARS_MEMORY_TOTAL"}}) {
    const int64_t amount = AmountOf(amounts, resource);
    if (amount > 0) SetEnv(pod, name, std::to_string(amount));
  }
  SetEnv(pod, "MARS_CPU_USE_PROCESS_STAT", "1");
  SetEnv(pod, "MARS_MEM_USE_CGROUP_STAT", "1");
  SetEnv(pod, "MARS_BIND_PORT", std::to_string(member.port()));
  SetEnv(pod, "MARS_K8S_GROUP_LABELS", "job-name");
  controllers::SetEnvFromField(pod, "MARS_CONTAINER_IP", "status.podIP");
  controllers::SetEnvFromField(pod, "MARS_K8S_POD_NAME", "metadata.name");
  controllers::SetEnvFromField(pod, "MARS_K8S_POD_NAMESPACE", "metadata.namespace");
  SetEnv(pod, "MARS_CLUSTER_DETAIL", ClusterDetail(member, pod));
  if (member.role.type != kWorker) return;
  static const json::Value kDefaults = json::Object{};
  const json::Value* policy = json::Find(api::Spec(member.job), {kTuning});
  TuneMemory(policy != nullptr ? *policy : kDefaults, amounts, pod);
}

Status ReadMarsSpec(const json::Value& body, JobSpec&) {
  SWELL_RETURN_IF_ERROR(CheckSpillDirs(json::GetArray(body, {kTuning, "spillDirs"})));
  if (const json::Value* size = json::Find(body, {kTuning, "workerCacheSize"})) {
    const auto bytes = api::Quantity::FromJson(*size);
    if (bytes.ok() && bytes->negative()) {
      return controllers::WrongField(StrCat("spec.", kTuning, ".workerCacheSize"), bytes->Value(),
                                     "must be at least 0");
    }
  }
  const std::string_view plasma = json::GetString(body, {kTuning, "plasmaStore"}, "/dev/shm");
  if (plasma.empty() || plasma.starts_with('/')) return Status::Ok();
  return controllers::WrongText(StrCat("spec.", kTuning, ".plasmaStore"), plasma,
                                "must be an absolute path");
}

}  // namespace swell::jobs
