// Run:ai's workloads (run.ai/v2alpha1): a pod each, as `runai submit` makes it. A field is
// {value: V}; several by name are {items: {NAME: {value: V}}}.
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/words.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/runai_workload.h"
#include "kube/controllers/pod_env.h"
#include "sched_inputs/gpu_request.h"

namespace swell::jobs {
namespace {

using api::WorkloadItems;
using api::WorkloadSwitch;
using api::WorkloadText;
using api::WorkloadValue;
using controllers::SetEnv;
using controllers::SetEnvFromField;
using controllers::WrongField;
using controllers::WrongText;

constexpr std::string_view kTrain = "train";
// A workspace comes back however often it ends; training that keeps failing is broken.
constexpr int64_t kTrainingBackoff = 6;
constexpr std::string_view kLargeShm = "8Gi";
constexpr std::string_view kNodeTypeLabel = "run.ai/type";
// Only the system writes keys of this domain: they are facts about pods.
constexpr std::string_view kOwnDomain = "swell.dev/";

std::string_view KeyView(const json::Object::value_type& entry) {
  return {entry.key().data(), entry.key().size()};
}

std::string ItemField(std::string_view field, const json::Object::value_type& item) {
  return StrCat("spec.", field, ".items.", KeyView(item), ".value");
}

// Fields of Run:ai's that are not followed here, and what does the same work.
Status CheckUnsupported(const json::Value& body) {
  struct Row {
    std::string_view field, instead;
  };
  static constexpr Row kRows[] = {
      {"completions", "runai submit --completions makes independent runs"},
      {"parallelism", "runai submit --parallelism makes independent runs"},
      {"configMaps", "runai submit --configmap-map-volume mounts one"},
      {"exposedUrls", "use spec.ports with serviceType NodePort"},
      {"gitSync", "runai submit --git-sync fetches code"},
      {"migProfile", "use spec.extendedResources"},
      {"s3", "fetch data in the command, or use spec.pvcs"},
      {"volumes", "use spec.pvcs, or runai submit --host-path"}};
  for (const Row& row : kRows) {
    if (json::Find(body, {row.field}) == nullptr) continue;
    return WrongField(StrCat("spec.", row.field),
                      StrCat("Forbidden: it is not supported; ", row.instead));
  }
  return Status::Ok();
}

Status CheckKeys(const json::Value& body) {
  for (std::string_view field : {"labels", "annotations"}) {
    for (const auto& item : WorkloadItems(body, field)) {
      if (!KeyView(item).starts_with(kOwnDomain)) continue;
      return WrongField(StrCat("spec.", field, ".items.", KeyView(item)),
                        "Forbidden: keys of swell.dev are the system's own");
    }
  }
  return Status::Ok();
}

Status SetWords(const json::Value& body, std::string_view field, json::Array* to) {
  const std::string text = WorkloadText(body, field);
  const auto words = ShellWords(text);
  if (!words) {
    return WrongText(StrCat("spec.", field, ".value"), text, "a quotation mark is not closed");
  }
  for (const std::string& word : *words) to->emplace_back(word);
  return Status::Ok();
}

Status SetCommand(const json::Value& body, json::Value& container) {
  json::Array command, args;
  SWELL_RETURN_IF_ERROR(SetWords(body, "command", &command));
  SWELL_RETURN_IF_ERROR(SetWords(body, "arguments", &args));
  if (!command.empty()) json::Set(container, {"command"}, std::move(command));
  if (!args.empty()) json::Set(container, {"args"}, std::move(args));
  return Status::Ok();
}

Status SetAmount(std::string_view field,
                 const std::string& text,
                 std::string_view side,
                 std::string_view resource,
                 json::Value& container) {
  if (text.empty()) return Status::Ok();
  if (!api::Quantity::Parse(text).ok()) {
    return WrongText(field, text, "must be an amount such as 2, 500m or 8Gi");
  }
  json::Set(container, {"resources", side, resource}, text);
  return Status::Ok();
}

// Whole GPUs, a part of one, or memory of one.
Status SetGpus(const json::Value& body, json::Value& pod, json::Value& container) {
  const std::string gpus = WorkloadText(body, "gpu"), memory = WorkloadText(body, "gpuMemory");
  if (!gpus.empty() && !memory.empty()) {
    return WrongField("spec.gpuMemory", "Forbidden: spec.gpu says how many GPUs there are");
  }
  if (!memory.empty()) {
    const auto amount = api::Quantity::Parse(memory);
    const int64_t mib = amount.ok() ? amount->Value() >> 20 : 0;
    if (mib < 1) return WrongText("spec.gpuMemory.value", memory, "must be an amount such as 4G");
    json::Set(pod, {"metadata", "annotations", api::keys::kGpuMemory}, std::to_string(mib));
    return Status::Ok();
  }
  const auto whole = ParseInt(gpus);
  if (whole && *whole > 0) {
    json::Set(container, {"resources", "limits", api::kGpuResource}, std::to_string(*whole));
    return Status::Ok();
  }
  if (gpus.empty() || (whole && *whole == 0)) return Status::Ok();
  const auto part = sched_inputs::ParseGpuFraction(gpus);
  if (!part || *part >= 1) {
    return WrongText("spec.gpu.value", gpus,
                     "must be a whole number, or a part of a GPU such as 0.5");
  }
  json::Set(pod, {"metadata", "annotations", api::keys::kGpuFraction}, gpus);
  return Status::Ok();
}

Status SetResources(const json::Value& body, json::Value& pod, json::Value& container) {
  struct Row {
    std::string_view field, side, resource;
  };
  static constexpr Row kRows[] = {{"cpu", "requests", "cpu"},
                                  {"memory", "requests", "memory"},
                                  {"cpuLimit", "limits", "cpu"},
                                  {"memoryLimit", "limits", "memory"}};
  for (const Row& row : kRows) {
    SWELL_RETURN_IF_ERROR(SetAmount(StrCat("spec.", row.field, ".value"),
                                    WorkloadText(body, row.field), row.side, row.resource,
                                    container));
  }
  for (const auto& item : WorkloadItems(body, "extendedResources")) {
    const std::string amount(json::GetString(item.value(), {"value"}));
    SWELL_RETURN_IF_ERROR(SetAmount(ItemField("extendedResources", item), amount, "limits",
                                    KeyView(item), container));
  }
  return SetGpus(body, pod, container);
}

bool AsksForGpus(const json::Value& pod, const json::Value& container) {
  return json::Find(container, {"resources", "limits", api::kGpuResource}) != nullptr ||
         !api::Annotation(pod, api::keys::kGpuMemory).empty() ||
         !api::Annotation(pod, api::keys::kGpuFraction).empty();
}

void Mount(json::Value& pod,
           json::Value& container,
           json::Object volume,
           std::string_view path,
           bool read_only) {
  json::Array& volumes = ArrayIn(*json::FindMutable(pod, {"spec"}), "volumes");
  const std::string name = StrCat("volume-", volumes.size());
  volume["name"] = name;
  volumes.push_back(std::move(volume));
  json::Object mount{{"name", name}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  ArrayIn(container, "volumeMounts").push_back(std::move(mount));
}

Status SetVolumes(const json::Value& body, json::Value& pod, json::Value& container) {
  for (const auto& item : WorkloadItems(body, "pvcs")) {
    const json::Value* claim = json::Find(item.value(), {"value"});
    if (claim == nullptr) continue;
    if (!json::GetBool(*claim, {"existingPvc"}, true)) {
      return WrongField(StrCat(ItemField("pvcs", item), ".existingPvc"),
                        "Unsupported value: false: no claim is made for the workload; make a "
                        "PersistentVolumeClaim and name it");
    }
    json::Object source{{"claimName", json::GetString(*claim, {"claimName"})}};
    Mount(pod, container, {{"persistentVolumeClaim", std::move(source)}},
          json::GetString(*claim, {"path"}), json::GetBool(*claim, {"readOnly"}));
  }
  if (WorkloadSwitch(body, "largeShm")) {
    Mount(pod, container,
          {{"emptyDir", json::Object{{"medium", "Memory"}, {"sizeLimit", kLargeShm}}}}, "/dev/shm",
          false);
  }
  return Status::Ok();
}

void SetPlace(const json::Value& body, json::Value& pod) {
  const std::string type = WorkloadText(body, "nodeType");
  if (!type.empty()) json::Set(pod, {"spec", "nodeSelector", kNodeTypeLabel}, type);
  for (const auto& item : WorkloadItems(body, "tolerations")) {
    if (const json::Value* one = json::Find(item.value(), {"value"})) {
      ArrayIn(*json::FindMutable(pod, {"spec"}), "tolerations").push_back(*one);
    }
  }
}

void SetSecurity(const json::Value& body, json::Value& container) {
  struct Row {
    std::string_view field, to;
  };
  static constexpr Row kRows[] = {{"runAsUid", "runAsUser"},
                                  {"runAsGid", "runAsGroup"},
                                  {"allowPrivilegeEscalation", "allowPrivilegeEscalation"}};
  for (const Row& row : kRows) {
    if (const json::Value* value = WorkloadValue(body, row.field)) {
      json::Set(container, {"securityContext", row.to}, *value);
    }
  }
}

// Fields with the same meaning in the workload and in the pod.
void SetPlainFields(const json::Value& body, json::Value& pod, json::Value& container) {
  for (std::string_view field : {"image", "imagePullPolicy", "workingDir", "stdin", "tty"}) {
    if (const json::Value* value = WorkloadValue(body, field))
      json::Set(container, {field}, *value);
  }
  for (std::string_view field : {"labels", "annotations"}) {
    for (const auto& item : WorkloadItems(body, field)) {
      json::Set(pod, {"metadata", field, KeyView(item)}, json::GetString(item.value(), {"value"}));
    }
  }
  json::Array& env = ArrayIn(container, "env");
  for (const auto& item : WorkloadItems(body, "environment")) {
    env.push_back(
        json::Object{{"name", KeyView(item)}, {"value", json::GetString(item.value(), {"value"})}});
  }
}

// All ports have one Service, so they have one type, and each a number of its own.
Status CheckPorts(const json::Value& body) {
  std::string_view first;
  std::set<int64_t> numbers;
  for (const api::WorkloadPort& port : api::WorkloadPorts(body)) {
    if (!numbers.insert(port.outer).second) {
      return WrongField(StrCat("spec.", port.item, ".", port.outer_field),
                        StrCat("Duplicate value: ", port.outer,
                               ": another port has this number in the Service; set external"));
    }
    if (first.empty()) first = port.type;
    if (port.type == first) continue;
    return WrongText(StrCat("spec.", port.item, ".serviceType"), port.type,
                     StrCat("another port has ", first, "; all ports of a workload have one type"));
  }
  return Status::Ok();
}

class RunaiJobKind final : public JobKind {
 public:
  RunaiJobKind(api::Definition definition, const JobKindOptions& options)
      : definition_(std::move(definition)), options_(options) {}

  client::Resource resource() const override {
    return {definition_.group, definition_.version, definition_.plural, true};
  }
  std::string kind() const override { return definition_.kind; }
  std::vector<client::Resource> References() const override {
    return {client::resources::kNodePools};
  }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().succeeded == spec.TotalReplicas();
  }
  bool Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().running > 0;
  }

