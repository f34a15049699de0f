// JobMaster: the master of one elastic job. It keeps the job's records (ShardLedger), its updates
// (GradientGate), its members and their speed. docs/elastic.md describes each request.
//
//   JobMaster master(first_lease);
//   auto answer = master.Handle("/v1/task", {{"worker", "worker-0"}}, now);
//
// Durability. A request that changed something says so (`Answer::changed`); the server
// appends (now, path, body) to a journal before it sends the answer. Replaying the same requests
// into a new JobMaster gives the same state, bit for bit: time comes with each request and nothing
// is random.
//
// A master that holds the model saves the answer of /v1/snapshot beside the model, and sends it to
// /v1/restore when it loads the model. Position and model then agree: records that were trained
// since the snapshot are trained again, by a model that has not seen them.
//
// - Threads: not thread-safe; one thread uses it.
// - Invariants: everything that a peer can make grow is bounded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/gradient_gate.h"
#include "elastic/shard_ledger.h"
#include "json/value.h"

namespace swell::elastic {

class JobMaster {
 public:
  // Lease ids begin at `first_lease`, or at what the journal says: never at one that was given.
  explicit JobMaster(int64_t first_lease) : first_lease_(first_lease) {}

  struct Answer {
    json::Value body;
    bool changed = false;
  };
  // A POST. kNotFound for an unknown path, or a task that the worker does not hold; kConflict
  // before the job is known, or when it is told twice and differently.
  Result<Answer> Handle(std::string_view path, const json::Value& body, WallTime now);
  // The body for /v1/expire: silent workers and tasks that hang; null if nothing has expired.
  json::Value FindExpired(WallTime now) const;
  // Called after a time in which the master could not receive requests.
  void ForgiveSilence(WallTime now);

  // GET /v1/state.
  json::Value State(WallTime now) const;
  // GET /metrics, as Prometheus reads them.
  std::string Metrics(WallTime now) const;

  // The whole state, for the journal's beginning.
  json::Value Snapshot() const;
  Status Restore(const json::Value& snapshot);

  // All records are done, or it was told that enough are.
  bool finished() const { return ended_ || (ledger_ && ledger_->finished()); }

 private:
  struct Member {
    std::string address;
    int64_t joined = 0;
    int64_t step = 0;
  };

  Result<Answer> Job(const json::Value& body);
  Result<Answer> Task(const json::Value& body, std::string_view worker, WallTime now);
  Result<json::Array> Complete(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> Progress(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> Failed(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> Gradient(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> Heartbeat(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> End();
  Result<Answer> Expire(const json::Value& body);
  Result<Answer> Facts(const json::Value& body);
  Result<Answer> Leave(const json::Value& body, std::string_view worker, WallTime now);
  Result<Answer> RestorePosition(const json::Value& body);
  // What every answer to a worker says of the job's end.
  void AddEnd(json::Object& answer) const;
  Answer Noted() const;  // something has changed; the answer says only whether the job is over
  void Forget(std::string_view worker);
  json::Value Rendezvous(std::string_view worker) const;
  void Count(int64_t records, WallTime now);
  double RecordsPerSecond(WallTime now) const;

  int64_t first_lease_;
  std::optional<ShardLedger> ledger_;
  GradientGate gate_{{}};
  // The last gradient with a number, and what was said to it: asked again, it counts once.
  int64_t sequence_ = 0;
  json::Object sequence_answer_;
  json::Value job_;     // as it was told
  json::Object facts_;  // what the job's processes tell each other: addresses
  std::map<std::string, Member, std::less<>> members_;
  bool ended_ = false;
  int64_t round_ = 0;  // grows with every change of the members
  int64_t joined_ = 0;
  int64_t preempted_ = 0, lost_ = 0, hung_ = 0;
  // Records done in each of the last seconds.
  std::deque<std::pair<int64_t, int64_t>> recent_;
};

}  // namespace swell::elastic
