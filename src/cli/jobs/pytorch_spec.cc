#include "cli/jobs/pytorch_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/strings.h"
#include "cli/flags.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/user.h"

namespace swell::cli {
namespace {

constexpr std::string_view kGitSyncImage =
    "registry.cn-zhangjiakou.aliyuncs.com/acs/git-sync:v3.1.1";
constexpr std::string_view kRsyncImage =
    "registry.cn-zhangjiakou.aliyuncs.com/acs/rsync:v3.1.0-aliyun";

json::Object ToObject(const KeyValues& pairs) {
  json::Object object;
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

json::Object EnvVar(std::string_view name, std::string_view value) {
  return json::Object{{"name", name}, {"value", value}};
}

json::Object SourcedVar(std::string_view name, json::Object source) {
  return json::Object{{"name", name}, {"valueFrom", std::move(source)}};
}

// As the server has it (CheckTemplateAsks).
constexpr int64_t kAmountMax = int64_t{1} << 60;

Status CheckQuantity(const std::string& text, std::string_view flag) {
  if (text.empty()) return Status::Ok();
  auto parsed = api::Quantity::Parse(text);
  if (!parsed.ok())
    return Misuse(StrCat(flag, " ", Quote(text), ": expected an amount like 2 or 8Gi"));
  if (parsed->MilliValue() < 0) {
    return Misuse(StrCat(flag, " ", Quote(text), ": must not be negative"));
  }
  if (parsed->Value() > kAmountMax) {
    return Misuse(StrCat(flag, " ", Quote(text), ": is too large: at most 1Ei"));
  }
  return Status::Ok();
}

}  // namespace

// Nothing less than what the server would say of the pods, which is long after the job was taken.
Status CheckAmounts(const PyTorchSpec& spec) {
  if (spec.gpus < 0) return Misuse(StrCat("--gpus ", spec.gpus, ": must not be negative"));
  SWELL_RETURN_IF_ERROR(CheckQuantity(spec.cpu, "--cpu"));
  SWELL_RETURN_IF_ERROR(CheckQuantity(spec.memory, "--memory"));
  SWELL_RETURN_IF_ERROR(CheckQuantity(spec.cpu_limit, "--cpu-limit"));
  SWELL_RETURN_IF_ERROR(CheckQuantity(spec.memory_limit, "--memory-limit"));
  SWELL_RETURN_IF_ERROR(CheckQuantity(spec.share_memory, "--share-memory"));
  for (const auto& [name, amount] : spec.devices) {
    SWELL_RETURN_IF_ERROR(CheckQuantity(amount, StrCat("resource ", name)));
  }
  const std::string& pull = spec.image_pull_policy;
  if (!pull.empty() && pull != "Always" && pull != "IfNotPresent" && pull != "Never") {
    return Misuse(
        StrCat("--image-pull-policy ", Quote(pull), ": expected Always, IfNotPresent or Never"));
  }
  const std::string& processes = spec.nproc_per_node;
  const std::optional<int64_t> number = ParseInt(processes);
  const bool word =
      processes.empty() || processes == "auto" || processes == "cpu" || processes == "gpu";
  if (!word && (!number || *number < 1)) {
    return Misuse(StrCat("--nproc-per-node ", Quote(processes),
                         ": expected a number from 1, auto, cpu or gpu"));
  }
  return Status::Ok();
}

namespace {

struct ParsedMount {
  std::string source, path;
  bool read_only = false;
};

// "/a" mounts /a at /a; "/a:/b" at /b; "claim:/b"; each with :ro or :rw.
Result<ParsedMount> ParseMount(const std::string& text, std::string_view flag, bool host) {
  std::string_view rest = text;
  const bool read_only = rest.ends_with(":ro");
  if (read_only || rest.ends_with(":rw")) rest.remove_suffix(3);
  const size_t colon = rest.find(':');
  std::string source(rest.substr(0, colon));
  std::string path(colon != std::string_view::npos ? rest.substr(colon + 1) : host ? rest : "");
  bool good = !source.empty() && path.starts_with('/') && (!host || source.starts_with('/'));
  if (!good) {
    return Misuse(StrCat(
        flag, " ", Quote(text), ": ",
        host ? "expected a path, or HOST_PATH:CONTAINER_PATH" : "expected CLAIM:CONTAINER_PATH"));
  }
  return ParsedMount{std::move(source), std::move(path), read_only};
}

// As version 2 of Run:ai has it: "key=a,operator=Equal,value=b,effect=NoExecute,seconds=60".
Result<json::Value> ParseTolerationFields(const std::string& text) {
  SWELL_ASSIGN_OR_RETURN(
      KeyValues fields,
      ParseFields(text, "--toleration", {"key", "operator", "value", "effect", "seconds"}));
  json::Object toleration;
  for (const auto& [name, value] : fields) {
    if (name != "seconds") {
      toleration[name] = value;
      continue;
    }
    const auto seconds = ParseInt(value);
    if (!seconds)
      return Misuse(StrCat("--toleration ", Quote(text), ": seconds are a whole number"));
    toleration["tolerationSeconds"] = *seconds;
  }
  return json::Value(std::move(toleration));
}

Result<json::Value> ParseToleration(const std::string& text) {
  if (text == "all") return json::Value(json::Object{{"operator", "Exists"}});
  if (text.starts_with("key=") || text.starts_with("operator=")) return ParseTolerationFields(text);
  std::string_view rest = text;
  std::string_view op, effect, value;
  if (size_t comma = rest.find(','); comma != std::string_view::npos) {
    op = rest.substr(comma + 1);
    rest = rest.substr(0, comma);
  }
  if (size_t colon = rest.find(':'); colon != std::string_view::npos) {
    effect = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  bool has_value = rest.find('=') != std::string_view::npos;
  if (has_value) {
    value = rest.substr(rest.find('=') + 1);
    rest = rest.substr(0, rest.find('='));
  }
  if (op.empty()) op = has_value ? "Equal" : "Exists";
  bool good_effect = effect.empty() || effect == "NoSchedule" || effect == "PreferNoSchedule" ||
                     effect == "NoExecute";
  if (rest.empty() || !good_effect || (op != "Equal" && op != "Exists")) {
    return Misuse(
        StrCat("--toleration ", Quote(text), ": expected all, KEY, or KEY=VALUE:EFFECT,OPERATOR"));
  }
  json::Object toleration{{"key", rest}, {"operator", op}};
  if (!value.empty() && op == "Equal") toleration["value"] = value;
  if (!effect.empty()) toleration["effect"] = effect;
  return json::Value(std::move(toleration));
}

// The parts of a pod that grow together.
struct PodParts {
  json::Array env, mounts, volumes, init_containers;
};

Status AddVolumes(const PyTorchSpec& spec, PodParts& parts) {
  auto add = [&](std::string name, json::Object source, const std::string& path,
                 bool read_only = false, const std::string& propagation = "") {
    source["name"] = name;
    parts.volumes.push_back(std::move(source));
    json::Object mount{{"name", name}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    if (!propagation.empty()) mount["mountPropagation"] = propagation;
    parts.mounts.push_back(std::move(mount));
  };
  int number = 0;
  for (const std::string& text : spec.volumes) {
    SWELL_ASSIGN_OR_RETURN(ParsedMount mount, ParseMount(text, spec.volume_flag, false));
    add(StrCat("data-", number++),
        {{"persistentVolumeClaim", json::Object{{"claimName", mount.source}}}}, mount.path,
        mount.read_only);
  }
  number = 0;
  for (const std::string& text : spec.host_paths) {
    SWELL_ASSIGN_OR_RETURN(ParsedMount mount, ParseMount(text, spec.host_path_flag, true));
    json::Object path{{"path", mount.source}};
    if (!spec.host_path_type.empty()) path["type"] = spec.host_path_type;
    add(StrCat("training-data-", number++), {{"hostPath", std::move(path)}}, mount.path,
        mount.read_only);
  }
  number = 0;
  for (const PodMount& mount : spec.mounts) {
    add(StrCat("volume-", number++), mount.source, mount.path, mount.read_only, mount.propagation);
  }
  if (!spec.share_memory.empty()) {
    add("dshm",
        {{"emptyDir", json::Object{{"medium", "Memory"}, {"sizeLimit", spec.share_memory}}}},
        "/dev/shm");
  }
  if (!spec.config_files.empty()) {
    parts.volumes.push_back(json::Object{{"name", "config-files"},
                                         {"configMap", json::Object{{"name", spec.config_map}}}});
    for (const auto& [key, path] : spec.config_files) {
      parts.mounts.push_back(
          json::Object{{"name", "config-files"}, {"mountPath", path}, {"subPath", key}});
    }
  }
  return Status::Ok();
}

Status AddSync(const PyTorchSpec& spec, PodParts& parts) {
  if (spec.sync_mode.empty() && spec.sync_source.empty()) return Status::Ok();
  if (spec.sync_mode != "git" && spec.sync_mode != "rsync") {
    return Misuse(StrCat("--sync-mode ", Quote(spec.sync_mode), " is not supported; git or rsync"));
  }
  if (spec.sync_source.empty()) {
    return Misuse(StrCat("--sync-mode ", spec.sync_mode, " needs --sync-source"));
  }
  json::Object init{{"name", "init-code"}};
  json::Array env;
  for (const auto& [name, value] : spec.env) env.push_back(EnvVar(name, value));
  if (!spec.sync_secret.empty()) {
    env.push_back(SourcedVar("GIT_SYNC_USERNAME", SecretSource(spec.sync_secret, "username")));
    env.push_back(SourcedVar("GIT_SYNC_PASSWORD", SecretSource(spec.sync_secret, "password")));
  }
  if (spec.sync_mode == "git") {
    init["image"] = spec.sync_image.empty() ? kGitSyncImage : spec.sync_image;
    env.push_back(EnvVar("GIT_SYNC_REPO", spec.sync_source));
    env.push_back(EnvVar("GIT_SYNC_DEST", ProjectOf(spec.sync_source)));
    env.push_back(EnvVar("GIT_SYNC_ROOT", "/code"));
    env.push_back(EnvVar("GIT_SYNC_ONE_TIME", "true"));
  } else {
    init["image"] = spec.sync_image.empty() ? kRsyncImage : spec.sync_image;
    init["command"] = json::Array{"rsync", "-avP", spec.sync_source, "/code"};
  }
  init["env"] = std::move(env);
  init["volumeMounts"] = json::Array{json::Object{{"name", "code-sync"}, {"mountPath", "/code"}}};
  parts.init_containers.push_back(std::move(init));
  parts.volumes.push_back(json::Object{{"name", "code-sync"}, {"emptyDir", json::Object{}}});
  json::Object mount{{"name", "code-sync"}};
  if (spec.sync_path.empty()) {
    mount["mountPath"] = StrCat(spec.working_dir, "/code");
  } else {
    mount["mountPath"] = spec.sync_path;
    mount["subPath"] = ProjectOf(spec.sync_source);
  }
  parts.mounts.push_back(std::move(mount));
  return Status::Ok();
}

void AddEnv(const PyTorchSpec& spec, PodParts& parts) {
  if (spec.gpus == 0 && spec.gpu_fraction == 0 && spec.gpu_memory_mib == 0) {
    parts.env.push_back(EnvVar("NVIDIA_VISIBLE_DEVICES", "void"));
  }
  if (!spec.nproc_per_node.empty()) {
    parts.env.push_back(EnvVar("PET_NPROC_PER_NODE", spec.nproc_per_node));
  }
  const auto given = [&spec](std::string_view name) {
    const auto is = [name](const auto& pair) { return pair.first == name; };
    return std::ranges::any_of(spec.env, is) || std::ranges::any_of(spec.sourced_env, is);
  };
  for (const auto& [name, value] : spec.own_env) {
    if (!given(name)) parts.env.push_back(EnvVar(name, value));
  }
  for (const auto& [name, field] : spec.field_env) {
    if (given(name)) continue;
    parts.env.push_back(SourcedVar(name, FieldSource(field)));
  }
  for (const auto& [name, value] : spec.env) parts.env.push_back(EnvVar(name, value));
  for (const auto& [name, source] : spec.sourced_env) {
    parts.env.push_back(SourcedVar(name, source));
  }
}

json::Object Container(const PyTorchSpec& spec, PodParts& parts) {
  json::Object amounts;
  if (!spec.cpu.empty()) amounts["cpu"] = spec.cpu;
  if (!spec.memory.empty()) amounts["memory"] = spec.memory;
  if (spec.gpus > 0) amounts["nvidia.com/gpu"] = std::to_string(spec.gpus);
  for (const auto& [name, amount] : spec.devices) amounts[name] = amount;
  if (spec.rdma) amounts["rdma/hca"] = "1";
  json::Object limits = amounts;
  if (!spec.cpu_limit.empty()) limits["cpu"] = spec.cpu_limit;
  if (!spec.memory_limit.empty()) limits["memory"] = spec.memory_limit;
  json::Object container{{"name", spec.container}, {"image", spec.image}};
  if (!spec.command.empty()) {
    json::Array command;
    for (const std::string& word : spec.command) command.emplace_back(word);
    container["command"] = std::move(command);
  }
  if (!spec.args.empty()) {
    json::Array args;
    for (const std::string& word : spec.args) args.emplace_back(word);
    container["args"] = std::move(args);
  }
  if (!spec.ports.empty()) {
    json::Array ports;
    for (int64_t port : spec.ports) ports.push_back(json::Object{{"containerPort", port}});
    container["ports"] = std::move(ports);
  }
  if (spec.keep_stdin) container["stdin"] = true;
  if (spec.tty) container["tty"] = true;
  if (!spec.working_dir.empty()) container["workingDir"] = spec.working_dir;
  if (!spec.image_pull_policy.empty()) container["imagePullPolicy"] = spec.image_pull_policy;
  if (!parts.env.empty()) container["env"] = std::move(parts.env);
  json::Object resources;
  if (!limits.empty()) resources["limits"] = std::move(limits);
  if (!amounts.empty()) resources["requests"] = std::move(amounts);
  if (!resources.empty()) container["resources"] = std::move(resources);
  if (!parts.mounts.empty()) container["volumeMounts"] = std::move(parts.mounts);
  json::Object security;
  json::Array added;
  if (spec.rdma) added.push_back(json::Value("IPC_LOCK"));
  for (const std::string& name : spec.capabilities) added.emplace_back(name);
  if (!added.empty()) security["capabilities"] = json::Object{{"add", std::move(added)}};
  if (spec.no_new_privileges) security["allowPrivilegeEscalation"] = false;
  if (!security.empty()) container["securityContext"] = std::move(security);
  return container;
}

// As whom the pod runs.
json::Object PodSecurity(const PyTorchSpec& spec) {
  json::Object security;
  if (spec.run_as_user >= 0) security["runAsUser"] = spec.run_as_user;
  if (spec.run_as_group >= 0) security["runAsGroup"] = spec.run_as_group;
  if (!spec.groups.empty()) {
    security["supplementalGroups"] = json::Array(spec.groups.begin(), spec.groups.end());
  }
  if (spec.run_as_non_root) security["runAsNonRoot"] = true;
  if (!spec.seccomp_profile.empty()) {
    security["seccompProfile"] = json::Object{{"type", spec.seccomp_profile}};
  }
  return security;
}

// One set of labels is a selector; of several a node has one.
void ChooseNodes(const PyTorchSpec& spec, json::Object& pod) {
  KeyValues selectors = spec.selectors;
  if (spec.node_choices.size() == 1) {
    const KeyValues& only = spec.node_choices[0];
    selectors.insert(selectors.end(), only.begin(), only.end());
  }
  if (!selectors.empty()) pod["nodeSelector"] = ToObject(selectors);
  json::Array excluded;
  for (const std::string& node : spec.excluded_nodes) {
    excluded.push_back(json::Object{
        {"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::Array{node}}});
  }
  json::Array terms;
  if (spec.node_choices.size() > 1) {
    for (const KeyValues& choice : spec.node_choices) {
      json::Array expressions;
      for (const auto& [key, value] : choice) {
        expressions.push_back(
            json::Object{{"key", key}, {"operator", "In"}, {"values", json::Array{value}}});
      }
      json::Object term{{"matchExpressions", std::move(expressions)}};
      if (!excluded.empty()) term["matchFields"] = excluded;
      terms.push_back(std::move(term));
    }
  } else if (!excluded.empty()) {
    terms.push_back(json::Object{{"matchFields", std::move(excluded)}});
  }
  if (terms.empty()) return;
  json::Value affinity = json::Object{};
  json::Set(affinity,
            {"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"},
            std::move(terms));
  pod["affinity"] = std::move(affinity);
}

}  // namespace

Status FillRunAs(std::string_view flag, const std::string& text, PyTorchSpec& spec) {
  if (text.empty()) return Status::Ok();
  auto ids = api::ParseRunAs(text);
  if (!ids.ok()) return Misuse(StrCat(flag, " ", ids.status().message()));
  spec.run_as_user = ids->uid;
  spec.run_as_group = ids->gids.front();
  spec.groups.assign(ids->gids.begin() + 1, ids->gids.end());
  return Status::Ok();
}

Result<double> ParseGpus(std::string_view flag, const std::string& text) {
  constexpr double kGpusMax = 1e6;
  char* end = nullptr;
  const double gpus = std::strtod(text.c_str(), &end);
  const bool whole = gpus == std::floor(gpus);
  if (text.empty() || *end != '\0' || !std::isfinite(gpus) || gpus < 0 || gpus > kGpusMax ||
      (!whole && gpus > 1)) {
    return Misuse(StrCat(flag, " ", Quote(text),
                         ": expected a whole number of GPUs or a part of one, like 0.5"));
  }
  return gpus;
}

KeyValues GpuShareAnnotations(const PyTorchSpec& spec) {
  KeyValues annotations;
  if (spec.gpu_fraction > 0) {
    // Three decimals: "0.5", "0.333".
    annotations.emplace_back(api::keys::kGpuFraction,
                             GpuText(static_cast<int64_t>(std::llround(spec.gpu_fraction * 1000))));
  }
  if (spec.gpu_memory_mib > 0) {
    annotations.emplace_back(api::keys::kGpuMemory, std::to_string(spec.gpu_memory_mib));
  }
  if (!annotations.empty() && spec.gpu_devices > 1) {
    annotations.emplace_back(api::keys::kGpuFractionDevices, std::to_string(spec.gpu_devices));
  }
  return annotations;
}

Result<json::Array> ParseTolerations(const std::vector<std::string>& texts) {
  json::Array tolerations;
  for (const std::string& text : texts) {
    SWELL_ASSIGN_OR_RETURN(json::Value toleration, ParseToleration(text));
    tolerations.push_back(std::move(toleration));
  }
  return tolerations;
}

Result<json::Object> MakePodSpec(const PyTorchSpec& spec) {
  SWELL_RETURN_IF_ERROR(CheckAmounts(spec));
  PodParts parts;
  AddEnv(spec, parts);
  SWELL_RETURN_IF_ERROR(AddVolumes(spec, parts));
  SWELL_RETURN_IF_ERROR(AddSync(spec, parts));
  json::Object pod;
  json::Object container = Container(spec, parts);
  if (!parts.init_containers.empty()) pod["initContainers"] = std::move(parts.init_containers);
  pod["containers"] = json::Array{std::move(container)};
  if (!parts.volumes.empty()) pod["volumes"] = std::move(parts.volumes);
  if (!spec.priority.empty()) pod["priorityClassName"] = spec.priority;
  ChooseNodes(spec, pod);
  if (!spec.scheduler.empty()) pod["schedulerName"] = spec.scheduler;
  if (spec.host_network) {
    pod["hostNetwork"] = true;
    pod["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
  if (spec.host_ipc) pod["hostIPC"] = true;
  if (spec.host_pid) pod["hostPID"] = true;
  if (spec.grace_s >= 0) pod["terminationGracePeriodSeconds"] = spec.grace_s;
  if (spec.host_users) pod["hostUsers"] = true;
  if (json::Object security = PodSecurity(spec); !security.empty()) {
    pod["securityContext"] = std::move(security);
  }
  SWELL_ASSIGN_OR_RETURN(json::Array tolerations, ParseTolerations(spec.tolerations));
  if (!tolerations.empty()) pod["tolerations"] = std::move(tolerations);
  json::Array secrets;
  for (const std::string& name : spec.image_pull_secrets) {
    secrets.push_back(json::Object{{"name", name}});
  }
  if (!secrets.empty()) pod["imagePullSecrets"] = std::move(secrets);
  return pod;
}

namespace {

json::Object RunPolicy(const PyTorchSpec& spec) {
  json::Object policy{{"cleanPodPolicy", spec.clean_pod_policy}};
  if (spec.retry > 0) policy["backoffLimit"] = spec.retry;
  if (spec.running_timeout_s > 0) policy["activeDeadlineSeconds"] = spec.running_timeout_s;
  if (spec.ttl_s >= 0) policy["ttlSecondsAfterFinished"] = spec.ttl_s;
  json::Object scheduling;
  if (!spec.project.empty()) scheduling["queue"] = spec.project;
  if (!spec.priority.empty()) scheduling["priorityClass"] = spec.priority;
  if (!scheduling.empty()) policy["schedulingPolicy"] = std::move(scheduling);
  return policy;
}

}  // namespace

bool IsBelow(std::string_view path, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  return path == folder || folder == "/" || path.starts_with(StrCat(folder, "/"));
}

Status CheckRequest(std::string_view flag,
                    std::string_view request,
                    std::string_view limit_flag,
                    std::string_view limit) {
  const auto wanted = api::Quantity::Parse(request);
  const auto most = api::Quantity::Parse(limit);
  if (!wanted.ok() || !most.ok() || wanted->MilliValue() <= most->MilliValue()) return Status::Ok();
  return Misuse(StrCat(flag, " ", request, " is above ", limit_flag, " ", limit));
}

Status CheckJob(const PyTorchSpec& spec) {
  if (spec.name.empty() && spec.name_prefix.empty()) return Misuse("--name is not set");
  if (std::string wrong = api::CheckDnsLabel(spec.name); !wrong.empty() && !spec.name.empty()) {
    return Misuse(StrCat("--name ", Quote(spec.name), ": ", wrong));
  }
  if (spec.image.empty()) return Misuse("--image is not set");
  if (spec.workers < 1) {
    return Misuse(
        StrCat("--workers ", spec.workers, ": expected 1 or more; the master is one of them"));
  }
  return Status::Ok();
}

std::string ProjectOf(const std::string& sync_source) {
  std::string_view rest = sync_source;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  rest = rest.substr(rest.find_last_of("/:") + 1);
  if (rest.ends_with(".git")) rest.remove_suffix(4);
  return std::string(rest);
}

std::string JobForm::word() const { return ToLower(kind); }

client::Resource JobForm::resource() const {
  return {"kubeflow.org", "v1", std::string(plural), true};
}

json::Value MakeRoleJob(const PyTorchSpec& spec, const JobForm& form, std::vector<JobRole> roles) {
  json::Object labels = ToObject(spec.labels);
  if (!spec.project.empty()) labels[api::keys::kProject] = spec.project;
  json::Object annotations = ToObject(spec.annotations);
  int64_t members = 0;
  for (const JobRole& role : roles) members += role.replicas;
  json::Object made;
  for (JobRole& role : roles) {
    if (role.replicas == 0) continue;
    json::Object metadata;
    json::Object pod_labels = labels;
    if (spec.gang_labels) {
      pod_labels["pod-group.scheduling.sigs.k8s.io/name"] = StrCat(form.word(), "-", spec.name);
      pod_labels["pod-group.scheduling.sigs.k8s.io/min-available"] = std::to_string(members);
    }
    if (!pod_labels.empty()) metadata["labels"] = std::move(pod_labels);
    json::Object pod_annotations = annotations;
    for (const auto& [key, value] : role.shares) pod_annotations[key] = value;
    if (!pod_annotations.empty()) metadata["annotations"] = std::move(pod_annotations);
    made[role.name] = json::Object{{"replicas", role.replicas},
                                   {"restartPolicy", spec.restart_policy},
                                   {"template", json::Object{{"metadata", std::move(metadata)},
                                                             {"spec", std::move(role.pod)}}}};
  }
  if (!spec.on_preemption.empty()) annotations[api::keys::kOnPreemption] = spec.on_preemption;
  json::Object metadata;
  if (spec.name.empty()) {
    metadata["generateName"] = spec.name_prefix + "-";
  } else {
    metadata["name"] = spec.name;
  }
  if (!spec.ns.empty()) metadata["namespace"] = spec.ns;
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return json::Object{{"apiVersion", "kubeflow.org/v1"},
                      {"kind", form.kind},
                      {"metadata", std::move(metadata)},
                      {"spec", json::Object{{"runPolicy", RunPolicy(spec)},
                                            {form.replica_specs, std::move(made)}}}};
}

Result<json::Value> MakePyTorchJob(const PyTorchSpec& spec) {
  SWELL_RETURN_IF_ERROR(CheckJob(spec));
  SWELL_ASSIGN_OR_RETURN(json::Object pod, MakePodSpec(spec));
  const KeyValues shares = GpuShareAnnotations(spec);
  if (spec.workers_max > 0) {
    // The first worker leads: a master would be one that cannot be given up.
    json::Value job = MakeRoleJob(spec, kPyTorchForm, {{"Worker", spec.workers, pod, shares}});
    json::Set(job, {"spec", "elasticPolicy"},
              json::Object{{"minReplicas", spec.workers_min}, {"maxReplicas", spec.workers_max}});
    return job;
  }
  return MakeRoleJob(spec, kPyTorchForm,
                     {{"Master", 1, pod, shares}, {"Worker", spec.workers - 1, pod, shares}});
}

json::Object FieldSource(std::string_view field) {
  return {{"fieldRef", json::Object{{"fieldPath", field}}}};
}

json::Object SecretSource(std::string_view secret, std::string_view key) {
  return {{"secretKeyRef", json::Object{{"name", secret}, {"key", key}}}};
}

Result<json::Value> MakeMpiJob(const PyTorchSpec& launcher,
                               const PyTorchSpec& worker,
                               int64_t workers,
                               int64_t slots) {
  SWELL_RETURN_IF_ERROR(CheckJob(worker));
  SWELL_ASSIGN_OR_RETURN(json::Object head, MakePodSpec(launcher));
  PyTorchSpec waiting = worker;
  waiting.command.clear();
  waiting.args.clear();
  SWELL_ASSIGN_OR_RETURN(json::Object member, MakePodSpec(waiting));
  json::Value job =
      MakeRoleJob(worker, kMpiForm,
                  {{"Launcher", 1, std::move(head), GpuShareAnnotations(launcher)},
                   {"Worker", workers, std::move(member), GpuShareAnnotations(worker)}});
  json::Set(job, {"spec", "slotsPerWorker"}, slots);
  return job;
}

}  // namespace swell::cli
