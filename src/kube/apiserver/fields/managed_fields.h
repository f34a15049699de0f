// Managers: metadata.managedFields as a list that can be worked on: who wrote which fields of an
// object, how and through which subresource.
// - Threads: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/apiserver/fields/field_set.h"

namespace swell::apiserver {

// One entry of metadata.managedFields.
struct FieldManager {
  std::string name;
  std::string operation;  // Apply or Update
  std::string api_version;
  std::string subresource;
  std::string time;
  FieldSet fields;
  FieldSet before;      // as it was stored: an unchanged entry keeps its time
  bool writes = false;  // this write is its own; an entry that only loses fields keeps its time

  // `"kubectl-create" using v1`, as conflicts name it.
  std::string ToString() const;
};

class Managers {
 public:
  static Managers Read(const json::Value& object);

  bool empty() const { return list_.empty(); }
  std::vector<FieldManager>& list() { return list_; }
  // The entry of that name, operation and subresource. A missing one is added, which invalidates
  // earlier references.
  FieldManager& Entry(std::string_view name,
                      std::string_view operation,
                      std::string_view api_version,
                      std::string_view subresource);
  // Writes the list into the object in Kubernetes' order, without entries that have no fields. If
  // there are too many updaters, the oldest become one entry.
  void Write(WallTime now, json::Value& object) &&;

 private:
  void MergeOldest(WallTime now);

  std::vector<FieldManager> list_;
};

// What differs between two states, as sets of fields.
struct Changes {
  FieldSet written;  // new or of another value
  FieldSet removed;

  bool empty() const { return written.empty() && removed.empty(); }
};

// From `old` to `now`. Without `old` the object is new: whatever it has is written, except that the
// parts which every object of a typed kind has, even an empty one, are not fields of their own.
Changes CompareFields(const json::Value* old, const json::Value& now, const api::Schema* schema);

// Takes out what nobody manages: identity, and what the server itself writes.
void StripUnmanaged(FieldSet& set);

}  // namespace swell::apiserver
