// arena scaleout etjob, scalein etjob: workers more or fewer, while the job runs.
#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/client/optimistic_update.h"

namespace swell::cli::arena {
namespace {

constexpr std::string_view kWorker = "Worker";
constexpr Duration kPollInterval = std::chrono::milliseconds(500);

struct Workers {
  int64_t running = 0, all = 0;
};

Workers CountWorkers(const JobView& job) {
  Workers workers;
  for (const json::SharedValue& pod : job.pods) {
    if (RoleOfPod(*pod) != ToLower(kWorker)) continue;
    ++workers.all;
    workers.running += api::Phase(*pod) == "Running" && !api::IsDeleting(*pod);
  }
  return workers;
}

class ScaleWorkersAction : public Action {
 public:
  // `sign`: 1 adds workers, -1 removes some.
  ScaleWorkersAction(std::string_view command, int64_t sign) : command_(command), sign_(sign) {}

  void Declare(Flags& flags) override {
    flags.Text("--name", &name_, "NAME", "name of the job");
    flags.Int("--count", &count_, "N",
              StrCat("how many workers to ", sign_ > 0 ? "add" : "remove", " (default 1)"));
    flags.Text("-t,--timeout", &timeout_, "DURATION",
               "how long to wait until that many workers run (default 60s; 0 does not wait)");
    flags.Int("--retry", &retry_, "N", "accepted for compatibility");
    flags.Text("--script", &script_, "COMMAND",
               "accepted for compatibility; the launcher finds its workers by itself");
    flags.List("-e,--env", &env_, "KEY=VALUE", "accepted for compatibility; for --script");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (name_.empty()) return Misuse("--name is not set");
    if (count_ < 1 || count_ > kInstancesMax) {
      return Misuse(StrCat("--count ", count_, ": expected 1 to ", kInstancesMax));
    }
    SWELL_ASSIGN_OR_RETURN(const Duration limit, ParseDuration(timeout_, "--timeout"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const int64_t wanted, Scale(session, *api));
    for (const std::string& remark : Remarks()) LogLine(session, "warn", remark);
    LogLine(session, "info",
            StrCat("The ", command_, " job ", name_, " has been submitted successfully"));
    if (limit <= Duration::zero()) return 0;
    return Await(session, *api, wanted, limit);
  }

 private:
  struct Seen {
    JobView job;
    RoleBounds role;
    int64_t wanted = 0;
  };

  Result<JobView> Look(Session& session, Api& api) const {
    return FindArenaJob(session, api, name_, TypeFlag(TrainerNamed("etjob")));
  }

  // Empty: the job's size is fixed.
  static std::optional<RoleBounds> WorkersOf(const JobView& job) {
    for (const RoleBounds& role : BoundsOf(*job.object, *job.kind)) {
      if (role.role == kWorker && !role.least_field.empty()) return role;
    }
    return std::nullopt;
  }

  // The wanted number of workers; an error if the job may not have it.
  Result<int64_t> Count(const JobView& job, const RoleBounds& role) const {
    const int64_t wanted = role.replicas + sign_ * count_;
    const bool few = wanted < role.least;
    if (!few && wanted <= role.most) return wanted;
    return Status(Code::kInvalid, StrCat(command_, " by ", count_, " would leave ", job.name,
                                         " with ", wanted, wanted == 1 ? " worker" : " workers",
                                         few ? ", fewer than " : ", more than ",
                                         few ? role.least_field : role.most_field, ", ",
                                         few ? role.least : role.most, "; it has ", role.replicas));
  }

  Result<int64_t> Scale(Session& session, Api& api) const {
    int64_t wanted = 0;
    auto look = [&]() -> Result<Seen> {
      SWELL_ASSIGN_OR_RETURN(JobView job, Look(session, api));
      if (StatusWord(job) != "RUNNING") {
        return Status(Code::kConflict,
                      StrCat("the job: ", name_, " status: ", StatusWord(job),
                             " , is not RUNNING or SCALING, please try again later."));
      }
      if (std::optional<RoleBounds> role = WorkersOf(job)) {
        SWELL_ASSIGN_OR_RETURN(const int64_t number, Count(job, *role));
        return Seen{std::move(job), std::move(*role), number};
      }
      return Status(Code::kInvalid,
                    StrCat("the job ", name_, " has no spec.elasticPolicy: its size is fixed"));
    };
    auto write = [&](const Seen& seen) {
      json::Value patch = json::Object{};
      client::SayVersionSeen(patch, *seen.job.object);
      json::Set(patch, {"spec", seen.job.kind->roles, kWorker, "replicas"}, seen.wanted);
      auto written = api.Patch(seen.job.kind->resource, seen.job.ns, seen.job.name,
                               client::PatchType::kMerge, patch);
      if (!written.ok()) return written;
      wanted = seen.wanted;
      session.OutLine(StrCat(seen.job.ResourceName(), " scaled: ", seen.role.replicas, " -> ",
                             seen.wanted, " workers"));
      return written;
    };
    SWELL_RETURN_IF_ERROR(client::UpdateWithRetry(look, write).status());
    return wanted;
  }

  Result<int> Await(Session& session, Api& api, int64_t wanted, Duration limit) const {
    const SteadyTime start = session.env().clock->Steady();
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(const JobView job, Look(session, api));
      if (job.over()) {
        return Status(Code::kConflict, StrCat("the job ", name_, " is over: ", StatusWord(job)));
      }
      // The job does not go for this command's number any more.
      if (const auto role = WorkersOf(job); role && role->replicas != wanted) {
        return Status(
            Code::kConflict,
            StrCat("the number of workers of ", name_, " was changed meanwhile to ", role->replicas,
                   " by another client; this command had set it to ", wanted));
      }
      const Workers workers = CountWorkers(job);
      if (workers.running == wanted && workers.all == wanted) {
        LogLine(
            session, "info",
            StrCat("The job ", name_, " runs with ", wanted, wanted == 1 ? " worker" : " workers"));
        return 0;
      }
      if (session.env().clock->Steady() - start >= limit) {
        return Status(Code::kTimeout,
                      StrCat("timed out after ", timeout_, ": ", workers.running, " of ", wanted,
                             " workers run", job.why.empty() ? "" : "; ", job.why,
                             ". The job keeps the new number, and reaches it when it can"));
      }
      if (!api.Pause(kPollInterval)) return 130;
    }
  }

