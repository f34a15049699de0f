#include "cli/arena/submit_action.h"

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "cli/arena/command_text.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/submit_warnings.h"
#include "cli/views/project_view.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/net/tls/tls.h"

namespace swell::cli::arena {
namespace {

constexpr size_t kConfigFileBytesMax = 1 << 20;

}  // namespace

Result<int> SubmitAction::Run(Session& session, std::vector<std::string> words) {
  SWELL_RETURN_IF_ERROR(Fill(session, words));
  if (cron_) SWELL_RETURN_IF_ERROR(cron_->Check());
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  spec_.ns = session.Namespace();
  SWELL_RETURN_IF_ERROR(CheckPriorityClass(*api, spec_.priority));
  SWELL_RETURN_IF_ERROR(CheckChargedProject(*api, spec_.project, spec_.ns, "--queue"));
  if (tensorboard_.wanted) SWELL_RETURN_IF_ERROR(ShareLogs(*api, tensorboard_, spec_));
  SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJob());
  const json::Value wanted = cron_ ? cron_->CronOf(job) : job;
  SWELL_RETURN_IF_ERROR(CreateConfigMap(session, *api, wanted));
  Status created = CreateObjects(session, *api, wanted);
  if (!created.ok()) {
    RemoveConfigMaps(session, *api);
    return created;
  }
  for (const std::string& remark : Remarks()) LogLine(session, "warn", remark);
  if (!restricted_.empty()) LogLine(session, "warn", restricted_);
  for (const std::string& text : SubmitWarnings(session, *api, job)) {
    LogLine(session, "warn", text);
  }
  const std::string what =
      cron_ ? StrCat("The cron ", trainer_.word(), " ") : std::string("The Job ");
  LogLine(session, "info", StrCat(what, spec_.name, " has been submitted successfully"));
  LogLine(session, "info",
          cron_ ? StrCat("You can run `arena cron get ", spec_.name, "` to check the cron status")
                : StrCat("You can run `arena get ", spec_.name, " --type ", trainer_.word(),
                         "` to check the job status"));
  return 0;
}

// Whether the ConfigMap outlived its job or cron: older ones, and those of submissions that were
// cut short, have no owner. One that is young may belong to a submission that is under way.
Result<bool> SubmitAction::IsLeftOver(Session& session, Api& api) const {
  auto job = api.Get(trainer_.resource, spec_.ns, spec_.name);
  if (job.ok()) return false;
  if (job.status().code() != Code::kNotFound) return job.status();
  SWELL_ASSIGN_OR_RETURN(const bool cron, HasCron(api, spec_.ns, spec_.name));
  if (cron) return false;
  auto map = api.Get(client::resources::kConfigMaps, spec_.ns, trainer_.ConfigMapName(spec_.name));
  constexpr Duration kYoung = std::chrono::seconds(60);
  return map.ok() && session.Now() - api::CreationTime(**map) > kYoung;
}

// A job of another kind and this name may use the files.
Status SubmitAction::RemoveLeftOver(Api& api) const {
  std::vector<std::string> maps{trainer_.ConfigMapName(spec_.name)};
  SWELL_ASSIGN_OR_RETURN(const std::vector<NamedJob> jobs, JobsNamed(api, spec_.ns, spec_.name));
  // Kinds that arena does not submit have no such files.
  const bool used = std::any_of(jobs.begin(), jobs.end(),
                                [](const NamedJob& job) { return job.trainer != nullptr; });
  if (!used) maps.push_back(ConfigFilesName(spec_.name));
  for (const std::string& old : maps) {
    auto gone = api.Delete(client::resources::kConfigMaps, spec_.ns, old);
    if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
  }
  return Status::Ok();
}

// Else the name would stay taken by a job that does not exist.
void SubmitAction::RemoveConfigMaps(Session& session, Api& api) const {
  for (const std::string& map : made_) {
    auto undone = api.Delete(client::resources::kConfigMaps, spec_.ns, map);
    if (undone.ok() || undone.status().code() == Code::kNotFound) continue;
    LogLine(session, "warn",
            StrCat("configmap ", map, " could not be removed: ", undone.status().message()));
  }
}

