// runai submit.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/service_address.h"
#include "cli/jobs/submit_warnings.h"
#include "cli/jobs/training_spec.h"
#include "cli/jobs/what_if.h"
#include "cli/print/output.h"
#include "cli/runai/flag_names.h"
#include "cli/runai/pod_flags.h"
#include "cli/runai/runai.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::runai {
namespace {

constexpr std::string_view kJupyterImage = "jupyter/scipy-notebook";
constexpr int64_t kJupyterPort = 8888;

void Mark(KeyValues& pairs, std::string_view key, std::string value) {
  if (!value.empty()) pairs.emplace_back(std::string(key), std::move(value));
}

class SubmitAction final : public Action {
 public:
  // A class that is given is version 2's: runai training submit.
  explicit SubmitAction(std::string workload)
      : workload_(std::move(workload)), pod_flags_(workload_.empty() ? 1 : 2) {}

  void Declare(Flags& flags) override {
    flags.CountWordsBeforeDashes(&words_before_dashes_);
    DeclareWork(flags);
    DeclareClass(flags);
    DeclareAmounts(flags);
    DeclareReach(flags);
    DeclareEnd(flags);
    AddOtherNames(flags);
    PodFlags::RefuseOthers(flags);
    if (workload_ == "inference") RefuseScaling(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Fill(session, std::move(words)));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kIsRefused));
    SWELL_RETURN_IF_ERROR(CheckTakesWork(scope.project));
    spec_.pod.ns = scope.project.ns;
    spec_.pod.project = scope.project.name;
    PodFlags::AddVariables(Facts(session), spec_.pod);
    SWELL_RETURN_IF_ERROR(pod_flags_.ChoosePools(*scope.api, spec_.pod));
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*scope.api, spec_.pod.priority));
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeTrainingJob(spec_));
    for (const std::string& remark : remarks_) session.ErrLine(StrCat("runai: ", remark));
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
    if (!on_server) SWELL_RETURN_IF_ERROR(pod_flags_.MakeClaims(*scope.api, spec_.pod.ns));
    std::string restricted;
    auto made = CreateJob(
        *scope.api, spec_.Repeats() ? client::resources::kJobs : client::resources::kTrainingJobs,
        spec_.pod.ns, job, {.dry_run = on_server, .field_validation = "Strict"}, restricted);
    if (!made.ok()) return Refused(made.status(), scope);
    if (!restricted.empty()) session.ErrLine(StrCat("runai: ", restricted));
    if (!on_server) SWELL_RETURN_IF_ERROR(pod_flags_.MakeOwnClaims(*scope.api, **made));
    if (!ports_.empty() && !on_server) SWELL_RETURN_IF_ERROR(Expose(scope, **made));
    Tell(session, scope, form, **made);
    return on_server ? 0 : pod_flags_.Attach(session, scope, std::string(api::Name(**made)));
  }

 private:
  PodFacts Facts(Session& session) const {
    if (spec_.Repeats()) {
      return {.name = "metadata.labels['batch.kubernetes.io/job-name']",
              .index = "metadata.annotations['batch.kubernetes.io/job-completion-index']",
              .uid = "metadata.labels['batch.kubernetes.io/controller-uid']",
              .uid_is_field = true};
    }
    return {.name = StrCat("metadata.labels['", api::keys::kJobName, "']"),
            .index = StrCat("metadata.labels['", api::keys::kJobIndex, "']"),
            .uid = NewUid(session)};
  }
  void DeclareWork(Flags& flags) {
    flags.Group("Workload");
    flags.Text("--name", &spec_.pod.name, "NAME", "name of the workload (or the first argument)");
    flags.Text("--job-name-prefix", &spec_.pod.name_prefix, "TEXT",
               "generate a name with this prefix");
    pod_flags_.DeclareContainer(flags, spec_.pod);
  }
  void DeclareClass(Flags& flags) {
    flags.Group("Workload class");
    if (workload_.empty()) {
      flags.Switch("--interactive", &interactive_, "workspace (priority 75, preemptible)");
      flags.Switch("--build", &build_, "workspace that is not preempted (priority 100)");
      flags.Switch("--inference", &inference_, "inference server (priority 125, not preempted)");
    }
    flags.Switch("--jupyter", &jupyter_, "Jupyter workspace, with image and port");
    flags.Text("--priority", &spec_.pod.priority, "CLASS", "priority class");
    flags.Switch("--preemptible", &preemptible_, "may exceed the quota, and may be preempted");
    flags.Text("--preemptibility", &preemptibility_, "WORD", "preemptible or non-preemptible");
    flags.Text("--on-preemption", &on_preemption_, "requeue|fail",
               "after preemption: wait and resume (default), or fail");
  }
  void DeclareAmounts(Flags& flags) {
    flags.Group("Resources");
    flags.Int("--workers", &workers_, "N", "number of instances that run together (default 1)");
    if (workload_ == "inference") {
      flags.Int("--min-replicas", &servers_, "N", "the same as --workers");
      flags.Int("--max-replicas", &servers_max_, "N",
                "must equal --min-replicas: servers are not scaled by their load");
    }
    flags.Int("--completions", &spec_.completions, "N",
              "number of independent runs, for example of a parameter search");
    flags.Int("--parallelism", &spec_.parallelism, "N", "number of these runs at a time");
    flags.Switch("--elastic", &elastic_,
                 "may run on fewer GPUs: --gpu N means N instances with one GPU each");
    flags.Int("--min-workers", &workers_min_, "N",
              "minimum number of instances of elastic training");
    pod_flags_.DeclareAmounts(flags, spec_.pod);
    flags.Text("--master-gpu", &master_gpu_, "N", "has no effect").hidden = true;
    flags.Group("Placement");
    pod_flags_.DeclarePlace(flags, spec_.pod);
    flags.Text("--required-pod-topology-key", &spec_.topology_required, "LABEL",
               "all instances on nodes with the same value of this label");
    flags.Text("--preferred-pod-topology-key", &spec_.topology_preferred, "LABEL",
               "the same, if possible");
  }
  void DeclareReach(Flags& flags) {
    flags.Group("Networking");
    if (workload_ == "inference") {
      flags.Text("--serving-port", &serving_port_, "PORT", "port that the server listens on");
    }
    flags.List("--port", &ports_text_, "OUTSIDE:INSIDE",
               "port to expose, repeatable; or container=N,external=N,service-type=TYPE");
    flags.List("--external-url", &external_urls_, "container=PORT",
               "port to expose outside of the cluster, as --service-type external-url does");
    flags.Text("-s,--service-type", &service_type_, "TYPE",
               "portforward, clusterip, nodeport, loadbalancer or external-url (a port of the "
               "nodes, as nodeport)");
  }
  void DeclareEnd(Flags& flags) {
    flags.Group("Completion");
    flags.Int("--backoff-limit", &spec_.backoff_limit, "N",
              "number of restarts before it fails (training: 6)");
    flags.Refuse("--restart-policy",
                 "--backoff-limit N says how often it is tried again; 0: never");
    flags.Text("--auto-deletion-time-after-completion", &ttl_, "DURATION",
               "delete the workload this long after its end");
    flags.Text("--max-run-time", &max_run_time_, "DURATION", "maximum running time: 2h");
    pod_flags_.DeclareAttach(flags);
    flags.Switch("--wait", &ignored_, "accepted for compatibility").hidden = true;
    flags
        .Text("--dry-run", &dry_run_, "none|client|server|plan",
              "print the workload instead of creating it; plan shows where it would run and what "
              "it would preempt")
        .implied = "client";
    flags.Text("-o,--output", &output_, "FORMAT", "output format: yaml, json or name");
  }

  Status Fill(Session& session, std::vector<std::string> words) {
    SWELL_RETURN_IF_ERROR(PodFlags::TakeName(spec_.pod, words_before_dashes_, words));
    if (spec_.pod.name.empty() && spec_.pod.name_prefix.empty()) spec_.pod.name_prefix = "job";
    if (!dry_run_.empty() && dry_run_ != "none" && dry_run_ != "client" && dry_run_ != "server" &&
        dry_run_ != "plan") {
      return WrongValue("--dry-run", dry_run_, {"none", "client", "server", "plan"});
    }
    pod_flags_.FillCommand(spec_.pod, std::move(words));
    SWELL_RETURN_IF_ERROR(pod_flags_.Fill(spec_.pod));
    remarks_ = pod_flags_.Remarks();
    if (!master_gpu_.empty()) {
      remarks_.emplace_back("--master-gpu has no effect: runai submit-dist makes a master");
    }
    SWELL_RETURN_IF_ERROR(FillClass());
    SWELL_RETURN_IF_ERROR(FillAmounts());
    SWELL_RETURN_IF_ERROR(FillRest());
    Mark(spec_.pod.annotations, api::keys::kUser, LocalUser(session));
    Mark(spec_.pod.annotations, api::keys::kCommandLine, session.global().command_line);
    return Status::Ok();
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
      return Misuse(StrCat("--backoff-limit ", spec_.backoff_limit, ": expected 0 or more"));
    }
    // A workspace comes back however often it ends; training that keeps failing is broken.
    constexpr int64_t kBackoffUsual = 6;
    if (spec_.backoff_limit < 0 && spec_.workload == "train") spec_.backoff_limit = kBackoffUsual;
    // A workspace without a command is its image's shell or Python, which would end at once with
    // nobody to read from; an image that serves something does so. runai attach leads to it.
    const bool own_program = spec_.pod.command.empty() && spec_.pod.args.empty();
    if (spec_.role == "workspace" && own_program && !jupyter_) {
      spec_.pod.keep_stdin = spec_.pod.tty = true;
    }
    if (jupyter_) {
      if (spec_.pod.image.empty()) spec_.pod.image = kJupyterImage;
      if (ports_text_.empty()) ports_text_.push_back(std::to_string(kJupyterPort));
    }
    std::string word = ToLower(preemptibility_);
    if (!word.empty() && word != "preemptible" && word != "non-preemptible") {
      return WrongValue("--preemptibility", preemptibility_, {"preemptible", "non-preemptible"});
    }
    const bool preemptible = preemptible_ || word == "preemptible";
    if (preemptible && build_) {
      return Misuse(
          "--build and --preemptible exclude each other; --interactive submits a workspace that "
          "may be preempted");
    }
    if (preemptible_ && word == "non-preemptible") {
      return Misuse("--preemptible and --preemptibility non-preemptible exclude each other");
    }
    if (preemptible) spec_.preemptibility = "Preemptible";
    if (word == "non-preemptible") spec_.preemptibility = "NonPreemptible";
    std::string then = ToLower(on_preemption_);
    if (!then.empty() && then != "requeue" && then != "fail") {
      return WrongValue("--on-preemption", on_preemption_, {"requeue", "fail"});
    }
    if (!then.empty()) spec_.pod.on_preemption = then == "fail" ? "Fail" : "Requeue";
    return Status::Ok();
  }

  // Run:ai would scale them between the two, also to none.
  Status FillServers() {
    if (servers_ != kUnsaid) {
      if (workers_ != kUnsaid) return Misuse("--min-replicas and --workers exclude each other");
      if (servers_ < 1) {
        return Misuse(StrCat("--min-replicas ", servers_,
                             ": expected 1 or more: servers are not scaled by their load, so "
                             "nothing would start one"));
      }
      workers_ = servers_;
    }
    const int64_t servers = workers_ == kUnsaid ? 1 : workers_;
    if (servers_max_ == kUnsaid || servers_max_ == servers) return Status::Ok();
    return Misuse(StrCat("--max-replicas ", servers_max_,
                         ": servers are not scaled by their load; --min-replicas N says how many "
                         "run, now ",
                         servers));
  }

  Status FillAmounts() {
    SWELL_RETURN_IF_ERROR(FillServers());
    if (workers_ == kUnsaid) {
      workers_ = 0;
    } else if (workers_ < 1) {
      return Misuse(StrCat("--workers ", workers_, ": expected 1 or more"));
    }
    spec_.pod.workers = std::max<int64_t>(1, workers_);
    if (spec_.Repeats() && (elastic_ || workers_ > 1 || workers_min_ > 0)) {
      return Misuse(
          "--completions and --parallelism are for independent runs, --workers is for instances "
          "that run together");
    }
    if (elastic_ && workers_ == 0 && spec_.pod.gpus > 1) {
      spec_.pod.workers = spec_.pod.gpus;
      spec_.pod.gpus = 1;
    }
    if (workers_min_ < 0) {
      return Misuse(StrCat("--min-workers ", workers_min_, ": expected 1 or more"));
    }
    if (elastic_ || workers_min_ > 0) spec_.workers_min = std::max<int64_t>(1, workers_min_);
    return Status::Ok();
  }

  Status FillRest() {
    SWELL_RETURN_IF_ERROR(FillPorts());
    SWELL_RETURN_IF_ERROR(CheckServiceType());
    SWELL_ASSIGN_OR_RETURN(spec_.pod.running_timeout_s,
                           ParseTimeLimit(max_run_time_, "--max-run-time"));
    if (ttl_.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(const Duration kept,
                           ParseDuration(ttl_, "--auto-deletion-time-after-completion"));
    spec_.pod.ttl_s = std::chrono::duration_cast<std::chrono::seconds>(kept).count();
    return Status::Ok();
  }

  Status CheckServiceType() const {
    const std::string type = ToLower(service_type_);
    if (type == "ingress") {
      return Misuse(
          "--service-type ingress: Swell runs no ingress controller; use --service-type nodeport, "
          "or make an Ingress for the Service that --service-type clusterip gives the workload");
    }
    const bool known = type.empty() || type == "portforward" || type == "clusterip" ||
                       type == "nodeport" || type == "loadbalancer" || type == "external-url";
    if (!known) {
      return WrongValue("--service-type", service_type_,
                        {"portforward", "clusterip", "nodeport", "loadbalancer", "external-url"});
    }
    if (!type.empty() && ports_.empty()) {
      return Misuse(StrCat("--service-type ", service_type_, " needs a port: --port 8888"));
    }
    return Status::Ok();
  }

  // As version 1 says them, or in version 2's fields.
  Status FillPorts() {
    if (!serving_port_.empty()) SWELL_RETURN_IF_ERROR(FillServingPort());
    for (const std::string& text : ports_text_) {
      PortPair port;
      if (text.find('=') == std::string::npos) {
        SWELL_ASSIGN_OR_RETURN(port, ParsePort(text));
      } else {
        SWELL_ASSIGN_OR_RETURN(
            KeyValues fields,
            ParseFields(text, "--port", {"container", "external", "service-type"}));
        const std::string inside(FieldOf(fields, "container"));
        const std::string_view outside = FieldOf(fields, "external");
        SWELL_ASSIGN_OR_RETURN(port,
                               ParsePort(outside.empty() ? inside : StrCat(outside, ":", inside)));
        if (HasField(fields, "service-type")) service_type_ = FieldOf(fields, "service-type");
      }
      AddPort(port);
    }
    for (const std::string& text : external_urls_) {
      // Access control is not supported, so flags for it are refused: the port would be open to
      // all.
      SWELL_ASSIGN_OR_RETURN(KeyValues fields, ParseFields(text, "--external-url", {"container"}));
      SWELL_ASSIGN_OR_RETURN(PortPair port, ParsePort(std::string(FieldOf(fields, "container"))));
      AddPort(port);
      if (service_type_.empty()) service_type_ = "external-url";
    }
    return Status::Ok();
  }
  // "8000" or "container=8000", and fields of Run:ai's gateway, which is not here.
  Status FillServingPort() {
    constexpr std::string_view kContainer = "container=";
    std::optional<int64_t> port;
    for (std::string_view field : Split(serving_port_, ',')) {
      const bool named = field.starts_with(kContainer);
      const auto number = ParseInt(named ? field.substr(kContainer.size()) : field);
      if (number && !port) {
        port = number;
      } else {
        remarks_.push_back(StrCat("--serving-port ", field,
                                  " has no effect: all pods of the cluster may reach the port"));
      }
    }
    constexpr int64_t kPortLast = 65535;
    if (!port || *port < 1 || *port > kPortLast) {
      return Misuse(StrCat("--serving-port ", Quote(serving_port_),
                           ": expected a port from 1 to 65535, as in --serving-port 8000"));
    }
    AddPort({*port, *port});
    return Status::Ok();
  }
  void AddPort(const PortPair& port) {
    ports_.push_back(port);
    spec_.pod.ports.push_back(port.inside);
  }

  static Status WaitForNamespace(const Scope& scope) {
    if (AwaitNamespace(*scope.api, scope.project.ns)) return Status::Ok();
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

  Status Expose(const Scope& scope, const json::Value& job) {
    std::string type = ToLower(service_type_);
    std::string kind = type == "nodeport" || type == "external-url" ? "NodePort"
                       : type == "loadbalancer"                     ? "LoadBalancer"
                                                                    : "ClusterIP";
    auto made = scope.api->Create(client::resources::kServices, spec_.pod.ns,
                                  MakeJobService(job, spec_.role, ports_, kind));
    if (made.ok()) service_ = *made;
    return made.ok() || made.status().code() == Code::kAlreadyExists ? Status::Ok() : made.status();
  }

  void Tell(Session& session,
            const Scope& scope,
            const OutputForm& form,
            const json::Value& job) const {
    std::string name(api::Name(job));
    if (!form.table()) {
      session.Out(FormatObject(form, job, ResourceNameOf(job)));
      return;
    }
    if (dry_run_ == "server") {
      session.OutLine(StrCat("The job '", name, "' would be submitted (server dry run)"));
      return;
    }
    session.OutLine(StrCat("The job '", name, "' has been submitted successfully"));
    PrintSubmitWarnings(session, "runai", *scope.api, job);
    session.OutLine(StrCat("You can run `runai describe job ", name, " -p ", scope.project.name,
                           "` to check the job status"));
    if (service_) TellAddresses(session, scope, *service_);
  }

  // Also of ports without a type: pods reach those, and people through the command.
  void TellAddresses(Session& session, const Scope& scope, const json::Value& service) const {
    for (const std::string& address : AddressesOf(*scope.api, service)) {
      session.OutLine(StrCat("It will answer at http://", address));
    }
    const std::string_view type = json::GetString(service, {"spec", "type"});
    if (type == "ClusterIP") {
      session.OutLine(StrCat("Reach it with `runai port-forward ", api::Name(service), " -p ",
                             scope.project.name, "`"));
    }
  }

  std::string workload_;
  TrainingSpec spec_;
  PodFlags pod_flags_;
  size_t words_before_dashes_ = 0;
  std::vector<std::string> ports_text_, external_urls_;
  std::vector<PortPair> ports_;
  json::SharedValue service_;  // of its ports, as the server made it
  std::string service_type_, ttl_, max_run_time_, preemptibility_, on_preemption_, dry_run_,
      output_, serving_port_, master_gpu_;
  std::vector<std::string> remarks_;  // on what has no effect
  static constexpr int64_t kUnsaid = INT64_MIN;
  int64_t workers_ = kUnsaid, workers_min_ = 0, servers_ = kUnsaid, servers_max_ = kUnsaid;
  bool interactive_ = false, build_ = false, inference_ = false, jupyter_ = false,
       preemptible_ = false, elastic_ = false, ignored_ = false;
};

// Version 2 names the class of the work in the command; version 1 has one command for all.
std::vector<Example> ExamplesOf(const std::string& workload) {
  const std::string training = workload == "train" ? "training submit" : "submit";
  const std::string workspace = workload == "interactive" ? "workspace submit" : "submit";
  const Example train{"Training on eight GPUs",
                      StrCat("runai ", training,
                             " train1 -p team-a -i pytorch/pytorch:latest -g 8 --command \"python "
                             "a.py\"")};
  const Example elastic{
      "Elastic training on four to eight GPUs",
      StrCat("runai ", training,
             " train2 -p team-a -i pytorch/pytorch:latest -g 8 --elastic --min-workers 4 "
             "--command \"python -m swell.launch a.py\"")};
  const Example notebook{
      "A workspace with half a GPU",
      StrCat("runai ", workspace, " notebook -p team-a -i jupyter/scipy-notebook -g 0.5 ",
             workload.empty() ? "--interactive " : "", "--port 8888:8888")};
  if (workload == "inference") {
    return {
        {"A server that listens on port 8000",
         "runai inference submit server1 -p team-a -i python -g 1 --serving-port 8000 --command "
         "-- python -m http.server 8000"}};
  }
  if (workload == "train") return {train, elastic};
  if (workload == "interactive") return {notebook};
  return {train, elastic, notebook};
}

}  // namespace

Command SubmitSpec(const std::string& workload) {
  Command command{
      .name = "submit",
      .summary = workload.empty() ? "Submit a workload to a project."
                                  : StrCat("Submit ", workload == "train" ? "training" : workload,
                                           " work to a project."),
      .usage = "NAME --image IMAGE [flags] [-- ARGUMENT...]",
      .examples = ExamplesOf(workload),
  };
  command.notes =
      "A workspace without a command keeps its image's own program at a terminal, so that runai "
      "bash and runai attach reach it. Training may use idle GPUs of other projects. When those "
      "need them, elastic training "
      "shrinks; other training is preempted, waits and resumes by itself. Pods have the variables "
      "JOB_NAME, JOB_UUID, RUNAI_JOB_NAME, RUNAI_JOB_UUID, RUNAI_PROJECT, RUNAI_NUM_OF_GPUS, "
      "NODE_NAME, POD_UUID and POD_INDEX; --environment overrides them.";
  command.make = [workload] { return std::make_unique<SubmitAction>(workload); };
  return command;
}

}  // namespace swell::cli::runai
