#include "apiserver/field_set.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr int kMaxDepth = 64;

bool IsKeyedList(const api::Schema* schema) {
  return schema != nullptr && schema->type == api::SchemaType::kArray &&
         schema->list_type == api::ListType::kMap && !schema->list_map_keys.empty();
}

bool IsSetList(const api::Schema* schema) {
  return schema != nullptr && schema->type == api::SchemaType::kArray &&
         schema->list_type == api::ListType::kSet;
}

// The element of one item of a keyed list: its keys, sorted, defaults filled in.
std::string KeyElement(const json::Value& item, const api::Schema& list) {
  std::vector<std::string> keys = list.list_map_keys;
  std::sort(keys.begin(), keys.end());
  json::Object object;
  for (const std::string& key : keys) {
    const json::Value* value = json::Find(item, {key});
    if (value == nullptr && list.items) {
      const api::SchemaField* field = list.items->Field(key);
      if (field != nullptr && field->default_value) value = field->default_value.get();
    }
    if (value != nullptr) object[key] = *value;
  }
  return StrCat("k:", json::Print(json::Value(std::move(object))));
}

std::string ElementOfItem(const json::Value& item, const api::Schema& list) {
  if (IsKeyedList(&list)) return KeyElement(item, list);
  return StrCat("v:", json::Print(item));
}

std::string FieldElement(std::string_view key) { return StrCat("f:", key); }

// A key of a map is a field of its own, beside what is in it; a field of a struct is not.
bool IsDeclared(const api::Schema* schema, std::string_view key) {
  return schema != nullptr && schema->Field(key) != nullptr;
}

bool IsNothing(const json::Value& value) {
  return value.is_null() || (value.is_object() && value.get_object().empty());
}

void Collect(const json::Value& value, const api::Schema* schema, FieldSet& out) {
  if (!HasParts(value, schema)) {
    out.member = true;
    return;
  }
  const bool list = value.is_array();
  ForEachPart(
      value, schema, [&](std::string element, const json::Value& part, const api::Schema* below) {
        const bool own =
            list || IsNothing(part) || !IsDeclared(schema, std::string_view(element).substr(2));
        FieldSet found;
        Collect(part, below, found);
        found.member = found.member || own;
        if (!found.empty()) out.children[std::move(element)] = std::move(found);
      });
}

}  // namespace

bool HasParts(const json::Value& value, const api::Schema* schema) {
  if (value.is_object()) return schema == nullptr || !schema->atomic;
  return value.is_array() && (IsKeyedList(schema) || IsSetList(schema));
}

void ForEachPart(const json::Value& value, const api::Schema* schema, const VisitPart& visit) {
  if (!HasParts(value, schema)) return;
  if (value.is_object()) {
    for (const auto& [key, field] : value.get_object()) {
      std::string element = FieldElement({key.data(), key.size()});
      const api::Schema* below = SchemaOf(schema, element);
      visit(std::move(element), field, below);
    }
    return;
  }
  std::set<std::string> seen;
  for (const json::Value& item : value.get_array()) {
    std::string element = ElementOfItem(item, *schema);
    if (!seen.insert(element).second) continue;
    visit(std::move(element), item, schema->items.get());
  }
}

const FieldSet* FieldSet::Find(const std::string& element) const {
  const auto found = children.find(element);
  return found == children.end() ? nullptr : &found->second;
}

FieldSet FieldSet::FromJson(const json::Value& fields_v1, int depth) {
  FieldSet set;
  if (!fields_v1.is_object() || depth > kMaxDepth) return set;
  set.member = fields_v1.get_object().empty();
  for (const auto& [key, value] : fields_v1.get_object()) {
    if (key == ".") {
      set.member = true;
    } else {
      set.children[std::string(key.data(), key.size())] = FromJson(value, depth + 1);
    }
  }
  return set;
}

json::Value FieldSet::ToJson() const {
  json::Object object;
  if (member && !children.empty()) object["."] = json::Object();
  for (const auto& [element, child] : children) object[element] = child.ToJson();
  return object;
}

