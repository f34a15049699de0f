// VolumeWaits: pods whose node is chosen before their volumes are made. As kube-scheduler does, it
// names the node in each claim that a provisioner of others waits to serve
// (volume.kubernetes.io/selected-node), and the pod is bound when the claims are.
//
// The pod is placed anew when the provisioner takes the node's name out again (it has nothing for
// that node), when a claim goes or is for another node, and after ten minutes. Volumes of our own
// provisioner are good on every node, so nobody waits for them.
//
// - Threads: core executor only. Destroying it forgets all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback_scope.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

class VolumeWaits {
 public:
  // Runs once, never from inside Begin: OK, the pod may be bound.
  using Done = std::function<void(const Status&)>;

  explicit VolumeWaits(controllers::Context context);
  ~VolumeWaits();

  // False: none of the pod's volumes has to be waited for, and `done` is forgotten.
  bool Begin(const json::Value& pod, const std::string& node, Done done);
  // Ends the pod's wait with an error. False if the pod does not wait.
  bool GiveUp(const std::string& pod, const Status& why);

 private:
  struct Claim {
    std::string key;
    bool named = false;  // seen with the node's name in it
  };
  struct Wait {
    std::string node;
    std::vector<Claim> claims;
    Done done;
    TimerId limit = kNoTimer;
  };

  void Name(const std::string& pod, const json::Value& claim, const std::string& node);
  // What became of a claim, to all that wait for it.
  void OnClaim(const std::string& key);
  // kOk: it is bound; kUnavailable: it has to be waited for.
  Status ReadClaim(const Wait& wait, Claim& claim) const;
  void End(const std::string& pod, const Status& status);

  controllers::Context context_;
  client::Informer& claims_;
  client::Informer& classes_;
  std::map<std::string, Wait, std::less<>> waits_;  // by pod
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::scheduling
