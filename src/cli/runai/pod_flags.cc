#include "cli/runai/pod_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "cli/views/pod_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/runai_workload.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::cli::runai {
namespace {

constexpr const char* kHome = "/home/user";
constexpr const char* kGpuCount = "RUNAI_NUM_OF_GPUS";

// "4G", "512M" or MiB.
Result<int64_t> ParseGpuMemory(std::string_view flag, const std::string& text) {
  if (auto mib = ParseInt(text); mib && *mib > 0) return *mib;
  auto quantity = api::Quantity::Parse(text);
  int64_t mib = quantity.ok() ? quantity->Value() >> 20 : 0;
  if (mib <= 0) {
    return Misuse(StrCat(flag, " ", Quote(text), ": expected an amount like 4Gi or 500M"));
  }
  return mib;
}

json::Value MakeClaim(std::string_view name,
                      std::string_view storage_class,
                      std::string_view size,
                      std::string_view access_mode) {
  json::Value claim =
      json::Object{{"apiVersion", "v1"},
                   {"kind", "PersistentVolumeClaim"},
                   {"metadata", json::Object{{"name", name}}},
                   {"spec", json::Object{{"accessModes", json::Array{access_mode}}}}};
  json::Set(claim, {"spec", "resources", "requests", "storage"}, size);
  if (!storage_class.empty()) json::Set(claim, {"spec", "storageClassName"}, storage_class);
  return claim;
}

json::Object ClaimSource(std::string_view name) {
  return {{"persistentVolumeClaim", json::Object{{"claimName", name}}}};
}

// What the flags of version 2 for volumes that are there already have in common.
struct VolumeFlag {
  std::string_view flag;
  std::string_view path;  // the field that says where it is mounted
  std::vector<std::string_view> required, optional;
  json::Object (*source)(const KeyValues& fields);
  bool (*read_only)(const KeyValues& fields);
};

bool SaysReadOnly(const KeyValues& fields) { return HasField(fields, "ro"); }
bool SaysNothing(const KeyValues& fields) { return !HasField(fields, "readwrite"); }

const VolumeFlag kExistingClaim{
    "--existing-pvc",
    "path",
    {"claimname", "path"},
    {"ro"},
    [](const KeyValues& f) { return ClaimSource(FieldOf(f, "claimname")); },
    SaysReadOnly};
const VolumeFlag kHostPath{
    "--host-path",
    "mount",
    {"path", "mount"},
    {"readwrite", "mount-propagation"},
    [](const KeyValues& f) {
      return json::Object{{"hostPath", json::Object{{"path", FieldOf(f, "path")}}}};
    },
    SaysNothing};
const VolumeFlag kConfigMap{
    "--configmap-map-volume",
    "path",
    {"name", "path"},
    {},
    [](const KeyValues& f) {
      return json::Object{{"configMap", json::Object{{"name", FieldOf(f, "name")}}}};
    },
    SaysReadOnly};
const VolumeFlag kSecret{
    "--secret-volume",
    "path",
    {"name", "path"},
    {},
    [](const KeyValues& f) {
      return json::Object{{"secret", json::Object{{"secretName", FieldOf(f, "name")}}}};
    },
    SaysReadOnly};
const VolumeFlag kNfs{"--nfs",
                      "mountpath",
                      {"path", "server", "mountpath"},
                      {"readwrite"},
                      [](const KeyValues& f) {
                        return json::Object{{"nfs", json::Object{{"server", FieldOf(f, "server")},
                                                                 {"path", FieldOf(f, "path")}}}};
                      },
                      SaysNothing};

const VolumeFlag kEmptyDir{"--empty-dir-volume",
                           "path",
                           {"path"},
                           {"name", "medium", "size-limit"},
                           [](const KeyValues& f) {
                             json::Object empty;
                             if (HasField(f, "medium")) empty["medium"] = FieldOf(f, "medium");
                             if (HasField(f, "size-limit"))
                               empty["sizeLimit"] = FieldOf(f, "size-limit");
                             return json::Object{{"emptyDir", std::move(empty)}};
                           },
                           [](const KeyValues&) { return false; }};

Status CheckFields(const KeyValues& fields,
                   const std::string& text,
                   std::string_view flag,
                   const std::vector<std::string_view>& required,
                   std::string_view path) {
  for (std::string_view name : required) {
    if (FieldOf(fields, name).empty()) {
      return Misuse(StrCat(flag, " ", Quote(text), ": ", name, "= is missing"));
    }
  }
  if (!FieldOf(fields, path).starts_with('/')) {
    return Misuse(StrCat(flag, " ", Quote(text), ": ", path, "= must begin with /"));
  }
  return Status::Ok();
}

// The API server takes any template in a job and refuses its pods later, when nobody looks.
Status CheckPodField(std::string_view variable, std::string_view field) {
  api::FieldErrors errors;
  api::CheckFieldRef(json::Object{{"fieldPath", field}}, api::FieldsForVariables(), "", errors);
  if (errors.empty()) return Status::Ok();
  return Misuse(StrCat("--env-pod-field-ref ", Quote(StrCat(variable, "=", field)),
                       ": no variable can have this field of its pod; expected ",
                       Join(api::FieldsForVariables(), ", "),
                       ", metadata.labels['KEY'] or metadata.annotations['KEY']"));
}

// Empty: nothing that is mounted on the node later is seen.
Result<std::string> PropagationOf(const KeyValues& fields, std::string_view flag) {
  const std::string word(FieldOf(fields, "mount-propagation"));
  if (word.empty() || word == "None") return std::string();
  if (word == "HostToContainer") return word;
  return Misuse(StrCat(flag, " mount-propagation=", word, ": expected None or HostToContainer"));
}

// What would otherwise keep the pod from being made, or from starting.
Status CheckSpace(const KeyValues& fields, const std::string& text, std::string_view flag) {
  if (HasField(fields, "size-limit") && !api::Quantity::Parse(FieldOf(fields, "size-limit")).ok()) {
    return Misuse(
        StrCat(flag, " ", Quote(text), ": expected size-limit=AMOUNT, like ", "size-limit=10Gi"));
  }
  const std::string_view medium = FieldOf(fields, "medium");
  if (!medium.empty() && medium != "Memory" && !medium.starts_with("HugePages")) {
    return Misuse(StrCat(flag, " ", Quote(text), ": expected medium=Memory, or no medium for the ",
                         "node's disk"));
  }
  return Status::Ok();
}

Status AddMounts(const VolumeFlag& flag, const std::vector<std::string>& texts, PyTorchSpec& pod) {
  std::vector<std::string_view> known = flag.required;
  known.insert(known.end(), flag.optional.begin(), flag.optional.end());
  for (const std::string& text : texts) {
    SWELL_ASSIGN_OR_RETURN(KeyValues fields, ParseFields(text, flag.flag, known));
    SWELL_RETURN_IF_ERROR(CheckFields(fields, text, flag.flag, flag.required, flag.path));
    SWELL_RETURN_IF_ERROR(CheckSpace(fields, text, flag.flag));
    SWELL_ASSIGN_OR_RETURN(std::string propagation, PropagationOf(fields, flag.flag));
    pod.mounts.push_back({.source = flag.source(fields),
                          .path = std::string(FieldOf(fields, flag.path)),
                          .read_only = flag.read_only(fields),
                          .propagation = std::move(propagation)});
  }
  return Status::Ok();
}

}  // namespace

