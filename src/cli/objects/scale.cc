// swell scale: another number of replicas for a job, between its bounds.
#include <algorithm>
#include <cstdint>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/client/optimistic_update.h"

namespace swell::cli {
namespace {

std::string RoleNames(const std::vector<RoleBounds>& roles) {
  std::vector<std::string> names;
  for (const RoleBounds& role : roles) names.push_back(role.role);
  return Join(names, ", ");
}

// The role that is meant: the one that is named, else the only elastic one, else the workers.
Result<RoleBounds> Choose(const JobView& job,
                          const std::vector<RoleBounds>& roles,
                          const std::string& name) {
  if (!name.empty()) {
    for (const RoleBounds& role : roles) {
      if (ToLower(role.role) == ToLower(name)) return role;
    }
    return Misuse(StrCat("job ", Quote(job.name), " has no role ", Quote(name),
                         "; it has: ", RoleNames(roles)));
  }
  std::vector<RoleBounds> elastic;
  for (const RoleBounds& role : roles) {
    if (role.least < role.most) elastic.push_back(role);
  }
  if (elastic.size() == 1) return elastic[0];
  if (elastic.size() > 1) {
    return Misuse(StrCat("job ", Quote(job.name), " has several elastic roles: ",
                         RoleNames(elastic), "; say which one with --role"));
  }
  for (const RoleBounds& role : roles) {
    if (ToLower(role.role) == "worker") return role;
  }
  return roles.front();
}

class ScaleAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Int("--replicas", &replicas_, "N", "number of replicas");
    flags.Text("--role", &role_, "ROLE", "role to scale; needed if several roles are elastic");
    flags.Int("--current-replicas", &current_, "N", "only if the current number is this");
    flags.Switch("--dry-run", &dry_run_, "show what would change");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty() || replicas_ == kUnsaid) {
      return Misuse("expected a job and a number of replicas: swell scale JOB --replicas N");
    }
    if (replicas_ < 0) return Misuse(StrCat("--replicas: ", replicas_, ": must be 0 or more"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    for (const std::string& word : words) {
      SWELL_RETURN_IF_ERROR(Scale(session, *api, word));
    }
    return 0;
  }

 private:
  struct Seen {
    JobView job;
    RoleBounds role;
  };

  Status Scale(Session& session, Api& api, const std::string& name) const {
    auto look = [&]() -> Result<Seen> {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(api, session.Namespace(), name));
      SWELL_ASSIGN_OR_RETURN(RoleBounds role, ChooseRole(job));
      return Seen{std::move(job), std::move(role)};
    };
    auto write = [&](const Seen& seen) {
      const RoleBounds& role = seen.role;
      auto written = Write(api, seen.job, role);
      if (written.ok()) {
        session.OutLine(StrCat(seen.job.ResourceName(), " scaled: ", role.role, " ", role.replicas,
                               " -> ", replicas_, " (", role.least, " to ", role.most, ")",
                               dry_run_ ? " (dry run)" : ""));
      }
      return written;
    };
    return client::UpdateWithRetry(look, write).status();
  }

  static std::string HowToScale(const JobView& job, const std::string& role) {
    const bool has_roles = job.kind->roles == "roles";
    const bool has_policy =
        (job.kind->roles == "pytorchReplicaSpecs" || job.kind->roles == "mpiReplicaSpecs") &&
        role == "Worker";
    if (!has_roles && !has_policy) {
      return "roles of TrainingJobs and workers of PyTorchJobs and MPIJobs can be scaled";
    }
    const std::string field =
        has_roles ? StrCat("spec.roles.", role, ".elastic") : "spec.elasticPolicy";
    return StrCat("set minReplicas and maxReplicas of ", field, " to scale it");
  }

  // The role that is meant; an error if it may not have the wanted number of replicas.
  Result<RoleBounds> ChooseRole(const JobView& job) const {
    if (job.over()) {
      return Status(Code::kConflict, StrCat("job ", Quote(job.name), " is over: ", job.status));
    }
    const std::vector<RoleBounds> roles = BoundsOf(*job.object, *job.kind);
    if (job.kind->roles.empty() || roles.empty()) {
      return Misuse(StrCat(job.ResourceName(), " has no roles that could be scaled"));
    }
    SWELL_ASSIGN_OR_RETURN(RoleBounds role, Choose(job, roles, role_));
    const std::string what = StrCat("job ", Quote(job.name), ": role ", Quote(role.role));
    if (role.least >= role.most) {
      return Status(Code::kInvalid, StrCat(what, " has a fixed size of ", role.replicas, "; ",
                                           HowToScale(job, role.role)));
    }
    const bool few = replicas_ < role.least;
    if (few || replicas_ > role.most) {
      return Status(
          Code::kInvalid,
          StrCat(what, ": ", replicas_, " replicas are ", few ? "fewer than " : "more than ",
                 few ? role.least : role.most, " (", few ? role.least_field : role.most_field,
                 "); it can have ", role.least, " to ", role.most));
    }
    if (current_ >= 0 && current_ != role.replicas) {
      return Status(Code::kConflict, StrCat(what, " has ", role.replicas, " replicas, not ",
                                            current_, " as --current-replicas says"));
    }
    return role;
  }

  // With the version that was looked at: bounds may have changed since.
  Result<json::SharedValue> Write(Api& api, const JobView& job, const RoleBounds& role) const {
    json::Value patch = json::Object{};
    client::SayVersionSeen(patch, *job.object);
    json::Set(patch, {"spec", job.kind->roles, role.role, "replicas"}, replicas_);
    return api.Patch(job.kind->resource, job.ns, job.name, client::PatchType::kMerge, patch,
                     {.dry_run = dry_run_});
  }

  static constexpr int64_t kUnsaid = INT64_MIN;
  int64_t replicas_ = kUnsaid, current_ = -1;
  std::string role_;
  bool dry_run_ = false;
};

}  // namespace

Command ScaleCommandSpec() {
  return {
      .name = "scale",
      .group = "Jobs",
      .summary = "Change the number of replicas of an elastic job.",
      .usage = "JOB... --replicas N",
      .examples = {{"Shrink a job to two replicas", "swell scale mnist --replicas 2"},
                   {"One role of several", "swell scale mnist --role worker --replicas 8"}},
      .completes = Completes::kJob,
      .make = Makes<ScaleAction>(),
  };
}

}  // namespace swell::cli
