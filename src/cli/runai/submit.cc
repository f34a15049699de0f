// runai submit, submit-dist.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/swell_keys.h"
#include "base/strings.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/training_spec.h"
#include "cli/jobs/what_if.h"
#include "cli/pods/pod_logs.h"
#include "cli/print/output.h"
#include "cli/runai/runai.h"

namespace swell::cli::runai {
namespace {

constexpr std::string_view kJupyterImage = "jupyter/scipy-notebook";
constexpr int64_t kJupyterPort = 8888;
constexpr const char* kLargeShm = "8Gi";

void Mark(KeyValues& pairs, std::string_view key, std::string value) {
  if (!value.empty()) pairs.emplace_back(std::string(key), std::move(value));
}

std::string UserOf(Session& session) { return session.env().getenv("USER"); }

// "0.5", "2".
Result<double> ParseGpus(const std::string& text) {
  char* end = nullptr;
  double gpus = std::strtod(text.c_str(), &end);
  bool whole = gpus == std::floor(gpus);
  if (text.empty() || *end != '\0' || !std::isfinite(gpus) || gpus < 0 || gpus > 1e6 ||
      (!whole && gpus > 1)) {
    return Misuse(StrCat("--gpu ", Quote(text),
                         ": a whole number of GPUs or a part of one, like 0.5, expected"));
  }
  return gpus;
}

// "4G", "512M" or MiB.
Result<int64_t> ParseGpuMemory(const std::string& text) {
  if (auto mib = ParseInt(text); mib && *mib > 0) return *mib;
  auto quantity = api::Quantity::Parse(text);
  int64_t mib = quantity.ok() ? quantity->Value() >> 20 : 0;
  if (mib <= 0) {
    return Misuse(StrCat("--gpu-memory ", Quote(text), ": an amount like 4Gi or 500M expected"));
  }
  return mib;
}

class SubmitAction final : public Action {
 public:
  explicit SubmitAction(std::string workload) : workload_(std::move(workload)) {}