// They go with the job or cron, also where kubectl deletes it.
void SubmitAction::GiveConfigMapsTo(Session& session, Api& api, const json::Value& owner) const {
  json::Value patch = json::Object();
  json::Set(patch, {"metadata", "ownerReferences"},
            json::Array{api::MakeOwnerReference(owner, false)});
  for (const std::string& map : made_) {
    const auto given =
        api.Patch(client::resources::kConfigMaps, spec_.ns, map, client::PatchType::kMerge, patch);
    if (given.ok()) continue;
    LogLine(session, "warn",
            StrCat("only `arena ", cron_ ? "cron " : "", "delete ", spec_.name,
                   "` removes configmap ", map, ": ", given.status().message()));
  }
}

// Its presence is what says that the job exists.
Status SubmitAction::CreateConfigMap(Session& session, Api& api, const json::Value& job) {
  std::string name = trainer_.ConfigMapName(spec_.name);
  json::Value map = json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", json::Object{{"name", name}, {"labels", json::Object{{"createdBy", "arena"}}}}},
      {"data", json::Object{{"app", StrCat(trainer_.Object(), "/", spec_.name, "\n")},
                            {"values", json::PrintYaml(job)}}}};
  auto made = api.Create(client::resources::kConfigMaps, spec_.ns, map);
  if (!made.ok() && made.status().code() == Code::kAlreadyExists) {
    SWELL_ASSIGN_OR_RETURN(const bool left_over, IsLeftOver(session, api));
    if (left_over) {
      SWELL_RETURN_IF_ERROR(RemoveLeftOver(api));
      made = api.Create(client::resources::kConfigMaps, spec_.ns, map);
    }
  }
  if (!made.ok() && made.status().code() == Code::kAlreadyExists) {
    SWELL_ASSIGN_OR_RETURN(const bool cron, HasCron(api, spec_.ns, spec_.name));
    return Status(Code::kAlreadyExists,
                  StrCat("the ", cron ? "cron " : "job ", spec_.name,
                         " is already exist, please delete it first. use 'arena ",
                         cron ? "cron " : "", "delete ", spec_.name, "'"));
  }
  if (!made.ok()) return made.status();
  made_.push_back(name);
  told_ += StrCat("configmap/", name, " created\nconfigmap/", name, " labeled\n");
  return Status::Ok();
}

Status SubmitAction::CreateObjects(Session& session, Api& api, const json::Value& job) {
  if (!spec_.config_map.empty()) {
    json::Value files =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", json::Object{{"name", spec_.config_map},
                                               {"labels", json::Object{{"release", spec_.name}}}}},
                     {"data", config_data_}};
    auto made = api.Create(client::resources::kConfigMaps, spec_.ns, files);
    if (!made.ok()) return made.status();
    made_.push_back(spec_.config_map);
    told_ += StrCat("configmap/", spec_.config_map, " created\n");
  }
  SWELL_RETURN_IF_ERROR(CreateLogs(api, spec_));
  const client::Resource& resource = cron_ ? client::resources::kCrons : trainer_.resource;
  auto made = CreateJob(api, resource, spec_.ns, job, {.field_validation = "Strict"}, restricted_);
  if (!made.ok()) {
    RemoveLogs(api, spec_);
    return made.status();
  }
  GiveConfigMapsTo(session, api, **made);
  const std::string object = cron_ ? "cron.apps.kubedl.io" : trainer_.Object();
  session.Out(told_);
  session.OutLine(StrCat(object, "/", spec_.name, " created"));
  if (tensorboard_.wanted) StartTensorboard(session, api, tensorboard_, spec_, **made);
  return Status::Ok();
}

void SubmitAction::Mark(Session& session, int64_t gpus) {
  std::string user = session.env().getenv("USER");
  auto mark = [](KeyValues& pairs, std::string key, std::string value) {
    pairs.emplace_back(std::move(key), std::move(value));
  };
  mark(spec_.labels, "app", trainer_.word());
  mark(spec_.labels, "release", spec_.name);
  mark(spec_.labels, "chart", trainer_.word() + "-0.1.0");
  mark(spec_.labels, "heritage", "arena");
  mark(spec_.labels, "createdBy", cron_ ? "Cron" : std::string(trainer_.created_by));
  if (!user.empty()) {
    mark(spec_.annotations, "arena.kubeflow.org/username", user);
    mark(spec_.labels, "arena.kubeflow.org/uid", net::Sha256Hex(user).substr(0, 32));
  }
  spec_.annotations.insert(spec_.annotations.begin(),
                           {std::string(api::keys::kUser), LocalUser(session)});
  mark(spec_.annotations, "requestGPUsOfJobOwner", std::to_string(gpus));
}

