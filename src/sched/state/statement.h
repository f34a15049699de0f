// Statement: an undo log over a State. Every action tries on the model itself and then either
// commits what it did or takes it back to the last operation.
//
//   Statement trial(state);
//   const Statement::Mark mark = trial.Checkpoint();
//   trial.Bind(...); trial.Evict(...);
//   trial.Rollback(mark);            // exactly as at the mark, epochs included
//   trial.Commit();                  // keeps the rest; a Statement left uncommitted rolls back
//
// - Threads: none. At most one Statement with operations pending per State at a time.
#pragma once

#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

class Statement {
 public:
  struct Mark {
    size_t size = 0;
    uint64_t room_epoch = 0;
  };

  explicit Statement(State& state) : state_(state), start_(Checkpoint()) {}
  ~Statement() { Rollback(start_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(PodId pod, NodeId node, const DeviceSet& devices);
  void Promise(PodId pod, NodeId node, const DeviceSet& devices);
  void Evict(PodId pod);
  // Takes back an eviction of this statement, leaving what came after it.
  void Unevict(PodId pod, PodPhase phase);
  void DropPromise(PodId pod);

  Mark Checkpoint() const { return {log_.size(), state_.versions.room}; }
  void Rollback(const Mark& mark);
  void Commit();
  bool empty() const { return log_.empty(); }
  size_t size() const { return log_.size(); }

 private:
  struct Entry {
    PodId pod;
    PodPhase phase;
    NodeId node;
    NodeId promise;
    DeviceSet devices;
    DeviceSet promise_devices;
  };
  void Save(PodId pod);

  State& state_;
  std::vector<Entry> log_;
  Mark start_;
};

}  // namespace swell::sched
