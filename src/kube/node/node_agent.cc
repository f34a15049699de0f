#include "kube/node/node_agent.h"

#include <algorithm>
#include <utility>

#include "base/back_off.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/node/gpu_assignment.h"

namespace swell::node {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr int64_t kLeaseSeconds = 40;
constexpr std::string_view kPodsDefault = "110";
constexpr Duration kReadNodeRetry = std::chrono::seconds(1);
constexpr std::string_view kMemoryHealthy = "MemoryHealthy";
constexpr std::string_view kDiskHealthy = "DiskHealthy";

Amounts AmountsOf(const std::map<std::string, std::string>& texts) {
  json::Object object;
  for (const auto& [name, text] : texts) object[name] = text;
  json::Value value = std::move(object);
  return ReadAmounts(&value);
}

json::Object QuantityObject(const std::map<std::string, std::string>& texts) {
  json::Object object;
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

std::string_view MachineArchitecture() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

}  // namespace

api::UserInfo NodeUser(std::string_view node) {
  return {StrCat("system:node:", node), "", {"system:nodes", "system:authenticated"}};
}

NodeAgent::NodeAgent(AgentPlugs plugs, NodeConfig config)
    : plugs_(std::move(plugs)),
      config_(std::move(config)),
      register_timer_(plugs_.executor),
      lease_timer_(plugs_.executor),
      status_timer_(plugs_.executor),
      node_client_(
          plugs_.executor, plugs_.server, NodeUser(config_.name), "swell-agent", /*urgent=*/true),
      client_(plugs_.executor, plugs_.server, NodeUser(config_.name), "swell-agent") {
  config_.capacity.try_emplace("pods", kPodsDefault);
  capacity_ = AmountsOf(config_.capacity);
  allocatable_ = capacity_;
  for (const auto& [name, amount] : AmountsOf(config_.system_reserved)) {
    allocatable_[name] = std::max<int64_t>(0, allocatable_[name] - amount);
  }
  if (plugs_.health != nullptr) {
    health_ = std::make_unique<NodeHealth>(
        plugs_.executor, plugs_.clock, *plugs_.health,
        [this](const auto& changes, bool first) { OnHealthRound(changes, first); });
  }
  if (config_.record_events) {
    events_ = std::make_unique<client::EventRecorder>(
        plugs_.executor, plugs_.clock, plugs_.server, NodeUser(config_.name), "kubelet",
        StableHash(config_.name, plugs_.seed), config_.name);
  }
}

NodeAgent::~NodeAgent() {
  for (auto& [uid, worker] : workers_) worker->Detach();
}

void NodeAgent::Start(bool own_pods) {
  Register();
  if (health_) {
    health_->Start(config_.name, Gpus());
  }
  plugs_.runtime.List(config_.name, scope_.Wrap([this](Result<std::vector<FoundPod>> found) {
    OnPodsFound(std::move(found));
  }));
  if (!own_pods) return;
  client::InformerOptions options;
  options.field_selector = StrCat("spec.nodeName=", config_.name);
  informer_ = std::make_unique<client::Informer>(plugs_.executor, plugs_.server,
                                                 NodeUser(config_.name), client::resources::kPods,
                                                 options, StableHash(config_.name, plugs_.seed));
  informer_->AddHandlers(
      {[this](const json::SharedValue& pod) { OnPod(pod); },
       [this](const json::SharedValue&, const json::SharedValue& pod) { OnPod(pod); },
       [this](const json::SharedValue& pod) { OnPodDeleted(pod); }});
  informer_->WhenSynced([this] { OnPodsSynced(); });
  informer_->Start();
}

// ---- the node object ----

json::Object NodeAgent::NodeStatus() const {
  json::Object allocatable;
  for (const auto& [name, text] : config_.capacity) {
    bool reserved = config_.system_reserved.contains(name);
    const bool lowered = name == kGpuResource && health_ && !health_->bad_gpus().empty();
    allocatable[name] = reserved || lowered ? FormatAmount(name, allocatable_.at(name)) : text;
  }
  std::string now = api::FormatTime(plugs_.clock.Now());
  json::Array conditions;
  auto add = [&](std::string_view type, std::string_view status, std::string_view reason,
                 std::string_view message) {
    conditions.push_back(json::Object{{"type", type},
                                      {"status", status},
                                      {"reason", reason},
                                      {"message", message},
                                      {"lastHeartbeatTime", now}});
  };
  if (health_ && health_->IsBad(kMemoryHealthy)) {
    add("MemoryPressure", "True", "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available");
  } else {
    add("MemoryPressure", "False", "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available");
  }
  if (health_ && health_->IsBad(kDiskHealthy)) {
    add("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure");
  } else {
    add("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure");
  }
  add("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available");
  add("Ready", "True", "KubeletReady", "kubelet is posting ready status");
  if (health_) {
    for (json::Value& one : health_->Conditions()) conditions.push_back(std::move(one));
  }
  RuntimeInfo runtime = plugs_.runtime.Info();
  json::Object status{
      {"capacity", QuantityObject(config_.capacity)},
      {"allocatable", std::move(allocatable)},
      {"conditions", std::move(conditions)},
      {"addresses",
       json::Array{json::Object{{"type", "InternalIP"}, {"address", config_.internal_ip}},
                   json::Object{{"type", "Hostname"}, {"address", config_.name}}}},
      {"nodeInfo",
       json::Object{{"machineID", config_.machine_id},
                    {"systemUUID", config_.system_uuid},
                    {"bootID", config_.boot_id},
                    {"kernelVersion", config_.kernel_version},
                    {"osImage", config_.os_image},
                    {"containerRuntimeVersion", StrCat(runtime.name, "://", runtime.version)},
                    {"kubeletVersion", config_.kubelet_version},
                    {"kubeProxyVersion", config_.kubelet_version},
                    {"operatingSystem", "linux"},
                    {"architecture", MachineArchitecture()}}}};
  if (config_.kubelet_port > 0) {
    status["daemonEndpoints"] =
        json::Object{{"kubeletEndpoint", json::Object{{"Port", config_.kubelet_port}}}};
  }
  return status;
}

json::Value NodeAgent::NodeObject() const {
  json::Object labels{{"kubernetes.io/hostname", config_.name},
                      {"kubernetes.io/os", "linux"},
                      {"kubernetes.io/arch", MachineArchitecture()},
                      {"beta.kubernetes.io/os", "linux"},
                      {"beta.kubernetes.io/arch", MachineArchitecture()}};
  if (config_.control_plane) {
    labels["node-role.kubernetes.io/master"] = "";
    labels["node-role.kubernetes.io/control-plane"] = "";
  }
  for (const auto& [key, value] : config_.labels) labels[key] = value;
  json::Object annotations;
  for (const auto& [key, value] : config_.annotations) annotations[key] = value;
  RuntimeInfo runtime = plugs_.runtime.Info();
  if (!runtime.limits.empty()) annotations[api::keys::kRuntimeLimits] = runtime.limits;
  json::Object metadata{{"name", config_.name}, {"labels", std::move(labels)}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  json::Object spec;
  json::Array taints;
  for (const NodeTaint& taint : config_.taints) {
    json::Object item{{"key", taint.key}, {"effect", taint.effect}};
    if (!taint.value.empty()) item["value"] = taint.value;
    taints.push_back(std::move(item));
  }
  if (!taints.empty()) spec["taints"] = std::move(taints);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", std::move(metadata)},
                      {"spec", std::move(spec)},
                      {"status", NodeStatus()}};
}

void NodeAgent::Register() {
  node_client_.Create(
      client::resources::kNodes, "", NodeObject(), [this](const Result<json::SharedValue>& result) {
        if (result.ok()) return SendNodeStatus();
        if (result.status().code() == Code::kAlreadyExists) return PatchExisting();
        SWELL_LOG_WARNING("agent", "node not registered", {"node", config_.name},
                          {"error", result.status().ToString()});
        register_timer_.Start(
            BackOff(std::chrono::milliseconds(100), std::chrono::seconds(30), register_failures_++),
            [this] { Register(); });
      });
}

// The Node exists already: it gets the labels of the configuration, and keeps other labels and its
// taints (somebody may have cordoned it).
void NodeAgent::PatchExisting() {
  json::Value node = NodeObject();
  json::Object metadata{{"labels", json::GetObject(node, {"metadata", "labels"})}};
  if (const json::Value* annotations = json::Find(node, {"metadata", "annotations"})) {
    metadata["annotations"] = *annotations;
  }
  json::Value patch = json::Object{{"metadata", std::move(metadata)}};
  node_client_.Patch(client::resources::kNodes, "", config_.name, client::PatchType::kMerge, patch,
                     [this](const Result<json::SharedValue>&) { SendNodeStatus(); });
}

void NodeAgent::SendNodeStatus() {
  health_unsent_ = false;
  json::Value patch = json::Object{{"status", NodeStatus()}};
  // lastTransitionTime is when the agent first said so; merging by type keeps it otherwise.
  if (!registered_) {
    for (json::Value& condition : json::FindMutable(patch, {"status", "conditions"})->get_array()) {
      condition.get_object().emplace("lastTransitionTime", api::FormatTime(plugs_.clock.Now()));
    }
  }
  node_client_.Patch(
      client::resources::kNodes, "", config_.name, client::PatchType::kStrategic, patch,
      [this](const Result<json::SharedValue>& result) {
        Duration delay = config_.status_interval;
        if (result.ok()) {
          UpdateExtendedResources(**result);
          ForgetStaleConditions(**result);
          if (!registered_) {
            registered_ = true;
            SWELL_LOG_INFO("agent", "node registered", {"node", config_.name});
            node_uid_ = api::Uid(**result);
            PublishGpus();
            RenewLease();
          }
          register_failures_ = 0;
          if (health_unsent_) return SendNodeStatus();
        } else if (result.status().code() == Code::kNotFound) {
          registered_ = false;
          return Register();  // somebody deleted it
        } else {
          delay = BackOff(std::chrono::milliseconds(200), std::chrono::seconds(30),
                          register_failures_++);
        }
        status_timer_.Start(delay, [this] { SendNodeStatus(); });
      },
      "status");
}

// ---- health ----

void NodeAgent::OnHealthRound(const std::vector<NodeHealth::Change>& changes, bool first) {
  for (const NodeHealth::Change& change : changes) {
    if (change.reason.empty()) continue;
    if (change.warning) {
      SWELL_LOG_WARNING("agent", "health check", {"node", config_.name}, {"reason", change.reason},
                        {"says", change.message});
    }
    if (!events_) continue;
    // Events about nodes name them, not their uid: `kubectl describe node` finds them so.
    const json::Value about =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"metadata", json::Object{{"name", config_.name}, {"uid", config_.name}}}};
    events_->Record(about, change.warning ? "Warning" : "Normal", change.reason, change.message);
  }
  const auto gpus = capacity_.find(kGpuResource);
  if (gpus != capacity_.end()) {
    const auto bad = static_cast<int64_t>(health_->bad_gpus().size());
    allocatable_[std::string(kGpuResource)] = std::max<int64_t>(0, gpus->second - bad);
  }
  if (unhealthy_written_ != health_->bad_gpus()) {
    WriteUnhealthyGpus();
    PublishGpus();
  }
  health_unsent_ = health_unsent_ || first || !changes.empty();
  // Otherwise with the answer to the first status.
  if (registered_ && health_unsent_) SendNodeStatus();
  RetryAdmissions();
}