void PodFlags::DeclareContainer(Flags& flags, PyTorchSpec& pod) {
  flags.Text("-i,--image", &pod.image, "IMAGE", "image");
  flags.Maybe(version_ == 2 ? "-c,--command" : "--command", &command_, "COMMAND",
              "shell command line; without a value, the arguments after -- replace the entry point "
              "of the image");
  flags.List("--args", &args_, "ARGUMENT", "argument of the command, repeatable");
  flags.List("-e,--environment", &env_, "KEY=VALUE",
             "environment variable, repeatable; KEY=SECRET:NAME,KEY takes it from a Secret");
  flags.List("--env-secret", &secret_env_, "VARIABLE=SECRET,key=KEY",
             "environment variable from a key of a Secret, repeatable");
  flags.List("--env-pod-field-ref", &field_env_, "VARIABLE=FIELD",
             "environment variable from a field of the pod, such as metadata.name, repeatable");
  flags.Text("--working-dir", &pod.working_dir, "PATH", "working directory");
  flags.List("-v,--volume", &volumes_, "HOST:PATH",
             "directory of the node, or of an NFS server: DIRECTORY:PATH::SERVER, repeatable");
  flags.List("--pvc", &claims_, "CLAIM:PATH",
             "volume claim; CLASS:SIZE:PATH creates one, repeatable");
  flags.List("--existing-pvc", &existing_claims_, "claimname=CLAIM,path=PATH[,ro]",
             "volume claim, written as version 2 has it");
  flags.List("--new-pvc", &new_claims_, "size=SIZE,path=PATH[,claimname=CLAIM]",
             "create a claim that is deleted with the workload; more fields: storageclass=CLASS, "
             "accessmode-rwo|rom|rwm, ro");
  flags.List("--host-path", &host_paths_, "path=PATH,mount=PATH[,readwrite]",
             "directory of the node, read-only without readwrite; with "
             "mount-propagation=HostToContainer what the node mounts there later is seen, too, "
             "except in pods that are processes");
  flags.List("--empty-dir-volume", &empty_dirs_, "path=PATH[,medium=Memory][,size-limit=SIZE]",
             "empty directory, which ends with the pod");
  flags.List("--configmap-map-volume", &config_maps_, "name=NAME,path=PATH", "mount a ConfigMap");
  flags.List("--secret-volume", &secrets_, "name=NAME,path=PATH", "mount a Secret");
  flags.List("--nfs", &nfs_, "server=HOST,path=PATH,mountpath=PATH[,readwrite]",
             "mount a directory of an NFS server");
  flags.Text("--git-sync", &git_sync_, "source=URL[,branch=B][,rev=R][,path=PATH]",
             "fetch code into PATH (default: into its name below WORKING_DIR/code); with "
             "secret=NAME as the user whom a Secret of type kubernetes.io/basic-auth names");
  flags.List("-l,--label", &labels_, "KEY=VALUE", "label, repeatable");
  flags.List("--annotation", &annotations_, "KEY=VALUE", "annotation, repeatable");
  flags.Text("--image-pull-policy", &pod.image_pull_policy, "POLICY",
             "Always, IfNotPresent or Never");
  flags.Switch("--always-pull-image", &always_pull_, "same as --image-pull-policy Always");
  flags.List("--image-pull-secret", &pod.image_pull_secrets, "NAME", "pull secret of the registry");
  flags.Switch("--local-image", &local_image_, "do not pull an image that the node has");
  flags.Switch("--stdin", &pod.keep_stdin, "keep standard input open");
  flags.Switch("-t,--tty", &pod.tty, "allocate a terminal");
  flags.Maybe("--run-as-user", &run_as_user_, "UID",
              "user ID of the processes; without a value, yours");
  flags.Int("--run-as-gid", &pod.run_as_group, "GID", "group ID of the processes");
  flags.Switch("--create-home-dir", &create_home_,
               StrCat("empty home directory ", kHome, ", which ends with the pod"));
  flags.List("--supplemental-groups", &groups_, "GID,...", "supplemental group IDs");
  flags.Switch("--prevent-privilege-escalation", &pod.no_new_privileges,
               "do not allow privilege escalation");
  flags.Switch("--allow-privilege-escalation", &may_escalate_,
               "allow it (default); =false is --prevent-privilege-escalation");
  flags.Switch("--run-as-non-root", &pod.run_as_non_root,
               "refuse to start as root, where the image would");
  flags.Choice("--seccomp-profile", &pod.seccomp_profile, "PROFILE",
               {"RuntimeDefault", "Unconfined"},
               "filter of system calls: RuntimeDefault (default) or Unconfined");
  flags.Switch("--run-as-current-user", &as_submitter_, "same as --run-as-user alone").hidden =
      true;
  flags.List("--add-capability", &pod.capabilities, "NAME",
             "capability of Linux to add, such as NET_ADMIN, repeatable");
  flags.Switch("--mount-propagation", &mount_propagation_, "has no effect").hidden = true;
}

