// Callouts: the requests to other servers whose answers a handler needs: webhooks that admit or
// convert, nodes that say what their pods use.
//
// A handler is one synchronous step from what it reads to what it writes. Where it lacks an answer
// it sends the request, fails with WaitingForCallout(), and is run again from its start when every
// request has its answer (Call::Fail). So what it writes always fits what it read: had that
// changed in the meantime, the request would be a different one and have a different key.
//
// - Threads: core executor only.
// - Ownership: belongs to a call; an answer that arrives after the call has ended is dropped.
// - Invariants: at most kMaxCallouts requests per call; each ends by its timeout.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "json/value.h"
#include "kube/api/rest/rest.h"

namespace swell::apiserver {

class Callouts : public std::enable_shared_from_this<Callouts> {
 public:
  using Answer = Result<json::Value>;
  // Files an answer under the keys that it is for.
  using File = std::function<void(Callouts&, const Answer&)>;
  static constexpr size_t kMaxCallouts = 200;

  explicit Callouts(Executor& executor) : executor_(executor) {}
  ~Callouts();

  // Null: there is no answer yet.
  const Answer* Find(const std::string& key) const;
  void Put(const std::string& key, const Answer& answer) { answers_.insert_or_assign(key, answer); }

  struct Request {
    std::shared_ptr<api::RestHandler> server;
    api::RestRequest request;
    Duration timeout{0};
    Status on_timeout;
    std::function<Answer(const api::RestResponse&)> read;
  };
  // Sends what `make` returns, or files its error; does nothing where `key` was sent before. The
  // default `file` puts the answer under the key.
  void Send(const std::string& key,
            const std::function<Result<Request>()>& make,
            File file = nullptr);

  // Whether something was sent since the last WhenAnswered.
  bool pending() const { return pending_; }
  // Runs `then`, from the executor, when no request is open any more.
  void WhenAnswered(std::function<void()> then);

 private:
  struct Open {
    std::shared_ptr<api::RestHandler> server;
    std::unique_ptr<api::RestCall> call;
    TimerId timer = kNoTimer;
  };
  void Finish(uint64_t number, const File& file, const Answer& answer);
  void RunThen();

  Executor& executor_;
  std::map<std::string, Answer> answers_;
  std::set<std::string> sent_;
  std::map<uint64_t, Open> open_;
  uint64_t next_ = 1;
  size_t unanswered_ = 0;
  bool pending_ = false;
  std::function<void()> then_;
};

// What a handler returns that cannot continue before its callouts are answered.
Status WaitingForCallout();
bool IsWaitingForCallout(const Status& status);

}  // namespace swell::apiserver
