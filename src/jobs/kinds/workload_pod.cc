#include "jobs/kinds/workload_pod.h"

#include <set>

#include "base/strings.h"
#include "base/words.h"
#include "jobs/kinds/launch_env.h"
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

constexpr std::string_view kGpuCount = "RUNAI_NUM_OF_GPUS";
constexpr std::string_view kLargeShm = "8Gi";
constexpr std::string_view kNodeTypeLabel = "run.ai/type";
// Only the system writes keys of this domain: they are facts about pods.
constexpr std::string_view kOwnDomain = "swell.dev/";

std::string ItemField(const WorkloadPart& part,
                      std::string_view field,
                      const json::Object::value_type& item) {
  return StrCat(part.Field(field), ".items.", std::string_view(item.key()), ".value");
}

// Fields of Run:ai's that are not followed here, and what does the same work.
Status CheckUnsupported(const WorkloadPart& part) {
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
    if (json::Find(part.body, {row.field}) == nullptr) continue;
    return WrongField(part.Field(row.field),
                      StrCat("Forbidden: it is not supported; ", row.instead));
  }
  const std::string_view usage = json::GetString(part.body, {"usage"}, "Submit");
  if (usage == "Submit") return Status::Ok();
  return WrongText(part.Field("usage"), usage,
                   "must be Submit: templates are not stored; keep the manifest instead");
}

Status CheckKeys(const WorkloadPart& part) {
  for (std::string_view field : {"labels", "annotations"}) {
    for (const auto& item : WorkloadItems(part.body, field)) {
      if (!std::string_view(item.key()).starts_with(kOwnDomain)) continue;
      return WrongField(StrCat(part.Field(field), ".items.", std::string_view(item.key())),
                        "Forbidden: keys of swell.dev are the system's own");
    }
  }
  return Status::Ok();
}

// All ports have one Service, so they have one type, and each a number of its own.
Status CheckPorts(const WorkloadPart& part) {
  static const std::set<std::string_view> kTypes{"ClusterIP", "ExternalUrl", "LoadBalancer",
                                                 "NodePort"};
  const std::string usual = WorkloadText(part.body, "serviceType");
  if (!usual.empty() && !kTypes.contains(usual)) {
    return WrongText(part.Field("serviceType.value"), usual,
                     "must be ClusterIP, NodePort, LoadBalancer or ExternalUrl");
  }
  std::string_view first;
  std::set<int64_t> numbers;
  for (const api::WorkloadPort& port : api::WorkloadPorts(part.body)) {
    if (!numbers.insert(port.outer).second) {
      return WrongField(StrCat(part.Field(port.item), ".", port.outer_field),
                        StrCat("Duplicate value: ", port.outer,
                               ": another port has this number in the Service; set external"));
    }
    if (first.empty()) first = port.type;
    if (port.type == first) continue;
    return WrongText(StrCat(part.Field(port.item), ".serviceType"), port.type,
                     StrCat("another port has ", first, "; all ports of a workload have one type"));
  }
  return Status::Ok();
}

Status SetWords(const WorkloadPart& part, std::string_view field, json::Array* to) {
  const std::string text = WorkloadText(part.body, field);
  const auto words = ShellWords(text);
  if (!words) {
    return WrongText(StrCat(part.Field(field), ".value"), text, "a quotation mark is not closed");
  }
  for (const std::string& word : *words) to->emplace_back(api::WithWorkloadVariables(word));
  return Status::Ok();
}

Status SetCommand(const WorkloadPart& part, json::Value& container) {
  json::Array command, args;
  SWELL_RETURN_IF_ERROR(SetWords(part, "command", &command));
  SWELL_RETURN_IF_ERROR(SetWords(part, "arguments", &args));
  if (!command.empty()) json::Set(container, {"command"}, std::move(command));
  if (!args.empty()) json::Set(container, {"args"}, std::move(args));
  return Status::Ok();
}

