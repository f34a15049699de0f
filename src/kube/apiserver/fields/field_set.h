// FieldSet: a set of fields of an object, as managedFields keeps them (FieldsV1).
//
// A tree whose edges are path elements in FieldsV1's spelling: f:NAME a field, k:{"name":"a"} an
// item of a keyed list, v:VALUE a member of a set. A member is a field that is owned itself.
//
// - Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/schema/schema.h"

namespace swell::apiserver {

struct FieldSet {
  struct Child;

  bool member = false;
  std::vector<Child> children;  // sorted by element, each once

  bool empty() const { return !member && children.empty(); }
  const FieldSet* Find(std::string_view element) const;
  FieldSet* Find(std::string_view element);
  void Erase(std::string_view element);
  // After children came in another order.
  void Sort();

  static FieldSet FromJson(const json::Value& fields_v1, int depth = 0);
  json::Value ToJson() const;
  bool operator==(const FieldSet& other) const;
};

struct FieldSet::Child {
  std::string element;
  FieldSet set;
  bool operator==(const Child& other) const = default;
};

// Whether a value is owned in parts: objects and keyed lists, unless the schema says atomic.
bool HasParts(const json::Value& value, const api::Schema* schema);

struct Part {
  std::string element;
  const json::Value* value;
  const api::Schema* schema;            // null when unknown
  const api::SchemaField* declared_as;  // null for keys of maps and for items
};
// The parts of a value that has some, sorted by element; of equal keys the first.
std::vector<Part> PartsOf(const json::Value& value, const api::Schema* schema);
// The first duplicate among the elements of a list; empty: all differ.
std::string ElementThereTwice(const json::Value& value, const api::Schema* schema);

// The fields that a document sets, as an apply owns them.
FieldSet FieldsOf(const json::Value& value, const api::Schema* schema);
void AddFields(FieldSet& to, FieldSet from);
// Takes away every member of `what`.
void RemoveFields(FieldSet& from, const FieldSet& what);
// The members that are in both.
FieldSet CommonFields(const FieldSet& a, const FieldSet& b);

// Finds the parts of a document by their elements. The document outlives it, and stays as it is.
class Places {
 public:
  Places(const json::Value& value, const api::Schema* schema) : value_(value), schema_(schema) {}
  const json::Value* Find(const std::string& element);

 private:
  const json::Value& value_;
  const api::Schema* schema_;
  std::optional<std::vector<Part>> parts_;  // of a list, once one was asked for
};
// All of them in one pass. `elements` are sorted.
void Erase(json::Value& value,
           const api::Schema* schema,
           const std::vector<std::string_view>& elements);
// The schema behind an element; null when unknown.
const api::Schema* SchemaOf(const api::Schema* schema, const std::string& element);
// The same for an object's member, and the member's element.
const api::Schema* SchemaOfMember(const api::Schema* schema, std::string_view name);
std::string MemberElement(std::string_view name);

// `over` laid over `value` by the lists' keys.
void MergeByKeys(json::Value& value, const json::Value& over, const api::Schema* schema);

// ".spec.containers[name=\"a\"].image".
std::string PathText(const std::string& prefix, const std::string& element);

}  // namespace swell::apiserver
