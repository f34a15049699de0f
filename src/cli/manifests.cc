#include "cli/manifests.h"

#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr size_t kFilesMax = 10'000;

bool IsManifestName(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

Status AddDocument(json::Value document, const std::string& source, std::vector<Manifest>& out) {
  if (!document.is_object()) {
    return Status(Code::kBadRequest,
                  StrCat(source, ": expected an object with apiVersion, kind and metadata"));
  }
  std::string_view kind = api::KindOf(document);
  const json::Value* items = json::Find(document, {"items"});
  if (kind.ends_with("List") && items && items->is_array()) {
    for (const json::Value& item : items->get_array()) {
      SWELL_RETURN_IF_ERROR(AddDocument(item, source, out));
    }
    return Status::Ok();
  }
  for (std::string_view field : {"apiVersion", "kind"}) {
    if (json::GetString(document, {field}).empty()) {
      return Status(Code::kBadRequest, StrCat(source, ": ", field, " is not set"));
    }
  }
  out.push_back({std::move(document), source});
  return Status::Ok();
}

Status AddText(const std::string& text, const std::string& source, std::vector<Manifest>& out) {
  auto documents = json::ParseYaml(text);
  if (!documents.ok()) return documents.status().WithContext(source);
  for (size_t i = 0; i < documents->size(); ++i) {
    std::string where = documents->size() > 1 ? StrCat(source, ", document ", i + 1) : source;
    SWELL_RETURN_IF_ERROR(AddDocument(std::move((*documents)[i]), where, out));
  }
  return Status::Ok();
}

Result<std::vector<std::string>> FilesOf(const std::string& path, bool recursive, int depth) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(path));
  for (const std::string& name : names) {
    const std::string full = StrCat(path, "/", name);
    if (fs::is_directory(full, error)) {
      if (!recursive || depth > 32) continue;
      SWELL_ASSIGN_OR_RETURN(auto below, FilesOf(full, recursive, depth + 1));
      files.insert(files.end(), below.begin(), below.end());
    } else if (IsManifestName(name)) {
      files.push_back(full);
    }
    if (files.size() > kFilesMax) return Misuse(StrCat(path, ": more than 10000 files"));
  }
  return files;
}

}  // namespace

Result<std::vector<Manifest>> ReadManifests(Session& session,
                                            const std::vector<std::string>& files,
                                            bool recursive) {
  std::vector<Manifest> manifests;
  for (const std::string& path : files) {
    if (path == "-") {
      SWELL_ASSIGN_OR_RETURN(std::string text, session.env().read_stdin());
      SWELL_RETURN_IF_ERROR(AddText(text, "standard input", manifests));
      continue;
    }
    if (path.starts_with("http://") || path.starts_with("https://")) {
      return Misuse(StrCat(path, ": only files, directories and - are read; download it first"));
    }
    SWELL_ASSIGN_OR_RETURN(std::vector<std::string> found, FilesOf(path, recursive, 0));
    for (const std::string& file : found) {
      SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(file, 64 << 20));
      SWELL_RETURN_IF_ERROR(AddText(text, file, manifests));
    }
  }
  if (manifests.empty()) return Misuse(StrCat(Join(files, ", "), ": no objects in there"));
  return manifests;
}

std::string Placed::ResourceName() const { return StrCat(kind.SingularName(), "/", name); }

Result<Placed> Place(Session& session, Manifest manifest) {
  SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
  std::string api_version(api::ApiVersionOf(manifest.object));
  auto kind = kinds->FindGvk(api_version, api::KindOf(manifest.object));
  if (!kind.ok()) return kind.status();
  Placed placed;
  placed.kind = std::move(*kind);
  placed.name = api::Name(manifest.object);
  if (placed.kind.resource.namespaced) {
    std::string_view own = api::Namespace(manifest.object);
    const std::string& asked = session.global().ns;
    if (!own.empty() && !asked.empty() && own != asked) {
      return Misuse(StrCat(manifest.source, ": metadata.namespace is ", Quote(own),
                           ", but --namespace says ", Quote(asked)));
    }
    placed.ns = own.empty() ? session.Namespace() : std::string(own);
    json::Set(manifest.object, {"metadata", "namespace"}, placed.ns);
  }
  placed.manifest = std::move(manifest);
  return placed;
}

