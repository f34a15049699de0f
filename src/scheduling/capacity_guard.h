// CapacityGuard: does a pod still fit a node? Asked by the embedded API server at every binding, so
// that two schedulers, or one with an old picture, cannot fill a node twice. What it let through
// counts at once, until the watch shows the pod bound or gone (or ten seconds pass: the write
// failed).
// - Threads: core executor only.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

class CapacityGuard {
 public:
  explicit CapacityGuard(controllers::Context context);

  // kConflict names the resource, what is asked and what is free. A node that is not known is
  // let through: the agent checks again.
  Status CheckBind(const json::Value& pod, const std::string& node);

 private:
  using Amounts = std::map<std::string, int64_t>;
  // What a pod holds of a node: it runs there, or its binding was let through and may be made.
  struct Held {
    std::string node;
    Amounts requests;
    bool seen = false;
    SteadyTime at;  // when it was let through
  };
  struct Node {
    Amounts held;
    int64_t pods = 0;
  };
  // What a node has, as its object says it.
  struct Room {
    json::SharedValue object;
    Amounts amounts;
    int64_t pods = 0;
  };

  void OnPod(const json::Value& pod);
  const Room* RoomOn(const std::string& node);
  void Hold(const std::string& uid, Held held);
  void Release(std::string_view uid);
  void ForgetFailed();

  Clock& clock_;
  template <class T>
  using ByName = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;
  ByName<Held> held_;  // by pod uid
  ByName<Node> on_;    // by node
  ByName<Room> rooms_;
  std::deque<std::pair<SteadyTime, std::string>> let_through_;  // uids, oldest first
  client::Informer& nodes_;
  CallbackScope scope_;
};

}  // namespace swell::scheduling
