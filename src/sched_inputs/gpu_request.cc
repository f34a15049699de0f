#include "sched_inputs/gpu_request.h"

#include <cstdlib>
#include <string>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/wrong_field.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kGpus = "nvidia.com/gpu";
constexpr int64_t kDevicesMax = 1024;

Status Wrong(std::string_view at,
             std::string_view key,
             std::string_view value,
             std::string_view message) {
  return WrongText(StrCat(at, "metadata.annotations[", key, "]"), value, message);
}

Status CheckNumber(const json::Value& pod,
                   std::string_view at,
                   std::string_view key,
                   int64_t least,
                   int64_t most,
                   std::string_view message) {
  const std::string_view text = api::Annotation(pod, key);
  if (text.empty()) return Status::Ok();
  const auto number = ParseInt(text);
  if (number && *number >= least && *number <= most) return Status::Ok();
  return Wrong(at, key, text, message);
}

bool RequestsGpus(const json::Value& pod) {
  for (const json::Value& container : api::Containers(pod)) {
    for (std::string_view list : {"limits", "requests"}) {
      if (json::Find(container, {"resources", list, kGpus}) != nullptr) return true;
    }
  }
  return false;
}

// As the API server does of pods: amounts of what is counted in pieces are whole.
Status CheckAmount(std::string_view field, std::string_view resource, const json::Value& amount) {
  const auto quantity = api::Quantity::FromJson(amount);
  if (!quantity.ok()) {
    return WrongField(field, StrCat("Invalid value: ", json::Print(amount),
                                    ": must be an amount such as 2, 500m or 8Gi"));
  }
  const bool pieces = resource.find('/') != std::string_view::npos;
  if (pieces && quantity->MilliValue() % 1000 != 0) {
    return WrongField(
        field,
        StrCat("Invalid value: ", json::Print(amount), ": must be an integer",
               resource == kGpus ? StrCat("; a part of a GPU is asked for by the annotation ",
                                          api::keys::kGpuFraction)
                                 : ""));
  }
  return Status::Ok();
}

}  // namespace

std::optional<double> ParseGpuFraction(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !(value > 0 && value <= 1)) return std::nullopt;
  return value;
}

Status ValidateGpuRequest(const json::Value& pod, std::string_view at) {
  const std::string_view fraction = api::Annotation(pod, api::keys::kGpuFraction);
  const std::string_view memory = api::Annotation(pod, api::keys::kGpuMemory);
  const std::string_view devices = api::Annotation(pod, api::keys::kGpuFractionDevices);
  if (!fraction.empty() && !ParseGpuFraction(fraction)) {
    return Wrong(at, api::keys::kGpuFraction, fraction,
                 "must be a part of a GPU, above 0 and at most 1");
  }
  SWELL_RETURN_IF_ERROR(CheckNumber(pod, at, api::keys::kGpuMemory, 1, INT32_MAX,
                                    "must be a number of MiB of a GPU's memory, above 0"));
  SWELL_RETURN_IF_ERROR(CheckNumber(pod, at, api::keys::kGpuFractionDevices, 1, kDevicesMax,
                                    "must be a number of GPUs, at least 1"));
  SWELL_RETURN_IF_ERROR(CheckNumber(pod, at, api::keys::kMemberPriority, INT32_MIN, INT32_MAX,
                                    "must be a whole number"));
  if (!fraction.empty() && !memory.empty()) {
    return Wrong(at, api::keys::kGpuMemory, memory,
                 StrCat("there is ", api::keys::kGpuFraction, " already"));
  }
  const bool shares = !fraction.empty() || !memory.empty();
  if (!devices.empty() && !shares) {
    return Wrong(
        at, api::keys::kGpuFractionDevices, devices,
        StrCat("says on how many GPUs a part is taken, and there is no ", api::keys::kGpuFraction));
  }
  if (shares && RequestsGpus(pod)) {
    return Wrong(at, fraction.empty() ? api::keys::kGpuMemory : api::keys::kGpuFraction,
                 fraction.empty() ? memory : fraction,
                 "a pod that shares a GPU requests no whole ones (nvidia.com/gpu)");
  }
  return Status::Ok();
}

Status CheckTemplateAsks(const json::Value& pod_template, std::string_view at) {
  for (std::string_view list : {"initContainers", "containers"}) {
    const json::Array& containers = json::GetArray(pod_template, {"spec", list});
    for (size_t i = 0; i < containers.size(); ++i) {
      for (std::string_view amounts : {"limits", "requests"}) {
        for (const auto& one : json::GetObject(containers[i], {"resources", amounts})) {
          const std::string_view resource(one.key().data(), one.key().size());
          SWELL_RETURN_IF_ERROR(CheckAmount(
              StrCat(at, "spec.", list, "[", i, "].resources.", amounts, "[", resource, "]"),
              resource, one.value()));
        }
      }
    }
  }
  return ValidateGpuRequest(pod_template, at);
}

}  // namespace swell::controllers
