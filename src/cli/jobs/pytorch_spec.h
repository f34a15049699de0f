// PyTorchSpec: what `swell submit` and `arena submit pytorch` ask for, and the PyTorchJob
// (kubeflow.org/v1) that says it; TFJob and XGBoostJob, of the same make, too.
// - Threads: values and pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/key_values.h"
#include "json/value.h"
#include "kube/client/client.h"

namespace swell::cli {

// A volume and where it is mounted.
struct PodMount {
  json::Object source;  // {"secret": {...}}, without a name
  std::string path;
  bool read_only = false;
  std::string propagation;  // HostToContainer; empty: none
};

struct PyTorchSpec {
  std::string name, ns, image;
  std::string name_prefix;                 // instead of a name: the server completes it
  std::string container = "pytorch";       // its name
  std::vector<std::string> command, args;  // as the container runs it
  int64_t gpus = 0;                        // of each instance
  // Instead of whole GPUs, a part of each of `gpu_devices` GPUs: a fraction or an amount of memory.
  double gpu_fraction = 0;
  int64_t gpu_memory_mib = 0, gpu_devices = 1;
  int64_t workers = 1;  // instances, the master among them
  // Between how many instances its size may change; 0: it is rigid.
  int64_t workers_min = 0, workers_max = 0;
  std::string cpu, memory;              // of each instance
  std::string cpu_limit, memory_limit;  // empty: the same
  KeyValues devices;                    // further resources: rdma/hca=1
  std::string priority, project;
  std::string on_preemption;  // Requeue or Fail
  KeyValues env, labels, annotations, selectors;
  // Variables of the command line's own, which yield to those of `env`: values, and fields of the
  // pod.
  KeyValues own_env, field_env;
  // Variables with their valueFrom: {"secretKeyRef": {...}}.
  std::vector<std::pair<std::string, json::Object>> sourced_env;
  std::vector<KeyValues> node_choices;      // nodes with all labels of one of these; empty: any
  std::vector<std::string> excluded_nodes;  // not on these
  std::vector<std::string> tolerations;     // "all", KEY, KEY=VALUE:EFFECT[,OPERATOR], key=KEY,...
  std::vector<std::string> volumes;         // CLAIM:PATH[:ro]
  std::vector<std::string> host_paths;      // PATH or HOST:PATH[:ro]
  std::vector<PodMount> mounts;             // further ones
  std::string working_dir;
  std::string sync_mode, sync_source, sync_image;
  std::string sync_path;    // of the code; empty: below working_dir/code
  std::string sync_secret;  // of type basic-auth: who fetches the code
  std::vector<std::string> image_pull_secrets;
  std::string image_pull_policy;
  std::string scheduler;
  bool host_network = false, host_ipc = false, host_pid = false;
  bool rdma = false;
  bool keep_stdin = false, tty = false;
  int64_t run_as_user = -1, run_as_group = -1, grace_s = -1;
  bool host_users = false;      // no user namespace
  std::vector<int64_t> groups;  // further ones that it runs with
  bool no_new_privileges = false, run_as_non_root = false;
  std::string seccomp_profile;            // its type; empty: the runtime's own
  std::vector<std::string> capabilities;  // of Linux, beside the usual ones
  std::vector<int64_t> ports;             // that the container listens on
  bool gang_labels = false;
  std::string share_memory;    // size of /dev/shm; empty: the machine's own
  std::string nproc_per_node;  // a number, auto, cpu or gpu; empty: as the image has it
  std::string clean_pod_policy = "None";
  std::string restart_policy = "Never";
  int64_t retry = 0;
  int64_t running_timeout_s = 0, ttl_s = -1;
  KeyValues config_files;  // key of the ConfigMap → path in the container
  std::string config_map;  // that holds them
  // What the command calls the flags that messages name.
  std::string volume_flag = "--data", host_path_flag = "--data-dir";
  // "Directory": host_paths must be there. Empty: the node makes what is missing, as with Arena.
  std::string host_path_type;
};

// A kind of Kubeflow's jobs: a map of roles.
struct JobForm {
  std::string_view kind, plural, replica_specs;

  std::string word() const;  // "pytorchjob"
  client::Resource resource() const;
};
inline constexpr JobForm kPyTorchForm{"PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"};
inline constexpr JobForm kTensorFlowForm{"TFJob", "tfjobs", "tfReplicaSpecs"};
inline constexpr JobForm kXgboostForm{"XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"};
inline constexpr JobForm kJaxForm{"JAXJob", "jaxjobs", "jaxReplicaSpecs"};
inline constexpr JobForm kMpiForm{"MPIJob", "mpijobs", "mpiReplicaSpecs"};

struct JobRole {
  std::string_view name;  // Worker
  int64_t replicas = 1;
  json::Object pod;  // its spec
  KeyValues shares;  // parts of GPUs, as annotations of its pods (GpuShareAnnotations)
};

// Whether the path is the folder or in it.
bool IsBelow(std::string_view path, std::string_view folder);
// Refuses an amount that is above its limit. Amounts that cannot be read are left to others.
Status CheckRequest(std::string_view flag,
                    std::string_view request,
                    std::string_view limit_flag,
                    std::string_view limit);
// What can be said of a job before its pods are: name, image, workers.
Status CheckJob(const PyTorchSpec& spec);
// The job of these roles, those without members left out; all but the pods is from `spec`.
json::Value MakeRoleJob(const PyTorchSpec& spec, const JobForm& form, std::vector<JobRole> roles);
// A launcher, which alone runs the command (its image's own if there is none), and `workers`
// workers, which it starts `slots` processes in each of.
Result<json::Value> MakeMpiJob(const PyTorchSpec& launcher,
                               const PyTorchSpec& worker,
                               int64_t workers,
                               int64_t slots);
// kBadRequest (misuse) naming the flag whose value is invalid.
Result<json::Value> MakePyTorchJob(const PyTorchSpec& spec);

// "1500:100,44": the user, the group and further groups of the pods; empty: those of the image.
// kBadRequest (misuse) naming the flag.
Status FillRunAs(std::string_view flag, const std::string& text, PyTorchSpec& spec);
// "2", or "0.5" of one GPU. kBadRequest (misuse) naming the flag.
Result<double> ParseGpus(std::string_view flag, const std::string& text);
// kBadRequest (misuse) naming the flag whose amount, or word, the API server would refuse.
Status CheckAmounts(const PyTorchSpec& spec);
// What the pods say of parts of GPUs, as annotations.
KeyValues GpuShareAnnotations(const PyTorchSpec& spec);
// kBadRequest (misuse) naming --toleration.
Result<json::Array> ParseTolerations(const std::vector<std::string>& texts);
// The spec of one instance's pod.
Result<json::Object> MakePodSpec(const PyTorchSpec& spec);

// The valueFrom of a variable that a field of the pod, or a key of a Secret, has.
json::Object FieldSource(std::string_view field);
json::Object SecretSource(std::string_view secret, std::string_view key);

// Where the code of a sync source ends up below working_dir/code: the last part of the URL.
std::string ProjectOf(const std::string& sync_source);

}  // namespace swell::cli