void PodFlags::DeclareAmounts(Flags& flags, PyTorchSpec& pod) {
  flags.Text("-g,--gpu", &gpus_, "N", "GPUs per instance, or a fraction of one: 0.5");
  flags.Text("--gpu-portion-request", &gpu_portion_, "PART",
             "fraction of each of those GPUs (of one GPU without --gpu): 0.5");
  flags.Text("--gpu-memory", &gpu_memory_, "AMOUNT", "GPU memory instead of whole GPUs");
  flags.Text("--gpu-portion-limit", &gpu_portion_limit_, "PART", "the same as the request").hidden =
      true;
  flags.Text("--gpu-memory-limit", &gpu_memory_limit_, "AMOUNT", "the same as the request").hidden =
      true;
  flags
      .Choice("--gpu-request-type", &gpu_request_type_, "TYPE", {"portion", "memory"},
              "portion or memory")
      .hidden = true;
  flags.Text(version_ == 2 ? "--cpu" : "-c,--cpu", &pod.cpu, "AMOUNT", "CPU: 2, 500m");
  flags.Text("-m,--memory", &pod.memory, "AMOUNT", "memory: 8Gi");
  flags.Text("--cpu-limit", &pod.cpu_limit, "AMOUNT", "CPU limit");
  flags.Text("--memory-limit", &pod.memory_limit, "AMOUNT", "memory limit");
  flags.List("--extended-resource", &devices_, "NAME=N", "other resource, repeatable");
  flags.Switch("--large-shm", &large_shm_, "large /dev/shm");
}

void PodFlags::DeclarePlace(Flags& flags, PyTorchSpec& pod) {
  flags.Text("--node-type", &node_type_, "TEXT", "only nodes with the label run.ai/type=TEXT");
  flags.List("--node-pools", &node_pools_, "POOL", "only nodes of this pool, repeatable");
  flags.List("--selector", &selectors_, "KEY=VALUE", "only nodes with this label");
  flags.List("--exclude-node", &excluded_nodes_, "NODE,...", "not on these nodes, repeatable");
  flags.List("--toleration", &pod.tolerations, "TAINT",
             "all, KEY, KEY=VALUE:EFFECT, or key=KEY,operator=Equal|Exists,value=...");
  flags.Switch("--host-network", &pod.host_network, "use the network of the node");
  flags.Switch("--host-ipc", &pod.host_ipc, "use the IPC namespace of the node");
  flags.Text("--termination-grace-period", &grace_, "DURATION",
             "time between SIGTERM and SIGKILL (default 30s)");
  flags.List("--address", &addresses_, "ADDRESS", "has no effect").hidden = true;
  // Nobody waits here: a submission is made when the command returns.
  flags.Text("--wait-for-submit", &ignored_text_, "DURATION", "accepted for compatibility").hidden =
      true;
}

