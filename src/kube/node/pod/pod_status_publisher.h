// PodStatusPublisher: keeps a pod's status and annotations in the API as the record has them.
//
// The status is built from the record after every change, and sent when it differs from the one
// sent last: one patch at a time, failures retried with back-off. A patch names the version that
// it was made from; where the pod has changed since, the pod is read and the patch made anew.
//
// - Threads: core executor only.
// - Ownership: a member of its PodWorker. Host and record outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_record.h"

namespace swell::node {

class PodStatusPublisher {
 public:
  struct Callbacks {
    // The API has a newer object than the record.
    std::function<void(const json::SharedValue& pod)> on_newer_pod;
    // The API has the status of a pod that has stopped; runs once.
    std::function<void()> on_final_status;
  };

  PodStatusPublisher(PodHost& host, const PodRecord& record, Callbacks callbacks);

  // The record has a newer object.
  void OnPodChanged();
  // The API says that the pod has ended although it runs here: its status stays as it is.
  void OnEndedInApi();
  // Sent with the next Publish().
  void Annotate(std::string_view key, std::string value);
  // A report of the pod's processes (docs: the preemption protocol in README.md).
  void OnReport(const std::string& report_json);
  void Publish();
  void Close();

  json::Object BuildStatus() const;
  bool final_status_sent() const { return final_status_sent_; }

 private:
  enum class Writing { kNothing, kPosted, kPatch };

  void NoteFailedSave(const json::Value& report);
  void Send();
  void SendStatus();
  bool SendAnnotations();
  void Write(json::Value patch, std::function<void(const Status&)> done);
  void KnowVersionOf(const json::Value& pod);
  void ReadPod();
  void OnNotFound();
  void OnFinalStatus();
  void RetryAfterError(const Status& why);
  bool Overwritten() const;

  PodHost& host_;
  const PodRecord& record_;
  Callbacks callbacks_;
  json::Array conditions_;               // as last sent
  std::optional<uint64_t> sent_status_;  // a hash of what the API has
  bool ended_in_api_ = false;
  bool final_status_sent_ = false;
  bool save_failed_ = false;      // as last reported
  bool annotate_failed_ = false;  // the last write of annotations
  Writing writing_ = Writing::kNothing;
  int send_failures_ = 0;
  std::string base_version_;  // of the object that the next write is made from
  std::map<std::string, std::string> annotations_;  // not yet with the API
  Timer send_timer_, reconcile_timer_, annotate_timer_;
  CallbackScope scope_;
};

}  // namespace swell::node