void SubmitInstancesAction::Declare(Flags& flags) {
  if (cron_) cron_->Declare(flags);
  DeclareJob(flags);
  DeclarePlacement(flags);
  DeclareFiles(flags);
  DeclareRest(flags);
}

void SubmitInstancesAction::DeclareJob(Flags& flags) {
  flags.Group("Job");
  flags.Text("--name", &spec_.name, "NAME", cron_ ? "name of the cron" : "name of the job");
  flags.Text("--image", &spec_.image, "IMAGE", "image of each instance");
  DeclareInstances(flags);
  instances_.DeclareDevices(flags, "instance");
  flags.Text("--share-memory", &spec_.share_memory, "AMOUNT", "size of /dev/shm (default 2Gi)");
  flags.Text("--shell", &shell_, "SHELL", "shell that runs the command (default sh)");
  flags.Text("--working-dir", &spec_.working_dir, "PATH", "working directory (default /root)")
      .also = {"--workingDir"};
  instances_.DeclareUser(flags);
  instances_.DeclareNames(flags);
}

void SubmitInstancesAction::DeclarePlacement(Flags& flags) {
  flags.Group("Scheduling");
  flags.Text("-p,--priority", &spec_.priority, "CLASS", "priority class, which must exist");
  flags.Text("--on-preemption", &on_preemption_, "fail|requeue",
             "after preemption: fail (default), or wait and resume");
  flags.Maybe(
      "--queue", &queue_, "NAME",
      "project whose quota it uses; without NAME it has no effect, because jobs always queue");
  flags.Switch("--gang", &spec_.gang_labels, "start all instances together; always on");
  flags.Text("--scheduler", &spec_.scheduler, "NAME", "name of another scheduler");
  instances_.DeclareNodes(flags);
  flags.Switch("--rdma", &spec_.rdma, "request an RDMA device");
  flags.Switch("--hostNetwork", &spec_.host_network, "use the network of the node");
  flags.Switch("--hostIPC", &spec_.host_ipc, "use the IPC namespace of the node");
  flags.Switch("--hostPID", &spec_.host_pid, "use the PID namespace of the node");
}

void SubmitInstancesAction::DeclareFiles(Flags& flags) {
  flags.Group("Code and data");
  flags.Text("--sync-mode", &spec_.sync_mode, "git|rsync", "fetch code into WORKING_DIR/code")
      .also = {"--syncMode"};
  flags.Text("--sync-source", &spec_.sync_source, "URL", "source of the code").also = {
      "--syncSource"};
  flags.Text("--sync-image", &spec_.sync_image, "IMAGE", "image that fetches the code").also = {
      "--syncImage"};
  flags.List("-d,--data", &spec_.volumes, "CLAIM:PATH", "volume claim, repeatable");
  flags.List("--data-dir", &spec_.host_paths, "PATH", "directory of the node, repeatable").also = {
      "--dataDir"};
  flags.List("--config-file", &config_files_, "FILE:PATH", "copy a local file into the container");
  flags
      .List("--image-pull-secret", &spec_.image_pull_secrets, "NAME", "pull secret of the registry")
      .also = {"--image-pull-secrets", "--imagePullSecrets"};
  flags.Text("--image-pull-policy", &spec_.image_pull_policy, "POLICY",
             "Always (default), IfNotPresent or Never");
}

void SubmitInstancesAction::DeclareTensorboard(Flags& flags) {
  flags.Group("TensorBoard");
  flags.Switch("--tensorboard", &tensorboard_.wanted, "run TensorBoard beside the job");
  flags
      .Text("--tensorboard-image", &tensorboard_.image, "IMAGE",
            "image of TensorBoard (default: the job's; where that has none, this machine's)")
      .also = {"--tensorboardImage"};
  flags.Text("--logdir", &tensorboard_.log_dir, "PATH",
             "directory of its event files (default /training_logs)");
}

