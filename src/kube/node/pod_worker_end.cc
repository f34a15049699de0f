// The end of a PodWorker: notice, grace period, kill, last status, deletion, removal.
#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/api/swell_keys.h"
#include "kube/node/pod_worker.h"

namespace swell::node {

std::string PodWorker::Notice(Duration grace) const {
  const json::Value* target = api::FindCondition(*pod_, "DisruptionTarget");
  std::string reason = failed_reason_;
  std::string by(api::Annotation(*pod_, api::keys::kPreemptedBy));
  std::string rule(api::Annotation(*pod_, api::keys::kPreemptedRule));
  if (reason.empty() && target != nullptr) reason = json::GetString(*target, {"reason"});
  if (reason.empty()) reason = by.empty() && rule.empty() ? "Deleted" : "Preempted";
  json::Value notice =
      json::Object{{"reason", reason},
                   {"by", by},
                   {"rule", rule},
                   {"deadline", api::FormatMicroTime(host_.clock().Now() + grace)}};
  return json::Print(notice);
}

void PodWorker::BeginTermination(Duration grace, bool notice) {
  auto self = shared_from_this();
  terminating_ = true;
  kill_at_ = host_.clock().Steady() + grace;
  for (TimerId* timer : {&retry_timer_, &deadline_timer_, &refresh_timer_}) {
    host_.executor().Cancel(*timer);
    *timer = kNoTimer;
  }
  SWELL_LOG_INFO("agent", "pod stopping", {"pod", Key()},
                 {"grace_ms", std::to_string(grace.count() / 1'000'000)});
  if (has_sandbox_ && notice && !AllStopped()) host_.runtime().WriteNotice(uid_, Notice(grace));
  for (ContainerState& container : containers_) {
    if (container.phase == ContainerState::Phase::kWaiting) {
      host_.executor().Cancel(container.timer);
      container.timer = kNoTimer;
    }
    if (container.phase == ContainerState::Phase::kRunning && !container.sidecar) {
      StopContainer(container, grace);
    }
  }
  if (grace <= Duration(0)) {
    KillEverything();
  } else if (!AllStopped()) {
    Later(grace, kill_timer_, [this] { KillEverything(); });
  }
  Sync();
}

void PodWorker::ShortenGrace(Duration grace) {
  SteadyTime at = host_.clock().Steady() + grace;
  if (at >= kill_at_ || AllStopped()) return;
  kill_at_ = at;
  if (grace <= Duration(0)) return KillEverything();
  Later(grace, kill_timer_, [this] { KillEverything(); });
}

void PodWorker::KillEverything() {
  for (ContainerState& container : containers_) {
    container.probes.clear();
    if (container.phase == ContainerState::Phase::kRunning) {
      host_.runtime().Signal(RefOf(container), SIGKILL);
    }
  }
}

void PodWorker::Fail(std::string reason, std::string message, Duration grace) {
  if (terminating_ || finishing_) return;
  failed_reason_ = std::move(reason);
  failed_message_ = std::move(message);
  BeginTermination(grace, true);
}

bool PodWorker::AllStopped() const {
  return std::all_of(containers_.begin(), containers_.end(),
                     [](const ContainerState& container) { return container.stopped(); });
}

void PodWorker::OnAllStopped() {
  if (stage_ == Stage::kRemoving || stage_ == Stage::kDone) return;
  if (stage_ != Stage::kStopped) {
    stage_ = Stage::kStopped;
    host_.executor().Cancel(kill_timer_);
    kill_timer_ = kNoTimer;
    Release();
  }
  if (gone_) return RemoveFromRuntime();
  if (api::IsDeleting(*pod_) && final_sent_) DeleteFromApi();
}

void PodWorker::Release() {
  if (released_) return;
  released_ = true;
  names_subscription_.reset();
  if (has_sandbox_) host_.runtime().Stop(uid_);
  host_.OnResourcesFreed();
}

void PodWorker::DeleteFromApi() {
  if (deleting_from_api_ || gone_) return;
  deleting_from_api_ = true;
  client::DeleteOptions options{.grace_seconds = 0, .precondition_uid = uid_};
  host_.client().Delete(
      client::resources::kPods, api::Namespace(*pod_), api::Name(*pod_), options,
      [weak = weak_from_this()](const Result<json::SharedValue>& result) {
        auto self = weak.lock();
        if (!self || self->detached_) return;
        bool done = result.ok() || result.status().code() == Code::kNotFound ||
                    result.status().code() == Code::kConflict;
        if (done) {
          self->gone_ = true;
          return self->RemoveFromRuntime();
        }
        SWELL_LOG_WARNING("agent", "stopped pod not deleted", {"pod", self->Key()},
                          {"error", result.status().ToString()});
        Duration delay =
            std::chrono::milliseconds(std::min(30'000, 200 << std::min(self->retries_++, 8)));
        self->Later(delay, self->retry_timer_, [s = self.get()] {
          s->deleting_from_api_ = false;
          s->Sync();
        });
      });
}

void PodWorker::RemoveFromRuntime() {
  if (stage_ == Stage::kRemoving || stage_ == Stage::kDone) return;
  stage_ = Stage::kRemoving;
  host_.runtime().Remove(uid_, [weak = weak_from_this()](const Status& status) {
    auto self = weak.lock();
    if (!self || self->detached_) return;
    if (!status.ok()) {
      SWELL_LOG_WARNING("agent", "pod not removed whole", {"pod", self->Key()},
                        {"error", status.ToString()});
    }
    self->stage_ = Stage::kDone;
    self->host_.OnWorkerDone(self->uid_);
  });
}

}  // namespace swell::node
