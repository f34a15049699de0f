#include "kube/apiserver/fields/field_set.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "json/erase.h"

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

bool IsNothing(const json::Value& value) {
  return value.is_null() || (value.is_object() && value.get_object().empty());
}

void Collect(const json::Value& value, const api::Schema* schema, FieldSet& out) {
  if (!HasParts(value, schema)) {
    out.member = true;
    return;
  }
  const bool list = value.is_array();
  for (Part& part : PartsOf(value, schema)) {
    FieldSet found;
    Collect(*part.value, part.schema, found);
    // A key of a map is a field of its own, beside what is in it; a field of a struct is not.
    if (list || IsNothing(*part.value) || part.declared_as == nullptr) found.member = true;
    if (!found.empty()) out.children.push_back({std::move(part.element), std::move(found)});
  }
}

constexpr auto kByElement = [](const auto& a, const auto& b) { return a.element < b.element; };

auto PlaceOf(auto& children, std::string_view element) {
  return std::lower_bound(children.begin(), children.end(), element,
                          [](const FieldSet::Child& child, std::string_view wanted) {
                            return child.element.compare(wanted) < 0;
                          });
}

// Sorted while they are small: elements have one prefix, so keys have the order of elements.
std::vector<Part> FieldsAsParts(const json::Object& object, const api::Schema* schema) {
  std::vector<const json::Object::value_type*> members;
  members.reserve(object.size());
  for (const auto& member : object) members.push_back(&member);
  constexpr auto kByKey = [](const auto* a, const auto* b) { return a->key() < b->key(); };
  if (!std::is_sorted(members.begin(), members.end(), kByKey)) {
    std::sort(members.begin(), members.end(), kByKey);
  }
  std::vector<Part> parts;
  parts.reserve(members.size());
  for (const auto* member : members) {
    const json::Value& value = member->value();
    const std::string_view key = member->key();
    const api::SchemaField* field = schema == nullptr ? nullptr : schema->Field(key);
    parts.push_back({MemberElement(key), &value, SchemaOfMember(schema, key), field});
  }
  return parts;
}

}  // namespace

bool HasParts(const json::Value& value, const api::Schema* schema) {
  if (value.is_object()) return schema == nullptr || !schema->atomic;
  return value.is_array() && (IsKeyedList(schema) || IsSetList(schema));
}

std::vector<Part> PartsOf(const json::Value& value, const api::Schema* schema) {
  if (!HasParts(value, schema)) return {};
  if (value.is_object()) return FieldsAsParts(value.get_object(), schema);
  std::vector<Part> parts;
  for (const json::Value& item : value.get_array()) {
    parts.push_back({ElementOfItem(item, *schema), &item, schema->items.get(), nullptr});
  }
  std::stable_sort(parts.begin(), parts.end(), kByElement);
  parts.erase(std::unique(parts.begin(), parts.end(),
                          [](const Part& a, const Part& b) { return a.element == b.element; }),
              parts.end());
  return parts;
}

std::string ElementThereTwice(const json::Value& value, const api::Schema* schema) {
  if (!value.is_array() || !HasParts(value, schema)) return {};
  std::set<std::string> seen;
  for (const json::Value& item : value.get_array()) {
    std::string element = ElementOfItem(item, *schema);
    if (seen.count(element) > 0) return element;
    seen.insert(std::move(element));
  }
  return {};
}

const FieldSet* FieldSet::Find(std::string_view element) const {
  const auto found = PlaceOf(children, element);
  return found == children.end() || found->element != element ? nullptr : &found->set;
}

FieldSet* FieldSet::Find(std::string_view element) {
  const auto found = PlaceOf(children, element);
  return found == children.end() || found->element != element ? nullptr : &found->set;
}

void FieldSet::Erase(std::string_view element) {
  const auto found = PlaceOf(children, element);
  if (found != children.end() && found->element == element) children.erase(found);
}

bool FieldSet::operator==(const FieldSet& other) const {
  return member == other.member && children == other.children;
}

FieldSet FieldSet::FromJson(const json::Value& fields_v1, int depth) {
  FieldSet set;
  if (!fields_v1.is_object() || depth > kMaxDepth) return set;
  const json::Object& fields = fields_v1.get_object();
  set.member = fields.empty();
  set.children.reserve(fields.size());
  for (const auto& [key, value] : fields) {
    if (key == ".") {
      set.member = true;
    } else {
      set.children.push_back({std::string(key.data(), key.size()), FromJson(value, depth + 1)});
    }
  }
  set.Sort();
  return set;
}

void FieldSet::Sort() {
  // They mostly come in order: ours are stored so.
  if (!std::is_sorted(children.begin(), children.end(), kByElement)) {
    std::sort(children.begin(), children.end(), kByElement);
  }
}

json::Value FieldSet::ToJson() const {
  json::Object object;
  if (children.empty()) return object;  // most are leaves: they need no room
  object.reserve(children.size() + 1);
  if (member) object.emplace(".", json::Object());
  for (const auto& [element, child] : children) object.emplace(element, child.ToJson());
  return object;
}

