#include "kube/apiserver/admission/object_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "projects.swell.dev";
constexpr char kPods[] = "pods";

struct Count {
  int64_t durable = 0;
  int64_t accepted = 0;  // and not durable yet
};

struct Bound {
  std::string project;
  int64_t most = 0;  // of a kind
  int64_t mib = 0;   // of all kinds together
};

struct ObjectCounts final : CorePart {
  std::map<std::string, std::map<std::string, Count>> by_namespace;  // and resource
  // Names of pods that have ended, by namespace: as with a ResourceQuota of pods they do not count.
  // The pod janitor deletes the oldest of them. Those that a finalizer keeps count again.
  std::map<std::string, std::set<std::string>> ended;
  std::map<std::string, int64_t> bytes;                // by namespace; with what is accepted
  std::optional<std::map<std::string, Bound>> bounds;  // by namespace; empty: to be read anew
  std::map<std::string, int64_t> generations;          // of the projects that they are from
};

bool IsCounted(const store::Key& key) {
  return !key.ns.empty() && key.resource != "events" && key.resource != "events.events.k8s.io";
}

int64_t GenerationOf(const json::Value& project) {
  return json::GetInt(project, {"metadata", "generation"});
}

void ReadBounds(const Core& core, ObjectCounts& counts) {
  std::map<std::string, Bound>& bounds = counts.bounds.emplace();
  counts.generations.clear();
  const auto listed = core.store.List(kProjects, "");
  if (!listed.ok()) return;
  std::vector<json::SharedValue> projects;
  std::vector<const json::Value*> documents;
  for (const store::EntryPtr& entry : listed->entries) {
    projects.push_back(entry->Parsed());
    documents.push_back(projects.back().get());
    counts.generations[entry->key.name] = GenerationOf(*projects.back());
  }
  const auto by_namespace = api::ProjectsByNamespace(documents);
  for (const json::SharedValue& project : projects) {
    const std::string ns(api::NamespaceOfProject(*project));
    const auto owner = by_namespace.find(ns);
    if (owner == by_namespace.end() || owner->second != api::Name(*project)) continue;
    bounds[ns] = {owner->second,
                  json::GetInt(*project, {"spec", "maxObjectsPerKind"}, kObjectsPerKindMax),
                  json::GetInt(*project, {"spec", "maxObjectsMib"}, kObjectsMibMax)};
  }
}

// The scheduler writes the status of projects all the time, and each pod asks for the bounds.
bool IsStatusOnly(const ObjectCounts& counts, store::EventType type, const store::Entry& project) {
  const auto known = counts.generations.find(project.key.name);
  return type == store::EventType::kModified && known != counts.generations.end() &&
         known->second == GenerationOf(*project.Parsed());
}

bool IsEndedPod(const store::Entry& pod) {
  const std::string phase = FieldOf(pod, "status.phase");
  return (phase == "Succeeded" || phase == "Failed") && !api::IsDeleting(*pod.Parsed());
}

void NoteEnded(ObjectCounts& counts, store::EventType type, const store::Entry& entry) {
  const store::Key& key = entry.key;
  if (key.resource != kPods) return;
  if (type != store::EventType::kDeleted && IsEndedPod(entry)) {
    counts.ended[key.ns].insert(key.name);
  } else if (const auto names = counts.ended.find(key.ns); names != counts.ended.end()) {
    names->second.erase(key.name);
    if (names->second.empty()) counts.ended.erase(names);
  }
}

void ObjectWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  auto& counts = core.Get<ObjectCounts>();
  const store::Key& key = entry->key;
  if (key.resource == kProjects && !IsStatusOnly(counts, type, *entry)) counts.bounds.reset();
  if (ok) NoteEnded(counts, type, *entry);
  if (!IsCounted(key) || type == store::EventType::kModified) return;
  auto& resources = counts.by_namespace[key.ns];
  Count& count = resources[key.resource];
  if (type == store::EventType::kAdded) {
    // What the server writes by itself was not counted as accepted.
    count.accepted = std::max<int64_t>(0, count.accepted - 1);
    if (ok) ++count.durable;
  } else if (ok) {
    --count.durable;
  }
  if (count.durable <= 0 && count.accepted == 0) resources.erase(key.resource);
  if (resources.empty()) counts.by_namespace.erase(key.ns);
}

