// Call: one request under way, from Handle() to its answer. Handlers share it with the callbacks
// that finish it.
// - Threads: core executor only.
// - Ownership: shared; the caller's RestCall only holds the right to cancel. After Cancel() or the
//   answer nothing reaches the sink any more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/api/rest/rest.h"
#include "kube/api/rest/sink_capabilities.h"
#include "kube/api/schema/scheme.h"
#include "kube/apiserver/request/callouts.h"
#include "kube/apiserver/request/request.h"

namespace swell::apiserver {

struct Call;

// Sees what becomes of every call; metrics and the audit log are made of it.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void Received(Call& call) = 0;
  virtual void Routed(Call& call, std::string verb) = 0;
  // Refuses a call that must be recorded and cannot be.
  virtual Status Admit(const Call& call) const = 0;
  // The whole answer; `reason` is the Status's, empty on success.
  virtual void Answered(Call& call, int status, std::string_view reason) = 0;
  virtual void StreamStarted(Call& call, int status) = 0;
  // The stream is over, or the caller went away before there was an answer.
  virtual void Ended(Call& call) = 0;
};

struct Call : std::enable_shared_from_this<Call> {
  api::RestRequest request;
  api::UserInfo user;
  api::UserInfo impersonator;  // acts as `user`; no name: the call is not impersonated
  std::string impersonation;   // the limited right that it was allowed by, as a verb; else empty
  std::string verb;            // "create"; empty before the call is routed
  RequestInfo info;
  Query query;
  OutputForm form;
  api::KindPtr kind;                  // as requested
  api::KindPtr storage;               // the version it is stored in
  std::vector<std::string> warnings;  // bounded by AddWarning
  bool dry_run = false;
  std::string object_name;  // of what is made, where the path does not say it

  // Requests that the handler has sent to other servers; null before the first.
  std::shared_ptr<Callouts> callouts;
  // Runs the handler again, or what is left of it, when they have their answers.
  std::function<void(const std::shared_ptr<Call>&)> retry;
  // A webhook's own error; Fail() answers with it in place of the status.
  std::optional<api::RestResponse> webhook_error;

  // The observer's.
  std::shared_ptr<CallObserver> observer;
  WallTime received;
  SteadyTime began;
  int64_t* counted = nullptr;  // the gauge in which it counts while it is open
  int stream_status = 0;
  std::string audit_id;
  // What admission found, for the audit log.
  std::vector<std::pair<std::string, std::string>> audit_annotations;

  explicit Call(std::shared_ptr<api::RestSink> sink)
      : sink_(std::move(sink)), can_(sink_->capabilities()) {}

  // The version in which a write of it is handled: custom objects get to the stored one last.
  const api::KindInfo& handled() const { return storage->custom ? *kind : *storage; }

  void Respond(api::RestResponse response);
  // Answers with the error; where callouts are open, runs `retry` after their answers instead.
  void Fail(const Status& status);

  // The answer is long: its body goes out by Send and EndStream while it is made. False: this
  // receiver has no pace of its own, and gets all of it by Respond.
  bool Begin(api::RestResponse head);
  bool begun() const { return begun_; }
  void StartStream(int status, std::string content_type);
  // False: the receiver is gone or too slow.
  bool Send(const api::Chunk& chunk);
  // Whether the caller takes documents for the bytes it asked for; the two below are for it.
  bool TakesObjects() const { return can_.objects != nullptr && form.raw(); }
  bool SendObject(std::string_view type, const json::SharedValue& object);
  void RespondObjects(api::ObjectList list);
  void EndStream(const Status& why);
  // The handler's end of the upgraded connection; the call is then over. Null: still to be
  // answered.
  api::DuplexPtr Upgrade(api::HeaderList headers);

  // What is left of a long answer, when it is the caller's turn again, unless it has given up.
  // False: this caller's answers are made at once.
  bool InTurn(std::function<void()> rest);
  // Whether the receiver takes any one chunk now; one that has no pace of its own always does.
  bool HasRoom() const { return can_.paced == nullptr || !sink_ || can_.paced->HasRoom(); }
  // Runs `rest` when the receiver has room, unless it has gone. Returns false, and does not run it,
  // if the receiver takes everything at once.
  bool WhenRoom(std::function<void()> rest);

  // Runs when the caller gives up or the stream has ended: releases what feeds the stream.
  void OnRelease(std::function<void()> release) { release_ = std::move(release); }
  void Cancel();
  bool finished() const { return sink_ == nullptr; }

  void AddWarning(std::string text);

 private:
  void Finish(api::RestResponse response, std::string_view reason);
  void AddWarningHeaders(api::RestResponse& response) const;
  std::shared_ptr<api::RestSink> Close();
  void Release();

  std::shared_ptr<api::RestSink> sink_;
  const api::SinkCapabilities can_;
  bool begun_ = false;
  std::function<void()> release_;
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace swell::apiserver
