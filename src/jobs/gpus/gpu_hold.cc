#include "jobs/gpus/gpu_hold.h"

#include <utility>

#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"

namespace swell::jobs {
namespace {

bool UsesGpus(const json::Value& pod) {
  if (!json::GetArray(pod, {"spec", "resourceClaims"}).empty()) return true;
  for (std::string_view key : {api::keys::kGpuFraction, api::keys::kGpuMemory}) {
    if (!api::Annotation(pod, key).empty()) return true;
  }
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr) return false;
  for (const auto& [name, amount] : api::PodAmounts(*spec, api::AmountField::kRequests)) {
    if (name.starts_with("nvidia.com/") && amount.Value() > 0) return true;
  }
  return false;
}

}  // namespace

void HoldToGpuType(json::Value& pod, std::string_view type) {
  // A template that names one would stop the job for ever.
  if (!api::Annotation(pod, api::keys::kHeldGpuType).empty()) {
    json::Remove(pod, {"metadata", "annotations", api::keys::kHeldGpuType});
  }
  if (type.empty() || !api::CheckLabelValue(type).empty()) return;
  json::Set(pod, {"metadata", "annotations", api::keys::kHeldGpuType}, type);
  if (!UsesGpus(pod)) return;
  const json::Value required =
      json::Object{{"key", api::keys::kGpuProduct},
                   {"operator", "In"},
                   {"values", json::Array{boost::json::string_view(type)}}};
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const json::Path path{"spec", "affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"};
  json::Array terms = json::GetArray(pod, path);
  for (json::Value& term : terms) {
    // One that says nothing suits no node.
    if (!term.is_object() || term.get_object().empty()) continue;
    json::Array all = json::GetArray(term, {"matchExpressions"});
    all.push_back(required);
    json::Set(term, {"matchExpressions"}, std::move(all));
  }
  if (terms.empty()) {
    terms.push_back(json::Object{{"matchExpressions", json::Array{required}}});
  }
  json::Set(pod, path, std::move(terms));
}

}  // namespace swell::jobs
