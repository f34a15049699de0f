#include "jobs/kinds/role_job.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "jobs/kinds/mars_env.h"
#include "jobs/kinds/mpi_job.h"
#include "jobs/kinds/role_member.h"
#include "jobs/kinds/xdl_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;

constexpr std::string_view kKubedl = "training.kubedl.io";
constexpr std::string_view kWorker = "Worker";
constexpr std::string_view kEvaluator = "Evaluator";

using SetMemberEnv = void (*)(const ConnectedMember& member, json::Value& pod);

// What a kind of job is beside its roles.
struct RoleJobSpec {
  std::string_view kind, plural, roles_field;
  std::vector<RoleName> roles;  // chief first
  std::string_view port_name;
  int64_t port;
  SetMemberEnv set_env;
  // Without a chief the first worker's end is the job's; else all workers'.
  bool first_worker_ends = false;
  // The labels of an operator older than Kubeflow's one for all kinds: "tf-job-name".
  std::string_view old_labels = {};
  // A role that is required. The name of its one pod has no number, and begins with before_head.
  std::string_view head = {}, before_head = {};
  // Label job-role says each member's role, and not only who leads.
  bool labels_roles = false;
  Result<std::vector<json::Value>> (*dependents)(const json::Value& job,
                                                 const JobSpec& spec,
                                                 const JobKindOptions& options) = nullptr;
  // Workers may come and go while the head runs, where spec.elasticPolicy says so.
  bool elastic = false;
  // One more service, of the job's name, is the members' domain.
  bool domain = false;
  // The job succeeds when spec.min_success members of these roles have. Then no member is labelled
  // as the leader. Empty: the chief ends the job, or the workers do.
  std::vector<std::string_view> ending = {};
  // Members of other roles may fail while their role has others.
  bool others_may_fail = false;
  // Reads what the kind alone has in its spec, after the roles.
  Status (*read)(const json::Value& body, JobSpec& spec) = nullptr;

  bool Ends(std::string_view role) const {
    return std::find(ending.begin(), ending.end(), role) != ending.end();
  }
};

void SetTfConfig(const ConnectedMember& member, json::Value& pod);
void SetXgboostEnv(const ConnectedMember& member, json::Value& pod);
void SetPaddleEnv(const ConnectedMember& member, json::Value& pod);
void SetJaxEnv(const ConnectedMember& member, json::Value& pod);
void PrepareMpiMember(const ConnectedMember& member, json::Value& pod);
void SetNoEnv(const ConnectedMember&, json::Value&) {}

const RoleJobSpec kTensorflow{
    .kind = "TFJob",
    .plural = "tfjobs",
    .roles_field = "tfReplicaSpecs",
    .roles = {{"Chief", 1}, {"Master", 1}, {kWorker}, {"PS"}, {kEvaluator}},
    .port_name = "tfjob-port",
    .port = 2222,
    .set_env = SetTfConfig,
    .first_worker_ends = true,
    .old_labels = "tf"};
const RoleJobSpec kXgboost{.kind = "XGBoostJob",
                           .plural = "xgboostjobs",
                           .roles_field = "xgbReplicaSpecs",
                           .roles = {{"Master", 1}, {kWorker}},
                           .port_name = "xgboostjob-port",
                           .port = 9999,
                           .set_env = SetXgboostEnv};
const RoleJobSpec kPaddle{.kind = "PaddleJob",
                          .plural = "paddlejobs",
                          .roles_field = "paddleReplicaSpecs",
                          .roles = {{"Master"}, {kWorker}},
                          .port_name = "master",
                          .port = 36543,
                          .set_env = SetPaddleEnv};
const RoleJobSpec kJax{.kind = "JAXJob",
                       .plural = "jaxjobs",
                       .roles_field = "jaxReplicaSpecs",
                       .roles = {{kWorker}},
                       .port_name = "jaxjob-port",
                       .port = 6666,
                       .set_env = SetJaxEnv};

const RoleJobSpec kMpi{.kind = "MPIJob",
                       .plural = "mpijobs",
                       .roles_field = "mpiReplicaSpecs",
                       .roles = {{kLauncher, 1}, {kWorker}},
                       .port_name = "mpijob-port",
                       .port = 2222,
                       .set_env = PrepareMpiMember,
                       .head = kLauncher,
                       .labels_roles = true,
                       .dependents = MpiDependents,
                       .elastic = true,
                       .domain = true};