FieldSet FieldsOf(const json::Value& value, const api::Schema* schema) {
  FieldSet set;
  Collect(value, schema, set);
  set.member = false;
  return set;
}

void AddFields(FieldSet& to, FieldSet from) {
  to.member = to.member || from.member;
  if (to.children.empty()) {
    to.children = std::move(from.children);
    return;
  }
  std::vector<FieldSet::Child> both;
  both.reserve(to.children.size() + from.children.size());
  auto mine = to.children.begin();
  for (FieldSet::Child& theirs : from.children) {
    while (mine != to.children.end() && mine->element < theirs.element) {
      both.push_back(std::move(*mine++));
    }
    if (mine != to.children.end() && mine->element == theirs.element) {
      AddFields(mine->set, std::move(theirs.set));
      both.push_back(std::move(*mine++));
    } else {
      both.push_back(std::move(theirs));
    }
  }
  std::move(mine, to.children.end(), std::back_inserter(both));
  to.children = std::move(both);
}

void RemoveFields(FieldSet& from, const FieldSet& what) {
  if (what.member) from.member = false;
  for (const auto& [element, gone] : what.children) {
    FieldSet* child = from.Find(element);
    if (child != nullptr) RemoveFields(*child, gone);
  }
  if (what.children.empty()) return;
  std::erase_if(from.children, [](const FieldSet::Child& child) { return child.set.empty(); });
}

FieldSet CommonFields(const FieldSet& a, const FieldSet& b) {
  FieldSet common;
  common.member = a.member && b.member;
  for (const auto& [element, child] : a.children) {
    const FieldSet* other = b.Find(element);
    if (other == nullptr) continue;
    FieldSet below = CommonFields(child, *other);
    if (!below.empty()) common.children.push_back({element, std::move(below)});
  }
  return common;
}

const api::Schema* SchemaOf(const api::Schema* schema, const std::string& element) {
  if (element[0] == 'f') return SchemaOfMember(schema, std::string_view(element).substr(2));
  return schema == nullptr ? nullptr : schema->items.get();
}

const api::Schema* SchemaOfMember(const api::Schema* schema, std::string_view name) {
  if (schema == nullptr) return nullptr;
  if (schema->type == api::SchemaType::kMap) return schema->items.get();
  const api::SchemaField* field = schema->Field(name);
  return field == nullptr ? nullptr : field->schema.get();
}

std::string MemberElement(std::string_view name) { return StrCat("f:", name); }

const json::Value* Places::Find(const std::string& element) {
  if (element[0] == 'f') {
    return value_.is_object() ? value_.get_object().if_contains(std::string_view(element).substr(2))
                              : nullptr;
  }
  if (!parts_) parts_ = PartsOf(value_, schema_);
  const auto found =
      std::lower_bound(parts_->begin(), parts_->end(), element,
                       [](const Part& part, const std::string& it) { return part.element < it; });
  return found == parts_->end() || found->element != element ? nullptr : found->value;
}

void Erase(json::Value& value,
           const api::Schema* schema,
           const std::vector<std::string_view>& elements) {
  if (elements.empty()) return;
  auto goes = [&elements](const std::string& element) {
    return std::binary_search(elements.begin(), elements.end(), std::string_view(element));
  };
  if (value.is_object()) {
    json::EraseMembers(value.get_object(),
                       [&goes](std::string_view name) { return goes(MemberElement(name)); });
  } else if (value.is_array() && (IsKeyedList(schema) || IsSetList(schema))) {
    json::Array& array = value.get_array();
    array.erase(
        std::remove_if(array.begin(), array.end(),
                       [&](const json::Value& item) { return goes(ElementOfItem(item, *schema)); }),
        array.end());
  }
}

void MergeByKeys(json::Value& value, const json::Value& over, const api::Schema* schema) {
  if (over.is_object() && value.is_object() && HasParts(value, schema)) {
    for (const auto& [key, field] : over.get_object()) {
      const std::string_view name(key.data(), key.size());
      json::Value* target = value.get_object().if_contains(name);
      if (target == nullptr) {
        value.get_object()[name] = field;
      } else {
        MergeByKeys(*target, field, SchemaOf(schema, MemberElement(name)));
      }
    }
    return;
  }
  if (!over.is_array() || !value.is_array() || (!IsKeyedList(schema) && !IsSetList(schema))) {
    value = over;
    return;
  }
  json::Array& array = value.get_array();
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < array.size(); ++i) places.emplace(ElementOfItem(array[i], *schema), i);
  for (const json::Value& item : over.get_array()) {
    const auto [found, is_new] = places.emplace(ElementOfItem(item, *schema), array.size());
    if (is_new) {
      array.push_back(item);
    } else {
      MergeByKeys(array[found->second], item, schema->items.get());
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