// Tried again with the next round until it is written.
void NodeAgent::WriteUnhealthyGpus() {
  const std::set<int> bad = BadGpus();
  std::vector<std::string> indices;
  for (const int index : bad) indices.push_back(std::to_string(index));
  json::Value text;
  if (!indices.empty()) text = Join(indices, ",");
  const json::Value patch = json::Object{
      {"metadata",
       json::Object{{"annotations", json::Object{{api::keys::kUnhealthyGpus, std::move(text)}}}}}};
  node_client_.Patch(client::resources::kNodes, "", config_.name, client::PatchType::kMerge, patch,
                     [this, bad](const Result<json::SharedValue>& result) {
                       if (result.ok()) unhealthy_written_ = bad;
                     });
}

void NodeAgent::PublishGpus() { slice_.Publish(node_uid_, allocatable_, BadGpus()); }

// Conditions of checks that an earlier agent had and this one does not would hold for ever.
void NodeAgent::ForgetStaleConditions(const json::Value& node) {
  std::vector<std::string> stale;
  if (health_) stale = health_->Stale(node);
  if (!health_) {
    for (const api::Condition& one : api::Conditions(node)) {
      if (NodeHealth::IsOfAgent(one)) stale.emplace_back(one.type);
    }
    if (!api::Annotation(node, api::keys::kUnhealthyGpus).empty()) WriteUnhealthyGpus();
  }
  json::Array gone;
  for (const std::string& type : stale) {
    gone.push_back(json::Object{{"type", type}, {"$patch", "delete"}});
  }
  if (gone.empty()) return;
  const json::Value patch = json::Object{{"status", json::Object{{"conditions", std::move(gone)}}}};
  node_client_.Patch(
      client::resources::kNodes, "", config_.name, client::PatchType::kStrategic, patch,
      [](const Result<json::SharedValue>&) {}, "status");
}