const RoleJobSpec kXdl{.kind = "XDLJob",
                       .plural = "xdljobs",
                       .roles_field = "xdlReplicaSpecs",
                       .roles = {{kWorker}, {kExtendRole}, {"PS"}, {"Scheduler"}},
                       .port_name = "xdljob-port",
                       .port = 2222,
                       .set_env = SetXdlEnv,
                       .ending = {kWorker, kExtendRole},
                       .read = ReadXdlSpec};
const RoleJobSpec kMars{.kind = "MarsJob",
                        .plural = "marsjobs",
                        .roles_field = "marsReplicaSpecs",
                        .roles = {{"Scheduler"},
                                  {"WebService", kReplicasMax, RestartPolicy::kAlways},
                                  {kWorker, kReplicasMax, RestartPolicy::kExitCode}},
                        .port_name = "mars-port",
                        .port = 11111,
                        .set_env = SetMarsEnv,
                        .ending = {"Scheduler"},
                        .others_may_fail = true,
                        .read = ReadMarsSpec};

// ElasticDL's own master, which makes its workers itself.
const RoleJobSpec kElasticdl{.kind = "ElasticDLJob",
                             .plural = "elasticdljobs",
                             .roles_field = "elasticdlReplicaSpecs",
                             .roles = {{"Master", 1}},
                             .port_name = "elasticdl-port",
                             .port = 11111,
                             .set_env = SetNoEnv,
                             .head = "Master",
                             .before_head = "elasticdl-"};

class RoleJobKind final : public JobKind {
 public:
  RoleJobKind(const RoleJobSpec& kind_spec,
              client::Resource resource,
              RestartPolicy restart_policy,
              CleanPodPolicy clean_pod_policy,
              const JobKindOptions& options)
      : kind_spec_(kind_spec),
        resource_(std::move(resource)),
        restart_policy_(restart_policy),
        clean_pod_policy_(clean_pod_policy),
        options_(options) {}

  client::Resource resource() const override { return resource_; }
  std::string kind() const override { return std::string(kind_spec_.kind); }
  std::string Reason(std::string_view what) const override {
    return StrCat(kubedl() ? "Job" : kind_spec_.kind, what);
  }
  bool kubedl_style_status() const override { return kubedl(); }
  Result<JobSpec> Read(const json::Value& job) const override;
  bool Leads(const JobMember& member) const;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  Result<std::vector<json::Value>> Dependents(const json::Value& job,
                                              const JobSpec& spec) const override {
    if (kind_spec_.dependents == nullptr) return std::vector<json::Value>();
    return kind_spec_.dependents(job, spec, options_);
  }
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  OnFailure ClassifyFailure(const ReplicaSpec& replica,
                            const ReplicaCount& count,
                            const json::Value& pod,
                            int64_t restarts) const override;
  bool Failed(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;

 private:
  bool kubedl() const { return resource_.group == kKubedl; }
  Status CheckEnding(const JobSpec& spec) const;
  std::vector<std::vector<int64_t>> Ports(const json::Value& job, const JobSpec& spec) const;

  const RoleJobSpec& kind_spec_;
  client::Resource resource_;
  RestartPolicy restart_policy_;
  CleanPodPolicy clean_pod_policy_;
  JobKindOptions options_;
};

bool IsChief(const ReplicaSpec& replica) {
  return replica.type != kWorker && replica.type != "PS" && replica.type != kEvaluator;
}

Result<JobSpec> RoleJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  spec.clean_pod_policy = clean_pod_policy_;
  SWELL_RETURN_IF_ERROR(
      ReadRoles(body, kind_spec_.roles_field, kind_spec_.roles, restart_policy_, spec));
  ReplicaSpec& first = spec.replicas.front();
  if (!kind_spec_.head.empty()) {
    if (first.type != kind_spec_.head) {
      return controllers::WrongField(StrCat("spec.", kind_spec_.roles_field, ".", kind_spec_.head),
                                     "Required value");
    }
    first.pod_name = StrCat(kind_spec_.before_head, api::Name(job), "-", ToLower(first.type));
    first.numbered = false;
    first.vital = first.replicas;
  }
  if (!kind_spec_.ending.empty()) {
    SWELL_RETURN_IF_ERROR(CheckEnding(spec));
  } else if (!IsChief(first) && first.type != kWorker) {
    return controllers::WrongField(StrCat("spec.", kind_spec_.roles_field),
                                   "Invalid value: must have Workers, or a role that leads them");
  }
  ReadRunPolicy(body, spec);
  if (const json::Value* policy = json::Find(body, {"runPolicy"})) ReadRunPolicy(*policy, spec);
  spec.priority_class =
      json::GetString(body, {"schedulingPolicy", "priorityClassName"}, spec.priority_class);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  if (kind_spec_.elastic) SWELL_RETURN_IF_ERROR(ReadWorkerBounds(body, spec));
  const std::string_view success = json::GetString(body, {"successPolicy"});
  if (!success.empty() && success != "AllWorkers") {
    return controllers::WrongField(
        "spec.successPolicy",
        StrCat("Unsupported value: ", Quote(success), ": supported values: \"\", \"AllWorkers\""));
  }
  spec.all_must_succeed = success == "AllWorkers" || !kind_spec_.first_worker_ends;
  if (kind_spec_.read != nullptr) SWELL_RETURN_IF_ERROR(kind_spec_.read(body, spec));
  return spec;
}

