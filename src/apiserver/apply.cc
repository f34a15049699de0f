#include "apiserver/apply.h"

#include "api/meta.h"
#include "apiserver/errors.h"
#include "apiserver/field_set.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr size_t kMaxManagers = 64;

// One entry of metadata.managedFields.
struct Manager {
  std::string name;
  std::string operation;  // Apply or Update
  std::string api_version;
  std::string subresource;
  std::string time;
  FieldSet fields;
  FieldSet before;  // as it was stored: an unchanged entry keeps its time
};

std::vector<Manager> ReadManagers(const json::Value& object) {
  std::vector<Manager> managers;
  for (const json::Value& entry : json::GetArray(object, {"metadata", "managedFields"})) {
    if (!entry.is_object() || entry.get_object().empty()) continue;
    Manager manager;
    manager.name = json::GetString(entry, {"manager"});
    manager.operation = json::GetString(entry, {"operation"});
    manager.api_version = json::GetString(entry, {"apiVersion"});
    manager.subresource = json::GetString(entry, {"subresource"});
    manager.time = json::GetString(entry, {"time"});
    const json::Value* fields = json::Find(entry, {"fieldsV1"});
    if (fields != nullptr) manager.fields = FieldSet::FromJson(*fields);
    manager.fields.member = false;
    manager.before = manager.fields;
    managers.push_back(std::move(manager));
  }
  return managers;
}

