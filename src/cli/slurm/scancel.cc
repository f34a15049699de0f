// scancel: ends jobs, or sends them a signal.
#include <algorithm>

#include "base/strings.h"
#include "cli/pods/exec_in.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/values.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::slurm {
namespace {

class ScancelAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-n,--name", &name_, "NAME", "jobs with this name");
    flags.Text("-u,--user", &user_, "NAME", "jobs of this user");
    flags.Switch("--me", &me_, "your own jobs");
    flags.Text("-t,--state", &state_, "STATE", "only jobs in this state: PENDING, RUNNING");
    flags.Text("-p,--partition", &partition_, "POOL", "only jobs in this node pool");
    flags.Text("-A,--account", &account_, "PROJECT", "only jobs of this project");
    flags.Text("-s,--signal", &signal_, "SIGNAL", "send this signal to the job's tasks instead");
    flags.Switch("-b,--batch", &batch_, "with --signal: to the script's shell only");
    flags.Switch("-f,--full", &full_, "with --signal: to the script and its tasks");
    flags.Switch("-Q,--quiet", &quiet_, "no message for a job that is over");
    flags.Switch("-v,--verbose", &verbose_, "name the jobs");
    flags.Refuse("-i,--interactive", "name the jobs that shall end");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ReadFilters(words));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::string user, Me(session, *api));
    if (me_) user_ = user;
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> all, ListShownJobs(session, *api));
    int status = 0;
    for (const JobChoice& choice : choices_) {
      const bool any = std::any_of(all.begin(), all.end(),
                                   [&choice](const JobInfo& job) { return choice.Takes(job); });
      if (any) continue;
      session.ErrLine(
          StrCat("scancel: error: Invalid job id ", choice.text, "; squeue lists the jobs"));
      status = 1;
    }
    for (const JobInfo& job : all) {
      if (!Takes(job)) continue;
      if (!job.state.active) {
        // A user who names a job that is over is told so; a filter leaves it out.
        const bool named = std::any_of(choices_.begin(), choices_.end(), [&job](const auto& one) {
          return one.Takes(job) && one.tasks.empty() && job.array_id.empty();
        });
        if (named && !quiet_) {
          session.ErrLine(StrCat("scancel: job ", job.JobId(), " is over: ", job.state.word));
        }
        continue;
      }
      const Status done =
          signal_.empty() ? CancelJob(session, *api, job, user) : Send(session, job);
      if (!done.ok()) {
        session.ErrLine(StrCat("scancel: error: job ", job.JobId(), ": ", done.message()));
        status = 1;
      } else if (verbose_) {
        session.ErrLine(
            StrCat("scancel: ", signal_.empty() ? "ended" : "signalled", " job ", job.JobId()));
      }
    }
    return status;
  }

 private:
  Status ReadFilters(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      for (const std::string& one : CommaList(word)) {
        SWELL_ASSIGN_OR_RETURN(JobChoice choice, ParseJobChoice(one));
        choices_.push_back(std::move(choice));
      }
    }
    const bool filtered = me_ || !(name_.empty() && user_.empty() && state_.empty() &&
                                   partition_.empty() && account_.empty());
    if (choices_.empty() && !filtered) {
      return Misuse(
          "no job named: scancel JOB, or --name, --user, --state, --partition, --account");
    }
    if (!state_.empty()) {
      wanted_ = FindState(state_);
      if (wanted_ == nullptr || !wanted_->active) {
        return Misuse(StrCat("--state ", Quote(state_), ": expected PENDING or RUNNING"));
      }
    }
    if (signal_.empty()) return Status::Ok();
    const std::string name = SignalName(signal_);
    if (name.empty()) return Misuse(StrCat("--signal ", Quote(signal_), ": no such signal"));
    signal_ = name;
    return Status::Ok();
  }

  bool Takes(const JobInfo& job) const {
    const bool chosen =
        choices_.empty() || std::any_of(choices_.begin(), choices_.end(),
                                        [&job](const JobChoice& one) { return one.Takes(job); });
    const auto is = [](const std::string& wanted, const std::string& has) {
      return wanted.empty() || wanted == has;
    };
    return chosen && is(name_, job.name) && is(user_, job.user) && is(account_, job.account) &&
           is(partition_, job.partition) && (wanted_ == nullptr || wanted_->code == job.state.code);
  }

  Status Send(Session& session, const JobInfo& job) const {
    if (!job.ours) {
      return Misuse(StrCat("signals reach jobs of sbatch and srun; use swell exec ", job.view.name,
                           " -- kill"));
    }
    if (job.state.code != kRunning.code) return Misuse("it does not run");
    for (const json::SharedValue& pod : job.view.pods) {
      if (api::Phase(*pod) != "Running") continue;
      ExecIn exec{.ns = job.view.ns, .pod = std::string(api::Name(*pod)), .container = {}};
      if (batch_ || full_) {
        exec.command = {"/bin/sh", StrCat(kPodFolder, "/", kNodeScript.name), "signal-script",
                        signal_};
      } else {
        exec.command = {"/bin/sh", StrCat(kPodFolder, "/", kNodeScript.name), "signal", signal_};
      }
      if (full_) exec.command.emplace_back("all");
      SWELL_ASSIGN_OR_RETURN(const int status, Exec(session, exec));
      if (status != 0) {
        return Status(Code::kInternal, StrCat("the signal did not reach ", exec.pod));
      }
    }
    return Status::Ok();
  }

  std::string name_, user_, state_, partition_, account_, signal_;
  bool me_ = false, batch_ = false, full_ = false, quiet_ = false, verbose_ = false;
  std::vector<JobChoice> choices_;
  const JobState* wanted_ = nullptr;
};

}  // namespace

Command ScancelSpec() {
  Command command;
  command.name = "scancel";
  command.summary = "End jobs, or send them a signal.";
  command.usage = "[JOB...] [flags]";
  command.examples = {{"One job", "scancel 1532"},
                      {"Some tasks of an array", "scancel 1532_[1-3]"},
                      {"Everything of yours that waits", "scancel --me -t PENDING"},
                      {"Ask a job to save itself", "scancel -s USR1 1532"}};
  command.notes = "sacct shows a cancelled job for seven days.";
  command.make = Makes<ScancelAction>();
  return command;
}

}  // namespace swell::cli::slurm
