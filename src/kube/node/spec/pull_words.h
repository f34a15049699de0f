// What the kubelet says of images: event texts, policies, credentials of pods.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/pod_sources.h"

namespace swell::node {

// "10s", "1m20s", "5m0s": durations as Go prints whole seconds.
std::string GoSeconds(Duration d);
// "850ms", "1.234s", "1m2.5s": as Go prints durations, to the millisecond.
std::string GoMillis(Duration d);

ImageRequest::Policy PullPolicyOf(const json::Value& container);

// "Successfully pulled image …", "… already present on machine", "… stands for programs of this
// machine".
std::string PulledText(std::string_view image, const ImageReady& ready);

struct ImageFailure {
  std::string reason;        // of the container's state: ErrImagePull, InvalidImageName, …
  std::string event_reason;  // of the event with the message
  std::string message;
};
ImageFailure DescribeImageFailure(std::string_view image, const Status& why);

struct PullSecrets {
  std::vector<std::string> docker_configs;
  std::vector<std::string> missing;  // names of Secrets that are not there or of another type
};
// The names in the pod's imagePullSecrets.
std::vector<std::string> PullSecretNames(const json::Value& pod);
PullSecrets ReadPullSecrets(const json::Value& pod, const PodSources& sources);

}  // namespace swell::node