void WriteManagers(std::vector<Manager> managers, WallTime now, json::Value& object) {
  json::Array entries;
  for (const Manager& manager : managers) {
    if (manager.fields.empty()) continue;
    if (entries.size() == kMaxManagers) break;
    const bool unchanged = manager.fields == manager.before && !manager.time.empty();
    json::Object entry;
    entry["manager"] = manager.name;
    entry["operation"] = manager.operation;
    entry["apiVersion"] = manager.api_version;
    entry["time"] = unchanged ? manager.time : api::FormatTime(now);
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

Manager& EntryOf(std::vector<Manager>& managers,
                 std::string_view name,
                 std::string_view operation,
                 const Call& call) {
  const std::string api_version = call.kind->gvk.ApiVersion();
  for (Manager& manager : managers) {
    if (manager.name == name && manager.operation == operation &&
        manager.subresource == call.info.subresource) {
      manager.api_version = api_version;
      return manager;
    }
  }
  Manager manager;
  manager.name = name;
  manager.operation = operation;
  manager.api_version = api_version;
  manager.subresource = call.info.subresource;
  managers.push_back(std::move(manager));
  return managers.back();
}

// Fields that nobody manages: identity, and what the server itself writes.
void StripUnmanaged(const Call& call, FieldSet& set) {
  set.children.erase("f:apiVersion");
  set.children.erase("f:kind");
  const auto metadata = set.children.find("f:metadata");
  if (metadata != set.children.end()) {
    for (const char* field : {"name", "namespace", "generateName", "uid", "resourceVersion",
                              "generation", "creationTimestamp", "deletionTimestamp",
                              "deletionGracePeriodSeconds", "selfLink", "managedFields"}) {
      metadata->second.children.erase(StrCat("f:", field));
    }
    metadata->second.member = false;
    if (metadata->second.children.empty()) set.children.erase(metadata);
  }
  if (call.info.subresource == "status") {
    for (auto it = set.children.begin(); it != set.children.end();) {
      it = it->first == "f:status" ? std::next(it) : set.children.erase(it);
    }
  } else if (call.kind->has_status) {
    set.children.erase("f:status");
  }
}

FieldSet ManagedFieldsOf(const Call& call, const json::Value& object) {
  FieldSet set = FieldsOf(object, call.kind->schema.get());
  StripUnmanaged(call, set);
  return set;
}

struct Conflict {
  std::string path;
  const Manager* manager;
};

// Members that both sets own and whose values differ between the applied and the live object.
void FindConflicts(const FieldSet& applied,
                   const FieldSet& theirs,
                   const json::Value* config,
                   const json::Value* live,
                   const api::Schema* schema,
                   const std::string& path,
                   const Manager& manager,
                   FieldSet& taken,
                   std::vector<Conflict>& out) {
  if (applied.member && theirs.member && applied.children.empty()) {
    if (live != nullptr && config != nullptr && !json::Equal(*live, *config)) {
      taken.member = true;
      out.push_back({path, &manager});
    }
    return;
  }
  for (const auto& [element, child] : applied.children) {
    const FieldSet* other = theirs.Find(element);
    if (other == nullptr) continue;
    const json::Value* mine = config == nullptr ? nullptr : Step(*config, schema, element);
    const json::Value* now = live == nullptr ? nullptr : Step(*live, schema, element);
    FieldSet below;
    FindConflicts(child, *other, mine, now, SchemaOf(schema, element), PathText(path, element),
                  manager, below, out);
    if (!below.empty()) taken.children[element] = std::move(below);
  }
}

Status ConflictsError(const api::KindInfo& kind, const std::vector<Conflict>& conflicts) {
  StatusDetails details;
  std::string text;
  for (const Conflict& conflict : conflicts) {
    const std::string who =
        StrCat(Quote(conflict.manager->name), " using ", conflict.manager->api_version,
               conflict.manager->operation == "Update"
                   ? StrCat(" at ", conflict.manager->time.empty() ? "an unknown time"
                                                                   : conflict.manager->time)
                   : "");
    details.causes.push_back(
        {"FieldManagerConflict", conflict.path, StrCat("conflict with ", who)});
    text += StrCat(text.empty() ? "" : "\n", "- ", conflict.path);
  }
  details.kind = kind.plural;
  details.group = kind.gvk.group;
  const std::string& first = details.causes[0].message;
  const std::string message =
      conflicts.size() == 1
          ? StrCat("Apply failed with 1 conflict: ", first, ": ", conflicts[0].path)
          : StrCat("Apply failed with ", conflicts.size(), " conflicts: conflicts with ",
                   Quote(conflicts[0].manager->name), ":\n", text);
  return Status(Code::kConflict, message, std::move(details));
}

bool AnyOwns(const std::vector<const FieldSet*>& sets, const std::string& element) {
  for (const FieldSet* set : sets) {
    if (set->Find(element) != nullptr) return true;
  }
  return false;
}

// Removes what this manager applied before, applies no more, and nobody else owns.
void RemoveAbandoned(json::Value& object,
                     const api::Schema* schema,
                     const FieldSet& before,
                     const FieldSet& now,
                     const std::vector<const FieldSet*>& others) {
  for (const auto& [element, child] : before.children) {
    const FieldSet* still = now.Find(element);
    if (still == nullptr && !AnyOwns(others, element)) {
      Erase(object, schema, element);
      continue;
    }
    const json::Value* inside = Step(object, schema, element);
    if (inside == nullptr || child.children.empty()) continue;
    std::vector<const FieldSet*> below;
    for (const FieldSet* set : others) {
      if (const FieldSet* found = set->Find(element)) below.push_back(found);
    }
    static const FieldSet nothing;
    // The document is ours: the constness is only Step's.
    RemoveAbandoned(const_cast<json::Value&>(*inside), SchemaOf(schema, element), child,
                    still == nullptr ? nothing : *still, below);
  }
}

// Members of `now` that are absent from `old` or differ there.
void FindChanges(const FieldSet& set,
                 const json::Value* now,
                 const json::Value* old,
                 const api::Schema* schema,
                 FieldSet& out) {
  if (set.children.empty()) {
    if (old == nullptr || now == nullptr || !json::Equal(*now, *old)) out.member = true;
    return;
  }
  if (set.member && old == nullptr) out.member = true;
  for (const auto& [element, child] : set.children) {
    FieldSet below;
    FindChanges(child, now == nullptr ? nullptr : Step(*now, schema, element),
                old == nullptr ? nullptr : Step(*old, schema, element), SchemaOf(schema, element),
                below);
    if (!below.empty()) out.children[element] = std::move(below);
  }
}

std::string ManagerName(const Call& call) {
  const std::string_view given = call.query.Get("fieldManager");
  if (!given.empty()) return std::string(given.substr(0, 128));
  const std::string_view agent = call.request.user_agent;
  const std::string_view name = agent.substr(0, agent.find('/'));
  return std::string(name.empty() ? std::string_view("unknown") : name.substr(0, 128));
}

}  // namespace

void TrackManager(Core& core, const Call& call, json::Value& object, const json::Value* old) {
  if (call.request.content_type.rfind(kApplyPatch, 0) == 0) return;
  const json::Value* given = json::Find(object, {"metadata", "managedFields"});
  if (old == nullptr) {
    if (given != nullptr) json::Remove(object, {"metadata", "managedFields"});
    return;
  }
  if (given == nullptr || !given->is_array()) {
    const json::Value* kept = json::Find(*old, {"metadata", "managedFields"});
    if (kept == nullptr) return;
    json::Set(object, {"metadata", "managedFields"}, *kept);
  }
  std::vector<Manager> managers = ReadManagers(object);
  if (managers.empty()) {
    json::Remove(object, {"metadata", "managedFields"});
    return;
  }
  FieldSet all = FieldsOf(object, call.kind->schema.get());
  FieldSet managed = all;
  StripUnmanaged(call, managed);
  FieldSet changed;
  FindChanges(managed, &object, old, call.kind->schema.get(), changed);
  changed.member = false;
  for (Manager& manager : managers) {
    RemoveFields(manager.fields, changed);
    KeepExisting(manager.fields, all);
  }
  if (!changed.empty()) {
    AddFields(EntryOf(managers, ManagerName(call), "Update", call).fields, changed);
  }
  WriteManagers(std::move(managers), core.clock.Now(), object);
}

Result<json::Value> ApplyConfiguration(Core& core,
                                       const Call& call,
                                       const json::Value& config,
                                       const json::Value* live,
                                       std::string_view manager_name,
                                       bool force) {
  if (!json::GetArray(config, {"metadata", "managedFields"}).empty()) {
    return BadRequestError("metadata.managedFields must be nil");
  }
  const api::Schema* schema = call.kind->schema.get();
  const FieldSet applied = ManagedFieldsOf(call, config);
  json::Value result = live == nullptr ? config : *live;
  std::vector<Manager> managers;
  if (live != nullptr) {
    managers = ReadManagers(*live);
    if (managers.empty()) {
      Manager& first = EntryOf(managers, kBeforeFirstApply, "Update", call);
      first.fields = ManagedFieldsOf(call, *live);
    }
  }
  FieldSet before;
  std::vector<Conflict> conflicts;
  std::vector<const FieldSet*> others;
  for (Manager& manager : managers) {
    if (manager.name == manager_name && manager.operation == "Apply" &&
        manager.subresource == call.info.subresource) {
      before = manager.fields;
      continue;
    }
    FieldSet taken;
    FindConflicts(applied, manager.fields, &config, live, schema, "", manager, taken, conflicts);
    if (force) RemoveFields(manager.fields, taken);
    others.push_back(&manager.fields);
  }
  if (!conflicts.empty() && !force) return ConflictsError(*call.kind, conflicts);
  if (live != nullptr) {
    MergeByKeys(result, config, schema);
    RemoveAbandoned(result, schema, before, applied, others);
  }
  EntryOf(managers, manager_name, "Apply", call).fields = applied;
  WriteManagers(std::move(managers), core.clock.Now(), result);
  return result;
}

}  // namespace swell::apiserver
