#include "kube/apiserver/request/callouts.h"

#include <utility>

namespace swell::apiserver {
namespace {

constexpr char kWaiting[] = "waiting for a webhook";

class Reply final : public api::RestSink {
 public:
  using Done = std::function<void(const api::RestResponse&)>;
  explicit Reply(Done done) : done_(std::move(done)) {}

  void OnResponse(api::RestResponse response) override { done_(response); }
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return false; }
  void OnStreamEnd(const Status&) override {}

 private:
  Done done_;
};

}  // namespace

Callouts::~Callouts() {
  for (const auto& [number, open] : open_) executor_.Cancel(open.timer);
}

const Callouts::Answer* Callouts::Find(const std::string& key) const {
  const auto found = answers_.find(key);
  return found == answers_.end() ? nullptr : &found->second;
}

void Callouts::Send(const std::string& key,
                    const std::function<Result<Request>()>& make,
                    File file) {
  if (!sent_.insert(key).second) return;
  if (!file) {
    file = [key](Callouts& callouts, const Answer& answer) { callouts.Put(key, answer); };
  }
  const uint64_t number = next_++;
  ++unanswered_;
  pending_ = true;
  auto finish = [weak = weak_from_this(), number, file = std::move(file)](const Answer& answer) {
    if (const auto self = weak.lock()) self->Finish(number, file, answer);
  };
  Result<Request> request =
      number > kMaxCallouts ? Status(Code::kInternal, "too many calls of webhooks") : make();
  if (!request.ok()) {
    // Not from inside the handler that sends.
    executor_.Post([finish, why = request.status()] { finish(why); });
    return;
  }
  Open& open = open_[number];
  open.server = std::move(request->server);
  open.timer = executor_.After(request->timeout,
                               [finish, why = std::move(request->on_timeout)] { finish(why); });
  auto call = open.server->Handle(
      std::move(request->request),
      std::make_shared<Reply>([finish, read = std::move(request->read)](
                                  const api::RestResponse& response) { finish(read(response)); }));
  // It may be answered already.
  const auto still_open = open_.find(number);
  if (still_open != open_.end()) still_open->second.call = std::move(call);
}

void Callouts::Finish(uint64_t number, const File& file, const Answer& answer) {
  const auto found = open_.find(number);
  if (found != open_.end()) {
    executor_.Cancel(found->second.timer);
    // Not from inside the call's own callback.
    executor_.Post(
        [ended = std::make_shared<Open>(std::move(found->second))] { ended->call.reset(); });
    open_.erase(found);
  }
  file(*this, answer);
  --unanswered_;
  RunThen();
}

void Callouts::WhenAnswered(std::function<void()> then) {
  pending_ = false;
  then_ = std::move(then);
  RunThen();
}

void Callouts::RunThen() {
  if (unanswered_ > 0 || !then_) return;
  // Not from inside another call's callback.
  executor_.Post([then = std::exchange(then_, nullptr)] { then(); });
}

Status WaitingForCallout() { return Status(Code::kUnavailable, kWaiting); }

bool IsWaitingForCallout(const Status& status) {
  return status.code() == Code::kUnavailable && status.message() == kWaiting;
}

}  // namespace swell::apiserver
