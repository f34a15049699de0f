// LeaderElector: of several replicas one leads, by a Lease, as client-go's leader election does it,
// so that replicas of both kinds could share one.
//
// The leader renews the Lease every `retry_period`. If it cannot for `renew_deadline`, counted
// from its first try, it stops leading. The others may take the Lease only later: when they have
// seen no change of it for `lease_duration`. Nobody's clock is compared with another's. Releasing
// removes the holder, and the next replica that reads the Lease may lead at once. Each write is a
// JSON patch that holds only if the Lease's spec is as it was read.
//
// A *term* is a time during which nobody else led: a replica that loses the Lease for a while and
// gets it again in the same term knows that nothing was decided in the meantime.
//
// - Threads: core executor only.
// - Ownership: callbacks run on the executor, never after the elector is gone. They may not destroy
//   it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/timer.h"
#include "kube/client/client.h"

namespace swell::client {

struct LeaderOptions {
  std::string ns = "swell-system";
  std::string name = "swell-controller";
  std::string identity;  // of this replica, unlike any other's and any earlier one's
  // Others take over at most lease_duration + retry_period (and a fifth of it) after the last
  // renewal: 4.6 s.
  Duration lease_duration = std::chrono::seconds(4);  // whole seconds
  Duration renew_deadline = std::chrono::seconds(3);
  Duration retry_period = std::chrono::milliseconds(500);

  // Whether one leader at a time follows from these.
  Status Check() const;
};

struct LeaderCallbacks {
  // From now on, until leading() says otherwise. `term` is an api::LeaseTerm.
  std::function<void(const std::string& term)> on_lead;
  // The leader has changed; empty: there is no leader.
  std::function<void(const std::string& holder)> on_holder;
};

class LeaderElector {
 public:
  LeaderElector(Executor& executor,
                const Clock& clock,
                std::shared_ptr<api::RestHandler> server,
                api::UserInfo user,
                uint64_t seed,
                LeaderOptions options,
                LeaderCallbacks callbacks);

  void Start();
  // Leads no more, tells the others so, and does not try again. `done` runs when the server knows,
  // or does not answer.
  void Release(std::function<void()> done);

  // Asked for every write, since one that slept learns of its deadline late.
  bool leading() const { return leading_ && clock_.Steady() - renewed_ < options_.renew_deadline; }
  const std::string& holder() const { return holder_; }
  const LeaderOptions& options() const { return options_; }

 private:
  void Tick();
  void TryAcquireOrRenew();
  void OnLease(const Result<json::SharedValue>& lease);
  void Take(const json::Value& lease);
  void Write(const json::Value& lease, json::Value record, ObjectCallback done);
  void OnTaken(const Result<json::SharedValue>& lease);
  void ReadAgain(const Status& refused);
  void Observe(json::SharedValue lease);
  void Lead();
  void Lose(const Status& why);
  void Finish(const Status& status);
  void GiveUp();
  void EndRelease();
  Duration NextLook();
  bool HeldByAnother() const;
  json::Value Record(const json::Value& lease) const;
  void NewClient();

  Executor& executor_;
  const Clock& clock_;
  std::shared_ptr<api::RestHandler> server_;
  api::UserInfo user_;
  Random random_;
  LeaderOptions options_;
  LeaderCallbacks callbacks_;

  json::SharedValue lease_;  // as seen last; null: not yet
  SteadyTime changed_;       // when its holder's part was seen to change
  std::string holder_;
  std::string reported_problem_;
  bool leading_ = false;
  SteadyTime renewed_;  // when the last write that succeeded began
  std::optional<SteadyTime> asking_;
  SteadyTime taking_;  // when its last write of the Lease began
  int tries_ = 0;      // to write it, since it was asked for
  bool releasing_ = false;
  std::function<void()> released_;
  Timer tick_timer_{executor_};
  Timer deadline_timer_{executor_};
  std::unique_ptr<Client> client_;  // a new one forgets what the old one asked
};

}  // namespace swell::client
