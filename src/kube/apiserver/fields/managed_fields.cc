#include "kube/apiserver/fields/managed_fields.h"

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxUpdaters = 10;
constexpr size_t kMaxManagers = 64;
constexpr std::string_view kAncient = "ancient-changes";

}  // namespace

std::string FieldManager::ToString() const {
  std::string text = Quote(name);
  if (!subresource.empty()) text += StrCat(" with subresource ", Quote(subresource));
  if (operation != "Update") return text;
  return StrCat(text, " using ", api_version);
}

Managers Managers::Read(const json::Value& object) {
  Managers managers;
  for (const json::Value& entry : json::GetArray(object, {"metadata", "managedFields"})) {
    if (!entry.is_object() || entry.get_object().empty()) continue;
    FieldManager manager;
    manager.name = json::GetString(entry, {"manager"});
    manager.operation = json::GetString(entry, {"operation"});
    manager.api_version = json::GetString(entry, {"apiVersion"});
    manager.subresource = json::GetString(entry, {"subresource"});
    manager.time = json::GetString(entry, {"time"});
    const json::Value* fields = json::Find(entry, {"fieldsV1"});
    if (fields != nullptr) manager.fields = FieldSet::FromJson(*fields);
    manager.fields.member = false;
    manager.before = manager.fields;
    managers.list_.push_back(std::move(manager));
  }
  return managers;
}

FieldManager& Managers::Entry(std::string_view name,
                              std::string_view operation,
                              std::string_view api_version,
                              std::string_view subresource) {
  for (FieldManager& manager : list_) {
    if (manager.name == name && manager.operation == operation &&
        manager.subresource == subresource &&
        (operation == "Apply" || manager.api_version == api_version)) {
      manager.api_version = api_version;
      manager.writes = true;
      return manager;
    }
  }
  FieldManager manager;
  manager.writes = true;
  manager.name = name;
  manager.operation = operation;
  manager.api_version = api_version;
  manager.subresource = subresource;
  list_.push_back(std::move(manager));
  return list_.back();
}

// Every client that ever wrote an object would stay in its list for ever.
void Managers::MergeOldest(WallTime now) {
  std::vector<FieldManager*> updaters;
  for (FieldManager& manager : list_) {
    if (manager.operation == "Update") updaters.push_back(&manager);
  }
  if (updaters.size() <= kMaxUpdaters) return;
  std::stable_sort(updaters.begin(), updaters.end(),
                   [](const FieldManager* a, const FieldManager* b) { return a->time < b->time; });
  FieldManager ancient;
  ancient.name = kAncient;
  ancient.operation = "Update";
  ancient.api_version = updaters[0]->api_version;
  ancient.time = api::FormatTime(now);
  const size_t merged = updaters.size() - kMaxUpdaters + 1;
  for (size_t i = 0; i < merged; ++i) {
    AddFields(ancient.fields, updaters[i]->fields);
    ancient.time = updaters[i]->time;
    updaters[i]->fields = {};
  }
  ancient.before = ancient.fields;
  list_.push_back(std::move(ancient));
}

void Managers::Write(WallTime now, json::Value& object) && {
  std::erase_if(list_, [](const FieldManager& manager) { return manager.fields.empty(); });
  for (FieldManager& manager : list_) {
    const bool changed = manager.writes && !(manager.fields == manager.before);
    if (changed || manager.time.empty()) manager.time = api::FormatTime(now);
  }
  MergeOldest(now);
  std::erase_if(list_, [](const FieldManager& manager) { return manager.fields.empty(); });
  std::stable_sort(list_.begin(), list_.end(), [](const FieldManager& a, const FieldManager& b) {
    return std::tie(a.operation, a.time, a.name) < std::tie(b.operation, b.time, b.name);
  });
  json::Array entries;
  for (const FieldManager& manager : list_) {
    if (entries.size() == kMaxManagers) break;
    json::Object entry;
    entry["manager"] = manager.name;
    entry["operation"] = manager.operation;
    entry["apiVersion"] = manager.api_version;
    entry["time"] = manager.time;
    entry["fieldsType"] = "FieldsV1";
    entry["fieldsV1"] = manager.fields.ToJson();
    if (!manager.subresource.empty()) entry["subresource"] = manager.subresource;
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    json::Remove(object, {"metadata", "managedFields"});
  } else {
    json::Set(object, {"metadata", "managedFields"}, std::move(entries));
  }
}

