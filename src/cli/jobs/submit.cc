// swell submit: a PyTorch training job from flags.
#include <cstdint>
#include <optional>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/jobs/gate_request.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/submit_warnings.h"
#include "cli/jobs/what_if.h"
#include "cli/pods/job_logs.h"
#include "cli/print/output.h"
#include "cli/views/array_view.h"
#include "cli/views/job_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr int64_t kUnsaid = INT64_MIN;
constexpr int64_t kRetries = 6;  // as of a batch Job

class SubmitAction final : public Action {
 public:
  SubmitAction() { spec_.retry = kRetries; }

  void Declare(Flags& flags) override {
    flags.CountWordsBeforeDashes(&words_before_dashes_);
    flags.Group("Job");
    flags.Text("--name", &spec_.name, "NAME", "name of the job (or the first argument)");
    flags.Text("-i,--image", &spec_.image, "IMAGE", "image of each instance");
    flags.Text("--working-dir", &spec_.working_dir, "PATH", "working directory of the command");
    flags.List("-e,--env", &env_, "KEY=VALUE", "environment variable, repeatable");
    flags.List("-v,--volume", &volumes_, "SOURCE:PATH",
               "volume claim (data:/data) or host directory (/srv/data:/data), repeatable");
    flags.List("--port", &ports_, "PORT",
               "port that each instance listens on, for swell port-forward, repeatable");
    flags.Text("--run-as-user", &run_as_user_, "UID[:GID]",
               "user and group of the processes (default: those of the image)");
    flags.Text("--sync-mode", &spec_.sync_mode, "git|rsync", "fetch code into WORKING_DIR/code");
    flags.Text("--sync-source", &spec_.sync_source, "URL", "source of the code");
    flags.Text("--sync-image", &spec_.sync_image, "IMAGE", "image that fetches the code");
    flags.List("-l,--label", &labels_, "KEY=VALUE", "label of the job and its pods, repeatable");
    flags.List("-a,--annotation", &annotations_, "KEY=VALUE",
               "annotation of the job and its pods, repeatable");
    flags.Group("Resources");
    flags.Text("-g,--gpus", &gpus_, "N", "GPUs per instance, or a part of one: 0.5");
    flags.Int("-w,--workers", &workers_, "N", "number of instances, master included (default 1)");
    flags.Int("--min", &min_, "N",
              "elastic: fewest instances to train with (default 1, with --max)");
    flags.Int("--max", &max_, "N", "elastic: most instances (default --workers, with --min)");
    flags.Refuse("--min-workers", "use --min");
    flags.Refuse("--max-workers", "use --max");
    flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU per instance: 2, 500m");
    flags.Text("--memory", &spec_.memory, "AMOUNT", "memory per instance: 8Gi");
    flags.Text("--nproc-per-node", &spec_.nproc_per_node, "N",
               "processes per instance for torchrun: a number, auto, cpu or gpu");
    flags.Text("--share-memory", &spec_.share_memory, "AMOUNT", "size of /dev/shm");
    flags.Group("Scheduling");
    flags.Text("-p,--priority", &spec_.priority, "CLASS",
               "priority class; swell get priorityclasses lists them (default: none)");
    flags.Switch("--interactive", &interactive_,
                 "a workspace to work in: one instance, priority class interactive");
    flags.Text("--project", &spec_.project, "NAME", "project whose quota it uses");
    flags.Text("--on-preemption", &on_preemption_, "requeue|fail",
               "after preemption: wait and resume (default), or fail");
    flags.List("--selector", &selectors_, "KEY=VALUE", "only nodes with this label");
    flags.List("--toleration", &spec_.tolerations, "TAINT", "all, KEY or KEY=VALUE:EFFECT");
    flags.List("--after", &after_, "JOB[,JOB]",
               "start when these jobs have succeeded; afterany:JOB: when they have ended, "
               "afternotok:JOB: when they have failed, after:JOB: when they have started");
    flags.Maybe(
        "--array", &array_, "INDICES",
        "one job for each index, which it gets as $SWELL_ARRAY_INDEX; 0-99%8 runs 8 at once");
    flags.Group("Completion");
    flags.Text(
        "--time-limit", &time_limit_, "DURATION",
        "how long it may run, such as 2h30m or 3d; then it ends as failed. Short jobs may use "
        "nodes that are held for others");
    flags.Int("--retry", &spec_.retry, "N",
              StrCat("how often to restart instances that a signal ended (default ", kRetries,
                     "); an error of the script itself ends the job at once"));
    flags.Switch("--force", &force_, "delete an existing job of that name first");
    flags.Switch("--wait", &wait_, "wait until the job ends; the exit status is its result");
    flags.Switch("-f,--logs", &logs_,
                 "follow the log of the master until the job ends; the exit status is "
                 "its result");
    flags
        .Text("--dry-run", &dry_run_, "none|client|server|plan",
              "print the job instead of creating it; plan shows where it would run and what it "
              "would preempt")
        .implied = "client";
    flags.Text("-o,--output", &output_, "FORMAT", "output format: yaml, json or name");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    spec_.annotations.emplace_back(api::keys::kUser, LocalUser(session));
    SWELL_RETURN_IF_ERROR(Fill(std::move(words)));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    bool client_only = dry_run_ == "client";
    bool on_server = dry_run_ == "server";
    bool plan = dry_run_ == "plan";
    if (!client_only && !on_server && !plan && dry_run_ != "none" && !dry_run_.empty()) {
      return WrongValue("--dry-run", dry_run_, {"none", "client", "server", "plan"});
    }
    // A dry run in the client needs no cluster.
    Api* api = nullptr;
    if (client_only) {
      spec_.ns = session.global().ns;
    } else {
      SWELL_ASSIGN_OR_RETURN(api, session.Server());
      spec_.ns = session.Namespace();
      SWELL_RETURN_IF_ERROR(CheckPriorityClass(*api, spec_.priority));
      SWELL_RETURN_IF_ERROR(CheckChargedProject(*api, spec_.project, spec_.ns, "--project"));
    }
    if (api != nullptr || after_.empty()) {
      SWELL_RETURN_IF_ERROR(FillGate(api));
    } else {
      return Misuse("--after needs the cluster, where the other jobs are: --dry-run=server");
    }
    if (array_) return SubmitArray(session, api, form);
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakePyTorchJob(spec_));
    SetGate(job, *KindOfJob(job), gate_);
    if (client_only) {
      if (form.table()) form.kind = OutputForm::Kind::kYaml;
      session.Out(FormatObject(form, job, ResourceNameOf(job)));
      return 0;
    }
    if (plan) {
      SWELL_RETURN_IF_ERROR(PrintPlan(session, *api, job));
      return 0;
    }
    if (force_ && !on_server) SWELL_RETURN_IF_ERROR(DeleteOld(session, *api));
    auto made = CreateJob(*api, client::resources::kPyTorchJobs, spec_.ns, job,
                          {.dry_run = on_server, .field_validation = "Strict"}, remark_);
    if (made.status().code() == Code::kAlreadyExists) {
      return Status(Code::kAlreadyExists,
                    StrCat(made.status().message(), "; --force deletes it first"));
    }
    if (!made.ok()) return made.status();
    if (!form.table()) {
      session.Out(FormatObject(form, **made, ResourceNameOf(**made)));
    } else {
      session.OutLine(
          StrCat(ResourceNameOf(**made), on_server ? " created (server dry run)" : " created"));
    }
    TellRemark(session);
    if (on_server) return 0;
    PrintSubmitWarnings(session, "swell", *api, job);
    if (form.table() && session.env().err_is_terminal && !wait_ && !logs_) {
      const std::string& ns = session.global().ns;
      session.ErrLine(
          StrCat("Follow it with: swell logs -f ", spec_.name, ns.empty() ? "" : " -n ", ns));
    }
    if (logs_) SWELL_RETURN_IF_ERROR(FollowLogs(session, *api));
    return wait_ || logs_ ? WaitOver(session, *api) : Result<int>(0);
  }

 private:
  // --after, of which a name may be that of a job or of an array.
  Status FillGate(Api* api) {
    if (after_.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobView> jobs, ListJobs(*api, spec_.ns));
    std::vector<std::string> terms;
    for (const std::string& text : after_) {
      for (std::string_view word : Split(text, ',')) {
        const size_t colon = word.find(':');
        const std::string type(colon == std::string_view::npos ? "afterok" : word.substr(0, colon));
        if (type != "after" && type != "afterok" && type != "afterany" && type != "afternotok") {
          return Misuse(StrCat("--after ", Quote(word),
                               ": expected a job, or after, afterok, afterany or afternotok:JOB"));
        }
        const std::string name(colon == std::string_view::npos ? word : word.substr(colon + 1));
        std::string term = type;
        for (const JobView& job : jobs) {
          if (NamesJob(job, name)) term += StrCat(":", job.name);
        }
        if (term == type) {
          return Status(Code::kNotFound,
                        StrCat("--after: there is no job ", Quote(name), " in namespace ",
                               Quote(spec_.ns), "; swell list shows the jobs"));
        }
        terms.push_back(std::move(term));
      }
    }
    gate_.start_after = Join(terms, ",");
    return Status::Ok();
  }

  Result<int> SubmitArray(Session& session, Api* api, OutputForm& form) {
    SWELL_ASSIGN_OR_RETURN(const ArrayRange range, ParseArrayRange("--array", *array_));
    if (wait_ || logs_ || force_ || dry_run_ == "plan") {
      return Misuse(
          StrCat("--array excludes --wait, --logs, --force and --dry-run=plan; swell wait "
                 "and swell logs take the name of one of its jobs"));
    }
    const bool client_only = api == nullptr;
    if (client_only && form.table()) form.kind = OutputForm::Kind::kYaml;
    gate_.array = spec_.name;
    gate_.at_once = range.at_once;
    for (const int64_t index : range.ids) {
      PyTorchSpec one = spec_;
      one.name = StrCat(spec_.name, "-", index);
      one.env.emplace_back("SWELL_ARRAY_INDEX", std::to_string(index));
      SWELL_ASSIGN_OR_RETURN(json::Value job, MakePyTorchJob(one));
      SetGate(job, *KindOfJob(job), gate_);
      if (client_only) {
        if (index != range.ids.front()) session.Out("---\n");
        session.Out(FormatObject(form, job, ResourceNameOf(job)));
        continue;
      }
      auto made =
          CreateJob(*api, client::resources::kPyTorchJobs, spec_.ns, job,
                    {.dry_run = dry_run_ == "server", .field_validation = "Strict"}, remark_);
      if (!made.ok()) return Unfinished(made.status(), range, index);
      session.Out(form.table() ? StrCat(ResourceNameOf(**made), " created\n")
                               : FormatObject(form, **made, ResourceNameOf(**made)));
      if (index == range.ids.back()) PrintSubmitWarnings(session, "swell", *api, job);
    }
    TellRemark(session);
    return 0;
  }

  // The jobs before `index` are there already.
  Status Unfinished(const Status& why, const ArrayRange& range, int64_t index) const {
    const auto made = std::find(range.ids.begin(), range.ids.end(), index) - range.ids.begin();
    if (made == 0 || dry_run_ == "server") return why;
    return why.WithContext(StrCat("created ", made, " of ", range.ids.size(),
                                  " jobs, which are still there (to delete them: swell delete "
                                  "pytorchjobs -l ",
                                  api::keys::kArray, "=", spec_.name, "); job ", spec_.name, "-",
                                  index));
  }

  // The name of the job and its command.
  Status FillCommand(std::vector<std::string> words) {
    // Without dashes, a word with spaces is a line for the shell.
    const bool dashes = words_before_dashes_ < words.size();
    if (const size_t names = spec_.name.empty() ? 1 : 0; dashes && words_before_dashes_ > names) {
      return Misuse(StrCat(Quote(words[names]), ": ",
                           names == 0
                               ? StrCat("--name ", Quote(spec_.name), " names the job already")
                               : std::string("expected one name for the job"),
                           "; the command follows the dashes: -- COMMAND"));
    }
    if (spec_.name.empty() && words_before_dashes_ > 0 &&
        (dashes || words[0].find(' ') == std::string::npos)) {
      spec_.name = words[0];
      words.erase(words.begin());
    }
    if (spec_.name.empty()) {
      return Misuse("expected the name of the job: swell submit NAME --image IMAGE -- COMMAND");
    }
    // One word is a line for the shell, several are the command's own words.
    if (words.size() == 1) {
      spec_.command = {"sh", "-c", words[0]};
    } else {
      spec_.command = std::move(words);
    }
    return Status::Ok();
  }

  Status FillVolumes() {
    spec_.volume_flag = spec_.host_path_flag = "--volume";
    spec_.host_path_type = "Directory";
    for (const std::string& volume : volumes_) {
      if (volume.starts_with('.') || volume.starts_with('~')) {
        return Misuse(StrCat("--volume ", Quote(volume),
                             ": expected a directory's whole path, as /srv/data:/data; a name "
                             "without a slash is a volume claim's"));
      }
      (volume.starts_with('/') ? spec_.host_paths : spec_.volumes).push_back(volume);
    }
    return Status::Ok();
  }

  Status Fill(std::vector<std::string> words) {
    SWELL_RETURN_IF_ERROR(FillCommand(std::move(words)));
    if (!gpus_.empty()) {
      SWELL_ASSIGN_OR_RETURN(const double gpus, ParseGpus("--gpus", gpus_));
      spec_.gpus = static_cast<int64_t>(gpus);
      spec_.gpu_fraction = gpus - static_cast<double>(spec_.gpus);
    }
    SWELL_RETURN_IF_ERROR(FillSize());
    SWELL_ASSIGN_OR_RETURN(spec_.running_timeout_s, ParseTimeLimit(time_limit_, "--time-limit"));
    if (spec_.retry < 0) return Misuse(StrCat("--retry ", spec_.retry, ": expected 0 or more"));
    spec_.restart_policy = spec_.retry > 0 ? "ExitCode" : "Never";
    SWELL_ASSIGN_OR_RETURN(spec_.env, ParsePairs(env_, "--env"));
    SWELL_RETURN_IF_ERROR(FillRunAs("--run-as-user", run_as_user_, spec_));
    for (const std::string& text : ports_) {
      const auto port = ParseInt(text);
      if (!port || *port < 1 || *port > 65535) {
        return Misuse(StrCat("--port ", Quote(text), ": expected a number from 1 to 65535"));
      }
      spec_.ports.push_back(*port);
    }
    SWELL_ASSIGN_OR_RETURN(spec_.labels, ParseLabels(labels_, "--label"));
    SWELL_ASSIGN_OR_RETURN(const KeyValues annotations, ParsePairs(annotations_, "--annotation"));
    spec_.annotations.insert(spec_.annotations.end(), annotations.begin(), annotations.end());
    SWELL_ASSIGN_OR_RETURN(spec_.selectors, ParseLabels(selectors_, "--selector"));
    SWELL_RETURN_IF_ERROR(FillVolumes());
    std::string word = ToLower(on_preemption_);
    if (word != "requeue" && word != "fail") {
      return WrongValue("--on-preemption", on_preemption_, {"requeue", "fail"});
    }
    spec_.on_preemption = word == "fail" ? "Fail" : "Requeue";
    if (interactive_) {
      spec_.labels.emplace_back(api::keys::kWorkload, "interactive");
      if (spec_.priority.empty()) spec_.priority = "interactive";
    }
    return Status::Ok();
  }

  // --workers, --min and --max.
  Status FillSize() {
    spec_.workers = workers_ == kUnsaid ? 1 : workers_;
    const bool elastic = min_ != kUnsaid || max_ != kUnsaid;
    if (interactive_ && (elastic || spec_.workers > 1)) {
      return Misuse(StrCat("--interactive and ", elastic ? "--min or --max" : "--workers",
                           " exclude each other; a workspace has one instance"));
    }
    if (!elastic) return Status::Ok();
    if (max_ == kUnsaid && workers_ == kUnsaid) {
      return Misuse(StrCat("--min ", min_, " needs --max, or --workers as the maximum"));
    }
    const int64_t least = min_ == kUnsaid ? 1 : min_;
    const int64_t most = max_ == kUnsaid ? spec_.workers : max_;
    if (least < 1) return Misuse(StrCat("--min ", least, ": expected 1 or more"));
    if (most < least) return Misuse(StrCat("--max ", most, " is below --min ", least));
    if (workers_ == kUnsaid) spec_.workers = most;
    if (spec_.workers < least || spec_.workers > most) {
      return Misuse(StrCat("--workers ", spec_.workers, ": expected between --min ", least,
                           " and --max ", most));
    }
    spec_.workers_min = least;
    spec_.workers_max = most;
    return Status::Ok();
  }

  // A job whose project does not exist would run without being charged to any project.
  // Returns when nothing of a job of that name is left: names of pods are names of the new one's.
  Status DeleteOld(Session& session, Api& api) {
    auto old = api.Get(client::resources::kPyTorchJobs, spec_.ns, spec_.name);
    if (!old.ok()) return old.status().code() == Code::kNotFound ? Status::Ok() : old.status();
    auto gone = api.Delete(client::resources::kPyTorchJobs, spec_.ns, spec_.name);
    if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
    session.ErrLine(StrCat("pytorchjob.kubeflow.org ", Quote(spec_.name), " deleted"));
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(bool left, IsLeft(api, api::Uid(**old)));
      if (!left) return Status::Ok();
      if (!api.Pause(std::chrono::milliseconds(50))) {
        return Status(Code::kUnavailable, "interrupted while waiting for the old job to end");
      }
    }
  }

  // Whether the job of this uid, or anything that it owns, is there.
  Result<bool> IsLeft(Api& api, std::string_view uid) {
    auto job = api.Get(client::resources::kPyTorchJobs, spec_.ns, spec_.name);
    if (job.ok() && api::Uid(**job) == uid) return true;
    if (!job.ok() && job.status().code() != Code::kNotFound) return job.status();
    for (const Resource& resource : {client::resources::kPods, client::resources::kPodGroups}) {
      auto objects = api.List(resource, spec_.ns);
      if (objects.status().code() == Code::kNotFound) continue;
      if (!objects.ok()) return objects.status();
      for (const json::SharedValue& object : *objects) {
        const auto owner = api::ControllerOf(*object);
        if (owner && owner->uid == uid) return true;
      }
    }
    return false;
  }

  // Prints the master's log until the job is over, also after a preemption.
  Status FollowLogs(Session& session, Api& api) {
    JobLogOptions options;
    options.logs.follow = true;
    std::string said;
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(api, spec_.ns, "pytorchjob/" + spec_.name));
      if (!job.pods.empty()) return PrintJobLogs(session, api, std::move(job), options);
      if (job.over() || job.CanNeverStart()) return Status::Ok();
      if (!job.Hindrance().empty() && job.HindranceReason() != said) {
        said = job.HindranceReason();
        session.ErrLine(StrCat("Waiting: ", job.Hindrance()));
      }
      if (!api.Pause(std::chrono::milliseconds(300))) return Status::Ok();
    }
  }

  void TellRemark(Session& session) const {
    if (!remark_.empty()) session.ErrLine(StrCat("swell: ", remark_));
  }

  // Standard output belongs to the log if that is shown.
  void Tell(Session& session, const std::string& line) const {
    if (logs_) {
      session.ErrLine(line);
    } else {
      session.OutLine(line);
    }
  }

  Result<int> WaitOver(Session& session, Api& api) {
    std::string said;
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(api, spec_.ns, "pytorchjob/" + spec_.name));
      if (job.over()) {
        const std::string end = job.EndText();
        Tell(session,
             StrCat(job.ResourceName(), " ", ToLower(job.status), end.empty() ? "" : ": ", end));
        if (job.status == "Succeeded") return 0;
        // The script's own, where it ended by itself.
        return job.failure && job.failure->exit_code && *job.failure->exit_code > 0
                   ? static_cast<int>(*job.failure->exit_code)
                   : 1;
      }
      const std::string why = job.Hindrance();
      if (job.CanNeverStart()) {
        Tell(session, StrCat(job.ResourceName(), " can never start: ", why));
        return 1;
      }
      const std::string reason = job.HindranceReason();
      // Scripts too are told what needs a person.
      if (reason != said && (session.env().err_is_terminal || job.failure)) {
        session.ErrLine(why.empty() ? job.status : StrCat(job.StatusText(), ": ", why));
      }
      said = reason;
      if (!api.Pause(std::chrono::milliseconds(500))) return 130;
    }
  }

  PyTorchSpec spec_;
  std::vector<std::string> env_, labels_, annotations_, selectors_, volumes_, ports_;
  std::string on_preemption_ = "requeue", dry_run_, output_, gpus_, time_limit_, run_as_user_;
  std::string remark_;  // on what was written into the pods
  int64_t workers_ = kUnsaid, min_ = kUnsaid, max_ = kUnsaid;
  size_t words_before_dashes_ = 0;
  bool wait_ = false, logs_ = false, force_ = false, interactive_ = false;
  std::vector<std::string> after_;
  std::optional<std::string> array_;
  GateRequest gate_;
};

}  // namespace

