#include "kube/apiserver/core.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {
namespace {

// Fields that the server itself asks for without parsing the objects.
std::vector<std::string> OwnFields(const api::KindInfo& kind) {
  if (kind.gvk.group.empty() && kind.plural == "namespaces") return {"status.phase"};
  if (kind.gvk.group == "scheduling.k8s.io" && kind.plural == "priorityclasses") {
    return {"globalDefault", "preemptionPolicy", "value"};
  }
  return {};
}

// What a field selector compares with where the field is absent: zero of the field's type.
std::string ZeroText(const api::Schema* schema, std::string_view dotted) {
  for (std::string_view step : Split(dotted, '.')) {
    const api::SchemaField* field = schema != nullptr ? schema->Field(step) : nullptr;
    if (field == nullptr) return {};
    schema = field->schema.get();
  }
  if (schema->type == api::SchemaType::kBoolean) return "false";
  if (schema->type == api::SchemaType::kInteger) return "0";
  return {};
}

std::string FieldText(const api::KindInfo& kind,
                      const json::Value& object,
                      std::string_view dotted) {
  // An event's `source` selects by its component; newer events have a reporter only.
  if (dotted == "source" && !kind.custom) {
    const std::string_view component = json::GetString(object, {"source", "component"});
    return std::string(component.empty() ? json::GetString(object, {"reportingComponent"})
                                         : component);
  }
  const json::Value* value = &object;
  for (std::string_view step : Split(dotted, '.')) {
    value = value->is_object() ? value->get_object().if_contains(step) : nullptr;
    if (value == nullptr) return ZeroText(kind.schema.get(), dotted);
  }
  if (value->is_string()) return std::string(json::View(value->get_string()));
  if (value->is_bool()) return value->get_bool() ? "true" : "false";
  if (value->is_number()) return json::Print(*value);
  return {};
}

int64_t GrowthOf(const Core& core, store::EventType type, const store::Entry& entry) {
  const store::EntryPtr before = core.store.Latest(entry.key);
  const int64_t after =
      type == store::EventType::kDeleted ? 0 : static_cast<int64_t>(entry.text->size());
  return after - (before ? static_cast<int64_t>(before->text->size()) : 0);
}

void RunGrowthHooks(Core& core, const store::Key& key, int64_t bytes) {
  for (const GrowthHook hook : core.hooks.growth()) hook(core, key, bytes);
}

}  // namespace

Core::Core(Executor& executor_in,
           Clock& clock_in,
           Random& random_in,
           store::Store& store_in,
           Options options_in)
    : executor(executor_in),
      clock(clock_in),
      random(random_in),
      store(store_in),
      options(std::move(options_in)),
      scheme(api::Scheme::BuiltIn()) {
  options.health.Add("store", [this] { return store.stats().last_failure; });
}

Core::~Core() {
  // The last one first: a part may use those before it.
  while (!parts_.empty()) parts_.pop_back();
}

CorePart& Core::Find(std::type_index type) const {
  for (const auto& [one, part] : parts_) {
    if (one == type) return *part;
  }
  SWELL_CHECK_MSG(false, "the server lacks a part");
}

Core::Target Core::FindTarget(const RequestInfo& info) {
  constexpr size_t kMaxTargets = 4096;
  if (targets_generation != scheme->generation() || targets.size() > kMaxTargets) {
    targets.clear();
    targets_generation = scheme->generation();
  }
  const std::string key = StrCat(info.group, "/", info.version, "/", info.resource);
  const auto found = targets.find(key);
  if (found != targets.end()) return found->second;
  Target target;
  target.kind = scheme->FindResource(info.group, info.version, info.resource);
  if (!target.kind) return target;
  target.storage = scheme->StorageKind(info.group, info.resource);
  if (!target.storage) target.storage = target.kind;
  targets.emplace(key, target);
  return target;
}

std::string FieldOf(const store::Entry& entry, std::string_view field) {
  return std::string(entry.attributes.fields.Find(field).value_or(""));
}

store::Key KeyFor(const api::KindInfo& kind, std::string_view ns, std::string_view name) {
  return {kind.StoreResource(), kind.namespaced ? std::string(ns) : std::string(),
          std::string(name)};
}