Status SetAmount(const std::string& field,
                 const std::string& text,
                 std::string_view side,
                 std::string_view resource,
                 json::Value& container) {
  if (text.empty()) return Status::Ok();
  const auto amount = api::Quantity::Parse(text);
  if (!amount.ok() || amount->negative()) {
    return WrongText(field, text, "must be an amount such as 2, 500m or 8Gi");
  }
  json::Set(container, {"resources", side, resource}, text);
  return Status::Ok();
}

// The one field that says the GPUs; empty: none does.
Result<std::string_view> GpuField(const WorkloadPart& part) {
  std::string_view found;
  for (std::string_view field : {"gpu", "gpuDevices", "gpuMemory"}) {
    if (WorkloadValue(part.body, field) == nullptr) continue;
    if (!found.empty()) {
      return WrongField(part.Field(field),
                        StrCat("Forbidden: ", part.Field(found), " says how many GPUs there are"));
    }
    found = field;
  }
  return found;
}

// Whole GPUs, a part of one, or memory of one.
Status SetGpus(const WorkloadPart& part, json::Value& pod, json::Value& container) {
  SWELL_ASSIGN_OR_RETURN(const std::string_view field, GpuField(part));
  if (field.empty()) return Status::Ok();
  const std::string text = WorkloadText(part.body, field);
  const std::string path = StrCat(part.Field(field), ".value");
  if (field == "gpuMemory") {
    const auto amount = api::Quantity::Parse(text);
    const int64_t mib = amount.ok() ? amount->Value() >> 20 : 0;
    if (mib < 1) return WrongText(path, text, "must be an amount such as 4G");
    json::Set(pod, {"metadata", "annotations", api::keys::kGpuMemory}, std::to_string(mib));
    return Status::Ok();
  }
  const auto whole = ParseInt(text);
  if (whole && *whole > 0) {
    json::Set(container, {"resources", "limits", api::kGpuResource}, std::to_string(*whole));
    return Status::Ok();
  }
  if (text.empty() || (whole && *whole == 0)) return Status::Ok();
  const auto share = sched_inputs::ParseGpuFraction(text);
  if (!share || *share >= 1) {
    return WrongText(path, text, "must be a whole number, or a part of a GPU such as 0.5");
  }
  json::Set(pod, {"metadata", "annotations", api::keys::kGpuFraction}, text);
  return Status::Ok();
}