void NodeAgent::RenewLease() {
  lease_timer_.Start(config_.lease_interval, [this] { RenewLease(); });
  // A replacement costs a server half of what a patch does, and thousands of nodes renew.
  if (lease_) {
    json::Value lease = *lease_;
    json::Set(lease, {"spec", "renewTime"}, api::FormatMicroTime(plugs_.clock.Now()));
    node_client_.Update(
        client::resources::kLeases, lease,
        [this](Result<json::SharedValue> result) { lease_ = result.ok() ? *result : nullptr; });
    return;
  }
  json::Value patch =
      json::Object{{"spec", json::Object{{"holderIdentity", config_.name},
                                         {"leaseDurationSeconds", kLeaseSeconds},
                                         {"renewTime", api::FormatMicroTime(plugs_.clock.Now())}}}};
  node_client_.Patch(client::resources::kLeases, kLeaseNamespace, config_.name,
                     client::PatchType::kMerge, patch,
                     [this](const Result<json::SharedValue>& result) {
                       if (result.ok()) lease_ = *result;
                       if (!result.ok() && result.status().code() == Code::kNotFound) CreateLease();
                     });
}

void NodeAgent::CreateLease() {
  json::Value lease = json::Object{
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata", json::Object{{"name", config_.name}, {"namespace", kLeaseNamespace}}},
      {"spec", json::Object{{"holderIdentity", config_.name},
                            {"leaseDurationSeconds", kLeaseSeconds},
                            {"renewTime", api::FormatMicroTime(plugs_.clock.Now())}}}};
  node_client_.Create(client::resources::kLeases, kLeaseNamespace, lease,
                      [this](const Result<json::SharedValue>& result) {
                        // Tried again with the next renewal.
                        if (!result.ok() && result.status().code() != Code::kAlreadyExists) {
                          SWELL_LOG_WARNING("agent", "lease not created", {"node", config_.name},
                                            {"error", result.status().ToString()});
                        }
                      });
}

