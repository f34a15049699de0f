// The status half of PodWorker: the record as Kubernetes words it, and its way to the API.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/api/swell_keys.h"
#include "kube/node/pod_worker.h"

namespace swell::node {
namespace {

using Phase = ContainerState::Phase;

constexpr size_t kTerminationMessageMax = 4096;
constexpr Duration kAnnotateInterval = std::chrono::seconds(1);
constexpr Duration kUnreadInterval = std::chrono::milliseconds(5);
// As the kubelet's: two writers that disagree do not load the API with it.
constexpr Duration kReconcileInterval = std::chrono::seconds(10);
constexpr std::string_view kOwnConditions[] = {"PodScheduled", "Initialized", "ContainersReady",
                                               "Ready"};

bool IsOwn(std::string_view condition) {
  return std::find(std::begin(kOwnConditions), std::end(kOwnConditions), condition) !=
         std::end(kOwnConditions);
}

json::Object Terminated(const ContainerExit& exit, bool fall_back_to_logs) {
  std::string reason = exit.reason;
  if (reason.empty()) {
    reason = exit.oom_killed ? "OOMKilled" : exit.code == 0 ? "Completed" : "Error";
  }
  std::string message = exit.termination_message;
  if (message.empty() && fall_back_to_logs && exit.code != 0) message = exit.log_tail;
  if (message.size() > kTerminationMessageMax) message.resize(kTerminationMessageMax);
  json::Object out{{"exitCode", exit.code}, {"reason", reason}};
  if (!message.empty()) out["message"] = IsValidUtf8(message) ? message : Quote(message);
  out["startedAt"] = api::FormatTime(exit.started);
  out["finishedAt"] = api::FormatTime(exit.finished);
  if (!exit.container_id.empty()) out["containerID"] = exit.container_id;
  return json::Object{{"terminated", std::move(out)}};
}

std::string UnreadyList(std::string_view what, const std::vector<std::string>& names) {
  return StrCat("containers with ", what, " status: [", Join(names, " "), "]");
}

// Addresses merge by themselves: without the directive, a new one would join those of a sandbox
// that is gone. The other lists are the containers', which a patch replaces, and the conditions,
// which keep their types.
void ReplaceAddresses(json::Object& status) {
  auto addresses = status.find("podIPs");
  if (addresses == status.end()) return;
  json::Array& list = addresses->value().get_array();
  list.insert(list.begin(), json::Value(json::Object{{"$patch", "replace"}}));
}

}  // namespace

bool PodWorker::InitDone() const {
  for (const ContainerState& container : containers_) {
    if (!container.init) continue;
    if (container.sidecar) {
      if (!container.startup_passed && container.phase != Phase::kExited) return false;
    } else if (container.phase != Phase::kExited || container.exit->code != 0) {
      return false;
    }
  }
  return true;
}

// As the kubelet's getPhase: an init failure is the pod's, a container waiting for a restart has
// run before.
std::string_view PodWorker::Phase() const {
  std::string_view known = json::GetString(*pod_, {"status", "phase"});
  if (known == "Succeeded" || known == "Failed") return known;
  if (!failed_reason_.empty())
    return AllStopped() ? "Failed" : (has_sandbox_ ? "Running" : "Pending");
  size_t never = 0, running = 0, again = 0, failed = 0, mains = 0;
  for (const ContainerState& container : containers_) {
    if (!container.main()) continue;
    ++mains;
    if (container.phase == Phase::kRunning) {
      ++running;
    } else if (container.phase == Phase::kExited) {
      bool comes_back = !terminating_ && !finishing_ && WantsRestart(container);
      again += comes_back ? 1 : 0;
      failed += !comes_back && container.exit->code != 0 ? 1 : 0;
    } else if (container.attempt > 0 || (container.exit && container.attempt >= 0)) {
      ++again;
      failed += terminating_ && container.exit && container.exit->code != 0 ? 1 : 0;
    } else {
      ++never;
    }
  }
  if (!InitDone()) {
    bool over = (finishing_ || terminating_) && AllStopped();
    return over ? "Failed" : "Pending";
  }
  bool over = AllStopped() && (finishing_ || terminating_);
  if (over && never > 0) return "Failed";
  if (over) return failed == 0 ? "Succeeded" : "Failed";
  if (never > 0) return "Pending";
  return running + again > 0 || mains > 0 ? "Running" : "Pending";
}

json::Object PodWorker::StateOf(const ContainerState& container) const {
  bool fall_back =
      json::GetString(SpecOf(container), {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  switch (container.phase) {
    case Phase::kRunning:
      return json::Object{
          {"running", json::Object{{"startedAt", api::FormatTime(container.started.started)}}}};
    case Phase::kExited:
      return Terminated(*container.exit, fall_back);
    case Phase::kWaiting:
      // A pod on its way out does not wait for anything: its last end is its state.
      if (terminating_ && container.exit) return Terminated(*container.exit, fall_back);
      break;
    case Phase::kStarting:
      break;
  }
  std::string reason = container.waiting_reason;
  if (reason.empty()) {
    bool initializing = !container.init && !InitDone();
    reason = initializing ? "PodInitializing" : waiting_reason_;
  }
  json::Object waiting{{"reason", reason}};
  if (!container.waiting_message.empty()) waiting["message"] = container.waiting_message;
  return json::Object{{"waiting", std::move(waiting)}};
}

json::Object PodWorker::ContainerStatus(const ContainerState& container) const {
  bool fall_back =
      json::GetString(SpecOf(container), {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  bool completed_init = container.init && !container.sidecar && container.phase == Phase::kExited &&
                        container.exit->code == 0;
  json::Object status{{"name", container.name}, {"state", StateOf(container)}};
  status["lastState"] =
      container.last_exit ? Terminated(*container.last_exit, fall_back) : json::Object();
  // The kubelet never says that an ephemeral container is ready, nor that it has started.
  status["ready"] = !container.ephemeral &&
                    (completed_init || (container.phase == Phase::kRunning && container.ready));
  status["restartCount"] = container.restart_count();
  status["image"] = container.image;
  status["imageID"] = container.started.image_id;
  std::string id = container.started.container_id;
  if (container.phase == Phase::kExited) id = container.exit->container_id;
  if (!id.empty()) status["containerID"] = id;
  if (!container.ephemeral) {
    status["started"] = container.phase == Phase::kRunning && container.startup_passed;
  }
  return status;
}

json::Array PodWorker::Conditions(std::string_view phase) const {
  std::vector<std::string> unready, incomplete;
  for (const ContainerState& container : containers_) {
    if (container.ephemeral) continue;
    bool up = container.phase == Phase::kRunning && container.ready;
    if (container.init && !container.sidecar) {
      if (container.phase != Phase::kExited || container.exit->code != 0) {
        incomplete.push_back(container.name);
      }
    } else if (!up) {
      unready.push_back(container.name);
      if (container.init && !container.startup_passed) incomplete.push_back(container.name);
    }
  }
  WallTime now = host_.clock().Now();
  bool over = phase == "Succeeded" || phase == "Failed";
  std::string_view over_reason = phase == "Succeeded" ? "PodCompleted" : "PodFailed";
  api::SetCondition(conditions_, "PodScheduled", "True", "", "", now);
  bool initialized = incomplete.empty() || phase == "Succeeded";
  if (phase == "Succeeded") {
    api::SetCondition(conditions_, "Initialized", "True", "PodCompleted", "", now);
  } else {
    api::SetCondition(conditions_, "Initialized", initialized ? "True" : "False",
                      initialized ? "" : "ContainersNotInitialized",
                      initialized ? "" : UnreadyList("incomplete", incomplete), now);
  }
  bool ready = unready.empty() && initialized && phase == "Running";
  std::string reason, message;
  if (over) {
    reason = over_reason;
  } else if (!ready) {
    reason = "ContainersNotReady";
    message = UnreadyList("unready", unready);
  }
  api::SetCondition(conditions_, "ContainersReady", ready ? "True" : "False", reason, message, now);
  for (const json::Value& gate : json::GetArray(*pod_, {"spec", "readinessGates"})) {
    std::string_view type = json::GetString(gate, {"conditionType"});
    if (ready && !api::ConditionIsTrue(*pod_, type)) {
      ready = false;
      reason = "ReadinessGatesNotReady";
      message = StrCat("corresponding condition of pod readiness gate ", Quote(type),
                       " does not exist or is not \"True\".");
    }
  }
  api::SetCondition(conditions_, "Ready", ready ? "True" : "False", reason, message, now);
  json::Array own;
  for (const json::Value& condition : conditions_) {
    if (IsOwn(json::GetString(condition, {"type"}))) own.push_back(condition);
  }
  return own;
}

json::Object PodWorker::BuildStatus() const {
  std::string_view phase = Phase();
  json::Object status{{"phase", phase}};
  if (!failed_reason_.empty()) {
    status["reason"] = failed_reason_;
    status["message"] = failed_message_;
  }
  if (!admitted_ && stage_ == Stage::kAdmission) return status;
  status["conditions"] = Conditions(phase);
  status["hostIP"] = host_.config().internal_ip;
  if (!sandbox_.ip.empty()) {
    status["podIP"] = sandbox_.ip;
    status["podIPs"] = json::Array{json::Value(json::Object{{"ip", sandbox_.ip}})};
  }
  if (!start_time_.empty()) status["startTime"] = start_time_;
  json::Array init, mains, ephemeral;
  for (const ContainerState& container : containers_) {
    json::Array& list = container.ephemeral ? ephemeral : container.init ? init : mains;
    list.push_back(ContainerStatus(container));
  }
  if (!init.empty()) status["initContainerStatuses"] = std::move(init);
  status["containerStatuses"] = std::move(mains);
  if (!ephemeral.empty()) status["ephemeralContainerStatuses"] = std::move(ephemeral);
  status["qosClass"] = QosClass(*pod_);
  return status;
}

json::Value PodWorker::PodWithStatus() const {
  json::Value pod = *pod_;
  json::Object status = BuildStatus();
  for (auto& item : status) json::Set(pod, {"status", std::string_view(item.key())}, item.value());
  return pod;
}

void PodWorker::Publish() {
  if (detached_ || gone_ || send_posted_) return;
  // Several events of one moment make one patch.
  send_posted_ = true;
  host_.executor().Post([weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || self->detached_) return;
    self->send_posted_ = false;
    self->Send();
  });
}

// What the API does not know yet, one write at a time. The report first: nothing comes after a
// pod's last status.
void PodWorker::Send() {
  if (sending_ || gone_ || stage_ == Stage::kDone || send_timer_ != kNoTimer) return;
  if (!SendReport()) SendStatus();
}

// A write is made from the object as this worker knows it, and refused when the object is another
// by now. So nothing that the network delivers late takes back what was said since: an older
// status would make a pod that has ended run again.
void PodWorker::Write(json::Value patch, std::function<void(const Status&)> done) {
  sending_ = true;
  json::Set(patch, {"metadata", "uid"}, uid_);
  json::Set(patch, {"metadata", "resourceVersion"}, base_version_);
  host_.client().Patch(
      client::resources::kPods, api::Namespace(*pod_), api::Name(*pod_),
      client::PatchType::kStrategic, patch,
      [weak = weak_from_this(), done = std::move(done)](const Result<json::SharedValue>& result) {
        auto self = weak.lock();
        if (!self || self->detached_) return;
        self->sending_ = false;
        const Code code = result.ok() ? Code::kOk : result.status().code();
        if (code == Code::kConflict) return self->ReadAnew();
        if (code == Code::kNotFound) return self->Lost();
        if (result.ok()) self->KnowVersionOf(**result);
        done(result.ok() ? Status::Ok() : result.status());
        self->Send();  // the record may have moved on meanwhile
      },
      // Nodes may write a pod's status, and its annotations along with it, but not the pod.
      "status");
}

void PodWorker::KnowVersionOf(const json::Value& pod) {
  base_version_ = json::GetString(pod, {"metadata", "resourceVersion"});
}

bool PodWorker::KnowsVersionOf(const json::Value& pod) const {
  return base_version_ == json::GetString(pod, {"metadata", "resourceVersion"});
}

// Somebody wrote the pod, of which the watch may tell later. Each round takes one such write; what
// cannot be read yet (it is not durable) is waited for.
void PodWorker::ReadAnew() {
  sending_ = true;
  host_.client().Get(client::resources::kPods, api::Namespace(*pod_), api::Name(*pod_),
                     [weak = weak_from_this()](const Result<json::SharedValue>& result) {
                       auto self = weak.lock();
                       if (!self || self->detached_) return;
                       self->sending_ = false;
                       const bool there = result.ok() && api::Uid(**result) == self->uid_;
                       if (there && self->KnowsVersionOf(**result)) return self->SendSoon();
                       if (there) return self->Update(*result);
                       if (result.ok() || result.status().code() == Code::kNotFound) {
                         return self->Lost();
                       }
                       self->SendLater(result.status());
                     });
}

// Deleted, or replaced by a pod of the same name: the watch will say so.
void PodWorker::Lost() {
  annotations_.clear();
  if (stage_ != Stage::kStopped || final_sent_) return;
  final_sent_ = true;
  Sync();
}

void PodWorker::SendSoon() {
  Later(kUnreadInterval, send_timer_, [this] { Send(); });
}

void PodWorker::SendLater(const Status& why) {
  SWELL_LOG_WARNING("agent", "status not sent", {"pod", Key()}, {"error", why.ToString()});
  Duration delay =
      std::chrono::milliseconds(std::min(30'000, 100 << std::min(send_failures_++, 9)));
  Later(delay, send_timer_, [this] { Send(); });
}

void PodWorker::SendStatus() {
  json::Object status = BuildStatus();
  const uint64_t hash = StableHash(json::Print(json::Value(status)));
  if (told_ || hash == sent_status_) {
    if (stage_ == Stage::kStopped && !final_sent_) {
      final_sent_ = true;
      Sync();
    }
    return;
  }
  ReplaceAddresses(status);
  Write(json::Object{{"status", std::move(status)}}, [this, hash](const Status& sent) {
    if (!sent.ok()) {
      sent_status_.reset();  // nobody knows what the API has
      return SendLater(sent);
    }
    send_failures_ = 0;
    sent_status_ = hash;
  });
}

// A control plane that missed this node calls its pods unready; only the node can take that back.
bool PodWorker::Overwritten() const {
  if (!sent_status_ || told_ || gone_) return false;
  if (json::GetString(*pod_, {"status", "phase"}) != Phase()) return true;
  return std::any_of(conditions_.begin(), conditions_.end(), [&](const json::Value& mine) {
    std::string_view type = json::GetString(mine, {"type"});
    if (!IsOwn(type)) return false;
    const json::Value* theirs = api::FindCondition(*pod_, type);
    return theirs == nullptr ||
           json::GetString(*theirs, {"status"}) != json::GetString(mine, {"status"});
  });
}

void PodWorker::WatchOverwrites() {
  if (reconcile_timer_ != kNoTimer || !Overwritten()) return;
  Later(kReconcileInterval, reconcile_timer_, [this] {
    if (!Overwritten()) return;
    sent_status_.reset();
    Publish();
  });
}

void PodWorker::OnReport(const std::string& report_json) {
  if (detached_ || gone_) return;
  auto report = json::Parse(report_json, {.depth = 16, .bytes = 64 << 10});
  if (!report.ok() || !report->is_object()) {
    SWELL_LOG_WARNING("agent", "unreadable report", {"pod", Key()},
                      {"error", report.ok() ? "not an object" : report.status().message()});
    return;
  }
  const json::Value* step = json::Find(*report, {"step"});
  if (step != nullptr && step->is_int64()) {
    annotations_[std::string(api::keys::kStep)] = std::to_string(step->get_int64());
  }
  std::string_view time = json::GetString(*report, {"checkpointTime"});
  if (api::ParseTime(time)) annotations_[std::string(api::keys::kCheckpointTime)] = time;
  const json::Value* epoch = json::Find(*report, {"epoch"});
  if (epoch != nullptr && epoch->is_int64()) {
    annotations_[std::string(api::keys::kEpoch)] = std::to_string(epoch->get_int64());
  }
  const json::Object& metrics = json::GetObject(*report, {"metrics"});
  if (!metrics.empty()) {
    std::string text = json::Print(json::Value(metrics));
    if (text.size() <= kTerminationMessageMax)
      annotations_[std::string(api::keys::kMetrics)] = text;
  }
  Publish();
}

// At most one write a second: a process that reports every step must not load the API with it.
bool PodWorker::SendReport() {
  if (annotations_.empty() || annotate_timer_ != kNoTimer) return false;
  json::Object values;
  for (const auto& [name, value] : annotations_) values[name] = value;
  json::Value patch = json::Object{{"metadata", json::Object{{"annotations", std::move(values)}}}};
  Write(std::move(patch), [this, sent = annotations_](const Status& status) {
    Later(kAnnotateInterval, annotate_timer_, [this] { Send(); });
    if (!status.ok()) {
      if (status.code() == Code::kUnavailable) return;
      SWELL_LOG_WARNING("agent", "report not published", {"pod", Key()},
                        {"error", status.ToString()});
      return;
    }
    for (const auto& [name, value] : sent) {
      auto it = annotations_.find(name);
      if (it != annotations_.end() && it->second == value) annotations_.erase(it);
    }
  });
  return true;
}

}  // namespace swell::node