// Without such members the job would never end.
Status RoleJobKind::CheckEnding(const JobSpec& spec) const {
  std::vector<std::string> names;
  for (std::string_view role : kind_spec_.ending) {
    if (spec.Find(role) != nullptr) return Status::Ok();
    names.push_back(Quote(role));
  }
  return controllers::WrongField(
      StrCat("spec.", kind_spec_.roles_field),
      StrCat("Invalid value: must have members of ", Join(names, " or "), ": they end the job"));
}

json::Object RoleJobKind::Labels(const JobMember& member) const {
  const std::string type = ToLower(member.role.type);
  const std::string number = std::to_string(member.index);
  const std::string_view name = api::Name(member.job);
  const bool leads = Leads(member);
  json::Object labels{{"group-name", resource_.group}, {"job-name", name}};
  if (kubedl()) {
    labels["replica-type"] = type;
    labels["replica-index"] = number;
    if (leads) labels["job-role"] = "master";
    return labels;
  }
  if (!kind_spec_.old_labels.empty()) {
    labels[StrCat(kind_spec_.old_labels, "-job-name")] = name;
    labels[StrCat(kind_spec_.old_labels, "-replica-type")] = type;
    labels[StrCat(kind_spec_.old_labels, "-replica-index")] = number;
  }
  labels["training.kubeflow.org/job-name"] = name;
  labels["training.kubeflow.org/operator-name"] = StrCat(ToLower(kind_spec_.kind), "-controller");
  labels["training.kubeflow.org/replica-type"] = type;
  labels["training.kubeflow.org/replica-index"] = number;
  if (leads || kind_spec_.labels_roles) {
    const std::string role = kind_spec_.labels_roles ? type : "master";
    labels["job-role"] = role;
    labels["training.kubeflow.org/job-role"] = role;
  }
  return labels;
}

// Without a chief, the first worker of a kind whose first worker ends the job leads it (Kubeflow).
bool RoleJobKind::Leads(const JobMember& member) const {
  if (!kind_spec_.ending.empty()) return false;
  if (IsChief(member.role)) return true;
  const bool first_worker = member.role.type == kWorker && member.index == 0;
  if (!kind_spec_.first_worker_ends || !first_worker) return false;
  const json::Object& roles = json::GetObject(api::Spec(member.job), {kind_spec_.roles_field});
  return std::none_of(roles.begin(), roles.end(), [](const auto& role) {
    return api::IsLeadingRole({role.key().data(), role.key().size()});
  });
}

// What a role's template names, else the kind's own; on the host's network one each.
std::vector<std::vector<int64_t>> RoleJobKind::Ports(const json::Value& job,
                                                     const JobSpec& spec) const {
  std::vector<std::vector<int64_t>> ports;
  int64_t before = 0;
  for (const ReplicaSpec& replica : spec.replicas) {
    const int64_t given = api::NamedPort(replica.pod_template, kind_spec_.port_name).value_or(0);
    std::vector<int64_t> of_role;
    for (int64_t i = 0; i < replica.replicas; ++i, ++before) {
      const bool shared = options_.host_network && given == 0;
      of_role.push_back(shared       ? LaunchPort(job, 0, true) + before
                        : given != 0 ? given
                                     : kind_spec_.port);
    }
    ports.push_back(std::move(of_role));
  }
  return ports;
}

void RoleJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const ConnectedMember connected{member, Ports(member.job, member.spec), options_};
  AddContainerPort(pod, kind_spec_.port_name, connected.port());
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  kind_spec_.set_env(connected, pod);
}

std::vector<json::Value> RoleJobKind::Services(const json::Value& job, const JobSpec& spec) const {
  const std::vector<std::vector<int64_t>> ports = Ports(job, spec);
  std::vector<json::Value> services;
  if (kind_spec_.domain) {
    json::Object members{{"job-name", api::Name(job)}, {"group-name", resource_.group}};
    services.push_back(LeaderService(api::Name(job), std::move(members), kind_spec_.port_name,
                                     ports.front().front()));
  }
  for (size_t role = 0; role < spec.replicas.size(); ++role) {
    const ReplicaSpec& replica = spec.replicas[role];
    for (int64_t i = 0; i < replica.replicas; ++i) {
      services.push_back(LeaderService(replica.PodName(api::Name(job), i),
                                       Labels({job, spec, replica, i}), kind_spec_.port_name,
                                       ports[role][static_cast<size_t>(i)]));
    }
  }
  return services;
}

bool RoleJobKind::Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  if (!kind_spec_.ending.empty()) {
    int64_t members = 0, succeeded = 0;
    for (size_t role = 0; role < spec.replicas.size(); ++role) {
      if (!kind_spec_.Ends(spec.replicas[role].type)) continue;
      members += spec.replicas[role].replicas;
      succeeded += counts[role].succeeded;
    }
    return succeeded >= spec.min_success.value_or(members);
  }
  const ReplicaSpec& first = spec.replicas.front();
  if (IsChief(first)) return counts.front().succeeded == first.replicas;
  return spec.all_must_succeed ? counts.front().succeeded == first.replicas
                               : counts.front().first_succeeded;
}

bool RoleJobKind::Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const {
  return counts.front().running > 0;
}

OnFailure RoleJobKind::ClassifyFailure(const ReplicaSpec& replica,
                                       const ReplicaCount&,
                                       const json::Value&,
                                       int64_t) const {
  const bool missed = !kind_spec_.others_may_fail || kind_spec_.Ends(replica.type);
  return missed ? OnFailure::kAsUsual : OnFailure::kAsUsualOrIgnore;
}

bool RoleJobKind::Failed(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  for (size_t role = 0; kind_spec_.others_may_fail && role < spec.replicas.size(); ++role) {
    if (counts[role].failed >= spec.replicas[role].replicas) return true;
  }
  return false;
}

// {"cluster": {"ps": ["job-ps-0.ns.svc:2222"], "worker": [...]}, "task": {...}}: what TensorFlow
// looks for; evaluators are not part of the cluster. One process alone has none.
void SetTfConfig(const ConnectedMember& member, json::Value& pod) {
  if (member.spec.TotalReplicas() == 1) return;
  const bool sparse = json::GetBool(member.job, {"spec", "enableDynamicWorker"});
  const std::string type = ToLower(member.role.type);
  json::Object cluster =
      member.Cluster(StrCat(".", api::Namespace(member.job), ".svc"), kEvaluator);
  json::Object config;
  if (sparse) {
    // A worker knows itself and the parameter servers, so that others may come and go.
    const json::Array none;
    auto of = [&](std::string_view name) -> const json::Array& {
      const json::Value* found = cluster.if_contains(std::string(name));
      return found != nullptr ? found->get_array() : none;
    };
    const size_t own = static_cast<size_t>(member.index);
    json::Object seen{{"worker", json::Object{}}, {"ps", of("ps")}};
    if (type == "ps") seen["ps"] = json::Array{of("ps")[own]};
    if (type == "worker") {
      seen["worker"] = json::Object{{std::to_string(member.index), of("worker")[own]}};
    }
    cluster = std::move(seen);
  } else {
    config["environment"] = "cloud";
  }
  config["cluster"] = std::move(cluster);
  config["task"] = json::Object{{"type", type}, {"index", member.index}};
  SetEnv(pod, "TF_CONFIG", json::Print(config));
}

