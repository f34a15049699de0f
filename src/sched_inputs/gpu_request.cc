#include "sched_inputs/gpu_request.h"

#include <cstdlib>
#include <string>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/wrong_field.h"

namespace swell::sched_inputs {
namespace {

constexpr int64_t kDevicesMax = 1024;

Status Wrong(std::string_view at,
             std::string_view key,
             std::string_view value,
             std::string_view message) {
  return controllers::WrongText(StrCat(at, "metadata.annotations[", key, "]"), value, message);
}

// An annotation as its author wrote it: with Swell's key, or with KAI's, from which the API server
// copies it.
struct Written {
  std::string_view key, text;
};

Written ReadShare(const json::Value& pod, std::string_view key) {
  const std::string_view text = api::Annotation(pod, key);
  for (const auto& [theirs, ours] : api::SharesOfKai()) {
    const std::string_view copied = ours == key ? api::Annotation(pod, theirs) : "";
    if (!copied.empty() && (text.empty() || text == copied)) return {theirs, copied};
  }
  return {key, text};
}

Status CheckNumber(const Written& written,
                   std::string_view at,
                   int64_t least,
                   int64_t most,
                   std::string_view message) {
  if (written.text.empty()) return Status::Ok();
  const auto number = ParseInt(written.text);
  if (number && *number >= least && *number <= most) return Status::Ok();
  return Wrong(at, written.key, written.text, message);
}

bool RequestsGpus(const json::Value& pod) {
  for (const json::Value& container : api::Containers(pod)) {
    for (std::string_view list : {"limits", "requests"}) {
      if (json::Find(container, {"resources", list, api::kGpuResource}) != nullptr) return true;
    }
  }
  return false;
}

// Far beyond what a node has, and far below where sums would overflow.
constexpr int64_t kAmountMax = int64_t{1} << 60;

// As the API server does of pods: amounts of what is counted in pieces are whole.
Status CheckAmount(std::string_view field, std::string_view resource, const json::Value& amount) {
  const auto quantity = api::Quantity::FromJson(amount);
  if (!quantity.ok()) {
    return controllers::WrongField(field, StrCat("Invalid value: ", json::Print(amount),
                                                 ": must be an amount such as 2, 500m or 8Gi"));
  }
  if (quantity->MilliValue() < 0) {
    return controllers::WrongField(
        field, StrCat("Invalid value: ", json::Print(amount), ": must not be negative"));
  }
  if (quantity->Value() > kAmountMax) {
    return controllers::WrongField(
        field, StrCat("Invalid value: ", json::Print(amount), ": is too large: at most 1Ei"));
  }
  const bool pieces = resource.find('/') != std::string_view::npos;
  if (pieces && quantity->MilliValue() % 1000 != 0) {
    return controllers::WrongField(
        field, StrCat("Invalid value: ", json::Print(amount), ": must be an integer",
                      resource == api::kGpuResource
                          ? StrCat("; a part of a GPU is asked for by the annotation ",
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
  const Written fraction = ReadShare(pod, api::keys::kGpuFraction);
  const Written memory = ReadShare(pod, api::keys::kGpuMemory);
  const Written devices = ReadShare(pod, api::keys::kGpuFractionDevices);
  if (!fraction.text.empty() && ParseGpuFraction(fraction.text).value_or(0) < kGpuFractionMin) {
    return Wrong(at, fraction.key, fraction.text,
                 "must be a part of a GPU, at least 0.01 and at most 1");
  }
  SWELL_RETURN_IF_ERROR(
      CheckNumber(memory, at, 1, INT32_MAX, "must be a number of MiB of a GPU's memory, above 0"));
  SWELL_RETURN_IF_ERROR(
      CheckNumber(devices, at, 1, kDevicesMax, "must be a number of GPUs, at least 1"));
  SWELL_RETURN_IF_ERROR(
      CheckNumber({api::keys::kMemberPriority, api::Annotation(pod, api::keys::kMemberPriority)},
                  at, INT32_MIN, INT32_MAX, "must be a whole number"));
  if (!fraction.text.empty() && !memory.text.empty()) {
    return Wrong(at, memory.key, memory.text, StrCat("there is ", fraction.key, " already"));
  }
  const Written& share = fraction.text.empty() ? memory : fraction;
  if (!devices.text.empty() && share.text.empty()) {
    return Wrong(at, devices.key, devices.text,
                 StrCat("says on how many GPUs a part is taken, and there is no ", fraction.key));
  }
  if (!share.text.empty() && RequestsGpus(pod)) {
    return Wrong(at, share.key, share.text,
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

}  // namespace swell::sched_inputs
