#include "jobs/mpi_job.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/launch_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kFolder = "/etc/mpi";
constexpr std::string_view kVolume = "mpi-job-config";
constexpr std::string_view kHostfile = "hostfile";
constexpr std::string_view kHorovodHosts = "horovod-hosts";
constexpr std::string_view kRemoteShell = "kubexec.sh";
// The same under the name that programs call: horovodrun, deepspeed and pdsh know SSH alone.
constexpr std::string_view kAsSsh = "bin/ssh";
constexpr std::string_view kDiscovery = "discover_hosts.sh";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacVersion = "rbac.authorization.k8s.io/v1";

// What mpirun calls in place of ssh or rsh. Options may also follow the host, as horovodrun writes
// them. A worker that starts at the same time as the launcher is waited for: it is in the hostfile,
// or has a pod. Any other name is a mistake, and is refused at once. Errors end with 255, as those
// of ssh do. Both tools without a file of their own ask the cluster that they run in.
constexpr std::string_view kRemoteShellText = R"sh(#!/bin/sh
# kubexec.sh [OPTIONS] WORKER [OPTIONS] COMMAND...: runs the command in that pod of the job.
die() { echo "kubexec.sh: $*" >&2; exit 255; }
worker= host=
while [ $# -gt 0 ]; do
  case $1 in
    -l|-o|-p|-i) shift; [ $# -eq 0 ] || shift ;;
    -*) shift ;;
    *) [ -z "$worker" ] || break
       host=${1#*@}; worker=${host%%.*}; shift ;;
  esac
done
{ [ -n "$worker" ] && [ $# -gt 0 ]; } || die "usage: kubexec.sh WORKER COMMAND..."
if command -v kubectl >/dev/null; then
  KUBECONFIG=/dev/null; export KUBECONFIG; tool=kubectl
elif command -v swell >/dev/null; then
  unset KUBECONFIG; HOME=/; export HOME; tool=swell
else
  die "workers are reached by kubectl exec, and the launcher's image has neither kubectl nor swell"
fi
phase_of_worker() {
  $tool get pods --field-selector=metadata.name="$worker" \
    -l training.kubeflow.org/job-name=@JOB@ -o 'jsonpath={.items[*].status.phase}'
}
tries=0
while :; do
  # A question that fails is asked again; one without an answer is about no pod of the job.
  if phase=$(phase_of_worker); then
    [ "$phase" != Running ] || break
    [ -n "$phase" ] || sed 's/[ :].*//' @FOLDER@/@HOSTFILE@ | grep -Fxq -e "$worker" ||
      die "$host is not a worker of the job @JOB@; its workers are listed in @FOLDER@/@HOSTFILE@"
  fi
  tries=$((tries + 1))
  [ $tries -lt 300 ] || die "worker $worker does not run${phase:+: its pod is $phase}"
  sleep 1
done
exec $tool exec "$worker"@CONTAINER@ -- /bin/sh -c "$*"
)sh";

// What elastic Horovod asks for its hosts: those that run now. A worker that was told to stop still
// runs in its grace period, and is no longer a host. Horovod keeps its hosts when the script fails,
// but takes an empty list as the loss of all of them.
constexpr std::string_view kDiscoveryText = R"sh(#!/bin/sh
if command -v kubectl >/dev/null; then
  KUBECONFIG=/dev/null; export KUBECONFIG; tool=kubectl
else
  unset KUBECONFIG; HOME=/; export HOME; tool=swell
fi
list=$(
  $tool get pods --field-selector=status.phase=Running \
    -l training.kubeflow.org/job-name=@JOB@,training.kubeflow.org/job-role=worker \
    -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.deletionTimestamp}{"\n"}{end}'
) || exit 1
printf '%s\n' "$list" | while read -r host stops; do
  [ -z "$host" ] || [ -n "$stops" ] || echo "$host:@SLOTS@"
done
)sh";

std::string Replaced(std::string_view text, std::string_view word, std::string_view by) {
  std::string out(text);
  for (size_t at = out.find(word); at != std::string::npos; at = out.find(word, at + by.size())) {
    out.replace(at, word.size(), by);
  }
  return out;
}

