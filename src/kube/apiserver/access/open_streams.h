// OpenStreams: what users and service accounts have open for long: watches, logs, commands in pods.
// A user who is deleted loses them at once, as their credentials. Nobody takes the places of
// others.
// - Threads: core executor only.
// - Ownership: the core's; streams and calls are their callers', and only looked at here.
// - Invariants: a user has at most `of_user_max` open. What is opened with a token that the user
//   has asked for, or on behalf of another, counts for the user, too. The system's own users and
//   nodes have no bound.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "kube/api/rest/duplex.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

class OpenStreams final : public CorePart {
 public:
  OpenStreams(Executor& executor, size_t of_user_max)
      : executor_(executor), of_user_max_(of_user_max) {}

  // A call that may last. kTooManyRequests: the user has no more places.
  Status Add(const CallPtr& call);
  // What an upgraded call has become: the handler uses the answer in place of `stream`.
  api::DuplexPtr Add(const Call& call, api::DuplexPtr stream);
  // Ends all that the user or account of this uid has open, soon.
  void End(const std::string& uid);

 private:
  class Revocable;
  struct OfUser {
    std::vector<std::weak_ptr<Call>> calls;
    std::vector<std::weak_ptr<Revocable>> streams;
    size_t sweep_at = 16;
  };
  void Sweep(OfUser& all) const;
  // The entries of the user, and of the user that acts as them.
  std::vector<OfUser*> Of(const Call& call);

  Executor& executor_;
  const size_t of_user_max_;
  std::map<std::string, OfUser> users_;  // by uid; by name where users have none
};

// Adds it, and ends what deleted users have open.
void RegisterOpenStreams(Core& core);

}  // namespace swell::apiserver