// ---- pods ----

void NodeAgent::OnPodsFound(Result<std::vector<FoundPod>> found) {
  if (!found.ok()) {
    SWELL_LOG_ERROR("agent", "running pods not listed", {"node", config_.name},
                    {"error", found.status().ToString()});
  } else {
    for (FoundPod& pod : *found) found_.emplace(pod.pod_uid, std::move(pod));
  }
  pods_found_ = true;
  StartWorkers();
}

void NodeAgent::OnPodsSynced() {
  pods_synced_ = true;
  StartWorkers();
}

// Once both the pods that run and the pods that should run are known. Running pods are adopted
// first: they have their devices before new pods are admitted. Orphans keep theirs until they are
// removed.
void NodeAgent::StartWorkers() {
  if (!pods_found_ || !pods_synced_ || stopping_) return;
  const auto waiting = std::exchange(unstarted_, {});
  for (const auto& [uid, pod] : waiting) {
    if (found_.contains(uid)) StartWorker(pod);
  }
  for (auto& [uid, pod] : std::exchange(found_, {})) {
    SWELL_LOG_INFO("agent", "orphan removed", {"pod", pod.ns + "/" + pod.name}, {"uid", uid});
    ++orphans_;
    plugs_.runtime.Remove(uid, scope_.Wrap([this](const Status&) {
      --orphans_;
      OnResourcesFreed();
    }));
  }
  for (const auto& [uid, pod] : waiting) StartWorker(pod);
}