void PodFlags::DeclareAttach(Flags& flags) {
  flags.Switch("--attach", &attach_,
               "attach to the first pod when it runs, with --stdin and --tty");
  flags.Text("--pod-running-timeout", &attach_limit_text_, "DURATION",
             "how long --attach waits for the pod (default: no limit)");
}

void PodFlags::RefuseOthers(Flags& flags) {
  struct Other {
    const char* names;
    const char* why;
  };
  static constexpr Other kOthers[] = {
      {"--template",
       "Swell stores no templates; runai submit --dry-run -o yaml prints a manifest to apply"},
      {"--mig-profile", "use --extended-resource nvidia.com/mig-1g.5gb=1"},
      {"--category", "workloads have no categories; --label category=NAME marks one"},
      {"--max-restarts", "--backoff-limit N says how often it is tried again"},
      {"--env-pvc",
       "-e VARIABLE=CLAIM says a claim's name, and --existing-pvc claimname=CLAIM,path=PATH mounts "
       "it"},
      {"--env-my-credentials", "use --env-secret VARIABLE=SECRET,key=KEY"},
      {"--image-pull-my-credentials", "use --image-pull-secret NAME"},
      {"--datavolume", "use --existing-pvc claimname=CLAIM,path=PATH"},
      {"--datasource",
       "Swell stores no assets; --existing-pvc, --nfs, --host-path and --git-sync say what to "
       "mount"},
      {"--compute", "Swell stores no assets; --gpu, --cpu and --memory say how much"},
      {"--privileged", "workloads cannot gain privileges; --add-capability NAME adds one"},
      {"--nfs-server", "use --nfs server=HOST,path=PATH,mountpath=PATH"},
      {"--s3", "use --pvc or --git-sync"},
      {"--custom-url", "use --port with --service-type nodeport, or runai port-forward"},
      {"--user-group-source", "use --run-as-user UID"},
  };
  for (const Other& other : kOthers) flags.Refuse(other.names, other.why);
}

Status PodFlags::TakeName(PyTorchSpec& pod, size_t before_dashes, std::vector<std::string>& words) {
  if (before_dashes > 0 && pod.name.empty() && pod.name_prefix.empty()) {
    pod.name = words[0];
    words.erase(words.begin());
    --before_dashes;
  }
  if (before_dashes == 0) return Status::Ok();
  return Misuse(StrCat("unexpected ", Quote(words[0]),
                       "; the workload has a name already, and its command follows --"));
}

void PodFlags::FillCommand(PyTorchSpec& pod, std::vector<std::string> words) const {
  pod.args = args_;
  if (command_ && command_->empty()) {
    pod.command = std::exchange(words, {});
  } else if (command_) {
    pod.command = {"sh", "-c", *command_};
    // The shell takes its first argument for its own name.
    if (!args_.empty() || !words.empty()) {
      pod.command.back() += " \"$@\"";
      pod.command.emplace_back("sh");
    }
  }
  pod.args.insert(pod.args.end(), words.begin(), words.end());
  PutVariables(pod);
}

void PodFlags::PutVariables(PyTorchSpec& pod) {
  for (std::vector<std::string>* words : {&pod.command, &pod.args}) {
    for (std::string& word : *words) word = api::WithWorkloadVariables(std::move(word));
  }
}

// A workload never uses more of a GPU than it requests.
Status PodFlags::CheckGpuLimits() const {
  auto other = [](std::string_view flag, const std::string& limit, std::string_view request) {
    return Misuse(StrCat(flag, " ", limit, " is not supported: the limit is always the request, ",
                         request.empty() ? "which is missing" : request));
  };
  if (!gpu_portion_limit_.empty()) {
    const bool whole = gpu_portion_.empty();
    const std::string& said = whole ? gpus_ : gpu_portion_;
    if (said.empty()) return other("--gpu-portion-limit", gpu_portion_limit_, said);
    SWELL_ASSIGN_OR_RETURN(const double limit,
                           ParseGpus("--gpu-portion-limit", gpu_portion_limit_));
    SWELL_ASSIGN_OR_RETURN(const double request,
                           ParseGpus(whole ? "--gpu" : "--gpu-portion-request", said));
    if (limit != request) return other("--gpu-portion-limit", gpu_portion_limit_, said);
  }
  if (!gpu_memory_limit_.empty()) {
    if (gpu_memory_.empty()) return other("--gpu-memory-limit", gpu_memory_limit_, gpu_memory_);
    SWELL_ASSIGN_OR_RETURN(const int64_t limit,
                           ParseGpuMemory("--gpu-memory-limit", gpu_memory_limit_));
    SWELL_ASSIGN_OR_RETURN(const int64_t request, ParseGpuMemory("--gpu-memory", gpu_memory_));
    if (limit != request) return other("--gpu-memory-limit", gpu_memory_limit_, gpu_memory_);
  }
  return Status::Ok();
}