  void Declare(Flags& flags) override {
    flags.CountWordsBeforeDashes(&words_before_dashes_);
    DeclareWork(flags);
    DeclareClass(flags);
    DeclareAmounts(flags);
    DeclareReach(flags);
    DeclareEnd(flags);
    RefuseOthers(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Fill(session, std::move(words)));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session));
    spec_.pod.ns = scope.project.ns;
    spec_.pod.project = scope.project.name;
    SWELL_RETURN_IF_ERROR(ChoosePools(scope));
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*scope.api, spec_.pod.priority));
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeTrainingJob(spec_));
    if (dry_run_ == "client") {
      if (form.table()) form.kind = OutputForm::Kind::kYaml;
      session.Out(FormatObject(form, job, ResourceNameOf(job)));
      return 0;
    }
    SWELL_RETURN_IF_ERROR(WaitForNamespace(scope));
    if (dry_run_ == "plan") {
      SWELL_RETURN_IF_ERROR(PrintPlan(session, *scope.api, job));
      return 0;
    }
    bool on_server = dry_run_ == "server";
    if (!on_server) SWELL_RETURN_IF_ERROR(MakeClaims(scope));
    auto made = scope.api->Create(
        spec_.Repeats() ? client::resources::kJobs : client::resources::kTrainingJobs, spec_.pod.ns,
        job, {.dry_run = on_server, .field_validation = "Strict"});
    if (!made.ok()) return Refused(made.status(), scope);
    if (!ports_.empty() && !on_server) SWELL_RETURN_IF_ERROR(Expose(scope, **made));
    return Tell(session, scope, form, **made);
  }

 private:
  void DeclareWork(Flags& flags) {
    flags.Group("The workload");
    flags.Text("--name", &spec_.pod.name, "NAME", "its name (or the first word)");
    flags.Text("--job-name-prefix", &spec_.name_prefix, "TEXT", "a name that begins like this")
        .also = {"--name-prefix"};
    flags.Text("-i,--image", &spec_.pod.image, "IMAGE", "what it runs in");
    flags.Maybe("--command", &command_, "COMMAND",
                "a line for the shell; alone: the words after -- replace the image's entry point");
    flags.List("--args", &args_, "ARGUMENT", "arguments of the command, repeatable");
    flags.List("-e,--environment", &env_, "KEY=VALUE", "environment, repeatable").also = {
        "--env", "--environment-variable"};
    flags.Text("--working-dir", &spec_.pod.working_dir, "PATH", "where it starts");
    flags.List("-v,--volume", &volumes_, "HOST:PATH", "a directory of the host, repeatable");
    flags.List("--pvc", &claims_, "CLAIM:PATH",
               "a volume claim; CLASS:SIZE:PATH makes one, repeatable");
    flags.Text("--git-sync", &git_sync_, "source=URL", "fetch code into WORKING_DIR/code");
    flags.List("--label", &labels_, "KEY=VALUE", "labels, repeatable");
    flags.List("--annotation", &annotations_, "KEY=VALUE", "annotations, repeatable");
    flags.Text("--image-pull-policy", &spec_.pod.image_pull_policy, "POLICY",
               "Always, IfNotPresent or Never");
    flags.List("--image-pull-secret", &spec_.pod.image_pull_secrets, "NAME", "for the registry");
    flags.Switch("--local-image", &local_image_, "the image is on the node already");
    flags.Switch("--stdin", &spec_.pod.keep_stdin, "keep its input open");
    flags.Switch("-t,--tty", &spec_.pod.tty, "with a terminal");
    flags.Int("--run-as-user", &spec_.pod.run_as_user, "UID", "as this user").also = {
        "--run-as-uid"};
    flags.Switch("--run-as-current-user", &ignored_, "accepted for compatibility").hidden = true;
  }
  void DeclareClass(Flags& flags) {
    flags.Group("Its class");
    if (workload_.empty()) {
      flags.Switch("--interactive", &interactive_, "a workspace (priority 75, preemptible)");
      flags.Switch("--build", &build_, "a workspace that is not preempted (priority 100)");
      flags.Switch("--inference", &inference_, "a server (priority 125, not preempted)");
    }
    flags.Switch("--jupyter", &jupyter_, "a Jupyter workspace, with image and port");
    flags.Text("--priority", &spec_.pod.priority, "CLASS", "another PriorityClass");
    flags.Switch("--preemptible", &preemptible_,
                 "others may take its place back; it may go over quota");
    flags.Text("--preemptibility", &preemptibility_, "WORD", "preemptible or non-preemptible");
    flags.Text("--on-preemption", &on_preemption_, "requeue|fail",
               "when its place is taken: come back by itself (default), or end as failed");
  }
  void DeclareAmounts(Flags& flags) {
    flags.Group("How much");
    flags.Text("-g,--gpu", &gpus_, "N", "GPUs of each instance; or a part of one: 0.5").also = {
        "--gpu-devices-request", "--gpu-portion-request"};
    flags.Text("--gpu-memory", &gpu_memory_, "AMOUNT", "instead: so much of one GPU's memory")
        .also = {"--gpu-memory-request"};
    flags.Int("--workers", &workers_, "N", "instances that run together (default 1)");
    flags
        .Int("--completions", &spec_.completions, "N",
             "instead: so many runs of their own, as of a search for parameters")
        .also = {"--runs"};
    flags.Int("--parallelism", &spec_.parallelism, "N", "so many of these at once");
    flags.Switch("--elastic", &elastic_,
                 "may run on fewer GPUs: --gpu N becomes N instances with one each");
    flags.Int("--min-workers", &workers_min_, "N", "with no fewer instances than this; elastic");
    flags.Text("-c,--cpu", &spec_.pod.cpu, "AMOUNT", "CPU: 2, 500m").also = {"--cpu-core-request"};
    flags.Text("-m,--memory", &spec_.pod.memory, "AMOUNT", "memory: 8Gi").also = {
        "--cpu-memory-request"};
    flags.Text("--cpu-limit", &spec_.pod.cpu_limit, "AMOUNT", "no more CPU than this").also = {
        "--cpu-core-limit"};
    flags.Text("--memory-limit", &spec_.pod.memory_limit, "AMOUNT", "no more memory than this")
        .also = {"--cpu-memory-limit"};
    flags.List("--extended-resource", &devices_, "NAME=N", "other resources, repeatable");
    flags.Switch("--large-shm", &large_shm_, "with a large /dev/shm");
    flags.Group("Where");
    flags.Text("--node-type", &node_type_, "TEXT", "on nodes with the label run.ai/type=TEXT");
    flags.Text("--node-pools", &node_pools_, "POOL", "on the nodes of this pool");
    flags.List("--selector", &selectors_, "KEY=VALUE", "on nodes with this label");
    flags.List("--toleration", &spec_.pod.tolerations, "TAINT", "all, KEY or KEY=VALUE:EFFECT");
    flags.Switch("--host-network", &spec_.pod.host_network, "in the host's network");
    flags.Switch("--host-ipc", &spec_.pod.host_ipc, "with the host's IPC");
  }
  void DeclareReach(Flags& flags) {
    flags.Group("Reaching it");
    flags.List("--port", &ports_text_, "OUTSIDE:INSIDE", "a port it listens on, repeatable");
    flags.Text("-s,--service-type", &service_type_, "TYPE",
               "portforward, clusterip, nodeport or loadbalancer");
  }
  void DeclareEnd(Flags& flags) {
    flags.Group("Then");
    flags
        .Int("--backoff-limit", &spec_.backoff_limit, "N",
             "restarts before it has failed (training: 6)")
        .also = {"--backoffLimit"};
    flags
        .Text("--auto-deletion-time-after-completion", &ttl_, "DURATION",
              "it is deleted so long after its end")
        .also = {"--ttl-after-finish"};
    flags.Text("--max-run-time", &max_run_time_, "DURATION", "it has failed after: 2h");
    flags.Switch("--wait", &ignored_, "accepted for compatibility").hidden = true;
    flags
        .Text("--dry-run", &dry_run_, "none|client|server|plan",
              "print it, do not run it; plan says where it would go and whom it would displace")
        .implied = "client";
    flags.Text("-o,--output", &output_, "FORMAT", "yaml, json or name");
  }
  // What Run:ai has beside these, and why it is not here.
  static void RefuseOthers(Flags& flags) {
    struct Other {
      const char* names;
      const char* why;
    };
    static constexpr Other kOthers[] = {
        {"--template", "nothing keeps templates here; --dry-run -o yaml prints one to apply again"},
        {"--attach", "runai exec or runai bash, once it runs"},
        {"--mig-profile", "--extended-resource nvidia.com/mig-1g.5gb=1 asks for a part of a GPU"},
        {"--create-home-dir", "-v or --pvc mounts a directory that stays"},
        {"--nfs-server", "--pvc mounts a claim"},
        {"--s3", "--pvc or --git-sync brings data"},
        {"--allow-privilege-escalation", "workloads get no more rights than they begin with"},
        {"--capability", "workloads get no more rights than they begin with"},
        {"--custom-url", "--port with --service-type nodeport, or runai port-forward"},
        {"--external-url", "--port with --service-type nodeport, or runai port-forward"},
    };
    for (const Other& other : kOthers) flags.Refuse(other.names, other.why);
  }

  Status Fill(Session& session, std::vector<std::string> words) {
    if (spec_.pod.name.empty() && spec_.name_prefix.empty()) {
      if (words_before_dashes_ > 0) {
        spec_.pod.name = words[0];
        words.erase(words.begin());
      } else {
        spec_.name_prefix = "job";
      }
    }
    if (!dry_run_.empty() && dry_run_ != "none" && dry_run_ != "client" && dry_run_ != "server" &&
        dry_run_ != "plan") {
      return Misuse(
          StrCat("--dry-run ", Quote(dry_run_), ": none, client, server or plan expected"));
    }
    FillCommand(std::move(words));
    SWELL_RETURN_IF_ERROR(FillClass());
    SWELL_RETURN_IF_ERROR(FillAmounts());
    SWELL_RETURN_IF_ERROR(FillRest());
    Mark(spec_.pod.annotations, api::keys::kUser, UserOf(session));
    Mark(spec_.pod.annotations, api::keys::kCommandLine, session.global().command_line);
    return Status::Ok();
  }

  // Version 1: --command "LINE" is for the shell. Version 2: --command alone says that the words
  // after -- are the command; without it they are arguments of the image's entry point.
  void FillCommand(std::vector<std::string> words) {
    if (!command_) {
      spec_.pod.args = args_;
    } else if (command_->empty()) {
      spec_.pod.command = std::exchange(words, {});
      spec_.pod.args = args_;
    } else {
      spec_.pod.command = {"sh", "-c", *command_};
      spec_.pod.args = args_;
      // The shell takes its first argument for its own name.
      if (!args_.empty() || !words.empty()) {
        spec_.pod.command.back() += " \"$@\"";
        spec_.pod.command.emplace_back("sh");
      }
    }
    spec_.pod.args.insert(spec_.pod.args.end(), words.begin(), words.end());
  }

  Status FillClass() {
    std::string workload = workload_;
    if (interactive_ || jupyter_) workload = "interactive";
    if (build_) workload = "build";
    if (inference_) workload = "inference";
    if (int(interactive_ || jupyter_) + int(build_) + int(inference_) > 1) {
      return Misuse("--interactive, --build and --inference exclude each other");
    }
    const WorkloadClass& found = ClassOf(workload);
    spec_.workload = found.name;
    spec_.role = found.role;
    spec_.pod.container = spec_.role;
    if (spec_.pod.priority.empty()) spec_.pod.priority = found.name;
    if (spec_.backoff_limit < -1) {
      return Misuse(StrCat("--backoff-limit ", spec_.backoff_limit, ": must not be negative"));
    }
    // A workspace comes back however often it ends; training that keeps failing is broken.
    constexpr int64_t kBackoffUsual = 6;
    if (spec_.backoff_limit < 0 && spec_.workload == "train") spec_.backoff_limit = kBackoffUsual;
    if (jupyter_) {
      if (spec_.pod.image.empty()) spec_.pod.image = kJupyterImage;
      if (ports_text_.empty()) ports_text_.push_back(std::to_string(kJupyterPort));
    }
    std::string word = ToLower(preemptibility_);
    if (word != "" && word != "preemptible" && word != "non-preemptible") {
      return Misuse(StrCat("--preemptibility ", Quote(preemptibility_),
                           ": preemptible or non-preemptible expected"));
    }
    if (preemptible_ || word == "preemptible") spec_.preemptibility = "Preemptible";
    if (word == "non-preemptible") spec_.preemptibility = "NonPreemptible";
    std::string then = ToLower(on_preemption_);
    if (then != "" && then != "requeue" && then != "fail") {
      return Misuse(
          StrCat("--on-preemption ", Quote(on_preemption_), ": requeue or fail expected"));
    }
    if (!then.empty()) spec_.pod.on_preemption = then == "fail" ? "Fail" : "Requeue";
    return Status::Ok();
  }

  Status FillAmounts() {
    double gpus = 0;
    if (!gpus_.empty()) {
      SWELL_ASSIGN_OR_RETURN(gpus, ParseGpus(gpus_));
    }
    if (!gpu_memory_.empty()) {
      if (!gpus_.empty()) return Misuse("--gpu and --gpu-memory exclude each other");
      SWELL_ASSIGN_OR_RETURN(spec_.gpu_memory_mib, ParseGpuMemory(gpu_memory_));
    }
    bool whole = gpus == std::floor(gpus);
    spec_.pod.gpus = whole ? static_cast<int64_t>(gpus) : 0;
    if (!whole) spec_.gpu_fraction = gpus;
    if (workers_ == kUnsaid) {
      workers_ = 0;
    } else if (workers_ < 1) {
      return Misuse(StrCat("--workers ", workers_, ": at least 1 expected"));
    }
    spec_.pod.workers = std::max<int64_t>(1, workers_);
    if (spec_.Repeats() && (elastic_ || workers_ > 1 || workers_min_ > 0)) {
      return Misuse(
          "--completions and --parallelism are for runs of their own, --workers for one "
          "of several instances");
    }
    if (elastic_ && workers_ == 0 && spec_.pod.gpus > 1) {
      spec_.pod.workers = spec_.pod.gpus;
      spec_.pod.gpus = 1;
    }
    if (elastic_ || workers_min_ > 0) spec_.workers_min = std::max<int64_t>(1, workers_min_);
    SWELL_ASSIGN_OR_RETURN(spec_.pod.devices, ParsePairs(devices_, "--extended-resource"));
    if (large_shm_) spec_.pod.share_memory = kLargeShm;
    return Status::Ok();
  }

  Status FillRest() {
    SWELL_ASSIGN_OR_RETURN(spec_.pod.env, ParsePairs(env_, "--environment"));
    SWELL_ASSIGN_OR_RETURN(spec_.pod.labels, ParseLabels(labels_, "--label"));
    SWELL_ASSIGN_OR_RETURN(spec_.pod.annotations, ParsePairs(annotations_, "--annotation"));
    SWELL_ASSIGN_OR_RETURN(spec_.pod.selectors, ParseLabels(selectors_, "--selector"));
    Mark(spec_.pod.selectors, "run.ai/type", node_type_);
    for (const std::string& volume : volumes_) spec_.pod.host_paths.push_back(volume);
    spec_.pod.volume_flag = "--pvc";
    spec_.pod.host_path_flag = "--volume";
    for (const std::string& text : claims_) SWELL_RETURN_IF_ERROR(ReadClaim(text));
    if (local_image_) spec_.pod.image_pull_policy = "IfNotPresent";
    if (!git_sync_.empty()) {
      spec_.pod.sync_mode = "git";
      std::string_view text = git_sync_;
      if (text.starts_with("source=")) text.remove_prefix(std::string_view("source=").size());
      spec_.pod.sync_source = text.substr(0, text.find(','));
    }
    for (const std::string& text : ports_text_) {
      SWELL_ASSIGN_OR_RETURN(PortPair port, ParsePort(text));
      ports_.push_back(port);
      spec_.pod.ports.push_back(port.inside);
    }
    std::string type = ToLower(service_type_);
    if (type != "" && type != "portforward" && type != "clusterip" && type != "nodeport" &&
        type != "loadbalancer") {
      return Misuse(StrCat("--service-type ", Quote(service_type_),
                           ": portforward, clusterip, nodeport or loadbalancer expected"));
    }
    auto seconds = [](std::string_view flag, const std::string& text, int64_t& to) {
      if (text.empty()) return Status::Ok();
      SWELL_ASSIGN_OR_RETURN(Duration span, ParseDuration(text, flag));
      to = std::chrono::duration_cast<std::chrono::seconds>(span).count();
      return Status::Ok();
    };
    SWELL_RETURN_IF_ERROR(seconds("--auto-deletion-time-after-completion", ttl_, spec_.pod.ttl_s));
    return seconds("--max-run-time", max_run_time_, spec_.pod.running_timeout_s);
  }

  // CLAIM:PATH, CLASS:SIZE:PATH for one to be made (no class: the default one), and :ro or :rw.
  Status ReadClaim(const std::string& text) {
    std::vector<std::string> parts;
    for (std::string_view part : Split(text, ':')) parts.emplace_back(part);
    if (!parts.empty() && parts.back() == "rw") parts.pop_back();
    if (!parts.empty() && parts.back() == "ro") {
      return Misuse(StrCat("--pvc ", Quote(text), ": claims are mounted to be written, too"));
    }
    const bool makes = parts.size() == 3 && api::Quantity::Parse(parts[1]).ok();
    if (parts.size() != 2 && !makes) {
      return Misuse(StrCat("--pvc ", Quote(text), ": CLAIM:PATH or CLASS:SIZE:PATH expected"));
    }
    if (makes && spec_.pod.name.empty()) {
      return Misuse(StrCat("--pvc ", Quote(text), ": the workload needs a name, its claim has it"));
    }
    if (!makes) {
      spec_.pod.volumes.push_back(StrCat(parts[0], ":", parts[1]));
      return Status::Ok();
    }
    const std::string name = StrCat(spec_.pod.name, "-pvc-", new_claims_.size());
    json::Value claim =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "PersistentVolumeClaim"},
                     {"metadata", json::Object{{"name", name}}},
                     {"spec", json::Object{{"accessModes", json::Array{"ReadWriteOnce"}}}}};
    json::Set(claim, {"spec", "resources", "requests", "storage"}, parts[1]);
    if (!parts[0].empty()) json::Set(claim, {"spec", "storageClassName"}, parts[0]);
    new_claims_.push_back(std::move(claim));
    spec_.pod.volumes.push_back(StrCat(name, ":", parts[2]));
    return Status::Ok();
  }

  // They outlive the workload, and one of the same name finds them again.
  Status MakeClaims(const Scope& scope) const {
    for (const json::Value& claim : new_claims_) {
      auto made =
          scope.api->Create(client::resources::kPersistentVolumeClaims, spec_.pod.ns, claim);
      if (!made.ok() && made.status().code() != Code::kAlreadyExists) return made.status();
    }
    return Status::Ok();
  }

  // The nodes of the pool that was asked for, by its labels.
  Status ChoosePools(const Scope& scope) {
    if (node_pools_.empty()) return Status::Ok();
    auto pool = scope.api->Get(client::resources::kNodePools, "", node_pools_);
    if (!pool.ok()) return pool.status().WithContext(StrCat("--node-pools ", node_pools_));
    for (const auto& label : json::GetObject(**pool, {"spec", "nodeSelector"})) {
      if (!label.value().is_string()) continue;
      Mark(spec_.pod.selectors, {label.key().data(), label.key().size()},
           std::string(json::View(label.value().get_string())));
    }
    return Status::Ok();
  }

  // A project that was made a moment ago gets its namespace a moment later.
  static Status WaitForNamespace(const Scope& scope) {
    constexpr int kTries = 50;
    for (int i = 0; i < kTries; ++i) {
      auto found = scope.api->Get(client::resources::kNamespaces, "", scope.project.ns);
      if (found.ok() || found.status().code() != Code::kNotFound) return Status::Ok();
      if (!scope.api->Pause(std::chrono::milliseconds(100))) break;
    }
    return Status(Code::kNotFound, StrCat("project ", Quote(scope.project.name),
                                          " has no namespace ", Quote(scope.project.ns), " yet"));
  }

  Status Refused(const Status& status, const Scope& scope) const {
    if (status.code() != Code::kAlreadyExists) return status;
    return Status(Code::kAlreadyExists,
                  StrCat("the workload ", Quote(spec_.pod.name), " already exists in project ",
                         Quote(scope.project.name), "; runai delete ", spec_.pod.name, " -p ",
                         scope.project.name, " removes it"));
  }

  Status Expose(const Scope& scope, const json::Value& job) const {
    std::string type = ToLower(service_type_);
    std::string kind = type == "nodeport"       ? "NodePort"
                       : type == "loadbalancer" ? "LoadBalancer"
                                                : "ClusterIP";
    auto made = scope.api->Create(client::resources::kServices, spec_.pod.ns,
                                  MakeJobService(job, spec_.role, ports_, kind));
    return made.ok() || made.status().code() == Code::kAlreadyExists ? Status::Ok() : made.status();
  }

  Result<int> Tell(Session& session,
                   const Scope& scope,
                   const OutputForm& form,
                   const json::Value& job) const {
    std::string name(api::Name(job));
    if (!form.table()) {
      session.Out(FormatObject(form, job, ResourceNameOf(job)));
      return 0;
    }
    if (dry_run_ == "server") {
      session.OutLine(StrCat("The job '", name, "' would be submitted (server dry run)"));
      return 0;
    }
    session.OutLine(StrCat("The job '", name, "' has been submitted successfully"));
    session.OutLine(StrCat("You can run `runai describe job ", name, " -p ", scope.project.name,
                           "` to check the job status"));
    if (ToLower(service_type_) == "portforward") {
      session.OutLine(StrCat("Reach it with `runai port-forward ", name, " -p ", scope.project.name,
                             " --port ", ports_text_.empty() ? "PORT" : ports_text_[0], "`"));
    }
    return 0;
  }

  std::string workload_;
  TrainingSpec spec_;
  std::optional<std::string> command_;  // empty: given alone
  size_t words_before_dashes_ = 0;
  std::vector<std::string> args_, env_, volumes_, claims_, labels_, annotations_, devices_,
      selectors_, ports_text_;
  std::vector<json::Value> new_claims_;
  std::vector<PortPair> ports_;
  std::string gpus_, gpu_memory_, node_type_, node_pools_, service_type_, git_sync_, ttl_,
      max_run_time_, preemptibility_, on_preemption_, dry_run_, output_;
  static constexpr int64_t kUnsaid = INT64_MIN;
  int64_t workers_ = kUnsaid, workers_min_ = 0;
  bool interactive_ = false, build_ = false, inference_ = false, jupyter_ = false,
       preemptible_ = false, elastic_ = false, local_image_ = false, large_shm_ = false,
       ignored_ = false;
};

