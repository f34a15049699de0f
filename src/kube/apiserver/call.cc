#include "kube/apiserver/call.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {
constexpr size_t kMaxWarnings = 100;
}

void Call::Respond(api::RestResponse response) { Finish(std::move(response), {}); }

void Call::Finish(api::RestResponse response, std::string_view reason) {
  if (!sink_) return;
  if (observer) observer->Answered(*this, response.status, reason);
  AddWarningHeaders(response);
  Close()->OnResponse(std::move(response));
}

void Call::AddWarningHeaders(api::RestResponse& response) const {
  for (const std::string& warning : warnings) {
    response.headers.emplace_back("Warning", StrCat("299 - ", Quote(warning)));
  }
}

bool Call::Begin(api::RestResponse head) {
  if (!sink_ || can_.paced == nullptr) return false;
  begun_ = true;
  AddWarningHeaders(head);
  can_.paced->OnLongResponse(std::move(head));
  return true;
}

std::shared_ptr<api::RestSink> Call::Close() {
  auto sink = std::move(sink_);
  sink_ = nullptr;
  Release();
  return sink;
}

void Call::RespondObjects(api::ObjectList list) {
  if (!sink_) return;
  if (observer) observer->Answered(*this, 200, {});
  const auto sink = Close();
  can_.objects->OnObjects(std::move(list));
}

void Call::Fail(const Status& status) {
  if (callouts && callouts->pending() && retry) {
    callouts->WhenAnswered([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || self->finished()) return;
      self->webhook_error.reset();
      // A copy: what runs may set another one.
      const auto run = self->retry;
      run(self);
    });
    return;
  }
  Finish(webhook_error ? std::move(*webhook_error) : ErrorResponse(status), Reason(status.code()));
}

void Call::StartStream(int status, std::string content_type) {
  if (!sink_) return;
  if (observer) observer->StreamStarted(*this, status);
  sink_->OnStreamStart(status, std::move(content_type));
}

bool Call::Send(const api::Chunk& chunk) {
  // The sink may cancel this very call from inside OnChunk.
  const auto sink = sink_;
  return sink && sink->OnChunk(chunk) && sink_;
}

bool Call::SendObject(std::string_view type, const json::SharedValue& object) {
  const auto sink = sink_;
  return sink && can_.objects->OnObject(type, object) && sink_;
}

void Call::EndStream(const Status& why) {
  if (!sink_) return;
  if (observer && begun_) observer->Answered(*this, 200, {});
  if (observer && !begun_) observer->Ended(*this);
  Close()->OnStreamEnd(why);
}

api::DuplexPtr Call::Upgrade(api::HeaderList headers) {
  if (!sink_) return nullptr;
  auto stream = sink_->OnUpgrade(std::move(headers));
  if (!stream) return nullptr;
  if (observer) observer->StreamStarted(*this, 101);
  Cancel();
  return stream;
}

bool Call::InTurn(std::function<void()> rest) {
  if (!sink_ || can_.turns == nullptr) return false;
  can_.turns->InTurn([self = shared_from_this(), rest = std::move(rest)] {
    if (!self->finished()) rest();
  });
  return true;
}

bool Call::WhenRoom(std::function<void()> rest) {
  if (!sink_ || can_.paced == nullptr) return false;
  can_.paced->WhenRoom([weak = weak_from_this(), rest = std::move(rest)] {
    const auto self = weak.lock();
    if (self && !self->finished()) rest();
  });
  return true;
}

void Call::Cancel() {
  if (sink_ && observer) observer->Ended(*this);
  sink_ = nullptr;
  Release();
}

void Call::Release() {
  auto release = std::move(release_);
  release_ = nullptr;
  if (release) release();
}

void Call::AddWarning(std::string text) {
  // A handler that waited for a webhook says again what it has said.
  if (std::find(warnings.begin(), warnings.end(), text) != warnings.end()) return;
  if (warnings.size() < kMaxWarnings) warnings.push_back(std::move(text));
}

}  // namespace swell::apiserver