Status CheckPriorityClass(Api& api, const std::string& name, std::string_view flag) {
  if (name.empty()) return Status::Ok();
  auto found = api.Get(client::resources::kPriorityClasses, "", name);
  if (found.ok() || found.status().code() != Code::kNotFound) return found.status();
  SWELL_ASSIGN_OR_RETURN(auto classes, api.List(client::resources::kPriorityClasses, ""));
  std::vector<std::string> names;
  for (const json::SharedValue& one : classes) names.emplace_back(api::Name(*one));
  return NotFoundAmong(StrCat(flag, ": PriorityClass"), name, names);
}

Command SubmitCommandSpec() {
  Command command;
  command.name = "submit";
  command.aliases = {"run"};
  command.group = "Jobs";
  command.summary = "Submit a PyTorch training job.";
  command.usage = "NAME --image IMAGE [flags] -- COMMAND [ARGUMENT...]";
  command.examples = {
      {"One GPU, and follow its log",
       "swell submit mnist --image python:3.11 --gpus 1 --logs -- python mnist.py --epochs 3"},
      {"Three instances with four GPUs each, at high priority",
       "swell submit bert --image pytorch:2 --workers 3 --gpus 4 --priority interactive -- "
       "torchrun "
       "train.py"},
      {"Code from git, data from a claim",
       "swell submit net --image pytorch:2 --sync-mode git --sync-source https://host/net.git "
       "--working-dir /root -v data:/data -- python code/net/train.py"},
      {"Elastic: two to eight instances, as many as there is room for",
       "swell submit bert --image pytorch:2 --min 2 --max 8 --gpus 1 -- torchrun train.py"},
      {"Half a GPU to work with",
       "swell submit desk --image pytorch:2 --gpus 0.5 --interactive -- sleep infinity"},
      {"Show where it would run and which pods it would preempt",
       "swell submit mnist --image python:3.11 --gpus 4 --dry-run=plan -- python mnist.py"},
      {"Print the manifest only",
       "swell submit mnist --image python:3.11 --dry-run -- python mnist.py"}};
  command.notes =
      "A preempted job waits and starts again by itself. A program that uses the swell Python "
      "package continues from its last checkpoint. With --on-preemption fail the job fails "
      "instead.";
  command.make = Makes<SubmitAction>();
  return command;
}

}  // namespace swell::cli