void AddBytes(Core& core, const store::Key& key, int64_t bytes) {
  if (!IsCounted(key) || bytes == 0) return;
  auto& all = core.Get<ObjectCounts>().bytes;
  const auto found = all.try_emplace(key.ns, 0).first;
  found->second += bytes;
  if (found->second == 0) all.erase(found);
}

int64_t HowMany(const ObjectCounts& counts, const store::Key& key) {
  const auto resources = counts.by_namespace.find(key.ns);
  if (resources == counts.by_namespace.end()) return 0;
  const auto found = resources->second.find(key.resource);
  if (found == resources->second.end()) return 0;
  const int64_t all = found->second.durable + found->second.accepted;
  const auto ended = key.resource == kPods ? counts.ended.find(key.ns) : counts.ended.end();
  return ended == counts.ended.end() ? all : all - static_cast<int64_t>(ended->second.size());
}

// nullptr: the namespace has none.
const Bound* BoundOf(const Core& core, ObjectCounts& counts, const std::string& ns) {
  if (!counts.bounds) ReadBounds(core, counts);
  const auto found = counts.bounds->find(ns);
  return found == counts.bounds->end() ? nullptr : &found->second;
}

Status CheckCount(const Admission& admission,
                  const ObjectCounts& counts,
                  const store::Key& key,
                  const Bound& bound) {
  const auto& [project, most, mib] = bound;
  const int64_t there = HowMany(counts, key);
  if (there < most) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat("exceeded quota: project ", project, " has ", there, " ", admission.kind.plural,
             " in namespace ", key.ns, key.resource == kPods ? " that have not ended" : "",
             ", and may have ", most,
             "; delete some, or have an administrator raise spec.maxObjectsPerKind of the project "
             "(swell project edit ",
             project, " --max-objects N)"));
}

Status CheckBytes(const Admission& admission,
                  const ObjectCounts& counts,
                  const std::string& ns,
                  const Bound& bound) {
  const auto there = counts.bytes.find(ns);
  if (there == counts.bytes.end() || there->second < bound.mib << 20) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat("exceeded quota: the objects of project ", bound.project, " in namespace ", ns,
             " have ", there->second >> 20, " MiB, and may have ", bound.mib,
             " MiB; delete some, or have an administrator raise spec.maxObjectsMib of the project "
             "(swell project edit ",
             bound.project, " --max-objects-mib N)"));
}

}  // namespace

void RegisterObjectCounts(Core& core) {
  auto& counts = core.Add(std::make_unique<ObjectCounts>());
  for (const store::EntryPtr& entry : core.store.TakeSnapshot().entries) {
    const store::Key& key = entry->key;
    if (IsCounted(key)) {
      ++counts.by_namespace[key.ns][key.resource].durable;
      counts.bytes[key.ns] += static_cast<int64_t>(entry->text->size());
    }
    NoteEnded(counts, store::EventType::kAdded, *entry);
  }
  core.hooks.AddWritten(ObjectWritten);
  core.hooks.AddGrowth(AddBytes);
}

Status CheckObjectCount(const Admission& admission) {
  const store::Key key = KeyFor(admission.kind, admission.ns, admission.name);
  if (!IsCounted(key)) return Status::Ok();
  auto& counts = admission.core.Get<ObjectCounts>();
  const Bound* bound = BoundOf(admission.core, counts, key.ns);
  if (bound == nullptr) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckCount(admission, counts, key, *bound));
  return CheckBytes(admission, counts, key.ns, *bound);
}

Status CheckObjectGrowth(const Admission& admission,
                         const json::Value& object,
                         const store::Entry& old) {
  if (!IsCounted(old.key) || admission.call == nullptr || IsSystem(admission.call->user) ||
      IsNode(admission.call->user)) {
    return Status::Ok();
  }
  auto& counts = admission.core.Get<ObjectCounts>();
  const Bound* bound = BoundOf(admission.core, counts, old.key.ns);
  if (bound == nullptr) return Status::Ok();
  Status full = CheckBytes(admission, counts, old.key.ns, *bound);
  return full.ok() || json::Print(object).size() <= old.text->size() ? Status::Ok() : full;
}

void CountObject(const Admission& admission) {
  const store::Key key = KeyFor(admission.kind, admission.ns, admission.name);
  if (!IsCounted(key)) return;
  ++admission.core.Get<ObjectCounts>().by_namespace[key.ns][key.resource].accepted;
}

}  // namespace swell::apiserver
