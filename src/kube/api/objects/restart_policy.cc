#include "kube/api/objects/restart_policy.h"

#include <algorithm>

namespace swell::api {
namespace {

constexpr std::string_view kRules = "restartPolicyRules";

bool IsAbout(const json::Value& rule, int64_t exit_code) {
  const json::Array& codes = json::GetArray(rule, {"exitCodes", "values"});
  const bool listed = std::find(codes.begin(), codes.end(), json::Value(exit_code)) != codes.end();
  return listed == (json::GetString(rule, {"exitCodes", "operator"}) == "In");
}

}  // namespace

bool RestartsAfter(const json::Value& pod, const json::Value& container, int64_t exit_code) {
  const json::Array& rules = json::GetArray(container, {kRules});
  if (std::any_of(rules.begin(), rules.end(),
                  [exit_code](const json::Value& rule) { return IsAbout(rule, exit_code); })) {
    return true;  // each action is a restart
  }
  const std::string_view policy = json::GetString(
      container, {"restartPolicy"}, json::GetString(pod, {"spec", "restartPolicy"}, "Always"));
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

bool MayRestartTogether(const json::Value& pod) {
  for (std::string_view list : {"containers", "initContainers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      const json::Array& rules = json::GetArray(container, {kRules});
      const bool together = std::any_of(rules.begin(), rules.end(), [](const json::Value& rule) {
        return json::GetString(rule, {"action"}) == "RestartAllContainers";
      });
      if (together) return true;
    }
  }
  return false;
}

}  // namespace swell::api