Status PodFlags::FillGpus(PyTorchSpec& pod) const {
  SWELL_RETURN_IF_ERROR(CheckGpuLimits());
  double gpus = 0;
  if (!gpus_.empty()) {
    SWELL_ASSIGN_OR_RETURN(gpus, ParseGpus("--gpu", gpus_));
  }
  const bool whole = gpus == std::floor(gpus);
  const bool shares = !gpu_portion_.empty() || !gpu_memory_.empty();
  if (version_ == 1 && !gpus_.empty() && !gpu_memory_.empty()) {
    return Misuse(StrCat("--gpu ", gpus_, " and --gpu-memory ", gpu_memory_,
                         " exclude each other; --gpu-memory requests a part of one GPU"));
  }
  if (!gpu_portion_.empty() && !gpu_memory_.empty()) {
    return Misuse("--gpu-portion-request and --gpu-memory exclude each other");
  }
  if (shares && !whole) {
    return Misuse(StrCat("--gpu ", gpus_, " and ",
                         gpu_memory_.empty() ? "--gpu-portion-request" : "--gpu-memory",
                         " exclude each other"));
  }
  const std::string& said = gpu_request_type_ == "memory" ? gpu_memory_ : gpu_portion_;
  if (!gpu_request_type_.empty() && said.empty()) {
    return Misuse(StrCat("--gpu-request-type ", gpu_request_type_, " needs --gpu-",
                         gpu_request_type_, "-request"));
  }
  if (!shares) {
    pod.gpus = whole ? static_cast<int64_t>(gpus) : 0;
    if (!whole) pod.gpu_fraction = gpus;
    return Status::Ok();
  }
  pod.gpu_devices = std::max<int64_t>(1, static_cast<int64_t>(gpus));
  if (!gpu_memory_.empty()) {
    SWELL_ASSIGN_OR_RETURN(pod.gpu_memory_mib, ParseGpuMemory("--gpu-memory", gpu_memory_));
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(const double part, ParseGpus("--gpu-portion-request", gpu_portion_));
  if (part > 1) {
    return Misuse(StrCat("--gpu-portion-request ", gpu_portion_, ": expected a part of a GPU"));
  }
  if (part == 1) pod.gpus = pod.gpu_devices;
  if (part < 1) pod.gpu_fraction = part;
  return Status::Ok();
}

Status PodFlags::Fill(PyTorchSpec& pod) {
  SWELL_RETURN_IF_ERROR(FillGpus(pod));
  SWELL_RETURN_IF_ERROR(CheckRequest("--cpu", pod.cpu, "--cpu-limit", pod.cpu_limit));
  SWELL_RETURN_IF_ERROR(CheckRequest("--memory", pod.memory, "--memory-limit", pod.memory_limit));
  SWELL_ASSIGN_OR_RETURN(pod.devices, ParsePairs(devices_, "--extended-resource"));
  if (large_shm_) pod.share_memory = kLargeShm;
  SWELL_RETURN_IF_ERROR(FillEnv(pod));
  SWELL_ASSIGN_OR_RETURN(pod.labels, ParseLabels(labels_, "--label"));
  SWELL_ASSIGN_OR_RETURN(pod.annotations, ParsePairs(annotations_, "--annotation"));
  SWELL_ASSIGN_OR_RETURN(pod.selectors, ParseLabels(selectors_, "--selector"));
  if (!node_type_.empty()) pod.selectors.emplace_back("run.ai/type", node_type_);
  if (local_image_) pod.image_pull_policy = "IfNotPresent";
  if (always_pull_) pod.image_pull_policy = "Always";
  for (const std::string& list : groups_) {
    for (std::string_view text : Split(list, ',')) {
      const auto group = ParseInt(text);
      if (!group)
        return Misuse(StrCat("--supplemental-groups ", Quote(text), ": expected a whole number"));
      pod.groups.push_back(*group);
    }
  }
  for (const std::string& list : excluded_nodes_) {
    for (std::string_view node : Split(list, ',')) pod.excluded_nodes.emplace_back(node);
  }
  if (!grace_.empty()) {
    SWELL_ASSIGN_OR_RETURN(Duration span, ParseDuration(grace_, "--termination-grace-period"));
    pod.grace_s = std::chrono::duration_cast<std::chrono::seconds>(span).count();
  }
  if (attach_) pod.keep_stdin = pod.tty = true;
  if (!attach_limit_text_.empty()) {
    SWELL_ASSIGN_OR_RETURN(attach_limit_,
                           ParseDuration(attach_limit_text_, "--pod-running-timeout"));
  }
  if (!may_escalate_) pod.no_new_privileges = true;
  SWELL_RETURN_IF_ERROR(FillUser(pod));
  SWELL_RETURN_IF_ERROR(FillMounts(pod));
  return FillGit(pod);
}

Result<int> PodFlags::Attach(Session& session, Scope& scope, const std::string& name) const {
  return attach_ ? AttachWhenRunning(session, scope, name, attach_limit_) : Result<int>(0);
}

Status PodFlags::FillEnv(PyTorchSpec& pod) const {
  constexpr std::string_view kSecret = "SECRET:", kKey = "key=";
  // "NAME,KEY", or with a word before the key.
  const auto add = [&pod](std::string_view flag, const std::string& variable, std::string_view text,
                          std::string_view before_key, std::string_view form) {
    const size_t comma = text.find(',');
    const std::string_view secret = text.substr(0, comma);
    std::string_view key = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const bool right = key.starts_with(before_key);
    if (right) key.remove_prefix(before_key.size());
    if (!right || secret.empty() || key.empty()) {
      return Misuse(StrCat(flag, " ", Quote(StrCat(variable, "=", text)), ": expected ", form));
    }
    pod.sourced_env.emplace_back(variable, SecretSource(secret, key));
    return Status::Ok();
  };
  SWELL_ASSIGN_OR_RETURN(const KeyValues env, ParsePairs(env_, "--environment"));
  for (const auto& [name, value] : env) {
    if (!value.starts_with(kSecret)) {
      pod.env.emplace_back(name, value);
      continue;
    }
    const std::string_view text = std::string_view(value).substr(kSecret.size());
    SWELL_RETURN_IF_ERROR(
        add("--environment", name, text, "", "VARIABLE=SECRET:NAME,KEY, with the Secret's name"));
  }
  SWELL_ASSIGN_OR_RETURN(const KeyValues secrets, ParsePairs(secret_env_, "--env-secret"));
  for (const auto& [name, value] : secrets) {
    SWELL_RETURN_IF_ERROR(add("--env-secret", name, value, kKey,
                              "VARIABLE=SECRET,key=KEY, with the Secret's name and a key of it"));
  }
  SWELL_ASSIGN_OR_RETURN(const KeyValues fields, ParsePairs(field_env_, "--env-pod-field-ref"));
  for (const auto& [name, field] : fields) {
    SWELL_RETURN_IF_ERROR(CheckPodField(name, field));
    pod.sourced_env.emplace_back(name, FieldSource(field));
  }
  return Status::Ok();
}

std::vector<std::string> PodFlags::Remarks() const {
  std::vector<std::string> remarks;
  if (mount_propagation_) {
    remarks.emplace_back(
        "--mount-propagation has no effect: mounts of the node that appear later are not seen");
  }
  if (!addresses_.empty()) {
    remarks.emplace_back(
        "--address has no effect: runai port-forward --address says where to listen");
  }
  return remarks;
}

Status PodFlags::FillUser(PyTorchSpec& pod) const {
  if (run_as_user_ && !run_as_user_->empty()) {
    const auto user = ParseInt(*run_as_user_);
    if (!user || *user < 0) {
      return Misuse(StrCat("--run-as-user ", Quote(*run_as_user_),
                           ": expected a whole number, or no value for your own user ID"));
    }
    pod.run_as_user = *user;
  } else if (run_as_user_ || as_submitter_) {
    pod.run_as_user = ::geteuid();
    if (pod.run_as_group < 0) pod.run_as_group = ::getegid();
  }
  return Status::Ok();
}

Status PodFlags::FillMounts(PyTorchSpec& pod) {
  pod.volume_flag = "--pvc";
  pod.host_path_flag = "--volume";
  for (const std::string& text : volumes_) SWELL_RETURN_IF_ERROR(ReadVolume(text, pod));
  for (const std::string& text : claims_) SWELL_RETURN_IF_ERROR(ReadClaim(text, pod));
  SWELL_RETURN_IF_ERROR(AddMounts(kExistingClaim, existing_claims_, pod));
  for (const std::string& text : new_claims_) SWELL_RETURN_IF_ERROR(ReadNewClaim(text, pod));
  SWELL_RETURN_IF_ERROR(AddMounts(kHostPath, host_paths_, pod));
  SWELL_RETURN_IF_ERROR(AddMounts(kEmptyDir, empty_dirs_, pod));
  SWELL_RETURN_IF_ERROR(AddMounts(kConfigMap, config_maps_, pod));
  SWELL_RETURN_IF_ERROR(AddMounts(kSecret, secrets_, pod));
  if (create_home_) {
    pod.mounts.push_back({.source = {{"emptyDir", json::Object()}}, .path = kHome});
    pod.own_env.emplace_back("HOME", kHome);
  }
  return AddMounts(kNfs, nfs_, pod);
}

// "source=URL", or the URL alone; version 2 says repository, and path where version 1 has target.
Status PodFlags::FillGit(PyTorchSpec& pod) const {
  if (git_sync_.empty()) return Status::Ok();
  pod.sync_mode = "git";
  if (git_sync_.find('=') == std::string::npos) {
    pod.sync_source = git_sync_;
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(KeyValues fields,
                         ParseFields(git_sync_, "--git-sync",
                                     {"source", "repository", "name", "branch", "rev", "revision",
                                      "path", "target", "secret", "username", "password"}));
  if (HasField(fields, "username") || HasField(fields, "password")) {
    return Misuse(
        "--git-sync username= and password= are not supported: all who read the workload would "
        "read them; kubectl create secret generic NAME --type=kubernetes.io/basic-auth "
        "--from-literal=username=USER --from-literal=password=TOKEN, and --git-sync secret=NAME");
  }
  for (const auto& [name, value] : fields) {
    if (name == "source" || name == "repository") pod.sync_source = value;
    if (name == "path" || name == "target") {
      if (!value.starts_with('/')) {
        return Misuse(StrCat("--git-sync ", Quote(git_sync_), ": ", name, "= must begin with /"));
      }
      pod.sync_path = value;
    }
    if (name == "secret") pod.sync_secret = value;
    if (name == "branch") pod.env.emplace_back("GIT_SYNC_BRANCH", value);
    if (name == "rev" || name == "revision") pod.env.emplace_back("GIT_SYNC_REV", value);
  }
  if (pod.sync_source.empty()) {
    return Misuse(StrCat("--git-sync ", Quote(git_sync_), ": source= is missing"));
  }
  return Status::Ok();
}

// HOST:PATH[:ro|rw], or version 1's DIRECTORY:PATH:[ro|rw]:NFS_SERVER.
Status PodFlags::ReadVolume(const std::string& text, PyTorchSpec& pod) {
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() < 3) {
    pod.host_paths.push_back(text);
    return Status::Ok();
  }
  const std::string_view access = parts[2];
  const std::string_view server = parts.size() == 4 ? parts[3] : std::string_view();
  if (parts.size() > 4 || (!access.empty() && access != "ro" && access != "rw") ||
      !parts[0].starts_with('/') || !parts[1].starts_with('/')) {
    return Misuse(StrCat("--volume ", Quote(text),
                         ": expected HOST:PATH[:ro] or DIRECTORY:PATH:[ro]:NFS_SERVER"));
  }
  if (server.empty()) {
    pod.host_paths.push_back(StrCat(parts[0], ":", parts[1], access == "ro" ? ":ro" : ""));
    return Status::Ok();
  }
  json::Object source{{"nfs", json::Object{{"server", server}, {"path", parts[0]}}}};
  pod.mounts.push_back(
      {.source = std::move(source), .path = std::string(parts[1]), .read_only = access == "ro"});
  return Status::Ok();
}

// CLAIM:PATH, CLASS:SIZE:PATH for one to be made (no class: the default one), and :ro or :rw.
Status PodFlags::ReadClaim(const std::string& text, PyTorchSpec& pod) {
  std::vector<std::string> parts;
  for (std::string_view part : Split(text, ':')) parts.emplace_back(part);
  std::string end;
  if (!parts.empty() && (parts.back() == "rw" || parts.back() == "ro")) {
    end = ":" + parts.back();
    parts.pop_back();
  }
  const bool makes = parts.size() == 3 && api::Quantity::Parse(parts[1]).ok();
  if (parts.size() != 2 && !makes) {
    return Misuse(StrCat("--pvc ", Quote(text), ": expected CLAIM:PATH or CLASS:SIZE:PATH"));
  }
  if (makes && pod.name.empty()) {
    return Misuse(StrCat("--pvc ", Quote(text),
                         ": the workload needs a name, from which the claim's name is made"));
  }
  if (!makes) {
    pod.volumes.push_back(StrCat(parts[0], ":", parts[1], end));
    return Status::Ok();
  }
  const std::string name = StrCat(pod.name, "-pvc-", lasting_claims_.size());
  lasting_claims_.push_back(MakeClaim(name, parts[0], parts[1], "ReadWriteOnce"));
  pod.volumes.push_back(StrCat(name, ":", parts[2], end));
  return Status::Ok();
}

Status PodFlags::ReadNewClaim(const std::string& text, PyTorchSpec& pod) {
  constexpr std::string_view kFlag = "--new-pvc";
  SWELL_ASSIGN_OR_RETURN(KeyValues fields,
                         ParseFields(text, kFlag,
                                     {"claimname", "storageclass", "size", "path", "accessmode-rwo",
                                      "accessmode-rom", "accessmode-rwm", "ro", "ephemeral"}));
  SWELL_RETURN_IF_ERROR(CheckFields(fields, text, kFlag, {"size", "path"}, "path"));
  std::string name(FieldOf(fields, "claimname"));
  if (name.empty() && pod.name.empty()) {
    return Misuse(StrCat(kFlag, " ", Quote(text),
                         ": claimname= is missing; without it the claim's name is made from the "
                         "workload's, which has none yet"));
  }
  if (name.empty()) name = StrCat(pod.name, "-new-pvc-", own_claims_.size());
  if (!api::Quantity::Parse(FieldOf(fields, "size")).ok()) {
    return Misuse(StrCat(kFlag, " ", Quote(text), ": expected size=AMOUNT, like size=10Gi"));
  }
  const std::string_view mode = HasField(fields, "accessmode-rwm")   ? "ReadWriteMany"
                                : HasField(fields, "accessmode-rom") ? "ReadOnlyMany"
                                                                     : "ReadWriteOnce";
  own_claims_.push_back(
      MakeClaim(name, FieldOf(fields, "storageclass"), FieldOf(fields, "size"), mode));
  pod.mounts.push_back({.source = ClaimSource(name),
                        .path = std::string(FieldOf(fields, "path")),
                        .read_only = SaysReadOnly(fields)});
  return Status::Ok();
}

// They outlive the workload, and one of the same name finds them again.
Status PodFlags::MakeClaims(Api& api, const std::string& ns) const {
  for (const json::Value& claim : lasting_claims_) {
    auto made = api.Create(client::resources::kPersistentVolumeClaims, ns, claim);
    if (!made.ok() && made.status().code() != Code::kAlreadyExists) return made.status();
  }
  return Status::Ok();
}

Status PodFlags::MakeOwnClaims(Api& api, const json::Value& job) const {
  for (json::Value claim : own_claims_) {
    json::Set(claim, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(job)});
    auto made = api.Create(client::resources::kPersistentVolumeClaims,
                           std::string(api::Namespace(job)), claim);
    if (!made.ok() && made.status().code() != Code::kAlreadyExists) return made.status();
  }
  return Status::Ok();
}