FieldSet FieldsOf(const json::Value& value, const api::Schema* schema) {
  FieldSet set;
  Collect(value, schema, set);
  set.member = false;
  return set;
}

void AddFields(FieldSet& to, const FieldSet& from) {
  to.member = to.member || from.member;
  for (const auto& [element, child] : from.children) AddFields(to.children[element], child);
}

void RemoveFields(FieldSet& from, const FieldSet& what) {
  if (what.member) from.member = false;
  for (const auto& [element, child] : what.children) {
    const auto found = from.children.find(element);
    if (found == from.children.end()) continue;
    RemoveFields(found->second, child);
    if (found->second.empty()) from.children.erase(found);
  }
}

FieldSet CommonFields(const FieldSet& a, const FieldSet& b) {
  FieldSet common;
  common.member = a.member && b.member;
  for (const auto& [element, child] : a.children) {
    const FieldSet* other = b.Find(element);
    if (other == nullptr) continue;
    FieldSet below = CommonFields(child, *other);
    if (!below.empty()) common.children[element] = std::move(below);
  }
  return common;
}

const api::Schema* SchemaOf(const api::Schema* schema, const std::string& element) {
  if (schema == nullptr) return nullptr;
  if (element[0] != 'f') return schema->items.get();
  if (schema->type == api::SchemaType::kMap) return schema->items.get();
  const api::SchemaField* field = schema->Field(std::string_view(element).substr(2));
  return field == nullptr ? nullptr : field->schema.get();
}

const json::Value* Step(const json::Value& value,
                        const api::Schema* schema,
                        const std::string& element) {
  if (element[0] == 'f') {
    return value.is_object() ? value.get_object().if_contains(std::string_view(element).substr(2))
                             : nullptr;
  }
  if (!value.is_array() || (!IsKeyedList(schema) && !IsSetList(schema))) return nullptr;
  for (const json::Value& item : value.get_array()) {
    if (ElementOfItem(item, *schema) == element) return &item;
  }
  return nullptr;
}

void Erase(json::Value& value, const api::Schema* schema, const std::string& element) {
  if (element[0] == 'f') {
    if (value.is_object()) {
      json::StableErase(value.get_object(), std::string_view(element).substr(2));
    }
    return;
  }
  const json::Value* item = Step(value, schema, element);
  if (item == nullptr) return;
  json::Array& array = value.get_array();
  array.erase(array.begin() + (item - array.data()));
}

void MergeByKeys(json::Value& value, const json::Value& over, const api::Schema* schema) {
  if (over.is_object() && value.is_object()) {
    for (const auto& [key, field] : over.get_object()) {
      const std::string_view name(key.data(), key.size());
      json::Value* target = value.get_object().if_contains(name);
      if (target == nullptr) {
        value.get_object()[name] = field;
      } else {
        MergeByKeys(*target, field, SchemaOf(schema, FieldElement(name)));
      }
    }
    return;
  }
  if (!over.is_array() || !value.is_array() || (!IsKeyedList(schema) && !IsSetList(schema))) {
    value = over;
    return;
  }
  for (const json::Value& item : over.get_array()) {
    const json::Value* found = Step(value, schema, ElementOfItem(item, *schema));
    if (found == nullptr) {
      value.get_array().push_back(item);
    } else {
      json::Array& array = value.get_array();
      MergeByKeys(array[static_cast<size_t>(found - array.data())], item, schema->items.get());
    }
  }
}

std::string PathText(const std::string& prefix, const std::string& element) {
  if (element[0] == 'f') return StrCat(prefix, ".", std::string_view(element).substr(2));
  const auto key = json::Parse(std::string_view(element).substr(2));
  if (!key.ok() || !key->is_object()) {
    return StrCat(prefix, "[=", std::string_view(element).substr(2), "]");
  }
  std::string inside;
  for (const auto& [name, value] : key->get_object()) {
    inside += StrCat(inside.empty() ? "" : ",", std::string_view(name.data(), name.size()), "=",
                     json::Print(value));
  }
  return StrCat(prefix, "[", inside, "]");
}

}  // namespace swell::apiserver
