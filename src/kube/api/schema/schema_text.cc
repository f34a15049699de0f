#include "kube/api/schema/schema_text.h"

#include "base/check.h"
#include "base/strings.h"

namespace swell::api {
namespace {

constexpr std::string_view kMetaPackage = "io.k8s.apimachinery.pkg.apis.meta.v1";
constexpr std::string_view kCorePackage = "io.k8s.api.core.v1";

struct ScalarRow {
  std::string_view word;
  SchemaType type;
  std::string_view format;
};
constexpr ScalarRow kScalars[] = {
    {"string", SchemaType::kString, ""},
    {"bool", SchemaType::kBoolean, ""},
    {"int32", SchemaType::kInteger, "int32"},
    {"int64", SchemaType::kInteger, "int64"},
    {"number", SchemaType::kNumber, "double"},
    {"bytes", SchemaType::kString, "byte"},
    {"quantity", SchemaType::kQuantity, ""},
    {"time", SchemaType::kTime, "date-time"},
    {"microtime", SchemaType::kMicroTime, "date-time"},
    {"intorstring", SchemaType::kIntOrString, "int-or-string"},
    {"any", SchemaType::kAny, ""},
    {"object", SchemaType::kAny, "object"},
};

// Cuts `text` at the first ':' that ends the words before a description.
std::string_view CutDescription(std::string_view& text) {
  size_t at = text.find(": ");
  if (at == std::string_view::npos && text.ends_with(':')) at = text.size() - 1;
  if (at == std::string_view::npos) return {};
  std::string_view description = Trim(text.substr(at + 1));
  text = text.substr(0, at);
  return description;
}

std::string_view NextWord(std::string_view& text) {
  text = Trim(text);
  size_t end = text.find(' ');
  std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return word;
}

std::vector<std::string> Strings(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (std::string_view part : Split(text, separator)) out.emplace_back(part);
  return out;
}

}  // namespace

SchemaLibrary::SchemaLibrary(const std::vector<std::string_view>& texts) {
  for (std::string_view text : texts) AddText(text);
}

SchemaLibrary::~SchemaLibrary() = default;

void SchemaLibrary::AddText(std::string_view text) {
  std::string_view package;
  Entry* entry = nullptr;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ') {
      SWELL_CHECK_MSG(entry != nullptr, line);
      entry->lines.push_back(line);
      continue;
    }
    std::string_view rest = line;
    std::string_view word = NextWord(rest);
    if (word == "package") {
      package = Trim(rest);
      continue;
    }
    if (word == "definition") continue;  // read by kube/api/crd/definitions.h
    std::string_view head = rest;
    CutDescription(head);
    std::string full = StrCat(package, ".", NextWord(head));
    auto [it, inserted] = entries_.try_emplace(full);
    SWELL_CHECK_MSG(inserted, StrCat("schema type written twice: ", full));
    entry = &it->second;
    entry->head = line;
    entry->package = package;
    if (word == "copy") {
      std::string_view name = full;
      NextWord(head);  // "from"
      entry->copy_of = StrCat(NextWord(head), name.substr(name.rfind('.')));
      entry = nullptr;
      continue;
    }
    SWELL_CHECK_MSG(word == "type" || word == "kind", line);
  }
}

SchemaPtr SchemaLibrary::Find(const std::string& full_name) {
  auto it = entries_.find(full_name);
  if (it == entries_.end()) return nullptr;
  Entry& entry = it->second;
  if (entry.schema) return entry.schema;
  // A type inside itself: an owning pointer would be a cycle that is never freed.
  if (entry.building) return SchemaPtr(std::shared_ptr<const void>(), entry.building);
  return Build(full_name, entry);
}

SchemaPtr SchemaLibrary::Build(const std::string& full_name, Entry& entry) {
  auto schema = std::make_shared<Schema>();
  if (!entry.copy_of.empty()) {
    SchemaPtr source = Find(entry.copy_of);
    SWELL_CHECK_MSG(source != nullptr, entry.copy_of);
    *schema = *source;
    schema->name = full_name;
    entry.schema = schema;
    return schema;
  }
  std::string_view head = entry.head;
  schema->description = std::string(CutDescription(head));
  std::string_view word = NextWord(head);
  NextWord(head);
  schema->type = SchemaType::kObject;
  schema->name = full_name;
  schema->nullable = true;
  constexpr std::string_view kWith = "with=";
  for (std::string_view mark = NextWord(head); !mark.empty(); mark = NextWord(head)) {
    if (mark.starts_with(kWith)) {
      const SchemaPtr other = Resolve(mark.substr(kWith.size()), entry.package);
      SWELL_CHECK_MSG(other != nullptr, entry.head);
      schema->fields = other->fields;
      continue;
    }
    SWELL_CHECK_MSG(mark == "atomic" || mark == "preserve", entry.head);
    schema->atomic = schema->atomic || mark == "atomic";
    schema->preserve_unknown = schema->preserve_unknown || mark == "preserve";
  }
  entry.building = schema.get();
  schema->fields.reserve(schema->fields.size() + entry.lines.size() + 2);
  if (word == "kind") {
    for (std::string_view line :
         {"  apiVersion string: The group and version that this object is written in.",
          "  kind string: What kind of object this is."}) {
      schema->fields.push_back(ParseField(line, entry.package));
    }
  }
  for (std::string_view line : entry.lines) {
    schema->fields.push_back(ParseField(line, entry.package));
  }
  entry.building = nullptr;
  entry.schema = schema;
  return schema;
}