std::string NewUid(const Session& session) {
  return Random(static_cast<uint64_t>(session.Now().unix_ns)).Uuid();
}

void PodFlags::AddVariables(const PodFacts& facts, PyTorchSpec& pod) {
  for (const char* variable : {"JOB_NAME", "RUNAI_JOB_NAME"}) {
    // The server completes a prefix; the pods' labels have the name.
    if (pod.name.empty()) {
      pod.field_env.emplace_back(variable, facts.name);
    } else {
      pod.own_env.emplace_back(variable, pod.name);
    }
  }
  for (const char* variable : {"JOB_UUID", "RUNAI_JOB_UUID"}) {
    (facts.uid_is_field ? pod.field_env : pod.own_env).emplace_back(variable, facts.uid);
  }
  pod.own_env.emplace_back("RUNAI_PROJECT", pod.project);
  pod.field_env.emplace_back("POD_UUID", "metadata.uid");
  pod.field_env.emplace_back("POD_INDEX", facts.index);
  pod.field_env.emplace_back("NODE_NAME", "spec.nodeName");
  // What memory is of a GPU is known when the pod has its node.
  if (pod.gpu_memory_mib > 0) {
    pod.field_env.emplace_back(kGpuCount,
                               StrCat("metadata.annotations['", api::keys::kGpuShare, "']"));
  } else {
    pod.own_env.emplace_back(kGpuCount, pod.gpu_fraction > 0
                                            ? GpuText(std::llround(pod.gpu_fraction * 1000))
                                            : std::to_string(pod.gpus));
  }
  if (facts.mpi_workers > 0) {
    pod.own_env.emplace_back("RUNAI_MPI_NUM_WORKERS", std::to_string(facts.mpi_workers));
  }
}

Status PodFlags::ChoosePools(Api& api, PyTorchSpec& pod) const {
  for (const std::string& list : node_pools_) {
    for (std::string_view name : Split(list, ',')) {
      auto pool = api.Get(client::resources::kNodePools, "", std::string(name));
      // Run:ai always has a pool of that name: what is in no other.
      if (pool.status().code() == Code::kNotFound && name == "default") {
        pod.node_choices.clear();
        return Status::Ok();
      }
      if (!pool.ok()) return pool.status().WithContext(StrCat("--node-pools ", name));
      KeyValues labels;
      for (const auto& label : json::GetObject(**pool, {"spec", "nodeSelector"})) {
        if (!label.value().is_string()) continue;
        labels.emplace_back(std::string(label.key().data(), label.key().size()),
                            std::string(json::View(label.value().get_string())));
      }
      // A pool of all nodes: wherever there is room.
      if (labels.empty()) {
        pod.node_choices.clear();
        return Status::Ok();
      }
      pod.node_choices.push_back(std::move(labels));
    }
  }
  return Status::Ok();
}

}  // namespace swell::cli::runai
