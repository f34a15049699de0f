#include "kube/controllers/workloads/revisions.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::controllers {
namespace {

constexpr size_t kHashLength = 10;
constexpr int64_t kDefaultHistory = 10;

json::Value TemplateOf(const json::Value& owner) {
  json::Value pod = json::GetObject(owner, {"spec", "template"});
  json::Remove(pod, {"metadata", "creationTimestamp"});
  return pod;
}

std::string HashOf(const json::Value& pod_template) {
  Random random(StableHash(json::Print(pod_template)));
  return random.NameSuffix(kHashLength);
}

Revision Read(const json::SharedValue& object) {
  Revision revision;
  revision.name = api::Name(*object);
  revision.hash = api::Label(*object, kRevisionLabel);
  if (revision.hash.empty()) revision.hash = revision.name;
  revision.number = json::GetInt(*object, {"revision"});
  revision.object = object;
  return revision;
}

bool SameTemplate(const json::Value& revision, const json::Value& wanted) {
  json::Value recorded = json::GetObject(revision, {"data", "spec", "template"});
  json::Remove(recorded, {"$patch"});
  json::Remove(recorded, {"metadata", "creationTimestamp"});
  return json::Equal(recorded, wanted);
}

}  // namespace

std::vector<Revision> Revisions::Of(const json::Value& owner) const {
  std::vector<Revision> all;
  for (const json::SharedValue& object : objects_.ByIndex("owner", api::Uid(owner))) {
    all.push_back(Read(object));
  }
  std::sort(all.begin(), all.end(), [](const Revision& a, const Revision& b) {
    return a.number != b.number ? a.number < b.number : a.name < b.name;
  });
  return all;
}

Revision Revisions::Ensure(const json::Value& owner, WriteBatch& writes) {
  const json::Value wanted = TemplateOf(owner);
  const std::vector<Revision> all = Of(owner);
  const int64_t newest = all.empty() ? 0 : all.back().number;
  for (auto known = all.rbegin(); known != all.rend(); ++known) {
    if (!SameTemplate(*known->object, wanted)) continue;
    if (known->number == newest) return *known;
    client_.Patch(client::resources::kControllerRevisions, api::Namespace(owner), known->name,
                  client::PatchType::kMerge, json::Object{{"revision", newest + 1}},
                  writes.Track());
    return *known;
  }
  Revision made;
  made.hash = HashOf(wanted);
  made.name = StrCat(api::Name(owner), "-", made.hash);
  made.number = newest + 1;
  json::Object labels = json::GetObject(owner, {"spec", "template", "metadata", "labels"});
  labels[kRevisionLabel] = made.hash;
  json::Object annotations;
  const std::string_view cause = api::Annotation(owner, "kubernetes.io/change-cause");
  if (!cause.empty()) annotations["kubernetes.io/change-cause"] = cause;
  json::Value recorded = wanted;
  json::Set(recorded, {"$patch"}, "replace");
  const json::Value object = json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "ControllerRevision"},
      {"metadata", json::Object{{"name", made.name},
                                {"namespace", api::Namespace(owner)},
                                {"labels", std::move(labels)},
                                {"annotations", std::move(annotations)},
                                {"ownerReferences", json::Array{api::MakeOwnerReference(owner)}}}},
      {"revision", made.number},
      {"data", json::Object{{"spec", json::Object{{"template", std::move(recorded)}}}}}};
  client_.Create(client::resources::kControllerRevisions, api::Namespace(owner), object,
                 writes.Track());
  return made;
}

void Revisions::Trim(const json::Value& owner,
                     const std::vector<std::string>& used,
                     WriteBatch& writes) {
  std::vector<Revision> history = Of(owner);
  std::erase_if(history, [&used](const Revision& one) {
    return std::find(used.begin(), used.end(), one.name) != used.end();
  });
  const int64_t limit = json::GetInt(owner, {"spec", "revisionHistoryLimit"}, kDefaultHistory);
  const int64_t over = static_cast<int64_t>(history.size()) - limit;
  for (int64_t i = 0; i < over; ++i) {
    client_.Delete(client::resources::kControllerRevisions, api::Namespace(owner),
                   history[static_cast<size_t>(i)].name, {}, writes.Track());
  }
}

json::Value WithTemplateOf(const json::Value& owner, const Revision& revision) {
  json::Value changed = owner;
  if (!revision.object) return changed;
  json::Value recorded = json::GetObject(*revision.object, {"data", "spec", "template"});
  json::Remove(recorded, {"$patch"});
  json::Set(changed, {"spec", "template"}, std::move(recorded));
  return changed;
}

}  // namespace swell::controllers