SchemaField SchemaLibrary::ParseField(std::string_view line, std::string_view package) {
  std::string_view rest = line;
  SchemaField field;
  field.description = std::string(CutDescription(rest));
  std::string_view name = NextWord(rest);
  if (name.ends_with('!')) {
    field.required = true;
    name.remove_suffix(1);
  }
  field.name = std::string(name);
  field.schema = ParseType(NextWord(rest), package);
  SWELL_CHECK_MSG(field.schema != nullptr, line);
  ApplyFlags(rest, field);
  return field;
}

SchemaPtr SchemaLibrary::ParseType(std::string_view type, std::string_view package) {
  if (type.size() > 2 && (type[0] == '[' || type[0] == '{')) {
    SchemaPtr items = ParseType(type.substr(1, type.size() - 2), package);
    if (items == nullptr) return nullptr;
    auto schema = std::make_shared<Schema>();
    schema->type = type[0] == '[' ? SchemaType::kArray : SchemaType::kMap;
    schema->nullable = true;
    schema->items = std::move(items);
    return schema;
  }
  for (const ScalarRow& row : kScalars) {
    if (row.word != type) continue;
    SchemaPtr& scalar = scalars_[std::string(type)];
    if (scalar == nullptr) {
      auto schema = std::make_shared<Schema>();
      schema->type = row.type;
      schema->format = std::string(row.format);
      schema->nullable = true;
      schema->preserve_unknown = row.type == SchemaType::kAny;
      scalar = std::move(schema);
    }
    return scalar;
  }
  return Resolve(type, package);
}

SchemaPtr SchemaLibrary::Resolve(std::string_view name, std::string_view package) {
  if (name.find('.') != std::string_view::npos) return Find(std::string(name));
  for (std::string_view candidate : {package, kMetaPackage, kCorePackage}) {
    if (SchemaPtr found = Find(StrCat(candidate, ".", name))) return found;
  }
  return nullptr;
}

void SchemaLibrary::ApplyFlags(std::string_view flags, SchemaField& field) {
  std::shared_ptr<Schema> own;  // a copy for this field, made when a flag first needs it
  auto edit = [&own, &field]() -> Schema& {
    if (own == nullptr) {
      own = std::make_shared<Schema>(*field.schema);
      field.schema = own;
    }
    return *own;
  };
  for (std::string_view flag = NextWord(flags); !flag.empty(); flag = NextWord(flags)) {
    if (flag[0] == '#') {
      std::string_view number = flag.substr(1);
      if (number.ends_with('*')) {
        field.proto_pointer = true;
        number.remove_suffix(1);
      }
      for (size_t dot; (dot = number.find('.')) != std::string_view::npos;) {
        field.proto_outer = InnerMessage(
            field.proto_outer, static_cast<int>(ParseInt(number.substr(0, dot)).value_or(0)));
        number = number.substr(dot + 1);
      }
      field.proto = static_cast<int>(ParseInt(number).value_or(0));
      continue;
    }
    size_t equals = flag.find('=');
    std::string_view word = flag.substr(0, equals);
    std::string_view value =
        equals == std::string_view::npos ? std::string_view() : flag.substr(equals + 1);
    if (word == "merge") {
      edit().patch_merge = true;
      edit().patch_merge_key = std::string(value);
      edit().list_type = value.empty() ? ListType::kSet : ListType::kMap;
      if (!value.empty()) edit().list_map_keys = {std::string(value)};
    } else if (word == "map") {
      edit().list_type = ListType::kMap;
      edit().list_map_keys = Strings(value, ',');
    } else if (word == "set") {
      edit().list_type = ListType::kSet;
    } else if (word == "atomic") {
      edit().atomic = true;
    } else if (word == "retain") {
      edit().patch_retain_keys = true;
    } else if (word == "replace") {
      edit().patch_replace = true;
    } else if (word == "enum") {
      edit().enum_values = Strings(value, '|');
    } else if (word == "min") {
      edit().minimum = std::string(value);
    } else if (word == "max") {
      edit().maximum = std::string(value);
    } else if (word == "default") {
      Result<json::Value> parsed = json::Parse(value);
      SWELL_CHECK_MSG(parsed.ok(), flag);
      field.default_value = std::make_shared<const json::Value>(std::move(*parsed));
    } else {
      SWELL_CHECK_MSG(false, StrCat("unknown flag in a schema text: ", flag));
    }
  }
}

std::vector<std::string> SchemaLibrary::Names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : entries_) out.push_back(name);
  return out;
}

}  // namespace swell::api