void NodeAgent::StopPods(Duration limit, std::function<void()> done) {
  stopping_ = true;
  on_pods_stopped_ = std::move(done);
  informer_.reset();
  const auto workers = workers_;  // a worker that has stopped may leave
  for (const auto& [uid, worker] : workers) worker->StopWithNode(limit);
  CheckPodsStopped();
}

void NodeAgent::CheckPodsStopped() {
  if (!on_pods_stopped_) return;
  const bool stopped = std::all_of(workers_.begin(), workers_.end(),
                                   [](const auto& entry) { return entry.second->stopped(); });
  if (stopped) std::exchange(on_pods_stopped_, {})();
}

void NodeAgent::OnPod(const json::SharedValue& pod) {
  if (stopping_) return;
  pods_[api::KeyOf(*pod)] = pod;
  std::string uid(api::Uid(*pod));
  auto it = workers_.find(uid);
  if (it != workers_.end()) {
    auto worker = it->second;  // its update may be its end
    return worker->Update(pod);
  }
  if (!pods_found_ || !pods_synced_) {
    unstarted_[uid] = pod;
    return;
  }
  StartWorker(pod);
}

void NodeAgent::StartWorker(const json::SharedValue& pod) {
  std::string uid(api::Uid(*pod));
  if (workers_.contains(uid)) return;
  auto found = found_.find(uid);
  // A finished pod needs no worker until it is deleted; the runtime has its logs.
  if (api::HasEnded(*pod) && !api::IsDeleting(*pod)) {
    if (found == found_.end()) return;
    found_.erase(found);
    return ReleaseEnded(pod);
  }
  auto worker = std::make_shared<PodWorker>(*this, pod);
  workers_.emplace(uid, worker);
  order_.push_back(uid);
  if (found != found_.end()) {
    FoundPod what = std::move(found->second);
    found_.erase(found);
    worker->StartAdopted(what);
  } else {
    worker->Start();
  }
}

// The agent that told the pod's end may have been killed before the runtime had released it.
void NodeAgent::ReleaseEnded(const json::SharedValue& pod) {
  plugs_.runtime.Stop(std::string(api::Uid(*pod)), scope_.Wrap([this, pod](const Status& why) {
    TellDelayedState(*this, *pod, why);
  }),
                      scope_.Wrap([this, pod](const Status& persisted) {
                        if (!persisted.ok()) TellLostState(*this, *pod, persisted);
                      }));
}

void NodeAgent::OnPodDeleted(const json::SharedValue& pod) {
  std::string key = api::KeyOf(*pod);
  std::string uid(api::Uid(*pod));
  auto known = pods_.find(key);
  if (known != pods_.end() && api::Uid(*known->second) == uid) pods_.erase(known);
  unstarted_.erase(uid);
  auto it = workers_.find(uid);
  if (it != workers_.end()) {
    auto worker = it->second;
    return worker->OnDeletedFromApi();
  }
  if (pods_found_) plugs_.runtime.Remove(uid, [](const Status&) {});
}

json::SharedValue NodeAgent::FindPod(const std::string& key) const {
  auto it = pods_.find(key);
  return it == pods_.end() ? nullptr : it->second;
}

const PodWorker* NodeAgent::FindWorker(const std::string& uid) const {
  auto it = workers_.find(uid);
  return it == workers_.end() ? nullptr : it->second.get();
}