 private:
  std::string_view Role() const { return definition_.workload == kTrain ? "worker" : "workspace"; }
  Result<json::Value> Template(const json::Value& body) const;
  Status SetPools(const json::Value& body, json::Value& pod) const;

  const api::Definition definition_;
  const JobKindOptions options_;
};

// Any of the pools will do. Without `options_.find`, as where a spec is only checked, they are not
// looked up.
Status RunaiJobKind::SetPools(const json::Value& body, json::Value& pod) const {
  const std::string names = WorkloadText(body, "nodePools");
  if (!options_.find) return Status::Ok();
  json::Array terms;
  for (std::string_view name : SplitWords(names)) {
    const json::SharedValue pool = options_.find(client::resources::kNodePools, name);
    if (pool == nullptr) {
      return Status(Code::kNotFound, StrCat("spec.nodePools: the NodePool ", Quote(name),
                                            " does not exist; the workload waits for it"));
    }
    json::Array labels;
    for (const auto& label : json::GetObject(*pool, {"spec", "nodeSelector"})) {
      labels.push_back(json::Object{
          {"key", KeyView(label)}, {"operator", "In"}, {"values", json::Array{label.value()}}});
    }
    if (labels.empty()) return Status::Ok();  // a pool of all nodes
    terms.push_back(json::Object{{"matchExpressions", std::move(labels)}});
  }
  if (terms.empty()) return Status::Ok();
  json::Set(pod,
            {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
             "nodeSelectorTerms"},
            std::move(terms));
  return Status::Ok();
}

Result<json::Value> RunaiJobKind::Template(const json::Value& body) const {
  json::Value pod = json::Object{{"metadata", json::Object()}, {"spec", json::Object()}};
  json::Value container = json::Object{{"name", Role()}};
  SetPlainFields(body, pod, container);
  SWELL_RETURN_IF_ERROR(SetCommand(body, container));
  SWELL_RETURN_IF_ERROR(SetResources(body, pod, container));
  SWELL_RETURN_IF_ERROR(SetVolumes(body, pod, container));
  SWELL_RETURN_IF_ERROR(SetPools(body, pod));
  SetPlace(body, pod);
  SetSecurity(body, container);
  for (const api::WorkloadPort& port : api::WorkloadPorts(body)) {
    ArrayIn(container, "ports").push_back(json::Object{{"containerPort", port.container}});
  }
  // A workspace without a command is its image's shell or Python, which ends at once if it has no
  // input.
  if (definition_.workload != kTrain && !json::Find(container, {"command"}) &&
      !json::Find(container, {"args"})) {
    for (std::string_view field : {"stdin", "tty"}) {
      if (json::Find(container, {field}) == nullptr) json::Set(container, {field}, true);
    }
  }
  const bool gpus = AsksForGpus(pod, container);
  json::Set(pod, {"spec", "containers"}, json::Array{std::move(container)});
  // Images for GPUs would otherwise see all that their node has.
  if (!gpus) SetEnv(pod, "NVIDIA_VISIBLE_DEVICES", "void");
  return pod;
}

Result<JobSpec> RunaiJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  SWELL_RETURN_IF_ERROR(CheckUnsupported(body));
  SWELL_RETURN_IF_ERROR(CheckKeys(body));
  SWELL_RETURN_IF_ERROR(CheckPorts(body));
  const std::string name = WorkloadText(body, "name");
  if (!name.empty() && name != api::Name(job)) {
    return WrongText("spec.name.value", name,
                     StrCat("must be metadata.name, ", Quote(api::Name(job))));
  }
  if (WorkloadText(body, "image").empty()) return WrongField("spec.image.value", "Required value");
  SWELL_ASSIGN_OR_RETURN(json::Value pod, Template(body));
  const json::Value role = json::Object{{"template", std::move(pod)}};
  JobSpec spec;
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec("spec", Role(), role, {}));
  spec.replicas.push_back(std::move(replica));
  spec.priority_class = definition_.workload;
  spec.suspend = json::GetBool(body, {"suspend"});
  if (WorkloadValue(body, "backoffLimit") != nullptr) {
    spec.backoff_limit = json::GetInt(body, {"backoffLimit", "value"});
  } else if (definition_.workload == kTrain) {
    spec.backoff_limit = kTrainingBackoff;
  }
  if (WorkloadValue(body, "preemptible") != nullptr) {
    spec.group_fields["preemptibility"] =
        WorkloadSwitch(body, "preemptible") ? "Preemptible" : "NonPreemptible";
  }
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  return spec;
}

