#include "jobs/kinds/xdl_env.h"

#include "base/strings.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/wrong_field.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kWorker = "Worker";
constexpr int64_t kDefaultRate = 90;  // percent
constexpr int64_t kDefaultBackoffLimit = 20;

// Jobs share one ZooKeeper. A job must not find there what an older one of its name left.
void OwnPlaceInZooKeeper(std::string_view uid, json::Value& pod) {
  json::Value* containers = json::FindMutable(pod, {"spec", "containers"});
  for (json::Value& container : containers->get_array()) {
    json::Value* env = json::FindMutable(container, {"env"});
    if (env == nullptr || !env->is_array()) continue;
    for (json::Value& variable : env->get_array()) {
      if (json::GetString(variable, {"name"}) != "ZK_ADDR") continue;
      const std::string_view root = json::GetString(variable, {"value"});
      if (root.empty()) continue;
      json::Set(variable, {"value"}, StrCat(root, root.ends_with('/') ? "" : "/", uid));
    }
  }
}

}  // namespace

void SetXdlEnv(const ConnectedMember& member, json::Value& pod) {
  const std::string type = ToLower(member.role.type);
  const json::Object config{{"cluster", member.Cluster("")},
                            {"task", json::Object{{"type", type}, {"index", member.index}}}};
  OwnPlaceInZooKeeper(api::Uid(member.job), pod);
  controllers::SetEnv(pod, "TASK_NAME", type);
  controllers::SetEnv(pod, "TASK_INDEX", std::to_string(member.index));
  controllers::SetEnv(pod, "XDL_CONFIG", json::Print(config));
}

// The rate counts before the number. Without either, nine of ten workers are enough.
Status ReadXdlSpec(const json::Value& body, JobSpec& spec) {
  if (!spec.backoff_limit) spec.backoff_limit = kDefaultBackoffLimit;
  int64_t workers = 0;
  for (const ReplicaSpec& replica : spec.replicas) {
    if (replica.type == kWorker || replica.type == kExtendRole) workers += replica.replicas;
  }
  const int64_t number = json::GetInt(body, {"minFinishWorkNum"}, 0);
  if (number < 0 || number > workers) {
    return controllers::WrongField(
        "spec.minFinishWorkNum", number,
        StrCat("must be between 0 (all) and ", workers, ", the members of Worker and ExtendRole"));
  }
  const bool given = json::Find(body, {"minFinishWorkNum"}) != nullptr;
  const int64_t rate = json::GetInt(body, {"minFinishWorkRate"}, given ? 0 : kDefaultRate);
  if (rate < 0 || rate > 100) {
    return controllers::WrongField("spec.minFinishWorkRate", rate,
                                   "must be between 0 (all) and 100, a percentage");
  }
  if (rate > 0) spec.min_success = (workers * rate + 99) / 100;
  if (rate == 0 && number > 0) spec.min_success = number;
  return Status::Ok();
}

}  // namespace swell::jobs