std::vector<json::Value> NodeAgent::Pods() const {
  std::vector<json::Value> pods;
  for (const auto& [key, pod] : pods_) {
    const PodWorker* worker = FindWorker(std::string(api::Uid(*pod)));
    pods.push_back(worker == nullptr ? *pod : worker->PodWithStatus());
  }
  return pods;
}

// ---- admission ----

// Others may advertise extended resources in the Node's status, as device plugins do with MIG
// slices. The agent takes over those that its configuration does not name.
void NodeAgent::UpdateExtendedResources(const json::Value& node) {
  const Amounts said = ReadAmounts(json::Find(node, {"status", "allocatable"}));
  for (Amounts* amounts : {&capacity_, &allocatable_}) {
    std::erase_if(*amounts, [&](const auto& one) {
      return !config_.capacity.contains(one.first) && !said.contains(one.first);
    });
    for (const auto& [name, amount] : said) {
      if (!config_.capacity.contains(name)) (*amounts)[name] = amount;
    }
  }
}

// Whether the Node was read since the pod arrived, so that the agent knows the resources that the
// scheduler saw. If not, it is read, and admission is retried then.
bool NodeAgent::NodeReadSince(const std::string& uid) {
  const auto [known, first] = node_read_since_.emplace(uid, false);
  if (!first) return known->second;
  node_client_.Get(client::resources::kNodes, "", config_.name,
                   [this, uid](const Result<json::SharedValue>& result) {
                     const auto waits = node_read_since_.find(uid);
                     if (waits == node_read_since_.end()) return;
                     if (result.ok()) {
                       UpdateExtendedResources(**result);
                       waits->second = true;
                       return RetryAdmissions();
                     }
                     node_read_since_.erase(waits);
                     plugs_.executor.After(kReadNodeRetry,
                                           scope_.Wrap([this] { RetryAdmissions(); }));
                   });
  return false;
}

NodeAgent::Load NodeAgent::LoadBeside(const PodWorker& pod) const {
  Load load;
  for (const auto& [uid, worker] : workers_) {
    if (worker.get() == &pod || !worker->holds_resources()) continue;
    Amounts& held = worker->terminating() ? load.leaving : load.used;
    held["pods"] += 1;
    for (const auto& [name, amount] : worker->requests()) held[name] += amount;
  }
  return load;
}

PodHost::Room NodeAgent::RoomFor(const PodWorker& pod, const Amounts& wanted) const {
  Load load = LoadBeside(pod);
  for (const std::string name : {"cpu", "memory"}) {
    const auto amount = wanted.find(name);
    const auto has = pod.requests().find(name);
    const auto room = allocatable_.find(name);
    const int64_t capacity = room == allocatable_.end() ? 0 : room->second;
    if (amount == wanted.end()) continue;
    // It may always give back.
    if (has != pod.requests().end() && amount->second <= has->second) continue;
    if (amount->second > capacity) {
      return {Room::Kind::kNever,
              StrCat("Node didn't have enough capacity: ", name, ", requested: ", amount->second,
                     ", capacity: ", capacity)};
    }
    const int64_t used = load.used[name] + load.leaving[name];
    if (used + amount->second > capacity) {
      return {Room::Kind::kLater,
              StrCat("Node didn't have enough resource: ", name, ", requested: ", amount->second,
                     ", used: ", used, ", capacity: ", capacity)};
    }
  }
  return {};
}

bool NodeAgent::IsMountedBeside(const PodWorker& pod, const std::string& claim) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    const PodWorker& other = *entry.second;
    if (&other == &pod || !other.has_volumes()) return false;
    if (api::Namespace(other.pod()) != api::Namespace(pod.pod())) return false;
    const auto claims = api::MountedClaims(other.pod());
    return std::any_of(claims.begin(), claims.end(),
                       [&claim](const api::MountedClaim& one) { return one.name == claim; });
  });
}