void SubmitInstancesAction::DeclareRest(Flags& flags) {
  if (cron_) {
    for (const char* name : {"--tensorboard", "--tensorboard-image", "--tensorboardImage"}) {
      flags.Refuse(name, "a cron has many jobs; run TensorBoard beside one of them");
    }
    flags.Text("--logdir", &cron_log_dir_, "PATH", "has no effect").hidden = true;
  } else {
    DeclareTensorboard(flags);
  }
  flags.Group("Completion");
  flags.Int("--retry", &spec_.retry, "N", "number of restarts before the job fails");
  flags
      .Text("--clean-task-policy", &spec_.clean_pod_policy, "None|Running|All",
            StrCat("which instances are deleted when the job ends (default ",
                   spec_.clean_pod_policy, ")"))
      .also = {"--cleanTaskPolicy"};
  flags.Text("--running-timeout", &running_timeout_, "DURATION", "maximum running time: 2h");
  flags.Text("--ttl-after-finished", &ttl_, "DURATION", "delete the job this long after its end");
  for (const char* name : {"--model-name", "--model-source"}) {
    flags.Refuse(name, "Swell has no model registry");
  }
}

std::vector<std::string> SubmitInstancesAction::Remarks() const {
  if (cron_log_dir_.empty()) return {};
  return {"--logdir has no effect: a cron runs no TensorBoard"};
}

Status SubmitInstancesAction::Fill(Session& session, const std::vector<std::string>& words) {
  if (queue_ && !queue_->empty()) {
    if (!api::CheckDnsLabel(*queue_).empty()) {
      return Misuse(StrCat("--queue ", Quote(*queue_), ": expected the name of a project"));
    }
    spec_.project = *queue_;
  }
  if (words.empty()) {
    return Misuse(StrCat("no command; use: arena ", cron_ ? "cron " : "submit ", trainer_.words[0],
                         " [flags] \"python train.py\""));
  }
  spec_.command = {shell_, "-c", CommandText(words)};
  SWELL_RETURN_IF_ERROR(instances_.Fill(spec_));
  SWELL_RETURN_IF_ERROR(FillEnd());
  const auto [workers, gpus] = WorkersAndGpus();
  // Those of the user come later, and count.
  spec_.env.insert(spec_.env.begin(),
                   {{"workers", std::to_string(workers)}, {"gpus", std::to_string(gpus)}});
  if (spec_.image_pull_policy.empty()) spec_.image_pull_policy = "Always";
  if (spec_.share_memory.empty()) spec_.share_memory = "2Gi";
  Mark(session, TotalGpus());
  if (!config_files_.empty()) spec_.config_map = ConfigFilesName(spec_.name);
  return ReadConfigFiles(config_files_, spec_, config_data_);
}

Status SubmitInstancesAction::FillEnd() {
  if (spec_.retry > 0) spec_.restart_policy = "OnFailure";
  std::string word = ToLower(on_preemption_);
  if (word != "requeue" && word != "fail") {
    return WrongValue("--on-preemption", on_preemption_, {"fail", "requeue"});
  }
  spec_.on_preemption = word == "fail" ? "Fail" : "Requeue";
  const std::string& policy = spec_.clean_pod_policy;
  if (policy != "None" && policy != "Running" && policy != "All") {
    return Misuse(StrCat("--clean-task-policy ", Quote(policy), ": expected None, Running or All"));
  }
  SWELL_ASSIGN_OR_RETURN(spec_.running_timeout_s,
                         ParseTimeLimit(running_timeout_, "--running-timeout"));
  if (ttl_.empty()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const Duration kept, ParseDuration(ttl_, "--ttl-after-finished"));
  spec_.ttl_s = std::chrono::duration_cast<std::chrono::seconds>(kept).count();
  return Status::Ok();
}

Status ReadConfigFiles(const std::vector<std::string>& texts,
                       PyTorchSpec& spec,
                       json::Object& data) {
  for (const std::string& text : texts) {
    size_t colon = text.find(':');
    std::string file = text.substr(0, colon);
    std::string path = colon == std::string::npos ? file : text.substr(colon + 1);
    if (!path.starts_with('/')) {
      return Misuse(StrCat("--config-file ", Quote(text), ": expected FILE:/PATH/IN/CONTAINER"));
    }
    std::string base = file.substr(file.rfind('/') + 1);
    if (path.ends_with('/')) path += base;
    auto content = ReadFile(file, kConfigFileBytesMax);
    if (!content.ok()) return Misuse(StrCat("--config-file: ", content.status().message()));
    std::string key = StrCat("file-", spec.config_files.size());
    spec.config_files.emplace_back(key, path);
    data[key] = *content;
  }
  return Status::Ok();
}

}  // namespace swell::cli::arena
