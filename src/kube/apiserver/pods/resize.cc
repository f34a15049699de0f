// The resize subresource of pods (KEP 1287): other amounts of CPU and memory for the containers of
// an existing pod, or for the pod as a whole (KEP 5419). The node decides when to give them, and
// reports it in the status.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/access/project_limits.h"
#include "kube/apiserver/admission/limit_range.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

using Errors = std::vector<api::FieldError>;

constexpr std::string_view kLists[] = {"containers", "initContainers"};

// Names the containers that were added, removed, renamed or reordered.
void CheckNames(std::string_view list,
                const json::Array& now,
                const json::Array& was,
                Errors& errors) {
  if (now.size() != was.size()) {
    errors.push_back(ForbiddenValue(StrCat("spec.", list),
                                    StrCat(list, " may not be added or removed on resize")));
    return;
  }
  for (size_t i = 0; i < was.size(); ++i) {
    if (api::ContainerName(now[i]) == api::ContainerName(was[i])) continue;
    errors.push_back(ForbiddenValue(StrCat("spec.", list, "[", i, "].name"),
                                    StrCat(list, " may not be renamed or reordered on resize")));
  }
}

// Whether the container, or the pod of this spec, would lose an amount that it had.
bool LosesAmount(const json::Value& container, const json::Value& old, std::string_view field) {
  const json::Object& had = json::GetObject(old, {"resources", field});
  return std::any_of(had.begin(), had.end(), [&](const auto& item) {
    return json::Find(container, {"resources", field, std::string_view(item.key())}) == nullptr;
  });
}

// Whether anything but CPU and memory differs, claims included.
bool ChangesOtherAmounts(const json::Value& container, const json::Value& old) {
  for (const std::string_view field : {"requests", "limits"}) {
    api::Amounts now = api::ReadAmounts(container, {"resources", field});
    api::Amounts was = api::ReadAmounts(old, {"resources", field});
    for (const std::string& name : {std::string("cpu"), std::string("memory")}) {
      now.erase(name);
      was.erase(name);
    }
    if (now != was) return true;
  }
  return json::GetArray(container, {"resources", "claims"}) !=
         json::GetArray(old, {"resources", "claims"});
}

bool RestartsOnResize(const json::Value& container) {
  const json::Array& policies = json::GetArray(container, {"resizePolicy"});
  return std::any_of(policies.begin(), policies.end(), [](const json::Value& policy) {
    return json::GetString(policy, {"restartPolicy"}) == "RestartContainer";
  });
}

void CheckContainer(const json::Value& container,
                    const json::Value& old,
                    const std::string& path,
                    Errors& errors) {
  for (const std::string_view field : {"requests", "limits"}) {
    if (!LosesAmount(container, old, field)) continue;
    errors.push_back(ForbiddenValue(StrCat(path, ".resources.", field),
                                    StrCat("resource ", field, " cannot be removed")));
  }
  const bool init = path.starts_with("spec.initContainers");
  if (ChangesOtherAmounts(container, old)) {
    errors.push_back(
        ForbiddenValue(init ? path : "spec",
                       init ? "only cpu and memory resources for init or sidecar containers are "
                              "mutable"
                            : "only cpu and memory resources are mutable"));
  }
  if (init && !api::IsSidecar(container) && !json::Equal(container, old) &&
      RestartsOnResize(container)) {
    errors.push_back(ForbiddenValue(path,
                                    "non-sidecar init containers with a resize policy of "
                                    "RestartContainer cannot be resized"));
  }
}

void CheckWholePod(const json::Value& pod, const json::Value& old, Errors& errors) {
  const json::Value& spec = api::Spec(pod);
  for (const std::string_view field : {"requests", "limits"}) {
    if (!LosesAmount(spec, api::Spec(old), field)) continue;
    errors.push_back(ForbiddenValue(StrCat("spec.resources.", field),
                                    StrCat("pod-level resource ", field, " cannot be removed")));
  }
  if (ChangesOtherAmounts(spec, api::Spec(old))) {
    errors.push_back(
        ForbiddenValue("spec", "only cpu and memory resources are mutable at pod-level"));
  }
}

}  // namespace

Status CheckResize(Admission& admission, json::Value& pod, const json::Value& old) {
  if (json::Value* spec = json::FindMutable(pod, {"spec"})) api::CompleteWholePod(*spec);
  Errors errors = api::ValidatePodAmounts(api::Spec(pod));
  if (json::GetString(old, {"spec", "os", "name"}) == "windows") {
    errors.push_back(ForbiddenValue("", "windows pods cannot be resized"));
  }
  const std::string_view class_before = api::QosClass(old);
  if (api::QosClass(pod) != class_before) {
    errors.push_back(
        InvalidValue("spec", class_before, "Pod QOS Class may not change as a result of resizing"));
  }
  CheckWholePod(pod, old, errors);
  const bool same = std::all_of(std::begin(kLists), std::end(kLists), [&](std::string_view list) {
    return api::SameContainers(json::GetArray(pod, {"spec", list}),
                               json::GetArray(old, {"spec", list}));
  });
  for (const std::string_view list : kLists) {
    const json::Array& now = json::GetArray(pod, {"spec", list});
    const json::Array& was = json::GetArray(old, {"spec", list});
    if (!same) {
      CheckNames(list, now, was, errors);
      continue;
    }
    for (size_t i = 0; i < was.size(); ++i) {
      CheckContainer(now[i], was[i], StrCat("spec.", list, "[", i, "]"), errors);
    }
  }
  if (!errors.empty()) return InvalidError(admission.kind, admission.name, errors);
  SWELL_RETURN_IF_ERROR(CheckProjectLimits(admission, pod, old));
  return CheckLimits(admission, pod);
}

}  // namespace swell::apiserver