// PyTorch in several pods: a Kubeflow PyTorchJob, as the same command makes elsewhere.
class SubmitDistAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.CountWordsBeforeDashes(&words_before_dashes_);
    flags.Group("The workload");
    flags.Text("--name", &spec_.name, "NAME", "its name (or the first word)");
    flags.Text("-i,--image", &spec_.image, "IMAGE", "what each instance runs in");
    flags.Maybe("--command", &command_, "COMMAND", "a line for the shell");
    flags.List("-e,--environment", &env_, "KEY=VALUE", "environment, repeatable").also = {
        "--env", "--environment-variable"};
    flags.Text("--working-dir", &spec_.working_dir, "PATH", "where it starts");
    flags.List("-v,--volume", &spec_.host_paths, "HOST:PATH", "a directory of the host");
    flags.List("--pvc", &spec_.volumes, "CLAIM:PATH", "a volume claim, repeatable");
    flags.Group("How much");
    flags.Int("--workers", &workers_, "N", "workers beside the master (default 1)");
    flags.Switch("--no-master", &no_master_, "the first worker leads instead");
    flags.Int("-g,--gpu", &spec_.gpus, "N", "GPUs of each instance").also = {
        "--gpu-devices-request"};
    flags.Text("-c,--cpu", &spec_.cpu, "AMOUNT", "CPU of each instance").also = {
        "--cpu-core-request"};
    flags.Text("-m,--memory", &spec_.memory, "AMOUNT", "memory of each instance").also = {
        "--cpu-memory-request"};
    flags.Text("--nproc-per-node", &spec_.nproc_per_node, "N",
               "processes of each instance: a number, auto, cpu or gpu");
    flags.Switch("--large-shm", &large_shm_, "with a large /dev/shm");
    flags.Int("--min-workers", &min_, "N", "elastic: no fewer workers than this").also = {
        "--min-replicas"};
    flags.Text("--priority", &spec_.priority, "CLASS", "another PriorityClass (default train)");
    flags.Text("--dry-run", &dry_run_, "none|client", "print it, do not run it").implied = "client";
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (spec_.name.empty() && words_before_dashes_ > 0) {
      spec_.name = words[0];
      words.erase(words.begin());
    }
    if (large_shm_) spec_.share_memory = kLargeShm;
    spec_.volume_flag = "--pvc";
    spec_.host_path_flag = "--volume";
    if (workers_ < 1) return Misuse(StrCat("--workers ", workers_, ": at least 1 expected"));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session));
    if (command_ && !command_->empty()) {
      spec_.command = {"sh", "-c", *command_};
    } else {
      spec_.command = std::move(words);
    }
    SWELL_ASSIGN_OR_RETURN(spec_.env, ParsePairs(env_, "--environment"));
    spec_.ns = scope.project.ns;
    spec_.project = scope.project.name;
    spec_.workers = workers_ + (no_master_ ? 0 : 1);
    if (spec_.priority.empty()) spec_.priority = "train";
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*scope.api, spec_.priority));
    Mark(spec_.annotations, api::keys::kUser, UserOf(session));
    Mark(spec_.annotations, api::keys::kCommandLine, session.global().command_line);
    Mark(spec_.labels, api::keys::kWorkload, "train");
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakePyTorchJob(spec_));
    if (min_ > 0) {
      json::Set(job, {"spec", "elasticPolicy"},
                json::Object{{"minReplicas", min_}, {"maxReplicas", spec_.workers}});
    }
    if (dry_run_ == "client") {
      session.Out(FormatObject({.kind = OutputForm::Kind::kYaml}, job, ""));
      return 0;
    }
    auto made = scope.api->Create(client::resources::kPyTorchJobs, spec_.ns, job,
                                  {.field_validation = "Strict"});
    if (!made.ok()) return made.status();
    session.OutLine(StrCat("The job '", spec_.name, "' has been submitted successfully"));
    session.OutLine(StrCat("You can run `runai describe job ", spec_.name, " -p ",
                           scope.project.name, "` to check the job status"));
    return 0;
  }

 private:
  PyTorchSpec spec_;
  std::vector<std::string> env_;
  std::optional<std::string> command_;
  std::string dry_run_;
  int64_t workers_ = 1, min_ = 0;
  size_t words_before_dashes_ = 0;
  bool no_master_ = false, large_shm_ = false;
};

