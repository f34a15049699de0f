// salloc: a shell, or a command, in a job of its own.
#include <unistd.h>

#include "base/strings.h"
#include "cli/pods/exec_in.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
// How long a job may take to end after its command has. Then it is cancelled: nobody is in it.
constexpr int kEndTries = 50;

// Holds the nodes until the command has ended.
constexpr std::string_view kHold =
    "#!/bin/sh\nwhile [ ! -e \"$SWELL_SLURM_WORK/released\" ]; do sleep 1; done\n";

// Runs the command, or a shell, with Slurm's commands at hand, and lets the nodes go at its end,
// also where the terminal is closed.
constexpr std::string_view kShell = R"sh(
work=${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID
trap ': >"$work/released"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
PATH=/var/spool/slurm:${SWELL_SLURM_PATH:+$SWELL_SLURM_PATH:}$PATH
export PATH
if [ $# -gt 0 ]; then
  "$@"
elif [ -n "${SHELL-}" ] && command -v "$SHELL" >/dev/null; then
  "$SHELL"
elif command -v bash >/dev/null; then
  bash
else
  sh
fi
exit $?
)sh";

class SallocAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.StopAtFirstWord();
    typed_.Declare(flags);
    flags.Refuse("--no-shell", "sbatch --wrap 'sleep 1h' holds nodes; srun --jobid runs in them");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(RefuseParts(words));
    typed_.Take();
    const bool terminal = session.env().console && ::isatty(STDIN_FILENO) == 1;
    if (words.empty() && !terminal && !typed_.Has("test-only")) {
      return Misuse("no terminal for a shell, and no command: salloc [flags] COMMAND");
    }
    session.env().loop->WatchTermination();
    SWELL_ASSIGN_OR_RETURN(Submission submission,
                           PrepareSubmission(session, typed_, "interactive", false));
    submission.job.script = kHold;
    submission.job.requeue = false;  // nobody would be in it
    if (typed_.Has("test-only")) return ShowPlan(session, submission);
    Api& api = *submission.api;
    SWELL_ASSIGN_OR_RETURN(const SubmittedJob job, SubmitOne(submission, {}));
    Say(session, StrCat("Pending job allocation ", job.id));
    auto status = RunInside(session, api, job, std::move(words), terminal);
    // A signal that came before the command ran, too, must not leave the nodes held.
    session.env().loop->Resume();
    SWELL_RETURN_IF_ERROR(Release(session, api, job, submission.job.user));
    return status;
  }

 private:
  void Say(Session& session, const std::string& text) const {
    if (!typed_.Has("quiet")) session.ErrLine(StrCat("salloc: ", text));
  }

  Result<int> RunInside(Session& session,
                        Api& api,
                        const SubmittedJob& job,
                        std::vector<std::string> words,
                        bool terminal) const {
    std::string said;
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView view, FindJob(api, job.ns, job.name));
      if (view.over()) return WaitForEnd(session, api, job);
      const JobInfo info = InfoOf(view);
      if (info.state.code == kRunning.code && !view.pods.empty()) {
        Say(session, StrCat("Granted job allocation ", job.id));
        ExecIn inside{.ns = job.ns,
                      .pod = std::string(api::Name(*view.pods.front())),
                      .container = std::string(kContainer),
                      .command = {"/bin/sh", "-c", std::string(kShell), "salloc"},
                      .interactive = terminal,
                      .quiet = true};
        inside.command.insert(inside.command.end(), words.begin(), words.end());
        return Exec(session, inside);
      }
      if (!info.waits.empty() && info.waits != said) {
        Say(session, StrCat("job ", job.id, ": ", info.waits));
        said = info.waits;
      }
      if (!api.Pause(kInterval)) return 130;
    }
  }

  // The job ends with its command. One that runs on has lost it: it is cancelled.
  Status Release(Session& session,
                 Api& api,
                 const SubmittedJob& job,
                 const std::string& user) const {
    for (int i = 0; i < kEndTries; ++i) {
      auto view = FindJob(api, job.ns, job.name);
      if (view.status().code() == Code::kNotFound || (view.ok() && view->over())) break;
      if (!view.ok()) return view.status();
      const bool runs = InfoOf(*view).state.code == kRunning.code;
      if (!runs || i + 1 == kEndTries || !api.Pause(kInterval)) {
        session.env().loop->Resume();
        SWELL_RETURN_IF_ERROR(CancelJob(session, api, InfoOf(*std::move(view)), user));
        break;
      }
    }
    Say(session, StrCat("Relinquishing job allocation ", job.id));
    return Status::Ok();
  }

  BatchFlags typed_{BatchCommand::kSrun};
};

}  // namespace

Command SallocSpec() {
  Command command;
  command.name = "salloc";
  command.summary = "Open a shell in a job of its own, or run a command in it.";
  command.usage = "[flags] [COMMAND [ARGUMENT...]]";
  command.examples = {{"A shell with one GPU", "salloc --gpus=1"},
                      {"A command that starts its own steps", "salloc -N2 bash steps.sh"}};
  command.notes =
      "The shell or command runs on the first node, where srun starts tasks on all nodes. The job "
      "ends with it.";
  command.make = Makes<SallocAction>();
  return command;
}

}  // namespace swell::cli::slurm