PodHost::AdmitResult NodeAgent::Admit(const PodWorker& pod) {
  auto [used, leaving] = LoadBeside(pod);
  Amounts wanted = pod.requests();
  wanted["pods"] = 1;
  // Its claim gives it these.
  for (const api::MappedRequest& one : api::MappedRequestsOf(pod.pod())) {
    wanted.erase(std::string(one.resource));
  }
  bool wait = false;
  for (const auto& [name, amount] : wanted) {
    if (amount <= 0 || name == "ephemeral-storage") continue;
    auto room = allocatable_.find(name);
    int64_t capacity = room == allocatable_.end() ? 0 : room->second;
    if (used[name] + amount > capacity) {
      if (!config_.capacity.contains(name) && !NodeReadSince(pod.uid())) {
        return {AdmitResult::Kind::kWait, "", "", {}};
      }
      return {AdmitResult::Kind::kRejected,
              StrCat("OutOf", name),
              StrCat("Pod was rejected: Node didn't have enough resource: ", name, ", requested: ",
                     amount, ", used: ", used[name] + leaving[name], ", capacity: ", capacity),
              {}};
    }
    if (used[name] + leaving[name] + amount > capacity) wait = true;
  }
  if (wait) return {AdmitResult::Kind::kWait, "", "", {}};
  auto gpu = wanted.find(kGpuResource);
  const bool devices = gpu != wanted.end() && gpu->second > 0;
  const bool has_devices = devices || !pod.claims().empty() ||
                           !api::Annotation(pod.pod(), api::keys::kGpuDevices).empty();
  if (orphans_ > 0 && has_devices) {
    return {AdmitResult::Kind::kWait, "", "", {}};
  }
  const int64_t gpus = Gpus();
  const GpuAssignment::Node node{
      .gpus = gpus,
      .devices = std::max(gpus, static_cast<int64_t>(config_.gpu_device_ids.size())),
      .bad = BadGpus(),
      .workers = workers_};
  return GpuAssignment(node, pod).Pick(gpu == wanted.end() ? 0 : gpu->second);
}

std::set<int> NodeAgent::BadGpus() const { return health_ ? health_->bad_gpus() : std::set<int>(); }

int64_t NodeAgent::Gpus() const {
  const auto gpus = capacity_.find(kGpuResource);
  return gpus == capacity_.end() ? 0 : gpus->second;
}

int64_t NodeAgent::GpuMemoryMib() const {
  auto label = config_.labels.find("nvidia.com/gpu.memory");
  return label == config_.labels.end() ? 0 : ParseInt(label->second).value_or(0);
}

std::string NodeAgent::GpuDeviceId(int index) const {
  size_t at = static_cast<size_t>(index);
  return at < config_.gpu_device_ids.size() ? config_.gpu_device_ids[at] : std::to_string(index);
}

void NodeAgent::Event(const json::Value& pod,
                      std::string_view type,
                      std::string_view reason,
                      std::string_view message) {
  if (!events_) return;
  // Objects from lists and watches may come without their own kind.
  json::Value about = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       json::Object{{"name", api::Name(pod)},
                    {"namespace", api::Namespace(pod)},
                    {"uid", api::Uid(pod)},
                    {"resourceVersion", json::GetString(pod, {"metadata", "resourceVersion"})}}}};
  events_->Record(about, type, reason, message);
}

void NodeAgent::OnResourcesFreed() {
  if (retry_posted_) return;
  retry_posted_ = true;
  plugs_.executor.Post(scope_.Wrap([this] {
    retry_posted_ = false;
    if (stopping_) return CheckPodsStopped();
    RetryAdmissions();
  }));
}

void NodeAgent::RetryAdmissions() {
  std::vector<std::shared_ptr<PodWorker>> workers;
  for (const std::string& uid : order_) {
    auto it = workers_.find(uid);
    if (it != workers_.end()) workers.push_back(it->second);
  }
  for (const auto& worker : workers) worker->RetryAdmission();
}

void NodeAgent::OnWorkerDone(const std::string& uid) {
  auto it = workers_.find(uid);
  if (it == workers_.end()) return;
  auto worker = it->second;
  workers_.erase(it);
  node_read_since_.erase(uid);
  order_.erase(std::remove(order_.begin(), order_.end(), uid), order_.end());
  worker->Detach();
  // Destroyed later: a method of the worker is running.
  plugs_.executor.Post([worker] {});
}

}  // namespace swell::node