api::StringPairs LabelPairs(const json::Object& labels) {
  std::vector<api::StringPairs::Pair> pairs;
  for (const auto& [key, value] : labels) {
    if (value.is_string()) {
      pairs.emplace_back(std::string_view(key.data(), key.size()), json::View(value.get_string()));
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return api::StringPairs::Of(pairs);
}

store::Attributes AttributesOf(const api::KindInfo& kind, const json::Value& object) {
  store::Attributes attributes;
  attributes.uid = api::Uid(object);
  attributes.labels = LabelPairs(json::GetObject(object, {"metadata", "labels"}));
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back("metadata.name", api::Name(object));
  if (kind.namespaced) fields.emplace_back("metadata.namespace", api::Namespace(object));
  for (const std::string& field : kind.selectable_fields) {
    fields.emplace_back(field, FieldText(kind, object, field));
  }
  for (const std::string& field : OwnFields(kind)) {
    fields.emplace_back(field, FieldText(kind, object, field));
  }
  std::sort(fields.begin(), fields.end());
  fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
  attributes.fields = api::StringPairs::Of(fields);
  return attributes;
}

json::SharedValue StoredObject(const Core& core,
                               const api::KindInfo& kind,
                               const store::Entry& entry) {
  json::SharedValue stored = entry.Parsed();
  // Each write sets the defaults of its time.
  if (entry.version >= kind.defaults_from) return stored;
  const std::string_view version = json::GetString(*stored, {"apiVersion"});
  const api::KindPtr written = core.scheme->FindKind(
      {kind.gvk.group, std::string(version.substr(version.rfind('/') + 1)), kind.gvk.kind});
  if (!written || !written->schema) return stored;
  auto full = std::make_shared<json::Value>(*stored);
  api::ApplyDefaults(*written->schema, *full);
  if (json::Equal(*full, *stored)) return stored;
  return full;
}

bool LacksDefaults(const Core& core, const api::KindInfo& kind, const store::Entry& entry) {
  if (entry.version >= kind.defaults_from) return false;
  const json::SharedValue stored = entry.Parsed();
  return StoredObject(core, kind, entry) != stored;
}

std::optional<json::Value> LatestObject(Core& core,
                                        const api::KindInfo& kind,
                                        std::string_view ns,
                                        std::string_view name) {
  const store::EntryPtr entry = core.store.Latest(KeyFor(kind, ns, name));
  if (!entry) return std::nullopt;
  return *StoredObject(core, kind, *entry);
}

void WriteObject(Core& core,
                 const api::KindInfo& kind,
                 store::EventType type,
                 json::Value object,
                 WriteDone done) {
  const uint64_t version = core.store.PeekVersion();
  json::Set(object, {"metadata", "resourceVersion"}, json::Value(std::to_string(version)));
  auto entry = std::make_shared<const store::Entry>(
      KeyFor(kind, api::Namespace(object), api::Name(object)), version, json::Print(object),
      AttributesOf(kind, object));
  auto document = std::make_shared<const json::Value>(std::move(object));
  entry->Prime(document);
  core.recent[core.next_recent++ % Core::kRecentDocuments] = document;
  WriteEntry(core, kind, type, entry, std::move(done));
}

void WriteEntry(Core& core,
                const api::KindInfo& kind,
                store::EventType type,
                const store::EntryPtr& entry,
                WriteDone done) {
  const int64_t growth = GrowthOf(core, type, *entry);
  RunGrowthHooks(core, entry->key, growth);
  core.store.Write(
      type, entry,
      [weak = core.weak_from_this(), type, entry, growth, written = core.hooks.Of(kind).written,
       done = std::move(done)](const Status& status) {
        const auto core = weak.lock();
        if (!core) return;
        if (!status.ok()) RunGrowthHooks(*core, entry->key, -growth);
        if (written != nullptr) written(*core, type, entry, status.ok());
        for (const WrittenHook hook : core->hooks.written()) {
          hook(*core, type, entry, status.ok());
        }
        done(status, entry);
      });
}

}  // namespace swell::apiserver