  std::vector<std::string> Remarks() const {
    std::vector<std::string> remarks;
    if (retry_ != 0) remarks.emplace_back("--retry has no effect: the change is made once");
    if (!script_.empty() || !env_.empty()) {
      remarks.push_back(StrCat(script_.empty() ? "--env" : "--script",
                               " has no effect: the launcher finds its workers by "
                               "/etc/edl/discover_hosts.sh"));
    }
    return remarks;
  }

  std::string_view command_;
  int64_t sign_, count_ = 1, retry_ = 0;
  std::string name_, timeout_ = "60s", script_;
  std::vector<std::string> env_;
};

class ScaleOutAction final : public ScaleWorkersAction {
 public:
  ScaleOutAction() : ScaleWorkersAction("scaleout", 1) {}
};

class ScaleInAction final : public ScaleWorkersAction {
 public:
  ScaleInAction() : ScaleWorkersAction("scalein", -1) {}
};

Command Spec(std::string_view name, std::string_view summary, std::string_view example) {
  Command scale{
      .name = std::string(name),
      .summary = StrCat(summary, " while it runs."),
  };
  scale.children.push_back({
      .name = "etjob",
      .aliases = {"et"},
      .summary = StrCat(summary, ", and wait until the job has that size."),
      .examples = {{std::string(example), StrCat("arena ", name, " etjob --name mnist --count 1")}},
      .notes = "The exit status is 1 where the timeout passes first; the job keeps the new number.",
  });
  return scale;
}

}  // namespace

Command ScaleOutSpec() {
  Command scale = Spec("scaleout", "Add workers to an elastic job", "One worker more");
  scale.children[0].make = Makes<ScaleOutAction>();
  return scale;
}

Command ScaleInSpec() {
  Command scale = Spec("scalein", "Remove workers from an elastic job", "One worker fewer");
  scale.children[0].make = Makes<ScaleInAction>();
  return scale;
}

}  // namespace swell::cli::arena
