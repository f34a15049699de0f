#include "kube/apiserver/admission/limit_range.h"

#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kAnnotation = "kubernetes.io/limit-ranger";

// Fills what the container leaves out; tells what in `notes`.
void ApplyDefaults(const json::Value& limit,
                   std::string_view what,
                   json::Value& container,
                   std::string& notes) {
  for (const auto& [from, to, noun] :
       {std::tuple("defaultRequest", "requests", "request"), {"default", "limits", "limit"}}) {
    std::set<std::string> set;
    for (const auto& [key, value] : json::GetObject(limit, {from})) {
      const std::string_view name(key.data(), key.size());
      if (json::Find(container, {"resources", to, name}) != nullptr) continue;
      // A limit of the container's own is its request, too: nothing is left out then.
      if (std::string_view(to) == "requests" &&
          json::Find(container, {"resources", "limits", name}) != nullptr) {
        continue;
      }
      json::Set(container, {"resources", to, name}, value);
      set.emplace(name);
    }
    if (set.empty()) continue;
    notes += StrCat(notes.empty() ? "LimitRanger plugin set: " : "; ",
                    Join(std::vector<std::string>(set.begin(), set.end()), ", "), " ", noun,
                    " for ", what, " ", json::GetString(container, {"name"}));
  }
}

struct Bounds {
  std::string type;  // Container, Pod
  api::Amounts least, most, ratio;
};

void CheckBounds(const Bounds& bounds,
                 const api::Amounts& requests,
                 const api::Amounts& limits,
                 std::vector<std::string>& errors) {
  auto find = [](const api::Amounts& amounts, const std::string& name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? nullptr : &found->second;
  };
  for (const auto& [name, least] : bounds.least) {
    const api::Quantity* request = find(requests, name);
    const std::string usage =
        StrCat("minimum ", name, " usage per ", bounds.type, " is ", least.ToString());
    if (request == nullptr) {
      errors.push_back(StrCat(usage, ".  No request is specified"));
    } else if (*request < least) {
      errors.push_back(StrCat(usage, ", but request is ", request->ToString()));
    }
  }
  for (const auto& [name, most] : bounds.most) {
    const api::Quantity* limit = find(limits, name);
    const api::Quantity* request = find(requests, name);
    const std::string usage =
        StrCat("maximum ", name, " usage per ", bounds.type, " is ", most.ToString());
    if (limit == nullptr) {
      errors.push_back(StrCat(usage, ".  No limit is specified"));
      continue;
    }
    if (*limit > most) {
      errors.push_back(StrCat(usage, ", but limit is ", limit->ToString()));
    } else if (request != nullptr && *request > most) {
      errors.push_back(StrCat(usage, ", but request is ", request->ToString()));
    }
  }
  for (const auto& [name, most] : bounds.ratio) {
    const api::Quantity* limit = find(limits, name);
    const api::Quantity* request = find(requests, name);
    if (limit == nullptr || request == nullptr || request->zero()) continue;
    const double ratio =
        static_cast<double>(limit->MilliValue()) / static_cast<double>(request->MilliValue());
    if (ratio * 1000 <= static_cast<double>(most.MilliValue())) continue;
    errors.push_back(StrCat(name, " max limit to request ratio per ", bounds.type, " is ",
                            most.ToString(), ", but provided ratio is ", std::to_string(ratio)));
  }
}

void CheckPod(const json::Value& limit, const json::Value& pod, std::vector<std::string>& errors) {
  Bounds bounds{std::string(json::GetString(limit, {"type"})), api::ReadAmounts(limit, {"min"}),
                api::ReadAmounts(limit, {"max"}),
                api::ReadAmounts(limit, {"maxLimitRequestRatio"})};
  if (bounds.type == "Pod") {
    return CheckBounds(bounds, api::PodAmounts(api::Spec(pod), api::AmountField::kRequests),
                       api::PodAmounts(api::Spec(pod), api::AmountField::kLimits), errors);
  }
  if (bounds.type != "Container") return;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      api::Amounts requests = api::ReadAmounts(container, {"resources", "requests"});
      const api::Amounts limits = api::ReadAmounts(container, {"resources", "limits"});
      requests.insert(limits.begin(), limits.end());
      CheckBounds(bounds, requests, limits, errors);
    }
  }
}

Status Refuse(const Admission& admission, const std::vector<std::string>& errors) {
  if (errors.empty()) return Status::Ok();
  return ForbiddenError(admission.kind, admission.name,
                        errors.size() == 1 ? errors[0] : StrCat("[", Join(errors, ", "), "]"));
}

template <class F>
Status ForEachLimit(Admission& admission, F&& visit) {
  SWELL_ASSIGN_OR_RETURN(const store::Listing ranges,
                         admission.core.store.List("limitranges", admission.ns));
  for (const store::EntryPtr& entry : ranges.entries) {
    const json::SharedValue range = entry->Parsed();
    for (const json::Value& limit : json::GetArray(*range, {"spec", "limits"})) visit(limit);
  }
  return Status::Ok();
}

}  // namespace

Status LimitPod(Admission& admission, json::Value& pod) {
  if (admission.core.store.Count("limitranges") == 0) return Status::Ok();
  std::string notes;
  SWELL_RETURN_IF_ERROR(ForEachLimit(admission, [&](const json::Value& limit) {
    if (json::GetString(limit, {"type"}) != "Container") return;
    for (const auto& [list, what] :
         {std::pair("containers", "container"), {"initContainers", "init container"}}) {
      json::Value* containers = json::FindMutable(pod, {"spec", list});
      if (containers == nullptr || !containers->is_array()) continue;
      for (json::Value& container : containers->get_array()) {
        if (container.is_object()) ApplyDefaults(limit, what, container, notes);
      }
    }
  }));
  if (!notes.empty()) json::Set(pod, {"metadata", "annotations", kAnnotation}, notes);
  return Status::Ok();
}

Status CheckLimits(Admission& admission, const json::Value& pod) {
  if (admission.core.store.Count("limitranges") == 0) return Status::Ok();
  std::vector<std::string> errors;
  SWELL_RETURN_IF_ERROR(
      ForEachLimit(admission, [&](const json::Value& limit) { CheckPod(limit, pod, errors); }));
  return Refuse(admission, errors);
}

Status LimitClaim(Admission& admission, const json::Value& claim) {
  if (admission.core.store.Count("limitranges") == 0) return Status::Ok();
  const api::Amounts requests = api::ReadAmounts(claim, {"spec", "resources", "requests"});
  std::vector<std::string> errors;
  SWELL_RETURN_IF_ERROR(ForEachLimit(admission, [&](const json::Value& limit) {
    if (json::GetString(limit, {"type"}) != "PersistentVolumeClaim") return;
    // A claim's request is all there is: no limit to look at.
    const Bounds bounds{"PersistentVolumeClaim", api::ReadAmounts(limit, {"min"}), {}, {}};
    CheckBounds(bounds, requests, {}, errors);
    for (const auto& [name, most] : api::ReadAmounts(limit, {"max"})) {
      const auto asked = requests.find(name);
      if (asked == requests.end() || asked->second <= most) continue;
      errors.push_back(StrCat("maximum ", name, " usage per PersistentVolumeClaim is ",
                              most.ToString(), ", but request is ", asked->second.ToString()));
    }
  }));
  return Refuse(admission, errors);
}

}  // namespace swell::apiserver
