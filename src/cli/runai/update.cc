// runai inference update: changes how many servers run.
#include "base/strings.h"
#include "cli/runai/runai.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::runai {
namespace {

class UpdateAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Int("--min-replicas", &servers_, "N", "number of servers").also = {"--workers"};
    flags.Int("--max-replicas", &most_, "N",
              "must equal --min-replicas: servers are not scaled by their load");
    for (const char* flag : {"-i,--image", "-c,--command", "-e,--environment", "--working-dir",
                             "--image-pull-policy"}) {
      flags.Refuse(flag,
                   "servers keep what they were started with; runai delete WORKLOAD, and submit it "
                   "again");
    }
    RefuseScaling(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) {
      return Misuse("expected one name: runai inference update WORKLOAD --min-replicas 2");
    }
    if (servers_ < 1) {
      return Misuse(servers_ == kUnsaid
                        ? std::string("--min-replicas is not set")
                        : StrCat("--min-replicas ", servers_, ": expected 1 or more"));
    }
    if (most_ != kUnsaid && most_ != servers_) {
      return Misuse(StrCat("--max-replicas ", most_,
                           ": servers are not scaled by their load; expected --min-replicas, ",
                           servers_));
    }
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    SWELL_ASSIGN_OR_RETURN(const JobView job, FindWorkload(session, scope, words[0]));
    SWELL_ASSIGN_OR_RETURN(const json::Value patch, PatchOf(job));
    auto changed =
        scope.api->Patch(job.kind->resource, job.ns, job.name, client::PatchType::kMerge, patch);
    if (!changed.ok()) return changed.status();
    session.OutLine(StrCat("The job '", job.name, "' has been updated successfully"));
    return 0;
  }

 private:
  Result<json::Value> PatchOf(const JobView& job) const {
    json::Value patch = json::Object{};
    const std::string_view role = ClassOf("inference").role;
    if (job.kind->workload == "inference") {
      json::Set(patch, {"spec", "minScale", "value"}, servers_);
      // maxScale may not be below minScale.
      if (json::Find(*job.object, {"spec", "maxScale"}) != nullptr) {
        json::Set(patch, {"spec", "maxScale", "value"}, servers_);
      }
    } else if (json::Find(*job.object, {"spec", "roles", role}) != nullptr) {
      json::Set(patch, {"spec", "roles", role, "replicas"}, servers_);
    } else {
      return Misuse(StrCat("the workload ", Quote(job.name), " is of type ", TypeWord(job),
                           ", and only inference workloads can be updated"));
    }
    return patch;
  }

  static constexpr int64_t kUnsaid = INT64_MIN;
  int64_t servers_ = kUnsaid, most_ = kUnsaid;
};

}  // namespace

void RefuseScaling(Flags& flags) {
  for (const char* flag :
       {"--initial-replicas", "--activation-replicas", "--metric", "--metric-threshold",
        "--concurrency-hard-limit", "--scale-to-zero-retention", "--scale-down-delay"}) {
    flags.Refuse(flag, "servers are not scaled by their load; --min-replicas N says how many run");
  }
}

Command UpdateSpec() {
  return {
      .name = "update",
      .summary = "Change how many servers of an inference workload run.",
      .usage = "WORKLOAD --min-replicas N",
      .examples = {{"Three servers", "runai inference update server1 -p team-a --min-replicas 3"}},
      .completes = Completes::kJob,
      .make = Makes<UpdateAction>(),
  };
}

}  // namespace swell::cli::runai