json::Object RunaiJobKind::Labels(const JobMember& member) const {
  return {{api::keys::kJobName, api::Name(member.job)},
          {api::keys::kJobRole, member.role.type},
          {api::keys::kJobIndex, std::to_string(member.index)},
          {api::keys::kWorkload, definition_.workload}};
}

// The variables that Run:ai gives its workloads.
void RunaiJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  SetEnv(pod, "JOB_NAME", api::Name(member.job));
  SetEnv(pod, "RUNAI_JOB_NAME", api::Name(member.job));
  SetEnv(pod, "RUNAI_PROJECT", member.spec.project);
  SetEnv(pod, "POD_INDEX", std::to_string(member.index));
  SetEnvFromField(pod, "POD_UUID", "metadata.uid");
}

std::vector<json::Value> RunaiJobKind::Services(const json::Value& job, const JobSpec&) const {
  json::Array ports;
  std::string_view type;
  for (const api::WorkloadPort& port : api::WorkloadPorts(api::Spec(job))) {
    type = port.type;
    ports.push_back(json::Object{{"name", StrCat("port-", port.outer)},
                                 {"port", port.outer},
                                 {"targetPort", port.container},
                                 {"protocol", "TCP"}});
  }
  if (ports.empty()) return {};
  if (type == "ExternalUrl") type = "NodePort";
  json::Object spec{{"type", type},
                    {"selector", json::Object{{api::keys::kJobName, api::Name(job)},
                                              {api::keys::kJobRole, Role()}}},
                    {"ports", std::move(ports)}};
  return {json::Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", json::Object{{"name", api::Name(job)},
                                {"labels", json::Object{{api::keys::kJobName, api::Name(job)}}}}},
      {"spec", std::move(spec)}}};
}

}  // namespace

void AddRunaiJobs(const JobKindOptions& options, JobKindList& kinds) {
  for (const api::Definition& one : api::JobDefinitions()) {
    if (one.group != "run.ai") continue;
    kinds.push_back({std::make_unique<RunaiJobKind>(one, options), nullptr, nullptr});
  }
}

}  // namespace swell::jobs