int64_t Slots(const json::Value& job) {
  return std::max<int64_t>(1, json::GetInt(job, {"spec", "slotsPerWorker"}, 1));
}

bool HasGpus(const json::Value& pod_template) {
  for (const json::Value& container : api::Containers(pod_template)) {
    if (json::Find(container, {"resources", "limits", api::kGpuResource}) != nullptr) return true;
  }
  return false;
}

// A launcher with GPUs works, too.
bool LauncherWorks(const json::Value& job, const ReplicaSpec& launcher) {
  return json::GetBool(job, {"spec", "runLauncherAsWorker"}) || HasGpus(launcher.pod_template);
}

std::string Hosts(const json::Value& job, const JobSpec& spec, std::string_view separator) {
  const std::string slots = StrCat(separator, Slots(job), "\n");
  std::string text;
  for (const ReplicaSpec& replica : spec.replicas) {
    if (replica.type == kLauncher && !LauncherWorks(job, replica)) continue;
    for (int64_t i = 0; i < replica.replicas; ++i) {
      text += replica.PodName(api::Name(job), i) + slots;
    }
  }
  return text;
}

std::string Hostfile(const json::Value& job, const JobSpec& spec) {
  const std::string_view mpi = json::GetString(job, {"spec", "mpiImplementation"}, "OpenMPI");
  return Hosts(job, spec, mpi == "OpenMPI" ? " slots=" : ":");
}

std::string ConfigName(const json::Value& job) { return StrCat(api::Name(job), "-config"); }
std::string AccountName(const json::Value& job) { return StrCat(api::Name(job), "-launcher"); }

std::string_view AccountOf(const ReplicaSpec& launcher) {
  return json::GetString(launcher.pod_template, {"spec", "serviceAccountName"});
}

json::Value ConfigMap(const json::Value& job, const JobSpec& spec) {
  const std::string_view container = json::GetString(job, {"spec", "mainContainer"});
  const std::string in = container.empty() ? "" : StrCat(" -c ", container);
  std::string shell = Replaced(kRemoteShellText, "@CONTAINER@", in);
  shell = Replaced(shell, "@JOB@", api::Name(job));
  shell = Replaced(shell, "@FOLDER@", kFolder);
  shell = Replaced(shell, "@HOSTFILE@", kHostfile);
  std::string discovery = Replaced(kDiscoveryText, "@JOB@", api::Name(job));
  discovery = Replaced(discovery, "@SLOTS@", std::to_string(Slots(job)));
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", ConfigName(job)}}},
                      {"data", json::Object{{kHostfile, Hostfile(job, spec)},
                                            {kHorovodHosts, Hosts(job, spec, ":")},
                                            {kRemoteShell, std::move(shell)},
                                            {kDiscovery, std::move(discovery)}}}};
}

// To see pods, and to run commands in the job's own.
json::Value Role(const json::Value& job, const JobSpec& spec) {
  json::Array own;
  for (const ReplicaSpec& replica : spec.replicas) {
    for (int64_t i = 0; i < replica.replicas; ++i) {
      own.emplace_back(replica.PodName(api::Name(job), i));
    }
  }
  return json::Object{
      {"apiVersion", kRbacVersion},
      {"kind", "Role"},
      {"metadata", json::Object{{"name", AccountName(job)}}},
      {"rules", json::Array{json::Object{{"apiGroups", json::Array{""}},
                                         {"resources", json::Array{"pods"}},
                                         {"verbs", json::Array{"get", "list", "watch"}}},
                            json::Object{{"apiGroups", json::Array{""}},
                                         {"resources", json::Array{"pods/exec"}},
                                         {"resourceNames", std::move(own)},
                                         {"verbs", json::Array{"create"}}}}}};
}

json::Value RoleBinding(const json::Value& job, std::string_view account) {
  return json::Object{
      {"apiVersion", kRbacVersion},
      {"kind", "RoleBinding"},
      {"metadata", json::Object{{"name", AccountName(job)}}},
      {"roleRef", json::Object{{"apiGroup", kRbac}, {"kind", "Role"}, {"name", AccountName(job)}}},
      {"subjects",
       json::Array{json::Object{
           {"kind", "ServiceAccount"}, {"name", account}, {"namespace", api::Namespace(job)}}}}};
}

