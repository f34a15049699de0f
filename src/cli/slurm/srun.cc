// srun: a command as a job, with this terminal's input and output.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/pods/exec_in.h"
#include "cli/pods/job_logs.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/edge/streams/command_client.h"

namespace swell::cli::slurm {
namespace {

constexpr auto kPodsInterval = std::chrono::milliseconds(200);

// What is written to srun, for the job's first task. A terminal is left to the shell, from which
// srun may run in the background.
class Input {
 public:
  explicit Input(Session& session) : session_(session) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  bool wanted() const {
    struct stat input {};
    return session_.env().console && ::fstat(STDIN_FILENO, &input) == 0 &&
           (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode));
  }
  // The pod's container runs. One that starts again has an empty input.
  void Attach(Api& api, const json::Value& pod) {
    if (!wanted()) return;
    edge::CommandOptions options{.ns = std::string(api::Namespace(pod)),
                                 .pod = std::string(api::Name(pod)),
                                 .container = std::string(kContainer),
                                 .command = {},
                                 .input = true,
                                 .output = false,
                                 .error = false};
    edge::CommandEvents events;
    events.on_exit = [this](const Result<int>&) {
      if (console_) console_->SetReading(false);
    };
    const Connection& connection = api.connection();
    command_ = edge::StartCommand(session_.env().loop->executor(), connection.server,
                                  connection.user, options, std::move(events));
    if (console_) return command_->CloseInput();
    console_ = session_.env().console();
    console_->Start({.on_data = [this](api::Chunk bytes) { Pass(std::move(bytes)); },
                     .on_end = [this](const Status&) { command_->CloseInput(); }});
  }

 private:
  void Pass(api::Chunk bytes) {
    if (!command_->Write(std::move(bytes))) return console_->SetReading(false);
    if (command_->queued_bytes() <= api::kDuplexHighWater) return;
    console_->SetReading(false);
    command_->OnDrained([this] { console_->SetReading(true); });
  }