namespace {

// Every node of a value that is only on one side.
FieldSet TakeAll(const json::Value& value, const api::Schema* schema) {
  FieldSet all;
  all.member = true;
  std::vector<Part> parts = PartsOf(value, schema);
  all.children.reserve(parts.size());
  for (Part& part : parts) {
    all.children.push_back({std::move(part.element), TakeAll(*part.value, part.schema)});
  }
  return all;
}

// Whether an empty object of a typed kind has the field: structs within structs, and lists that are
// written even when they are empty.
bool InEmptyObject(const api::Schema* parent, const Part& part) {
  if (parent == nullptr || parent->name.empty() || part.declared_as == nullptr) return false;
  const api::SchemaField& field = *part.declared_as;
  if (field.proto_pointer) return false;
  return field.required || field.schema->type == api::SchemaType::kObject;
}

// The parts of a new object, below parts that an empty one has.
FieldSet TakeNew(const json::Value& value, const api::Schema* schema) {
  FieldSet all;
  for (Part& part : PartsOf(value, schema)) {
    const bool within = InEmptyObject(schema, part) && HasParts(*part.value, part.schema);
    FieldSet found = within ? TakeNew(*part.value, part.schema) : TakeAll(*part.value, part.schema);
    if (!found.empty()) all.children.push_back({std::move(part.element), std::move(found)});
  }
  return all;
}

void AddChanges(std::string element, Changes found, Changes& changes) {
  if (!found.removed.empty()) {
    changes.removed.children.push_back({element, std::move(found.removed)});
  }
  if (!found.written.empty()) {
    changes.written.children.push_back({std::move(element), std::move(found.written)});
  }
}

Changes Compare(const json::Value& old, const json::Value& now, const api::Schema* schema);

// Most members stay as they are: elements are made of the others alone.
Changes CompareMembers(const json::Object& old,
                       const json::Object& now,
                       const api::Schema* schema) {
  Changes changes;
  for (const auto& [key, value] : now) {
    const json::Value* had = old.if_contains(key);
    if (had != nullptr && !value.is_structured() && json::Equal(*had, value)) continue;
    const api::Schema* below = SchemaOfMember(schema, key);
    Changes found;
    if (had != nullptr) {
      found = Compare(*had, value, below);
    } else {
      found.written = TakeAll(value, below);
    }
    if (!found.empty()) AddChanges(MemberElement(key), std::move(found), changes);
  }
  for (const auto& [key, value] : old) {
    if (now.contains(key)) continue;
    FieldSet all = TakeAll(value, SchemaOfMember(schema, key));
    changes.removed.children.push_back({MemberElement(key), std::move(all)});
  }
  changes.removed.Sort();
  changes.written.Sort();
  return changes;
}

// Two lists whose items have names, or that are sets.
Changes CompareItems(const json::Value& old, const json::Value& now, const api::Schema* schema) {
  Changes changes;
  std::vector<Part> before = PartsOf(old, schema);
  auto had = before.begin();
  auto take_removed = [&] {
    changes.removed.children.push_back(
        {std::move(had->element), TakeAll(*had->value, had->schema)});
    ++had;
  };
  for (Part& part : PartsOf(now, schema)) {
    while (had != before.end() && had->element < part.element) take_removed();
    Changes found;
    if (had != before.end() && had->element == part.element) {
      found = Compare(*had->value, *part.value, part.schema);
      ++had;
    } else {
      found.written = TakeAll(*part.value, part.schema);
    }
    AddChanges(std::move(part.element), std::move(found), changes);
  }
  while (had != before.end()) take_removed();
  return changes;
}

Changes Compare(const json::Value& old, const json::Value& now, const api::Schema* schema) {
  const bool parts = HasParts(now, schema) && HasParts(old, schema) && now.kind() == old.kind();
  if (parts && now.is_object()) return CompareMembers(old.get_object(), now.get_object(), schema);
  Changes changes;
  if (json::Equal(old, now)) return changes;
  if (parts) return CompareItems(old, now, schema);
  changes.written.member = true;
  return changes;
}

}  // namespace

Changes CompareFields(const json::Value* old, const json::Value& now, const api::Schema* schema) {
  Changes changes;
  if (old == nullptr) {
    changes.written = TakeNew(now, schema);
  } else {
    changes = Compare(*old, now, schema);
  }
  changes.written.member = false;
  changes.removed.member = false;
  return changes;
}

void StripUnmanaged(FieldSet& set) {
  set.Erase("f:apiVersion");
  set.Erase("f:kind");
  FieldSet* metadata = set.Find("f:metadata");
  if (metadata == nullptr) return;
  for (const char* field : {"f:name", "f:namespace", "f:uid", "f:resourceVersion", "f:generation",
                            "f:creationTimestamp", "f:selfLink", "f:managedFields"}) {
    metadata->Erase(field);
  }
  metadata->member = false;
  if (metadata->children.empty()) set.Erase("f:metadata");
}

}  // namespace swell::apiserver
