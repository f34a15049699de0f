// Object metadata: reading and writing the fields every object has, and the words of the API.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

// RFC 3339 in UTC: "2026-01-01T00:00:00Z", with microseconds for MicroTime.
std::string FormatTime(WallTime time);
std::string FormatMicroTime(WallTime time);
// Any RFC 3339 offset and fraction. Times beyond WallTime (the years 1677 to 2262), such as Go's
// zero time, count as its first or last instant.
std::optional<WallTime> ParseTime(std::string_view text);

// The object's spec, or null.
inline const json::Value& Spec(const json::Value& object) {
  static const json::Value kNone;
  const json::Value* spec = json::Find(object, {"spec"});
  return spec != nullptr ? *spec : kNone;
}
inline std::string_view Name(const json::Value& object) {
  return json::GetString(object, {"metadata", "name"});
}
inline std::string_view Namespace(const json::Value& object) {
  return json::GetString(object, {"metadata", "namespace"});
}
inline std::string_view Uid(const json::Value& object) {
  return json::GetString(object, {"metadata", "uid"});
}
// "ns/name", or "name" for cluster-scoped objects.
std::string KeyOf(const json::Value& object);
uint64_t ResourceVersion(const json::Value& object);  // 0 when absent or malformed
std::string_view Label(const json::Value& object, std::string_view key);
std::string_view Annotation(const json::Value& object, std::string_view key);
bool IsDeleting(const json::Value& object);
WallTime CreationTime(const json::Value& object);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool block_owner_deletion = false;
};
std::vector<OwnerReference> Owners(const json::Value& object);
std::optional<OwnerReference> ControllerOf(const json::Value& object);
json::Value MakeOwnerReference(const json::Value& owner, bool controller = true);

// Conditions: {type, status, reason, message, lastTransitionTime, …} in status.conditions.
const json::Value* FindCondition(const json::Value& object, std::string_view type);
bool ConditionIsTrue(const json::Value& object, std::string_view type);
// Sets the condition in a conditions array; lastTransitionTime moves only when status changes.
// Returns whether anything changed.
bool SetCondition(json::Array& conditions,
                  std::string_view type,
                  std::string_view status,
                  std::string_view reason,
                  std::string_view message,
                  WallTime now);

// Durations as kubectl prints them: 5s, 3m12s, 2d4h.
std::string HumanDuration(Duration d);

// Names. Empty answer: fine; else why not, as Kubernetes words it.
std::string CheckDnsSubdomain(std::string_view name);
std::string CheckDnsLabel(std::string_view name);
std::string CheckQualifiedName(std::string_view name);  // label and annotation keys
std::string CheckLabelValue(std::string_view value);

}  // namespace swell::api
