// KeptRooms: the rooms of pods that ended because their node went down, kept for their groups.
//
// The work comes back: its controller removes such a pod and makes it anew. Between these writes
// younger work would take the room. So the room is kept until the next pod of the group is there,
// for ten seconds at most.
//
// - Threads: core executor only.
// - Ownership: the executor outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/executor.h"
#include "base/timer.h"

namespace swell::scheduling {

class KeptRooms {
 public:
  // Calls `lapsed` when a room's time is over and no pod came back for it.
  KeptRooms(Executor& executor, std::function<void(const std::string& pod)> lapsed)
      : executor_(executor), lapsed_(std::move(lapsed)) {}

  void Keep(const std::string& pod, std::string_view uid, std::string_view group);
  bool Empty() const { return rooms_.empty(); }
  bool Keeps(std::string_view pod) const { return rooms_.contains(pod); }
  bool Keeps(std::string_view pod, std::string_view uid) const;
  // A new pod of the group came: the key of the pod whose room it takes over, the one of its own
  // name before others. Empty if none is kept for the group.
  std::string TakeFor(std::string_view pod, std::string_view group);

 private:
  struct Room {
    std::string uid;
    std::string group;
    std::unique_ptr<Timer> until;
  };
  Executor& executor_;
  const std::function<void(const std::string& pod)> lapsed_;
  std::map<std::string, Room, std::less<>> rooms_;  // by the pod's key
};

}  // namespace swell::scheduling
