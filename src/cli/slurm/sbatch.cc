// sbatch and srun: jobs from scripts with #SBATCH lines, and from command lines.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "cli/jobs/what_if.h"
#include "cli/pods/job_logs.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr size_t kScriptBytesMax = 512 << 10;

Status CheckScript(const std::string& name, std::string_view script) {
  if (!script.starts_with("#!")) {
    return Misuse(StrCat(name,
                         " does not look like a batch script: its first line must be #! and "
                         "an interpreter, as in #!/bin/bash"));
  }
  if (script.substr(0, script.find('\n')).ends_with('\r')) {
    return Misuse(StrCat(name, " has line ends of DOS (\\r\\n); dos2unix changes them"));
  }
  if (script.size() > kScriptBytesMax) {
    return Misuse(StrCat(name, " has ", script.size(), " bytes; at most ", kScriptBytesMax,
                         " travel with a job"));
  }
  if (!IsValidUtf8(script)) return Misuse(StrCat(name, " is not text in UTF-8"));
  return Status::Ok();
}

class SbatchAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.StopAtFirstWord();
    typed_.Declare(flags);
    flags.Refuse("--pty", "a script has no terminal; srun --pty runs a command in this one");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    typed_.Take();
    std::string command, script;
    SWELL_RETURN_IF_ERROR(ReadScript(session, words, command, script));
    BatchFlags flags(BatchCommand::kSbatch);
    if (!typed_.Has("wrap")) {
      SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> header, HeaderWords(script));
      const Status parsed = flags.Parse(header);
      const std::string source = words.empty() ? std::string("standard input") : command;
      if (!parsed.ok()) return Misuse(StrCat("#SBATCH of ", source, ": ", parsed.message()));
    }
    BatchFlags environment(BatchCommand::kSbatch);
    environment.TakeEnvironment(session.env().getenv);
    flags.Override(environment);
    flags.Override(typed_);
    std::optional<ArrayRange> array;
    if (flags.Has("array")) {
      SWELL_ASSIGN_OR_RETURN(array, ParseArrayRange("--array", flags.Text("array")));
    }
    SWELL_ASSIGN_OR_RETURN(Submission submission, PrepareSubmission(session, flags, command, true));
    submission.job.script = std::move(script);
    if (!words.empty()) {
      // Scripts look up where they are in what scontrol says.
      std::error_code failed;
      const auto path = std::filesystem::absolute(words[0], failed);
      if (!failed) words[0] = path.lexically_normal().string();
      submission.job.command = Join(words, " ");
      submission.job.arguments.assign(words.begin() + 1, words.end());
    }
    if (flags.Has("test-only")) return ShowPlan(session, submission);
    std::vector<SubmittedJob> jobs;
    SWELL_RETURN_IF_ERROR(SubmitAll(array, submission, jobs));
    Tell(session, flags, submission, jobs.front());
    if (!jobs.front().restricted.empty() && !flags.Has("quiet")) {
      session.ErrLine(StrCat("sbatch: warning: ", jobs.front().restricted));
    }
    if (!flags.Has("wait")) return 0;
    int worst = 0;
    for (const SubmittedJob& job : jobs) {
      SWELL_ASSIGN_OR_RETURN(const int status, WaitForEnd(session, *submission.api, job));
      worst = std::max(worst, status);
    }
    return worst;
  }

 private:
  Status ReadScript(Session& session,
                    const std::vector<std::string>& words,
                    std::string& command,
                    std::string& script) {
    if (typed_.Has("wrap")) {
      if (!words.empty()) {
        return Misuse(StrCat("--wrap and a script exclude each other; ", Quote(words[0]),
                             " is one too many"));
      }
      command = typed_.Text("wrap");
      script = StrCat("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n", command, "\n");
      return Status::Ok();
    }
    if (words.empty()) {
      command = "sbatch";
      SWELL_ASSIGN_OR_RETURN(script, session.env().read_stdin());
      return CheckScript("standard input", script);
    }
    command = words[0];
    SWELL_RETURN_IF_ERROR(RefuseParts({command}));
    SWELL_ASSIGN_OR_RETURN(script, ReadFile(command, kScriptBytesMax + 1));
    return CheckScript(command, script);
  }

  // One job, or one for each index of the array.
  static Status SubmitAll(const std::optional<ArrayRange>& array,
                          Submission& submission,
                          std::vector<SubmittedJob>& jobs) {
    if (!array) {
      SWELL_ASSIGN_OR_RETURN(SubmittedJob job, SubmitOne(submission, {}));
      jobs.push_back(std::move(job));
      return Status::Ok();
    }
    const ArrayRange& range = *array;
    submission.job.gate.at_once = range.at_once;
    JobNumber number;
    number.array_count = std::to_string(range.ids.size());
    number.array_min = std::to_string(range.ids.front());
    number.array_max = std::to_string(range.ids.back());
    number.array_step =
        std::to_string(range.ids.size() > 1 ? range.ids[1] - range.ids[0] : int64_t{1});
    for (const int64_t id : range.ids) {
      number.task_id = std::to_string(id);
      auto job = SubmitOne(submission, number);
      if (!job.ok()) {
        if (jobs.empty()) return job.status();
        return job.status().WithContext(StrCat(jobs.size(), " of ", range.ids.size(),
                                               " tasks were submitted (scancel ", jobs.front().id,
                                               " ends them), and task ", id, " was not"));
      }
      if (number.array_id.empty()) number.array_id = job->id;
      jobs.push_back(std::move(*job));
    }
    return Status::Ok();
  }

  static void Tell(Session& session,
                   const BatchFlags& flags,
                   const Submission& submission,
                   const SubmittedJob& job) {
    if (flags.Has("parsable")) {
      session.OutLine(job.id);
      return;
    }
    if (!flags.Has("quiet")) session.OutLine(StrCat("Submitted batch job ", job.id));
    if (submission.job.output.empty() && flags.Text("array").empty() &&
        session.env().err_is_terminal) {
      session.ErrLine(StrCat("sbatch: its output: swell logs -f ", job.name, " -n ", job.ns));
    }
  }

  BatchFlags typed_{BatchCommand::kSbatch};
};

}  // namespace

Command SbatchSpec() {
  Command command;
  command.name = "sbatch";
  command.summary = "Submit a batch script.";
  command.usage = "[flags] SCRIPT [ARGUMENT...]";
  command.examples = {
      {"A script whose #SBATCH lines say what it needs", "sbatch train.sh --epochs 3"},
      {"Four GPUs on each of two nodes", "sbatch -N2 --gpus-per-node=4 train.sh"},
      {"One line of the shell", "sbatch --gpus=1 --wrap 'python train.py'"}};
  command.notes =
      "Flags count more than SBATCH_* variables, and these more than the script's #SBATCH lines.";
  command.make = Makes<SbatchAction>();
  return command;
}

}  // namespace swell::cli::slurm
