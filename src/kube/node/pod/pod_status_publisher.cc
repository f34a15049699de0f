#include "kube/node/pod/pod_status_publisher.h"

#include <algorithm>
#include <utility>

#include "base/back_off.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/node/pod/pod_status.h"

namespace swell::node {
namespace {

constexpr Duration kAnnotateInterval = std::chrono::seconds(1);
constexpr Duration kReadInterval = std::chrono::milliseconds(5);
// As the kubelet's: two writers that disagree do not load the API with it.
constexpr Duration kReconcileInterval = std::chrono::seconds(10);
constexpr size_t kMetricsBytesMax = 4096;
constexpr size_t kSaveReasonMax = 300;

// A strategic merge patch adds to podIPs: without the directive, the address of a new sandbox would
// join that of the old one. Container lists are replaced, and conditions merge by type.
void ReplaceAddresses(json::Object& status) {
  auto addresses = status.find("podIPs");
  if (addresses == status.end()) return;
  json::Array& list = addresses->value().get_array();
  list.insert(list.begin(), json::Value(json::Object{{"$patch", "replace"}}));
}

// Removes, by a directive, a condition that was sent and does not hold any more.
void RemoveConditions(const json::Array& sent, json::Object& status) {
  auto conditions = status.find("conditions");
  if (conditions == status.end()) return;
  json::Array& now = conditions->value().get_array();
  const size_t count = now.size();
  for (const json::Value& condition : sent) {
    const std::string_view type = json::GetString(condition, {"type"});
    const bool stays = std::any_of(now.begin(), now.begin() + count, [&](const json::Value& one) {
      return json::GetString(one, {"type"}) == type;
    });
    if (stays || !IsKubeletCondition(type)) continue;
    now.push_back(json::Object{{"$patch", "delete"}, {"type", type}});
  }
}

}  // namespace

PodStatusPublisher::PodStatusPublisher(PodHost& host, const PodRecord& record, Callbacks callbacks)
    : host_(host),
      record_(record),
      callbacks_(std::move(callbacks)),
      conditions_(json::GetArray(*record.pod, {"status", "conditions"})),
      send_timer_(host.executor()),
      reconcile_timer_(host.executor()),
      annotate_timer_(host.executor()) {
  ended_in_api_ = api::HasEnded(*record_.pod);
  save_failed_ = !api::Annotation(*record_.pod, api::keys::kSaveError).empty();
  KnowVersionOf(*record_.pod);
}

void PodStatusPublisher::OnPodChanged() {
  KnowVersionOf(*record_.pod);
  std::erase_if(annotations_, [&](const auto& annotation) {
    return api::Annotation(*record_.pod, annotation.first) == annotation.second;
  });
  if (reconcile_timer_.pending() || !Overwritten()) return;
  reconcile_timer_.Start(kReconcileInterval, [this] {
    if (!Overwritten()) return;
    sent_status_.reset();
    Publish();
  });
}

void PodStatusPublisher::OnEndedInApi() { ended_in_api_ = true; }

void PodStatusPublisher::Annotate(std::string_view key, std::string value) {
  annotations_[std::string(key)] = std::move(value);
}

void PodStatusPublisher::Close() {
  scope_.Close();
  send_timer_.Cancel();
  reconcile_timer_.Cancel();
  annotate_timer_.Cancel();
}

json::Object PodStatusPublisher::BuildStatus() const {
  return PodStatus(record_, conditions_, host_.config().internal_ip, host_.clock().Now());
}

void PodStatusPublisher::Publish() {
  if (writing_ != Writing::kNothing || record_.state.deleted_from_api()) return;
  // Several events of one moment make one patch.
  writing_ = Writing::kPosted;
  host_.executor().Post(scope_.Wrap([this] {
    if (writing_ == Writing::kPosted) writing_ = Writing::kNothing;
    Send();
  }));
}

// Sends what the API does not know yet, one write at a time. Annotations go first: the status of a
// pod that has ended is the last write.
void PodStatusPublisher::Send() {
  if (writing_ == Writing::kPatch || send_timer_.pending()) return;
  if (record_.state.deleted_from_api()) return;
  if (!SendAnnotations()) SendStatus();
}

// A patch names the version that it was made from, and conflicts when the object has changed. So a
// patch that the network delivers late cannot overwrite a newer status: an older one would make a
// pod that has ended run again.
void PodStatusPublisher::Write(json::Value patch, std::function<void(const Status&)> done) {
  writing_ = Writing::kPatch;
  json::Set(patch, {"metadata", "uid"}, record_.uid);
  json::Set(patch, {"metadata", "resourceVersion"}, base_version_);
  host_.client().Patch(
      client::resources::kPods, api::Namespace(*record_.pod), api::Name(*record_.pod),
      client::PatchType::kStrategic, patch,
      scope_.Wrap([this, done = std::move(done)](const Result<json::SharedValue>& result) {
        writing_ = Writing::kNothing;
        const Code code = result.ok() ? Code::kOk : result.status().code();
        if (code == Code::kConflict) return ReadPod();
        if (code == Code::kNotFound) return OnNotFound();
        if (result.ok()) KnowVersionOf(**result);
        done(result.ok() ? Status::Ok() : result.status());
        Send();  // the record may have changed meanwhile
      }),
      // Nodes may write a pod's status, and its annotations along with it, but not the pod.
      "status");
}

void PodStatusPublisher::KnowVersionOf(const json::Value& pod) {
  base_version_ = json::GetString(pod, {"metadata", "resourceVersion"});
}

// Another client wrote the pod, and the watch has not shown it yet. A write that is not durable
// yet cannot be read: it is read again in a moment.
void PodStatusPublisher::ReadPod() {
  writing_ = Writing::kPatch;
  host_.client().Get(
      client::resources::kPods, api::Namespace(*record_.pod), api::Name(*record_.pod),
      scope_.Wrap([this](const Result<json::SharedValue>& result) {
        writing_ = Writing::kNothing;
        if (!result.ok() && result.status().code() != Code::kNotFound) {
          return RetryAfterError(result.status());
        }
        if (!result.ok() || api::Uid(**result) != record_.uid) return OnNotFound();
        if (json::GetString(**result, {"metadata", "resourceVersion"}) == base_version_) {
          return send_timer_.Start(kReadInterval, [this] { Send(); });
        }
        callbacks_.on_newer_pod(*result);
      }));
}

// Deleted, or replaced by a pod of the same name: the watch will report it.
void PodStatusPublisher::OnNotFound() {
  annotations_.clear();
  if (record_.state.Is(PodState::kStopped)) OnFinalStatus();
}

void PodStatusPublisher::OnFinalStatus() {
  if (!std::exchange(final_status_sent_, true)) callbacks_.on_final_status();
}

void PodStatusPublisher::RetryAfterError(const Status& why) {
  SWELL_LOG_WARNING("agent", "status not sent", {"pod", record_.Key()}, {"error", why.ToString()});
  const Duration delay =
      BackOff(std::chrono::milliseconds(100), std::chrono::seconds(30), send_failures_++);
  send_timer_.Start(delay, [this] { Send(); });
}

void PodStatusPublisher::SendStatus() {
  json::Object status = BuildStatus();
  const uint64_t hash = StableHash(json::Print(json::Value(status)));
  if (ended_in_api_ || hash == sent_status_) {
    if (record_.state.Is(PodState::kStopped)) OnFinalStatus();
    return;
  }
  json::Array sent = conditions_;
  if (status.contains("conditions")) conditions_ = status["conditions"].get_array();
  RemoveConditions(sent, status);
  ReplaceAddresses(status);
  Write(json::Object{{"status", std::move(status)}}, [this, hash](const Status& sent) {
    if (!sent.ok()) {
      sent_status_.reset();  // the API may have it or not
      return RetryAfterError(sent);
    }
    send_failures_ = 0;
    sent_status_ = hash;
  });
}

// The control plane sets pods of a node that it lost contact with to not ready; only the node can
// take that back.
bool PodStatusPublisher::Overwritten() const {
  if (!sent_status_ || ended_in_api_ || record_.state.deleted_from_api()) return false;
  const json::Value& pod = *record_.pod;
  if (api::StatusPhase(pod) != PodPhase(record_)) return true;
  return std::any_of(conditions_.begin(), conditions_.end(), [&](const json::Value& ours) {
    std::string_view type = json::GetString(ours, {"type"});
    if (!IsKubeletCondition(type)) return false;
    const std::optional<api::Condition> theirs = api::FindCondition(pod, type);
    return !theirs || theirs->status != json::GetString(ours, {"status"});
  });
}

void PodStatusPublisher::OnReport(const std::string& report_json) {
  if (record_.state.deleted_from_api()) return;
  auto report = json::Parse(report_json, {.depth = 16, .bytes = 64 << 10});
  if (!report.ok() || !report->is_object()) {
    SWELL_LOG_WARNING("agent", "unreadable report", {"pod", record_.Key()},
                      {"error", report.ok() ? "not an object" : report.status().message()});
    return;
  }
  // A document of its own, which says nothing of training.
  if (const std::string_view word = json::GetString(*report, {api::keys::kRequestField});
      !word.empty()) {
    if (word == api::keys::kRequestRequeue || word == api::keys::kRequestCancel) {
      Annotate(api::keys::kJobRequest, std::string(word));
      Publish();
    }
    return;
  }
  auto integer = [&](std::string_view field, std::string_view key) {
    const json::Value* value = json::Find(*report, {field});
    if (value != nullptr && value->is_int64()) Annotate(key, std::to_string(value->get_int64()));
  };
  integer("step", api::keys::kStep);
  integer("epoch", api::keys::kEpoch);
  std::string_view time = json::GetString(*report, {"checkpointTime"});
  if (api::ParseTime(time)) Annotate(api::keys::kCheckpointTime, std::string(time));
  NoteFailedSave(*report);
  const json::Object& metrics = json::GetObject(*report, {"metrics"});
  if (!metrics.empty()) {
    std::string text = json::Print(json::Value(metrics));
    if (text.size() <= kMetricsBytesMax) Annotate(api::keys::kMetrics, std::move(text));
  }
  Publish();
}

// The report carries the failure until a save goes well.
void PodStatusPublisher::NoteFailedSave(const json::Value& report) {
  const json::Value* error = json::Find(report, {"saveError"});
  if (error == nullptr || !error->is_object()) {
    if (std::exchange(save_failed_, false)) Annotate(api::keys::kSaveError, "");
    return;
  }
  save_failed_ = true;
  std::string reason(
      json::GetString(*error, {"reason"}, "no reason given").substr(0, kSaveReasonMax));
  while (!IsValidUtf8(reason)) reason.pop_back();
  Annotate(api::keys::kSaveError,
           json::Print(json::Object{{"step", json::GetInt(*error, {"step"})}, {"reason", reason}}));
}

// At most one write a second: a process that reports every step must not load the API with it. The
// last report of a pod that has ended waits for nothing, since nobody looks after its status.
bool PodStatusPublisher::SendAnnotations() {
  const std::string_view phase = PodPhase(record_);
  const bool last = !annotate_failed_ && (phase == "Succeeded" || phase == "Failed");
  if (annotations_.empty() || (annotate_timer_.pending() && !last)) return false;
  json::Object values;
  for (const auto& [name, value] : annotations_) values[name] = value;
  json::Value patch = json::Object{{"metadata", json::Object{{"annotations", std::move(values)}}}};
  Write(std::move(patch), [this, sent = annotations_](const Status& status) {
    annotate_timer_.Start(kAnnotateInterval, [this] { Send(); });
    annotate_failed_ = !status.ok();
    if (!status.ok()) {
      if (status.code() == Code::kUnavailable) return;
      SWELL_LOG_WARNING("agent", "report not published", {"pod", record_.Key()},
                        {"error", status.ToString()});
      return;
    }
    std::erase_if(annotations_, [&](const auto& annotation) {
      auto it = sent.find(annotation.first);
      return it != sent.end() && it->second == annotation.second;
    });
  });
  return true;
}

}  // namespace swell::node