  Session& session_;
  std::unique_ptr<edge::CommandClient> command_;
  std::unique_ptr<Console> console_;
};

class SrunAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.StopAtFirstWord();
    typed_.Declare(flags);
    flags.Group("Tasks");
    flags.Switch("-l,--label", &label_, "begin each line with the number of its task");
    flags.Switch("--pty", &pty_, "run the command once, on the first node, with this terminal");
    flags.Text("--jobid", &job_id_, "JOB", "run a step of this job, which runs already");
    AcceptSwitches(flags, &ignored_,
                   {{"--overlap", "steps share their job's nodes"},
                    {"--exact", "steps share their job's nodes"},
                    {"-u,--unbuffered", "output is never held back"},
                    {"-E,--preserve-env", "--nodes and --ntasks say how many there are"},
                    {"-X,--disable-status", "an interrupt ends the job at once"},
                    {"--quit-on-interrupt", "an interrupt ends the job at once"}});
    for (const auto& [name, why] :
         {std::pair("-W,--wait", "a step ends when all of its tasks have ended"),
          {"-T,--threads", "tasks start at once"},
          {"--slurmd-debug", "swell logs has the job's output"}}) {
      flags.Text(name, &ignored_text_, "N", StrCat("accepted; ", why)).hidden = true;
    }
    for (const char* name : {"--prolog", "--epilog", "--task-prolog", "--task-epilog"}) {
      flags.Refuse(name, "call it in a script: srun bash SCRIPT");
    }
    flags.Refuse("--bcast", "programs are not copied; name one that the nodes have");
    flags.Refuse("--x11", "windows are not shown; use a notebook, or swell port-forward");
    flags.Refuse("-r,--relative", "name the nodes: --nodelist");
    Flag& kill = flags.Choice("-K,--kill-on-bad-exit", &kill_on_bad_exit_, "0|1", {"0", "1"},
                              "accepted; a step ends when all of its tasks have ended");
    kill.implied = "1";
    kill.hidden = true;
    flags.Group("");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(RefuseParts(words));
    typed_.Take();
    if (words.empty()) return Misuse("no command: srun [flags] COMMAND [ARGUMENT...]");
    if (!job_id_.empty()) return RunStep(session, std::move(words));
    if (pty_) return RunInAllocation(session, typed_, "srun", std::move(words));
    session.env().loop->WatchTermination();
    SWELL_ASSIGN_OR_RETURN(Submission submission,
                           PrepareSubmission(session, typed_, words[0], false));
    Input input(session);
    submission.job.reads_input = input.wanted();
    submission.job.script =
        StrCat("#!/bin/sh\nexec ", kPodFolder, "/srun ", label_ ? "-l " : "", "-- \"$@\"\n");
    submission.job.arguments = std::move(words);
    if (typed_.Has("test-only")) return ShowPlan(session, submission);
    Api& api = *submission.api;
    SWELL_ASSIGN_OR_RETURN(const SubmittedJob job, SubmitOne(submission, {}));
    if (!job.restricted.empty() && !typed_.Has("quiet")) {
      session.ErrLine(StrCat("srun: warning: ", job.restricted));
    }
    if (!typed_.Has("quiet") && session.env().err_is_terminal) {
      session.ErrLine(StrCat("srun: job ", job.id, " queued and waiting for resources"));
    }
    auto status = Follow(session, api, job, input);
    if (!api.interrupted()) return status;
    return Interrupted(session, api, job, submission.job.user);
  }

 private:
  static Result<int> Follow(Session& session, Api& api, const SubmittedJob& job, Input& input) {
    auto found = AwaitPods(session, api, job);
    if (found.status().code() == Code::kNotFound) return WaitForEnd(session, api, job);
    SWELL_ASSIGN_OR_RETURN(JobView view, std::move(found));
    JobLogOptions logs;
    logs.logs.follow = true;
    logs.on_live = [&](const json::Value& pod) { input.Attach(api, pod); };
    if (!view.pods.empty()) {
      SWELL_RETURN_IF_ERROR(PrintJobLogs(session, api, std::move(view), logs));
    }
    return WaitForEnd(session, api, job);
  }

  // A job that waits for others or for a time has none, and one that is new has none yet.
  static Result<JobView> AwaitPods(Session& session, Api& api, const SubmittedJob& job) {
    std::string said;
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView view, FindJob(api, job.ns, job.name));
      if (!view.pods.empty() || view.over()) return view;
      const std::string why = InfoOf(view).waits;
      if (!why.empty() && why != said) session.ErrLine(StrCat("srun: job ", job.id, ": ", why));
      said = why;
      if (!api.Pause(kPodsInterval)) return view;
    }
  }

  // The job goes with its srun.
  static Result<int> Interrupted(Session& session,
                                 Api& api,
                                 const SubmittedJob& job,
                                 const std::string& user) {
    session.env().loop->Resume();
    SWELL_ASSIGN_OR_RETURN(JobView view, FindJob(api, job.ns, job.name));
    if (!view.over()) {
      SWELL_RETURN_IF_ERROR(CancelJob(session, api, InfoOf(std::move(view)), user));
    }
    session.ErrLine(StrCat("srun: interrupted: job ", job.id, " is cancelled"));
    return 130;
  }

  // By the srun that is in the job's first pod.
  Result<int> RunStep(Session& session, std::vector<std::string> words) {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> all, ListShownJobs(session, *api));
    const auto job = std::find_if(all.begin(), all.end(), [this](const JobInfo& one) {
      return one.id == job_id_ || one.JobId() == job_id_;
    });
    if (job == all.end()) {
      return Status(Code::kNotFound,
                    StrCat("--jobid: Invalid job id ", job_id_, "; squeue lists the jobs"));
    }
    if (!job->ours || job->state.code != kRunning.code || job->view.pods.empty()) {
      return Status(Code::kConflict, StrCat("--jobid ", job_id_, ": the job is ", job->state.word,
                                            "; a step needs one of sbatch or srun that runs"));
    }
    ExecIn step{.ns = job->view.ns,
                .pod = std::string(api::Name(*job->view.pods.front())),
                .container = std::string(kContainer)};
    if (pty_) {
      step.command = {"/bin/sh", "-c", StrCat("PATH=", kPodFolder, ":$PATH; exec \"$@\""), "srun"};
      step.command.insert(step.command.end(), words.begin(), words.end());
      step.interactive = HasTerminal(session);
      step.quiet = true;
      return Exec(session, step);
    }
    step.command = {"/bin/sh", StrCat(kPodFolder, "/", kSrunScript.name)};
    if (label_) step.command.emplace_back("--label");
    for (const char* flag : {"nodes", "ntasks", "ntasks-per-node", "nodelist", "chdir"}) {
      if (typed_.Has(flag)) step.command.push_back(StrCat("--", flag, "=", typed_.Text(flag)));
    }
    step.command.emplace_back("--");
    step.command.insert(step.command.end(), words.begin(), words.end());
    step.interactive = Input(session).wanted();
    step.quiet = true;
    return Exec(session, step);
  }

  BatchFlags typed_{BatchCommand::kSrun};
  std::string job_id_, kill_on_bad_exit_, ignored_text_;
  bool label_ = false, pty_ = false, ignored_ = false;
};

}  // namespace

Command SrunSpec() {
  Command command;
  command.name = "srun";
  command.summary = "Run a command as a job, print its output, and exit as it does.";
  command.usage = "[flags] COMMAND [ARGUMENT...]";
  command.examples = {{"On one GPU", "srun --gpus=1 nvidia-smi"},
                      {"Two tasks on each of two nodes", "srun -N2 -n4 -l hostname"},
                      {"A shell with one GPU", "srun --gpus=1 --pty bash"},
                      {"In a job that runs", "srun --jobid 1532 nvidia-smi"}};
  command.notes =
      "The first task reads what is piped to srun. When srun is interrupted, its job is cancelled. "
      "Within a batch script, srun starts tasks on the nodes of that job.";
  command.make = Makes<SrunAction>();
  return command;
}

}  // namespace swell::cli::slurm
