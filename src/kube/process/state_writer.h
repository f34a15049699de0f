// StateWriter: writes the states that processes left in memory to disk. If a later try may succeed
// (the disk is full, or another checkpoint of the job is being written), it tries again for some
// minutes. The pauses grow, and other states have their turn in them.
//
// - Threads: the executor's. `write` runs where `background` has it run.
// - Ownership: the executor outlives what runs in the background, the writer need not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/executor.h"
#include "kube/process/left_state.h"
#include "kube/process/saving_states.h"

namespace swell::process {

class StateWriter {
 public:
  using Callback = std::function<void(const Status&)>;

  struct Plugs {
    Executor& executor;
    Clock& clock;
    // Runs the work on another thread, a few at a time.
    std::function<void(std::function<void()> work)> background;
    std::function<Status(const LeftState&, const std::string& folder, WriteProgress&)> write =
        PersistState;
    std::function<void(const LeftState&)> drop = DropLeftState;
  };

  explicit StateWriter(Plugs plugs) : plugs_(std::move(plugs)) {}

  // Writes what the pod left to its folder. `on_delay` says once why that must be tried again;
  // `done` runs when the state is on disk, or says why it is lost.
  void Write(const std::string& uid,
             LeftState left,
             const std::string& folder,
             Callback on_delay,
             Callback done);
  // The same for a state that is on its way. False: none of this pod is.
  bool Join(const std::string& uid, Callback on_delay, Callback done);
  // From now on nothing is tried again.
  void WaitNoMore();
  SavingStates Saving() const;

 private:
  struct State {
    LeftState left;
    std::string folder;
    SteadyTime begin, until;
    std::shared_ptr<WriteProgress> progress = std::make_shared<WriteProgress>();
    int tries = 0;
    std::optional<Status> delay;  // what the last try said, while it is waited for the next
    TimerId timer = kNoTimer;
    std::vector<Callback> on_delay, done;
  };

  void Try(const std::string& uid);
  void OnTried(const std::string& uid, const Status& status);
  void TryLater(const std::string& uid, const Status& why);
  void Finish(const std::string& uid, const Status& status);

  Plugs plugs_;
  std::map<std::string, State> states_;  // by the pod's uid
  bool waits_no_more_ = false;
  CallbackScope scope_;
};

}  // namespace swell::process
