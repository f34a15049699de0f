// ClaimDevices: the GPUs of this node that a pod's claims give it, and which container sees which.
// - Threads: core executor only.
// - Ownership: values.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/client/client.h"

namespace swell::node {

class ClaimDevices {
 public:
  struct Given {
    std::string claim;      // the pod's name for it
    std::string claim_uid;  // pods that share the claim share the device
    std::string request;
    int gpu = 0;
    bool admin = false;  // others use the device, too
    // The one container that uses it, where the claim is one to extended resources.
    std::string container = {};
  };

  void Add(Given given) { given_.push_back(std::move(given)); }
  bool empty() const { return given_.empty(); }
  bool Has(int gpu) const { return Find(gpu) != nullptr; }
  // Without repetition, in the order of the claims.
  std::vector<int> Gpus() const;
  // Those that a container uses.
  std::vector<int> OfContainer(const json::Value& container) const;
  // Whether both may use the device: through one claim, or to look after it.
  bool MayShare(int gpu, const ClaimDevices& other) const;

 private:
  const Given* Find(int gpu) const;
  std::vector<Given> given_;
};

// Reads the pod's claims. The error says which of them cannot be used yet, and why. `done` runs
// once, perhaps at once; not at all after `client` is destroyed.
void FetchClaimDevices(client::Client& client,
                       const json::Value& pod,
                       const std::string& node,
                       std::function<void(Result<ClaimDevices>)> done);

}  // namespace swell::node