Status SetResources(const WorkloadPart& part, json::Value& pod, json::Value& container) {
  struct Row {
    std::string_view field, side, resource;
  };
  static constexpr Row kRows[] = {{"cpu", "requests", "cpu"},
                                  {"memory", "requests", "memory"},
                                  {"cpuLimit", "limits", "cpu"},
                                  {"memoryLimit", "limits", "memory"}};
  for (const Row& row : kRows) {
    SWELL_RETURN_IF_ERROR(SetAmount(StrCat(part.Field(row.field), ".value"),
                                    WorkloadText(part.body, row.field), row.side, row.resource,
                                    container));
  }
  for (const auto& item : WorkloadItems(part.body, "extendedResources")) {
    const std::string amount(json::GetString(item.value(), {"value"}));
    SWELL_RETURN_IF_ERROR(SetAmount(ItemField(part, "extendedResources", item), amount, "limits",
                                    std::string_view(item.key()), container));
  }
  return SetGpus(part, pod, container);
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

Status SetVolumes(const WorkloadPart& part, json::Value& pod, json::Value& container) {
  for (const auto& item : WorkloadItems(part.body, "pvcs")) {
    const json::Value* claim = json::Find(item.value(), {"value"});
    if (claim == nullptr) continue;
    if (!json::GetBool(*claim, {"existingPvc"}, true)) {
      return WrongField(StrCat(ItemField(part, "pvcs", item), ".existingPvc"),
                        "Unsupported value: false: no claim is made for the workload; make a "
                        "PersistentVolumeClaim and name it");
    }
    json::Object source{{"claimName", json::GetString(*claim, {"claimName"})}};
    Mount(pod, container, {{"persistentVolumeClaim", std::move(source)}},
          json::GetString(*claim, {"path"}), json::GetBool(*claim, {"readOnly"}));
  }
  if (WorkloadSwitch(part.body, "largeShm")) {
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
  if (WorkloadSwitch(body, "hostNetwork")) {
    json::Set(pod, {"spec", "dnsPolicy"}, "ClusterFirstWithHostNet");
  }
}

Status CheckGroups(const WorkloadPart& part) {
  if (api::WorkloadGroups(part.body)) return Status::Ok();
  return WrongText(part.Field("supplementalGroups.value"),
                   WorkloadText(part.body, "supplementalGroups"),
                   "must be group IDs such as 10;20");
}

// Fields with the same meaning in the workload and in the pod.
void SetPlainFields(const json::Value& body, json::Value& pod, json::Value& container) {
  for (std::string_view field : {"image", "imagePullPolicy", "workingDir", "stdin", "tty"}) {
    const json::Value* value = WorkloadValue(body, field);
    if (value != nullptr) json::Set(container, {field}, *value);
  }
  for (const auto& item : WorkloadItems(body, "labels")) {
    json::Set(pod, {"metadata", "labels", std::string_view(item.key())},
              json::GetString(item.value(), {"value"}));
  }
  json::Array& env = ArrayIn(container, "env");
  for (const auto& item : WorkloadItems(body, "environment")) {
    env.push_back(json::Object{{"name", std::string_view(item.key())},
                               {"value", json::GetString(item.value(), {"value"})}});
  }
  for (const api::WorkloadPort& port : api::WorkloadPorts(body)) {
    ArrayIn(container, "ports").push_back(json::Object{{"containerPort", port.container}});
  }
}

// Any of the pools will do. Where a spec is only checked they are not looked up.
Status SetPools(const WorkloadPart& part, const JobKindOptions& options, json::Value& pod) {
  if (!options.find) return Status::Ok();
  std::string_view field = "nodePools";
  if (WorkloadValue(part.body, field) == nullptr) field = "nodePool";
  const std::string names = WorkloadText(part.body, field);
  json::Array terms;
  for (std::string_view name : SplitWords(names)) {
    const json::SharedValue pool = options.find(client::resources::kNodePools, name);
    // Run:ai always has a pool of that name: what is in no other.
    if (pool == nullptr && name == "default") return Status::Ok();
    if (pool == nullptr) {
      return Status(Code::kNotFound, StrCat(part.Field(field), ": the NodePool ", Quote(name),
                                            " does not exist; the workload waits for it"));
    }
    json::Array labels;
    for (const auto& label : json::GetObject(*pool, {"spec", "nodeSelector"})) {
      labels.push_back(json::Object{{"key", std::string_view(label.key())},
                                    {"operator", "In"},
                                    {"values", json::Array{label.value()}}});
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

}  // namespace

std::string WorkloadPart::Field(std::string_view field) const { return StrCat(path, ".", field); }

Status CheckWorkload(const json::Value& workload, const WorkloadPart& part) {
  SWELL_RETURN_IF_ERROR(CheckUnsupported(part));
  SWELL_RETURN_IF_ERROR(CheckKeys(part));
  SWELL_RETURN_IF_ERROR(CheckPorts(part));
  const std::string name = WorkloadText(part.body, "name");
  if (!name.empty() && name != api::Name(workload)) {
    return WrongText(part.Field("name.value"), name,
                     StrCat("must be metadata.name, ", Quote(api::Name(workload))));
  }
  return Status::Ok();
}

Result<json::Value> MakeWorkloadPod(const WorkloadPart& part, const JobKindOptions& options) {
  if (WorkloadText(part.body, "image").empty()) {
    return WrongField(part.Field("image.value"), "Required value");
  }
  json::Value pod = json::Object{{"metadata", json::Object()}, {"spec", json::Object()}};
  json::Value container = json::Object{{"name", part.role}};
  SetPlainFields(part.body, pod, container);
  SWELL_RETURN_IF_ERROR(CheckGroups(part));
  api::SetWorkloadRights(part.body, pod, container);
  SWELL_RETURN_IF_ERROR(SetCommand(part, container));
  SWELL_RETURN_IF_ERROR(SetResources(part, pod, container));
  SWELL_RETURN_IF_ERROR(SetVolumes(part, pod, container));
  SWELL_RETURN_IF_ERROR(SetPools(part, options, pod));
  SetPlace(part.body, pod);
  const bool gpus = AsksForGpus(pod, container);
  json::Set(pod, {"spec", "containers"}, json::Array{std::move(container)});
  // Images for GPUs would otherwise see all that their node has.
  if (!gpus) SetEnv(pod, "NVIDIA_VISIBLE_DEVICES", "void");
  return pod;
}

void ReadWorkloadPolicy(const json::Value& body, JobSpec& spec) {
  spec.suspend = json::GetBool(body, {"suspend"});
  auto preemptibility = [&spec](bool may) {
    spec.group_fields["preemptibility"] = may ? "Preemptible" : "NonPreemptible";
  };
  if (WorkloadValue(body, "preemptible") != nullptr) {
    preemptibility(WorkloadSwitch(body, "preemptible"));
  }
  if (WorkloadValue(body, "nonPreemptible") != nullptr) {
    preemptibility(!WorkloadSwitch(body, "nonPreemptible"));
  }
  constexpr std::string_view kKept = "autoDeletionTimeAfterCompletionSeconds";
  if (WorkloadValue(body, kKept) != nullptr) {
    spec.ttl_seconds_after_finished = json::GetInt(body, {kKept, "value"});
  }
}

void SetWorkloadEnv(const JobMember& member, std::string_view project, json::Value& pod) {
  SetEnv(pod, "JOB_NAME", api::Name(member.job));
  SetEnv(pod, "RUNAI_JOB_NAME", api::Name(member.job));
  SetEnv(pod, "JOB_UUID", api::Uid(member.job));
  SetEnv(pod, "RUNAI_JOB_UUID", api::Uid(member.job));
  SetEnv(pod, "RUNAI_PROJECT", project);
  SetEnv(pod, "POD_INDEX", std::to_string(member.index));
  SetEnvFromField(pod, "POD_UUID", "metadata.uid");
  SetEnvFromField(pod, "NODE_NAME", "spec.nodeName");
  // What memory is of a GPU is known when the pod has its node.
  if (!api::Annotation(pod, api::keys::kGpuMemory).empty()) {
    SetEnvFromField(pod, kGpuCount, StrCat("metadata.annotations['", api::keys::kGpuShare, "']"));
    return;
  }
  const json::Value& container = json::GetArray(pod, {"spec", "containers"}).front();
  const std::string_view part = api::Annotation(pod, api::keys::kGpuFraction);
  SetEnv(pod, kGpuCount,
         part.empty() ? json::GetString(container, {"resources", "limits", api::kGpuResource}, "0")
                      : part);
}

std::vector<json::Value> WorkloadServices(const json::Value& body,
                                          const std::string& name,
                                          json::Object labels) {
  json::Array ports;
  std::string_view type;
  for (const api::WorkloadPort& port : api::WorkloadPorts(body)) {
    type = port.type;
    ports.push_back(json::Object{{"name", StrCat("port-", port.outer)},
                                 {"port", port.outer},
                                 {"targetPort", port.container},
                                 {"protocol", "TCP"}});
  }
  if (ports.empty()) return {};
  if (type == "ExternalUrl") type = "NodePort";
  json::Object spec{{"type", type}, {"selector", labels}, {"ports", std::move(ports)}};
  return {json::Object{{"apiVersion", "v1"},
                       {"kind", "Service"},
                       {"metadata", json::Object{{"name", name}, {"labels", std::move(labels)}}},
                       {"spec", std::move(spec)}}};
}

}  // namespace swell::jobs
