#include "kube/node/spec/pull_words.h"

#include <chrono>
#include <utility>

#include "base/strings.h"

namespace swell::node {

std::string GoSeconds(Duration d) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(d).count();
  return seconds < 60 ? StrCat(seconds, "s") : StrCat(seconds / 60, "m", seconds % 60, "s");
}

std::string GoMillis(Duration d) {
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  if (ms < 1000) return StrCat(ms, "ms");
  const int64_t minutes = ms / 60'000;
  std::string fraction = std::to_string(1000 + ms % 1000).substr(1);
  while (fraction.ends_with('0')) fraction.pop_back();
  return StrCat(minutes > 0 ? StrCat(minutes, "m") : "", ms / 1000 % 60,
                fraction.empty() ? "" : StrCat(".", fraction), "s");
}

ImageRequest::Policy PullPolicyOf(const json::Value& container) {
  const std::string_view policy = json::GetString(container, {"imagePullPolicy"});
  if (policy == "Always") return ImageRequest::Policy::kAlways;
  return policy == "Never" ? ImageRequest::Policy::kNever : ImageRequest::Policy::kIfNotPresent;
}

std::string PulledText(std::string_view image, const ImageReady& ready) {
  if (!ready.instead.empty()) {
    return StrCat("Programs of this machine stand in for image ", Quote(image), ", because ",
                  ready.instead);
  }
  if (ready.own_programs) {
    return StrCat("Container image ", Quote(image),
                  " stands for programs of this machine; the image itself is not used");
  }
  if (!ready.pulled) {
    return StrCat("Container image ", Quote(image), " already present on machine");
  }
  return StrCat("Successfully pulled image ", Quote(image), " in ", GoMillis(ready.took), " (",
                GoMillis(ready.waited), " including waiting). Image size: ", ready.size_bytes,
                " bytes.");
}

ImageFailure DescribeImageFailure(std::string_view image, const Status& why) {
  switch (why.code()) {
    case Code::kInvalid:
      return {"InvalidImageName", "InspectFailed",
              StrCat("Failed to inspect image ", Quote(image), ": ", why.message())};
    case Code::kMethodNotAllowed:
      return {"ErrImageNeverPull", "ErrImageNeverPull",
              StrCat("Container image ", Quote(image),
                     " is not present with pull policy of Never: ", why.message())};
    default:
      return {"ErrImagePull", "Failed",
              StrCat("Failed to pull image ", Quote(image), ": ", why.message())};
  }
}

std::vector<std::string> PullSecretNames(const json::Value& pod) {
  std::vector<std::string> names;
  for (const json::Value& item : json::GetArray(pod, {"spec", "imagePullSecrets"})) {
    const std::string_view name = json::GetString(item, {"name"});
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

PullSecrets ReadPullSecrets(const json::Value& pod, const PodSources& sources) {
  PullSecrets out;
  for (const std::string& name : PullSecretNames(pod)) {
    auto secret = sources.Secret(name);
    std::optional<std::string> config, legacy;
    if (secret.ok()) {
      config = Base64Decode(json::GetString(**secret, {"data", ".dockerconfigjson"}));
      legacy = Base64Decode(json::GetString(**secret, {"data", ".dockercfg"}));
    }
    if (config && !config->empty()) {
      out.docker_configs.push_back(std::move(*config));
    } else if (legacy && !legacy->empty()) {
      out.docker_configs.push_back(StrCat("{\"auths\":", *legacy, "}"));
    } else {
      out.missing.push_back(name);
    }
  }
  return out;
}

}  // namespace swell::node
