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

// One run of a command in a job of its own.
class Allocation {
 public:
  Allocation(Session& session, Submission& submission, std::string speaker, bool quiet)
      : session_(session),
        submission_(submission),
        api_(*submission.api),
        speaker_(std::move(speaker)),
        quiet_(quiet) {}

  Result<int> Run(std::vector<std::string> words, bool terminal) {
    submission_.job.script = kHold;
    submission_.job.requeue = false;  // nobody would be in it
    SWELL_ASSIGN_OR_RETURN(job_, SubmitOne(submission_, {}));
    if (!job_.restricted.empty()) Say(StrCat("warning: ", job_.restricted));
    Say(StrCat("Pending job allocation ", job_.id));
    auto status = RunInside(std::move(words), terminal);
    // A signal that came before the command ran, too, must not leave the nodes held.
    session_.env().loop->Resume();
    SWELL_RETURN_IF_ERROR(Release());
    return status;
  }

 private:
  void Say(const std::string& text) const {
    if (!quiet_) session_.ErrLine(StrCat(speaker_, ": ", text));
  }

  Result<int> RunInside(std::vector<std::string> words, bool terminal) const {
    std::string said;
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView view, FindJob(api_, job_.ns, job_.name));
      if (view.over()) return WaitForEnd(session_, api_, job_);
      const JobInfo info = InfoOf(view);
      if (info.state.code == kRunning.code && !view.pods.empty()) {
        Say(StrCat("Granted job allocation ", job_.id));
        ExecIn inside{.ns = job_.ns,
                      .pod = std::string(api::Name(*view.pods.front())),
                      .container = std::string(kContainer),
                      .command = {"/bin/sh", "-c", std::string(kShell), speaker_},
                      .interactive = terminal,
                      .quiet = true};
        inside.command.insert(inside.command.end(), words.begin(), words.end());
        return Exec(session_, inside);
      }
      if (!info.waits.empty() && info.waits != said) {
        Say(StrCat("job ", job_.id, ": ", info.waits));
        said = info.waits;
      }
      if (!api_.Pause(kInterval)) return 130;
    }
  }

  // The job ends with its command. One that runs on has lost it: it is cancelled.
  Status Release() const {
    for (int i = 0; i < kEndTries; ++i) {
      auto view = FindJob(api_, job_.ns, job_.name);
      if (view.status().code() == Code::kNotFound || (view.ok() && view->over())) break;
      if (!view.ok()) return view.status();
      const bool runs = InfoOf(*view).state.code == kRunning.code;
      if (!runs || i + 1 == kEndTries || !api_.Pause(kInterval)) {
        session_.env().loop->Resume();
        SWELL_RETURN_IF_ERROR(
            CancelJob(session_, api_, InfoOf(*std::move(view)), submission_.job.user));
        break;
      }
    }
    Say(StrCat("Relinquishing job allocation ", job_.id));
    return Status::Ok();
  }

  Session& session_;
  Submission& submission_;
  Api& api_;
  std::string speaker_;
  bool quiet_;
  SubmittedJob job_;
};

class SallocAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.StopAtFirstWord();
    typed_.Declare(flags);
    AcceptSwitches(flags, &ignored_,
                   {{"--bell", "no bell is rung"}, {"--no-bell", "no bell is rung"}});
    flags.Refuse("--x11", "windows are not shown; use a notebook, or swell port-forward");
    flags.Refuse("--pty", "salloc itself opens a shell; leave the flag out");
    flags.Refuse("--no-shell", "sbatch --wrap 'sleep 1h' holds nodes; srun --jobid runs in them");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(RefuseParts(words));
    typed_.Take();
    if (words.empty() && !HasTerminal(session) && !typed_.Has("test-only")) {
      return Misuse("no terminal for a shell, and no command: salloc [flags] COMMAND");
    }
    return RunInAllocation(session, typed_, "salloc", std::move(words));
  }

 private:
  BatchFlags typed_{BatchCommand::kSrun};
  bool ignored_ = false;
};

}  // namespace

bool HasTerminal(Session& session) { return session.env().console && ::isatty(STDIN_FILENO) == 1; }

Result<int> RunInAllocation(Session& session,
                            const BatchFlags& typed,
                            const std::string& speaker,
                            std::vector<std::string> words) {
  session.env().loop->WatchTermination();
  SWELL_ASSIGN_OR_RETURN(Submission submission,
                         PrepareSubmission(session, typed, "interactive", false));
  if (typed.Has("test-only")) return ShowPlan(session, submission);
  const bool quiet = typed.Has("quiet") || (speaker != "salloc" && !session.env().err_is_terminal);
  return Allocation(session, submission, speaker, quiet)
      .Run(std::move(words), HasTerminal(session));
}

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
