#include "jobs/kinds/mpi_job.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/launch_env.h"
#include "jobs/kinds/mpi_scripts.h"
#include "jobs/kinds/ssh_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;

constexpr std::string_view kVolume = "mpi-job-config";
constexpr std::string_view kHorovodHosts = "horovod-hosts";
// The same under the name that programs call: horovodrun, deepspeed and pdsh know SSH alone.
constexpr std::string_view kAsSsh = "bin/ssh";
constexpr std::string_view kDiscovery = "discover_hosts.sh";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacVersion = "rbac.authorization.k8s.io/v1";

int64_t Slots(const json::Value& job) {
  return std::max<int64_t>(1, json::GetInt(job, {"spec", "slotsPerWorker"}, 1));
}

// KubeDL has a field of its own for it.
std::string_view Implementation(const json::Value& job) {
  const std::string_view said =
      json::GetString(job, {"spec", "mpiImplementation"},
                      json::GetString(job, {"spec", "mpiDistribution"}, "OpenMPI"));
  return said == "IntelMPI" ? "Intel" : said;
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
  const std::string_view mpi = Implementation(job);
  return Hosts(job, spec, mpi == "OpenMPI" ? " slots=" : ":");
}

std::string ConfigName(const json::Value& job) { return StrCat(api::Name(job), "-config"); }
std::string AccountName(const json::Value& job) { return StrCat(api::Name(job), "-launcher"); }

std::string_view AccountOf(const ReplicaSpec& launcher) {
  return json::GetString(launcher.pod_template, {"spec", "serviceAccountName"});
}

std::string_view MainContainer(const json::Value& job) {
  return json::GetString(job, {"spec", "mainContainer"});
}

// Without a slash at its end.
std::string KeyFolderOf(const json::Value& job) {
  return std::string(KeyFolder(json::GetString(job, {"spec", "sshAuthMountPath"}, kRootKeys)));
}

std::string RemoteShell(const json::Value& job) {
  return RemoteShellScript(api::Name(job), MainContainer(job), KeyFolderOf(job));
}

std::string Discovery(const json::Value& job) {
  return DiscoverHostsScript(api::Name(job), Slots(job));
}

json::Value ConfigMap(const json::Value& job, const JobSpec& spec) {
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", ConfigName(job)}}},
                      {"data", json::Object{{kMpiHostfile, Hostfile(job, spec)},
                                            {kHorovodHosts, Hosts(job, spec, ":")},
                                            {kMpiRemoteShell, RemoteShell(job)},
                                            {kDiscovery, Discovery(job)}}}};
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
  for (std::string_view key : {kMpiHostfile, kMpiRemoteShell, kDiscovery}) {
    items.push_back(
        json::Object{{"key", key}, {"path", key}, {"mode", key == kMpiHostfile ? 0444 : 0555}});
  }
  items.push_back(json::Object{{"key", kMpiRemoteShell}, {"path", kAsSsh}, {"mode", 0555}});
  json::Object source{{"name", ConfigName(job)}, {"items", std::move(items)}};
  MountVolume(pod, json::Object{{"name", kVolume}, {"configMap", std::move(source)}}, kMpiFolder,
              {"containers"});
}

// In the containers in which processes of the job start.
void MountKeysInPod(const json::Value& job, json::Value& pod) {
  const json::Array& containers = json::GetArray(pod, {"spec", "containers"});
  const std::string first(containers.empty() ? "" : api::ContainerName(containers.front()));
  const auto trains = [&](const json::Value& container) {
    const std::string_view name = api::ContainerName(container);
    return name == first || name == MainContainer(job);
  };
  MountKeys(job, {.path = KeyFolderOf(job), .in_volume = "", .with_config = false}, trains, pod);
}

// For every mpirun that there is: whose hosts, and how they are reached. Open MPI 5 has its own
// launcher with names of its own.
void SetMpiEnv(const json::Value& job, json::Value& pod) {
  const std::string hosts = StrCat(kMpiFolder, "/", kMpiHostfile);
  const std::string shell = StrCat(kMpiFolder, "/", kMpiRemoteShell);
  const std::string slots = std::to_string(Slots(job));
  const std::string_view mpi = Implementation(job);
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

bool IsSshServer(const json::Array& words) {
  return !words.empty() && words[0].is_string() &&
         json::View(words[0].get_string()).ends_with("sshd");
}

// A worker waits for what the launcher starts in it. Words after an image's own entry point stay
// behind it.
void LetServe(json::Value& container) {
  const json::Array& command = json::GetArray(container, {"command"});
  const json::Array& args = json::GetArray(container, {"args"});
  if (IsSshServer(command)) {
    json::Set(container, {"command"}, ServeOrWait(command));
  } else if (command.empty() && IsSshServer(args)) {
    json::Set(container, {"args"}, ServeOrWait(args));
  } else if (command.empty() && args.empty()) {
    json::Set(container, {"command"}, ServeOrWait(SshServer()));
  }
}

}  // namespace

Result<std::vector<json::Value>> MpiDependents(const json::Value& job,
                                               const JobSpec& spec,
                                               const JobKindOptions& options) {
  const ReplicaSpec& launcher = spec.replicas.front();
  std::vector<json::Value> all{ConfigMap(job, spec)};
  if (options.make_ssh_key) {
    SWELL_ASSIGN_OR_RETURN(const SshKeyPair key, options.make_ssh_key());
    all.push_back(SshSecret(job, key));
  }
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

void PrepareMpiPod(const json::Value& job,
                   const ReplicaSpec& replica,
                   const JobKindOptions& options,
                   json::Value& pod) {
  MountConfig(job, pod);
  if (options.make_ssh_key) MountKeysInPod(job, pod);
  // Its names are those of Kubeflow's operator: POD.JOB.NAMESPACE.svc.
  if (!json::Find(pod, {"spec", "subdomain"})) {
    json::Set(pod, {"spec", "subdomain"}, api::Name(job));
  }
  SetEnv(pod, "K_MPI_JOB_ROLE", ToLower(replica.type));
  if (replica.type == kLauncher) {
    SetMpiEnv(job, pod);
    if (AccountOf(replica).empty())
      json::Set(pod, {"spec", "serviceAccountName"}, AccountName(job));
    if (!HasGpus(pod)) SetEnv(pod, "NVIDIA_VISIBLE_DEVICES", "");
    return;
  }
  LetServe(json::FindMutable(pod, {"spec", "containers"})->get_array().front());
}

}  // namespace swell::jobs
