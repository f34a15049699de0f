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
inline std::string_view KindOf(const json::Value& object) {
  return json::GetString(object, {"kind"});
}
inline std::string_view ApiVersionOf(const json::Value& object) {
  return json::GetString(object, {"apiVersion"});
}
// The items of a list; empty for an object that has no items.
inline const json::Array& Items(const json::Value& list) { return json::GetArray(list, {"items"}); }
// The token for the next page of a list; empty on its last.
inline std::string_view ContinueToken(const json::Value& list) {
  return json::GetString(list, {"metadata", "continue"});
}
// "ns/name", or "name" for cluster-scoped objects.
std::string KeyOf(const json::Value& object);
uint64_t ResourceVersion(const json::Value& object);  // 0 when absent or malformed
// As the server wrote it: other servers' versions need not be numbers.
inline std::string_view ResourceVersionText(const json::Value& object) {
  return json::GetString(object, {"metadata", "resourceVersion"});
}
inline const json::Object& Labels(const json::Value& object) {
  return json::GetObject(object, {"metadata", "labels"});
}
inline const json::Object& Annotations(const json::Value& object) {
  return json::GetObject(object, {"metadata", "annotations"});
}
inline const json::Array& Finalizers(const json::Value& object) {
  return json::GetArray(object, {"metadata", "finalizers"});
}
bool HasFinalizer(const json::Value& object, std::string_view name);
json::Value WithoutFinalizer(json::Value object, std::string_view name);
// status, or null.
inline const json::Value* FindStatus(const json::Value& object) {
  return json::Find(object, {"status"});
}
// status.phase; empty without one. Pods have a function of their own (objects/pod.h).
inline std::string_view StatusPhase(const json::Value& object) {
  return json::GetString(object, {"status", "phase"});
}
// status.reason and status.message: why the object is in its phase.
inline std::string_view StatusReason(const json::Value& object) {
  return json::GetString(object, {"status", "reason"});
}
inline std::string_view StatusMessage(const json::Value& object) {
  return json::GetString(object, {"status", "message"});
}
std::string_view Label(const json::Value& object, std::string_view key);
std::string_view Annotation(const json::Value& object, std::string_view key);
bool IsDeleting(const json::Value& object);
WallTime CreationTime(const json::Value& object);  // 1970 for an object without one
// As the server wrote it.
inline std::string_view CreationTimestamp(const json::Value& object) {
  return json::GetString(object, {"metadata", "creationTimestamp"});
}
std::optional<WallTime> DeletionTime(const json::Value& object);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool block_owner_deletion = false;
};
std::vector<OwnerReference> Owners(const json::Value& object);
std::optional<OwnerReference> ControllerOf(const json::Value& object);
json::Value MakeOwnerReference(const json::Value& owner, bool controller = true);

// Names the object to others: an ObjectReference, without what the object does not say.
json::Object ObjectReferenceTo(const json::Value& object);

// One of status.conditions. Its texts are valid while the object lives.
struct Condition {
  explicit Condition(const json::Value& document);
  explicit Condition(const json::Value&&) = delete;

  std::string_view type, status, reason, message, last_transition_time;
  const json::Value* document;  // never null

  bool IsTrue() const { return status == "True"; }
  bool IsFalse() const { return status == "False"; }
  // When the status became what it is.
  std::optional<WallTime> Since() const { return ParseTime(last_transition_time); }
};
std::vector<Condition> Conditions(const json::Value& object);
std::optional<Condition> FindCondition(const json::Value& object, std::string_view type);
// The same in a status that is not part of an object yet.
std::optional<Condition> FindConditionIn(const json::Value& status, std::string_view type);
bool ConditionIsTrueIn(const json::Value& status, std::string_view type);
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