void MountConfig(const json::Value& job, json::Value& pod) {
  json::Array items;
  for (std::string_view key : {kHostfile, kRemoteShell, kDiscovery}) {
    items.push_back(
        json::Object{{"key", key}, {"path", key}, {"mode", key == kHostfile ? 0444 : 0555}});
  }
  items.push_back(json::Object{{"key", kRemoteShell}, {"path", kAsSsh}, {"mode", 0555}});
  json::Object source{{"name", ConfigName(job)}, {"items", std::move(items)}};
  MountVolume(pod, json::Object{{"name", kVolume}, {"configMap", std::move(source)}}, kFolder,
              {"containers"});
}

// For every mpirun that there is: whose hosts, and how they are reached. Open MPI 5 has its own
// launcher with names of its own.
void SetMpiEnv(const json::Value& job, json::Value& pod) {
  const std::string hosts = StrCat(kFolder, "/", kHostfile);
  const std::string shell = StrCat(kFolder, "/", kRemoteShell);
  const std::string slots = std::to_string(Slots(job));
  const std::string_view mpi = json::GetString(job, {"spec", "mpiImplementation"}, "OpenMPI");
  if (mpi == "OpenMPI") {
    SetEnv(pod, "OMPI_MCA_plm_rsh_agent", shell);
    SetEnv(pod, "OMPI_MCA_orte_default_hostfile", hosts);
    SetEnv(pod, "OMPI_MCA_orte_set_default_slots", slots);
    SetEnv(pod, "PRTE_MCA_plm_ssh_agent", shell);
    SetEnv(pod, "PRTE_MCA_prte_default_hostfile", hosts);
  } else if (mpi == "Intel") {
    SetEnv(pod, "I_MPI_HYDRA_HOST_FILE", hosts);
    SetEnv(pod, "I_MPI_HYDRA_BOOTSTRAP", "rsh");
    SetEnv(pod, "I_MPI_HYDRA_BOOTSTRAP_EXEC", shell);
    SetEnv(pod, "I_MPI_PERHOST", slots);
  } else {
    SetEnv(pod, "HYDRA_HOST_FILE", hosts);
    SetEnv(pod, "HYDRA_LAUNCHER", "rsh");
    SetEnv(pod, "HYDRA_LAUNCHER_EXEC", shell);
  }
}

// A worker waits for what the launcher starts in it.
void LetWait(json::Value& container) {
  const json::Array& command = json::GetArray(container, {"command"});
  const bool server = !command.empty() && command[0].is_string() &&
                      json::View(command[0].get_string()).ends_with("sshd");
  if (!server && (!command.empty() || !json::GetArray(container, {"args"}).empty())) return;
  json::Set(container, {"command"}, json::Array{"sleep"});
  json::Set(container, {"args"}, json::Array{"365d"});
}

}  // namespace

std::vector<json::Value> MpiDependents(const json::Value& job, const JobSpec& spec) {
  const ReplicaSpec& launcher = spec.replicas.front();
  std::vector<json::Value> all{ConfigMap(job, spec)};
  std::string account(AccountOf(launcher));
  if (account.empty()) {
    account = AccountName(job);
    all.push_back(json::Object{{"apiVersion", "v1"},
                               {"kind", "ServiceAccount"},
                               {"metadata", json::Object{{"name", account}}}});
  }
  all.push_back(Role(job, spec));
  all.push_back(RoleBinding(job, account));
  return all;
}

void PrepareMpiPod(const json::Value& job, const ReplicaSpec& replica, json::Value& pod) {
  MountConfig(job, pod);
  SetEnv(pod, "K_MPI_JOB_ROLE", ToLower(replica.type));
  if (replica.type == kLauncher) {
    SetMpiEnv(job, pod);
    if (AccountOf(replica).empty())
      json::Set(pod, {"spec", "serviceAccountName"}, AccountName(job));
    if (!HasGpus(pod)) SetEnv(pod, "NVIDIA_VISIBLE_DEVICES", "");
    return;
  }
  LetWait(json::FindMutable(pod, {"spec", "containers"})->get_array().front());
}

}  // namespace swell::controllers
