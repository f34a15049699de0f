#include "kube/apiserver/fields/apply.h"

#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/fields/managed_fields.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";
// The manager under which kubectl applies, and where it kept what it applied before the server did.
constexpr std::string_view kKubectl = "kubectl";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr size_t kMaxManagerName = 128;

// Status is another subresource's.
void StripOthersParts(const Call& call, FieldSet& set) {
  StripUnmanaged(set);
  if (call.info.subresource != "status" && call.kind->has_status) set.Erase("f:status");
}

struct Conflict {
  std::string path;
  std::string manager;
};

void AddConflicts(const FieldSet& set,
                  const std::string& path,
                  const FieldManager& manager,
                  std::vector<Conflict>& out) {
  if (set.member) out.push_back({path, manager.ToString()});
  for (const auto& [element, child] : set.children) {
    AddConflicts(child, PathText(path, element), manager, out);
  }
}

Status ConflictsError(const std::vector<Conflict>& conflicts) {
  StatusDetails details;
  std::map<std::string, std::string> by_manager;
  for (const Conflict& conflict : conflicts) {
    details.causes.push_back(
        {"FieldManagerConflict", conflict.path, StrCat("conflict with ", conflict.manager)});
    by_manager[conflict.manager] += StrCat("\n- ", conflict.path);
  }
  if (conflicts.size() == 1) {
    return Status(Code::kConflict,
                  StrCat("Apply failed with 1 conflict: conflict with ", conflicts[0].manager, ": ",
                         conflicts[0].path),
                  std::move(details));
  }
  std::string text;
  for (const auto& [manager, paths] : by_manager) {
    text += StrCat(text.empty() ? "" : "\n", "conflicts with ", manager, ":", paths);
  }
  return Status(Code::kConflict,
                StrCat("Apply failed with ", conflicts.size(), " conflicts: ", text),
                std::move(details));
}

bool AnyOwns(const std::vector<const FieldSet*>& sets, const std::string& element) {
  for (const FieldSet* set : sets) {
    if (set->Find(element) != nullptr) return true;
  }
  return false;
}

// A field that its struct declares, as opposed to a key of a map or an item of a list.
bool IsDeclared(const api::Schema* schema, std::string_view element) {
  return element[0] == 'f' && schema != nullptr && schema->Field(element.substr(2)) != nullptr;
}

// Removes what this manager applied before, applies no more, and nobody else owns.
void RemoveAbandoned(json::Value& object,
                     const api::Schema* schema,
                     const FieldSet& before,
                     const FieldSet& now,
                     const std::vector<const FieldSet*>& others) {
  Places places(object, schema);
  std::vector<std::string_view> abandoned;
  for (const auto& [element, child] : before.children) {
    const FieldSet* still = now.Find(element);
    if (still == nullptr && !AnyOwns(others, element)) {
      // A struct goes with what was defaulted in it: the source of a volume that has another now.
      if (child.member || child.children.empty() || IsDeclared(schema, element)) {
        abandoned.push_back(element);
        continue;
      }
    }
    const json::Value* inside = child.children.empty() ? nullptr : places.Find(element);
    if (inside == nullptr) continue;
    std::vector<const FieldSet*> below;
    for (const FieldSet* set : others) {
      if (const FieldSet* found = set->Find(element)) below.push_back(found);
    }
    static const FieldSet nothing;
    // The document is ours: the constness is only that of Places.
    RemoveAbandoned(const_cast<json::Value&>(*inside), SchemaOf(schema, element), child,
                    still == nullptr ? nothing : *still, below);
  }
  Erase(object, schema, abandoned);
}

std::string ManagerName(const Call& call) {
  const std::string_view given = call.query.Get("fieldManager");
  if (!given.empty()) return std::string(given.substr(0, kMaxManagerName));
  const std::string_view agent = call.request.user_agent;
  const std::string_view name = agent.substr(0, agent.find('/'));
  return std::string(name.empty() ? std::string_view("unknown") : name.substr(0, kMaxManagerName));
}

// [{}] asks to forget who wrote what.
bool IsReset(const json::Value* managed) {
  return managed != nullptr && managed->is_array() && managed->get_array().size() == 1 &&
         managed->get_array()[0].is_object() && managed->get_array()[0].get_object().empty();
}

// What kubectl applied from its own side and is still so: that is kubectl's to change.
FieldSet AppliedByKubectl(const Call& call, const json::Value& live) {
  const auto last = json::Parse(api::Annotation(live, kLastApplied));
  if (!last.ok() || !last->is_object()) return {};
  const api::Schema* schema = call.kind->schema.get();
  FieldSet fields = FieldsOf(*last, schema);
  Changes since = CompareFields(&*last, live, schema);
  RemoveFields(fields, since.written);
  RemoveFields(fields, since.removed);
  return fields;
}