// A framework that Run:ai trains in several pods and Swell does not.
class OtherFramework final : public Action {
 public:
  explicit OtherFramework(std::string name) : name_(std::move(name)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session&, std::vector<std::string>) override {
    return Misuse(StrCat(name_,
                         " is not supported; runai submit-dist pytorch is, and its pods "
                         "may run any command"));
  }

 private:
  std::string name_;
};

Command PyTorchSpecOf(std::string name) {
  return {
      .name = std::move(name),
      .summary = "Submits PyTorch training: a master and workers.",
      .usage = "NAME --image IMAGE [flags] [-- COMMAND...]",
      .examples = {{"A master and three workers with two GPUs each",
                    "runai submit-dist pytorch dist1 -p team-a -i pytorch/pytorch --workers 3 "
                    "-g 2 --command \"python ddp.py\""}},
      .make = Makes<SubmitDistAction>(),
  };
}

}  // namespace

Command SubmitSpec(const std::string& workload) {
  Command command{
      .name = "submit",
      .summary = workload.empty() ? "Submits a workload to a project."
                                  : StrCat("Submits ", workload, " work to a project."),
      .usage = "NAME --image IMAGE [flags] [-- ARGUMENT...]",
      .examples =
          {{"Training on eight GPUs",
            "runai submit train1 -p team-a -i pytorch/pytorch:latest -g 8 --command \"python "
            "a.py\""},
           {"Training that may run on fewer of them",
            "runai submit train2 -p team-a -i pytorch/pytorch:latest -g 8 --elastic --min-workers "
            "4 "
            "--command \"python -m swell.launch a.py\""},
           {"A workspace with half a GPU",
            "runai submit notebook -p team-a -i jupyter/scipy-notebook -g 0.5 --interactive --port "
            "8888:8888"}},
  };
  command.notes =
      "Training may use GPUs that other projects leave idle. When they want them back it gives "
      "back what it can spare, or stops, waits, and comes back by itself.";
  command.make = [workload] { return std::make_unique<SubmitAction>(workload); };
  return command;
}

Command SubmitDistSpec() {
  Command command{
      .name = "submit-dist",
      .summary = "Submits training in several pods.",
  };
  command.children.push_back(PyTorchSpecOf("pytorch"));
  for (const char* name : {"mpi", "tf", "tensorflow", "xgboost", "jax"}) {
    Command other;
    other.name = name;
    other.summary = "Not supported.";
    other.hidden = true;
    other.raw = true;
    other.make = [name] { return std::make_unique<OtherFramework>(name); };
    command.children.push_back(std::move(other));
  }
  return command;
}

Command SubmitPyTorchSpec() { return PyTorchSpecOf("submit"); }

}  // namespace swell::cli::runai