namespace {

const json::Value& Nothing() {
  static const json::Value nothing = json::Object{};
  return nothing;
}

const api::Schema* ChildSchema(const api::Schema* schema, std::string_view key) {
  if (schema == nullptr) return nullptr;
  if (schema->type == api::SchemaType::kMap) return schema->items.get();
  const api::SchemaField* field = schema->Field(key);
  return field != nullptr ? field->schema.get() : nullptr;
}

bool MergesAsList(const api::Schema* schema) {
  return schema != nullptr && schema->type == api::SchemaType::kArray && schema->patch_merge;
}

// The element of `list` that stands for the same thing; scalars by value, objects by their key.
const json::Value* SameIn(const json::Array& list, const json::Value& item, std::string_view key) {
  for (const json::Value& other : list) {
    if (key.empty()) {
      if (json::Equal(other, item)) return &other;
      continue;
    }
    const json::Value* mine = json::Find(item, {key});
    const json::Value* theirs = json::Find(other, {key});
    if (mine != nullptr && theirs != nullptr && json::Equal(*mine, *theirs)) return &other;
  }
  return nullptr;
}

void Merge(const api::Schema* schema,
           const json::Value& last,
           const json::Value& wanted,
           const json::Value& live,
           json::Object& patch);

// Elements that are new or differ, and what was applied once and is wanted no more; what others
// have added stays.
void MergeList(const api::Schema& schema,
               std::string_view field,
               const json::Array& last,
               const json::Array& wanted,
               const json::Array& live,
               json::Object& patch) {
  const std::string& key = schema.patch_merge_key;
  json::Array changes, order, gone;
  for (const json::Value& want : wanted) {
    const json::Value* have = SameIn(live, want, key);
    if (key.empty()) {
      order.push_back(want);
      if (have == nullptr) changes.push_back(want);
      continue;
    }
    const json::Value* name = json::Find(want, {key});
    if (name == nullptr) return void(patch[field] = wanted);  // the server says what is missing
    order.push_back(json::Object{{key, *name}});
    if (have == nullptr) {
      changes.push_back(want);
      continue;
    }
    const json::Value* had = SameIn(last, want, key);
    json::Object inner;
    Merge(schema.items.get(), had ? *had : Nothing(), want, *have, inner);
    if (inner.empty()) continue;
    inner[key] = *name;
    changes.push_back(std::move(inner));
  }
  for (const json::Value& had : last) {
    if (SameIn(wanted, had, key) != nullptr || SameIn(live, had, key) == nullptr) continue;
    if (key.empty()) {
      gone.push_back(had);
    } else {
      changes.push_back(json::Object{{"$patch", "delete"}, {key, *json::Find(had, {key})}});
    }
  }
  if (changes.empty() && gone.empty()) return;
  if (!gone.empty()) patch[StrCat("$deleteFromPrimitiveList/", field)] = std::move(gone);
  if (!order.empty()) patch[StrCat("$setElementOrder/", field)] = std::move(order);
  if (!changes.empty()) patch[field] = std::move(changes);
}

void Merge(const api::Schema* schema,
           const json::Value& last,
           const json::Value& wanted,
           const json::Value& live,
           json::Object& patch) {
  for (const auto& member : wanted.get_object()) {
    std::string_view key(member.key().data(), member.key().size());
    const json::Value& want = member.value();
    const json::Value* have = json::Find(live, {key});
    const json::Value* had = json::Find(last, {key});
    const api::Schema* child = ChildSchema(schema, key);
    if (want.is_object() && have && have->is_object()) {
      json::Object inner;
      Merge(child, had && had->is_object() ? *had : Nothing(), want, *have, inner);
      if (!inner.empty()) patch[member.key()] = std::move(inner);
    } else if (want.is_array() && have && have->is_array() && MergesAsList(child)) {
      static const json::Array kNone;
      MergeList(*child, key, had && had->is_array() ? had->get_array() : kNone, want.get_array(),
                have->get_array(), patch);
    } else if (!have || !json::Equal(want, *have)) {
      patch[member.key()] = want;
    }
  }
  if (!last.is_object()) return;
  for (const auto& member : last.get_object()) {
    std::string_view key(member.key().data(), member.key().size());
    if (!json::Find(wanted, {key}) && json::Find(live, {key})) patch[member.key()] = nullptr;
  }
}

}  // namespace

json::Value ThreeWayPatch(const api::Schema* schema,
                          const json::Value& last,
                          const json::Value& wanted,
                          const json::Value& live) {
  json::Object patch;
  if (wanted.is_object()) Merge(schema, last, wanted, live, patch);
  return patch;
}

}  // namespace swell::cli
