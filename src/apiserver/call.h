// Call: one request under way, from Handle() to its answer. Handlers share it with the callbacks
// that finish it.
//
// Thread-safety: core executor only. Lifetime: shared; the caller's RestCall only holds the right
// to cancel. After Cancel() or the answer nothing reaches the sink any more.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/rest.h"
#include "api/scheme.h"
#include "apiserver/request.h"

namespace swell::apiserver {

struct Call {
  api::RestRequest request;
  api::UserInfo user;
  RequestInfo info;
  Query query;
  OutputForm form;
  api::KindPtr kind;                  // as requested
  api::KindPtr storage;               // the version it is stored in
  std::vector<std::string> warnings;  // bounded by AddWarning
  bool dry_run = false;

  explicit Call(std::shared_ptr<api::RestSink> sink) : sink_(std::move(sink)) {}

  void Respond(api::RestResponse response);
  void Fail(const Status& status);

  void StartStream(int status, std::string content_type);
  // False: the receiver is gone or too slow.
  bool Send(const api::Chunk& chunk);
  void EndStream(const Status& why);
  // The handler's end of the upgraded connection; the call is then over. Null: still to be
  // answered.
  api::DuplexPtr Upgrade(api::HeaderList headers);

  // Runs when the caller gives up or the stream has ended: releases what feeds the stream.
  void OnRelease(std::function<void()> release) { release_ = std::move(release); }
  void Cancel();
  bool finished() const { return sink_ == nullptr; }

  void AddWarning(std::string text);

 private:
  void Release();

  std::shared_ptr<api::RestSink> sink_;
  std::function<void()> release_;
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace swell::apiserver