// Whether every path in conflict may be taken.
bool AllMayBeTaken(const FieldSet& conflicts, const FieldSet& allowed) {
  FieldSet rest = conflicts;
  RemoveFields(rest, allowed);
  return rest.empty();
}

// kubectl that goes back to applying from its side finds there what it applied last.
void RenewLastApplied(const json::Value& config, json::Value& result) {
  if (api::Annotation(result, kLastApplied).empty()) return;
  json::Value applied = config;
  json::Remove(applied, {"metadata", "annotations", kLastApplied});
  json::Remove(applied, {"metadata", "managedFields"});
  json::Set(result, {"metadata", "annotations", kLastApplied},
            json::Value(json::Print(applied) + "\n"));
}

}  // namespace

void TrackManager(const Call& call, json::Value& object, const json::Value* old) {
  if (call.request.content_type.rfind(kApplyPatch, 0) == 0) return;
  const json::Value* given = json::Find(object, {"metadata", "managedFields"});
  const bool reset = IsReset(given);
  bool edited = given != nullptr && given->is_array() && !given->get_array().empty();
  if (old == nullptr || !edited) {
    const json::Value* kept =
        old == nullptr ? nullptr : json::Find(*old, {"metadata", "managedFields"});
    if (kept != nullptr) {
      json::Set(object, {"metadata", "managedFields"}, *kept);
    } else if (given != nullptr) {
      json::Remove(object, {"metadata", "managedFields"});
    }
    edited = false;
  }
  Changes changes = CompareFields(old, object, call.kind->schema.get());
  StripOthersParts(call, changes.written);
  StripOthersParts(call, changes.removed);
  if (changes.empty() && !edited) return;
  // Where nobody was noted down nobody begins to be, until somebody applies: all that was there is
  // then said to be from before.
  if (old != nullptr && !edited && Managers::Read(*old).empty()) return;
  Managers managers = reset ? Managers() : Managers::Read(object);
  for (FieldManager& manager : managers.list()) {
    RemoveFields(manager.fields, changes.written);
    RemoveFields(manager.fields, changes.removed);
  }
  if (!changes.written.empty()) {
    AddFields(
        managers
            .Entry(ManagerName(call), "Update", call.kind->gvk.ApiVersion(), call.info.subresource)
            .fields,
        std::move(changes.written));
  }
  std::move(managers).Write(call.received, object);
}

Result<json::Value> ApplyConfiguration(const Call& call,
                                       const json::Value& config,
                                       const json::Value* live,
                                       std::string_view manager_name,
                                       bool force) {
  if (!json::GetArray(config, {"metadata", "managedFields"}).empty()) {
    return BadRequestError("metadata.managedFields must be nil");
  }
  const api::Schema* schema = call.kind->schema.get();
  const std::string api_version = call.kind->gvk.ApiVersion();
  const std::string& subresource = call.info.subresource;
  FieldSet applied = FieldsOf(config, schema);
  json::Value result = live == nullptr ? config : *live;
  Managers managers;
  if (live != nullptr) {
    managers = Managers::Read(*live);
    if (managers.empty()) {
      FieldSet all = CompareFields(nullptr, *live, schema).written;
      StripOthersParts(call, all);
      managers.Entry(kBeforeFirstApply, "Update", api_version, subresource).fields = std::move(all);
    }
    MergeByKeys(result, config, schema);
  }
  FieldSet& mine = managers.Entry(manager_name, "Apply", api_version, subresource).fields;
  if (live != nullptr) {
    std::vector<const FieldSet*> others;
    for (const FieldManager& manager : managers.list()) {
      if (&manager.fields != &mine) others.push_back(&manager.fields);
    }
    // With the name that each configuration has: the metadata stays.
    RemoveAbandoned(result, schema, mine, applied, others);
  }
  StripOthersParts(call, applied);
  mine = std::move(applied);
  if (live != nullptr) {
    const Changes changes = CompareFields(live, result, schema);
    std::vector<Conflict> conflicts;
    FieldSet in_conflict;
    for (FieldManager& manager : managers.list()) {
      if (&manager.fields == &mine) continue;
      const FieldSet taken = CommonFields(manager.fields, changes.written);
      AddConflicts(taken, "", manager, conflicts);
      AddFields(in_conflict, taken);
      RemoveFields(manager.fields, taken);
      RemoveFields(manager.fields, changes.removed);
    }
    const bool was_kubectls = !conflicts.empty() && !force && manager_name == kKubectl &&
                              AllMayBeTaken(in_conflict, AppliedByKubectl(call, *live));
    if (!conflicts.empty() && !force && !was_kubectls) return ConflictsError(conflicts);
  }
  if (manager_name == kKubectl && live != nullptr) RenewLastApplied(config, result);
  std::move(managers).Write(call.received, result);
  return result;
}

}  // namespace swell::apiserver
