// Workload: what workload controllers share: ownership of pods, pods from templates, readiness, the
// order of removal, and writes that the cache does not show yet.
// - Threads: core executor only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"
#include "kube/client/event_recorder.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

using api::IsActive;
using api::IsReady;

// Ready for at least `least`; `wait` is lowered to when that will be.
bool IsAvailable(const json::Value& pod, Duration least, WallTime now, Duration& wait);
bool SameButLabel(const json::Value& a, const json::Value& b, std::string_view ignored_label);

// An IntOrString as a number of `total`; percentages round up or down.
int64_t ScaledValue(const json::Value* value, int64_t total, bool round_up, int64_t fallback);

// By creation, then by name.
bool IsOlder(const json::SharedValue& a, const json::SharedValue& b);

bool Selects(const api::LabelSelector& selector, const json::Value& object);

// A pod of the object's spec.template, owned by it, named `name`.
json::Value PodOf(const json::Value& owner, std::string_view name);
// Surplus pods in the order in which they are removed.
std::vector<json::SharedValue> InOrderOfRemoval(std::vector<json::SharedValue> pods, WallTime now);

// A condition of a status under construction.
void SetStatusCondition(json::Value& status,
                        std::string_view type,
                        bool value,
                        std::string_view reason,
                        std::string_view message,
                        WallTime now);
void RemoveStatusCondition(json::Value& status, std::string_view type);

// The ownerReferences of the object with its new controller's added, and with that owner's removed.
json::Array OwnersWith(const json::Value& object, const json::Value& owner);
json::Array OwnersWithout(const json::Value& object, const json::Value& owner);

// Adoption: which objects of one kind an owner has, as Kubernetes decides it. An object that nobody
// controls and the owner's selector matches is adopted. An object that the owner controls and its
// selector does not match any more is released.
class Adoption {
 public:
  Adoption(client::Informer& objects, client::Client& client)
      : objects_(objects), client_(client) {}

  // What the owner has, with what it adopts now. Does not wait for the writes.
  std::vector<json::SharedValue> OwnedBy(const json::Value& owner);

 private:
  void Adopt(const json::Value& owner, const json::Value& object);
  void Release(const json::Value& owner, const json::Value& object);
  void Write(const json::Value& owner, const json::Value& object, json::Object metadata);

  client::Informer& objects_;
  client::Client& client_;
  std::set<std::string> writing_;  // "owner uid/object uid", until the server has answered
};

// Expectations: creations and deletions that the cache does not show yet, as in client-go. A pass
// that ignores them would do the same things twice.
class Expectations {
 public:
  // client-go's ExpectationsTimeout: the cache may never show a pod that came and went unseen.
  static constexpr Duration kTimeout = std::chrono::minutes(5);

  void Add(const std::string& owner, const std::string& token, SteadyTime now);
  void Seen(const std::string& token);
  void Forget(const std::string& owner);
  // How long the owner must still wait; zero: nothing is expected. Forgets what is too old.
  Duration Remaining(const std::string& owner, SteadyTime now);
  // When the token was added; empty if it is not expected.
  std::optional<SteadyTime> AddedAt(const std::string& token) const;

 private:
  struct Expected {
    std::string owner;
    SteadyTime added;
  };
  std::map<std::string, Expected> expected_;              // by token
  std::map<std::string, std::set<std::string>> pending_;  // owner → tokens
};

}  // namespace swell::controllers
