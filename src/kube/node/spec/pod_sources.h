// PodSources: the objects that a pod's spec refers to (config maps, secrets, claims and their
// volumes, its runtime class, service account tokens), fetched in one go, so that environment and
// volumes can then be computed by plain functions.
//
// A reference that cannot be fetched is kept with its error: whether it matters ("optional") is for
// the reader to say.
//
// - Threads: core executor only; immutable once handed out.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "json/value.h"
#include "kube/client/client.h"

namespace swell::node {

class PodSources {
 public:
  Result<json::SharedValue> ConfigMap(std::string_view name) const {
    return Find("configmap", name);
  }
  Result<json::SharedValue> Secret(std::string_view name) const { return Find("secret", name); }
  Result<json::SharedValue> Claim(std::string_view name) const { return Find("claim", name); }
  Result<json::SharedValue> Volume(std::string_view name) const { return Find("volume", name); }
  Result<json::SharedValue> RuntimeClass(std::string_view name) const {
    return Find("runtimeclass", name);
  }
  // A TokenRequest's answer for the audience ("" is the API server's).
  Result<json::SharedValue> Token(std::string_view audience) const {
    return Find("token", audience);
  }

  void Put(std::string_view kind, std::string_view name, Result<json::SharedValue> value);

 private:
  Result<json::SharedValue> Find(std::string_view kind, std::string_view name) const;
  std::map<std::string, Result<json::SharedValue>, std::less<>> found_;
};

// `done` runs once, later; not at all after `client` is destroyed. Tokens that `earlier` has and
// that have a fifth of their life before them are taken from there.
void FetchPodSources(client::Client& client,
                     const json::Value& pod,
                     const std::shared_ptr<const PodSources>& earlier,
                     WallTime now,
                     std::function<void(std::shared_ptr<const PodSources>)> done);

// A volume of files that the agent writes: of a ConfigMap, a Secret and the like.
bool IsOfFiles(const json::Value& volume);
// Whether the pod mounts something whose content may change while it runs.
bool HasChangingVolumes(const json::Value& pod);

}  // namespace swell::node