// Rabit's tracker is the master; LightGBM's machines are all named.
void SetXgboostEnv(const ConnectedMember& member, json::Value& pod) {
  SetRankEnv(pod, {.leader = member.leader(),
                   .leads = false,  // its name, as the others have it: a tracker tells it to them
                   .port = member.leader_port(),
                   .rank = member.rank(),
                   .world = member.spec.TotalReplicas()});
  std::vector<std::string> workers;
  for (size_t role = 0; role < member.spec.replicas.size(); ++role) {
    const ReplicaSpec& other = member.spec.replicas[role];
    if (other.type != kWorker) continue;
    SetEnv(pod, "WORKER_PORT", std::to_string(member.ports[role].front()));
    for (int64_t i = 0; i < other.replicas; ++i) workers.push_back(member.NameOf(other, i));
  }
  if (!workers.empty()) SetEnv(pod, "WORKER_ADDRS", Join(workers, ","));
}

void SetPaddleEnv(const ConnectedMember& member, json::Value& pod) {
  SetEnv(pod, "PADDLE_JOB_ID", member.name());
  SetEnv(pod, "PADDLE_NNODES", std::to_string(member.spec.TotalReplicas()));
  // The launcher of the first node knows itself by its address, not by its name.
  if (member.leads()) controllers::SetEnvFromField(pod, "POD_IP_DUMMY", "status.podIP");
  SetEnv(pod, "PADDLE_MASTER",
         StrCat(member.leads() ? "$(POD_IP_DUMMY)" : member.leader(), ":", member.leader_port()));
  const bool servers = member.spec.replicas.front().type != kWorker;
  if (!servers) return;
  SetEnv(pod, member.role.type == kWorker ? "PADDLE_TRAINER_NUM" : "PADDLE_SERVER_NUM", "1");
}

void SetJaxEnv(const ConnectedMember& member, json::Value& pod) {
  SetEnv(pod, "COORDINATOR_ADDRESS", member.leader());
  SetEnv(pod, "COORDINATOR_PORT", std::to_string(member.leader_port()));
  SetEnv(pod, "NUM_PROCESSES", std::to_string(member.spec.TotalReplicas()));
  SetEnv(pod, "PROCESS_ID", std::to_string(member.rank()));
}

void PrepareMpiMember(const ConnectedMember& member, json::Value& pod) {
  PrepareMpiPod(member.job, member.role, member.options, pod);
}

}  // namespace

std::vector<std::unique_ptr<JobKind>> MakeRoleJobKinds(const JobKindOptions& options) {
  std::vector<std::unique_ptr<JobKind>> kinds;
  auto add = [&](const RoleJobSpec& kind_spec, std::string_view group, std::string_view version,
                 RestartPolicy restart, CleanPodPolicy clean) {
    kinds.push_back(
        std::make_unique<RoleJobKind>(kind_spec,
                                      client::Resource{std::string(group), std::string(version),
                                                       std::string(kind_spec.plural), true},
                                      restart, clean, options));
  };
  constexpr std::string_view kKubeflow = "kubeflow.org";
  add(kTensorflow, kKubeflow, "v1", RestartPolicy::kNever, CleanPodPolicy::kNone);
  add(kXgboost, kKubeflow, "v1", RestartPolicy::kNever, CleanPodPolicy::kNone);
  add(kPaddle, kKubeflow, "v1", RestartPolicy::kOnFailure, CleanPodPolicy::kNone);
  add(kJax, kKubeflow, "v1", RestartPolicy::kNever, CleanPodPolicy::kNone);
  // Its workers never end by themselves.
  add(kMpi, kKubeflow, "v1", RestartPolicy::kNever, CleanPodPolicy::kRunning);
  add(kTensorflow, kKubedl, "v1alpha1", RestartPolicy::kExitCode, CleanPodPolicy::kRunning);
  add(kXgboost, kKubedl, "v1alpha1", RestartPolicy::kNever, CleanPodPolicy::kNone);
  add(kMpi, kKubedl, "v1alpha1", RestartPolicy::kNever, CleanPodPolicy::kRunning);
  add(kXdl, kKubedl, "v1alpha1", RestartPolicy::kNever, CleanPodPolicy::kRunning);
  add(kMars, kKubedl, "v1alpha1", RestartPolicy::kNever, CleanPodPolicy::kNone);
  add(kElasticdl, kKubedl, "v1alpha1", RestartPolicy::kNever, CleanPodPolicy::kRunning);
  return kinds;
}

void AddRoleJobs(const JobKindOptions& options, JobKindList& kinds) {
  for (auto& kind : MakeRoleJobKinds(options)) kinds.push_back({std::move(kind), nullptr, nullptr});
}

}  // namespace swell::jobs
