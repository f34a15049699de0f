#include "cli/views/pod_view.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {

int64_t MilliGpus(const json::Value& pod) {
  std::string_view fraction = api::Annotation(pod, api::keys::kGpuFraction);
  if (!fraction.empty()) {
    std::string text(fraction);
    int64_t devices = ParseInt(api::Annotation(pod, api::keys::kGpuFractionDevices)).value_or(1);
    return std::llround(std::strtod(text.c_str(), nullptr) * 1000) * devices;
  }
  if (!api::Annotation(pod, api::keys::kGpuMemory).empty()) {
    const std::string share(api::Annotation(pod, api::keys::kGpuShare));
    return std::llround(std::strtod(share.c_str(), nullptr) * 1000);
  }
  const api::Amounts requests = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto gpus = requests.find(api::kGpuResource);
  const int64_t requested = gpus == requests.end() ? 0 : gpus->second.MilliValue();
  if (!api::HasDeviceClaims(pod)) return requested;
  // What its claims gave it is known by its devices alone.
  const auto devices = Split(api::Annotation(pod, api::keys::kGpuDevices), ',').size();
  return std::max<int64_t>(requested, static_cast<int64_t>(devices) * 1000);
}

std::string GpuText(int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 == 0) return text;
  std::string rest = std::to_string(1000 + milli % 1000).substr(1);
  while (rest.back() == '0') rest.pop_back();
  return StrCat(text, ".", rest);
}

std::string GpusText(int64_t milli) {
  return StrCat(GpuText(milli), milli == 1000 ? " GPU" : " GPUs");
}

std::string AskWhy(const json::Value& pod) {
  return StrCat("to see why: swell why ", api::Name(pod), " -n ", api::Namespace(pod));
}

namespace {

// Why the pod still initialises ("Init:1/2", "Init:ErrImagePull"); empty once it has.
std::string InitWord(const json::Value& pod) {
  const std::vector<api::ContainerStatus> inits = api::InitContainerStatuses(pod);
  for (size_t i = 0; i < inits.size(); ++i) {
    const api::ContainerStatus& init = inits[i];
    if (init.started && api::HasSidecar(pod, init.name)) continue;
    if (init.Ended()) {
      if (init.exit_code == 0) continue;
      return StrCat("Init:", init.reason.empty() ? "Error" : init.reason);
    }
    const bool usual = !init.Waits() || init.reason.empty() || init.reason == "PodInitializing";
    return usual ? StrCat("Init:", i, "/", api::InitContainers(pod).size())
                 : StrCat("Init:", init.reason);
  }
  return "";
}

// What its containers say of the pod, or else `word`.
std::string ContainersWord(const json::Value& pod, std::string word) {
  bool running = false;
  for (const api::ContainerStatus& container : api::ContainerStatuses(pod)) {
    if (container.Runs()) {
      running = true;
    } else if (!container.reason.empty()) {
      word = container.reason;
    }
  }
  return word == "Completed" && running ? "Running" : word;
}

}  // namespace

std::string PodStatusWord(const json::Value& pod) {
  if (api::IsDeleting(pod)) return "Terminating";
  if (std::string init = InitWord(pod); !init.empty()) return init;
  std::string word(api::StatusReason(pod));
  if (word.empty()) word = api::StatusPhase(pod);
  return ContainersWord(pod, word.empty() ? "Unknown" : word);
}

// Sidecars count, as in kubectl's table.
std::string PodReady(const json::Value& pod) {
  int64_t ready = 0;
  auto all = static_cast<int64_t>(api::Containers(pod).size());
  for (const api::ContainerStatus& one : api::ContainerStatuses(pod)) ready += one.ready;
  for (const api::ContainerStatus& one : api::InitContainerStatuses(pod)) {
    ready += one.ready && api::HasSidecar(pod, one.name);
  }
  const json::Array& inits = api::InitContainers(pod);
  all += std::count_if(inits.begin(), inits.end(), api::IsSidecar);
  return StrCat(ready, "/", all);
}

}  // namespace swell::cli
