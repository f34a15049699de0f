// Fuzzes strategic merge patches of something like a pod: the first document is patched with the
// second (after a zero byte). What comes out must be what the rules say when they are followed in
// the plainest way; only in which order merged lists are is not looked at.
#include "kube/api/patch/strategic.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "kube/api/schema/schema_test_util.h"

namespace {

using swell::api::Fields;
using swell::api::List;
using swell::api::Scalar;
using swell::api::Schema;
using swell::api::SchemaPtr;
using swell::json::Array;
using swell::json::Object;
using swell::json::Value;

constexpr swell::json::ParseLimits kLimits = {.depth = 32, .bytes = 1 << 14};

const Schema& PodLike() {
  static const SchemaPtr schema = [] {
    const SchemaPtr env = Fields({{"name", Scalar()}, {"value", Scalar()}});
    const SchemaPtr container = Fields({{"name", Scalar()},
                                        {"image", Scalar()},
                                        {"args", List(Scalar(), false)},
                                        {"env", List(env, true, "name")}});
    return Fields({{"finalizers", List(Scalar(), true)},
                   {"containers", List(container, true, "name")},
                   {"tolerations", List(Fields({{"key", Scalar()}}), false)},
                   {"strategy", Fields({{"type", Scalar()}, {"rolling", Scalar()}})}});
  }();
  return *schema;
}

// The rules, for patches that are not refused.
class Plain {
 public:
  static Object Merge(const Schema* schema, Object old, const Object& patch) {
    const Value* word = patch.if_contains("$patch");
    if (word != nullptr && *word == "delete") return {};
    if (word != nullptr && *word == "replace") old.clear();
    Object out;
    for (const auto& member : old) {
      if (Retained(patch, member.key())) out.insert(member);
    }
    for (const auto& member : patch) {
      const std::string_view key(member.key().data(), member.key().size());
      if (key.starts_with("$deleteFromPrimitiveList/")) {
        RemoveAll(out.if_contains(member.key().substr(key.find('/') + 1)), member.value());
      } else if (!IsDirective(key) && !member.value().is_null()) {
        const Value* had = out.if_contains(member.key());
        Value next =
            MergeValue(Child(schema, key), had == nullptr ? Value() : *had, member.value());
        out[member.key()] = std::move(next);
      }
    }
    Object kept;
    for (const auto& member : out) {
      const Value* told = patch.if_contains(member.key());
      if (told == nullptr || !told->is_null()) kept.insert(member);
    }
    return kept;
  }

 private:
  static bool IsDirective(std::string_view key) {
    return key == "$patch" || key == "$retainKeys" || key.starts_with("$setElementOrder/");
  }

  static const Schema* Child(const Schema* schema, std::string_view key) {
    const swell::api::SchemaField* field = schema == nullptr ? nullptr : schema->Field(key);
    return field == nullptr ? nullptr : field->schema.get();
  }

  static bool Retained(const Object& patch, boost::json::string_view key) {
    const Value* keys = patch.if_contains("$retainKeys");
    if (keys == nullptr) return true;
    const Array& list = keys->get_array();
    return std::any_of(list.begin(), list.end(), [key](const Value& listed) {
      return listed.is_string() && listed.get_string() == key;
    });
  }

  static void RemoveAll(Value* list, const Value& gone) {
    if (list == nullptr || !list->is_array()) return;
    Array kept;
    for (const Value& item : list->get_array()) {
      const Array& all = gone.get_array();
      const auto same = [&item](const Value& other) { return swell::json::Equal(item, other); };
      if (std::none_of(all.begin(), all.end(), same)) kept.push_back(item);
    }
    *list = kept;
  }

  static Value MergeValue(const Schema* schema, const Value& old, const Value& patch) {
    if (patch.is_object()) {
      return Merge(schema, old.is_object() ? old.get_object() : Object(), patch.get_object());
    }
    if (patch.is_array() && schema != nullptr && schema->patch_merge) {
      return MergeList(*schema, old.is_array() ? old.get_array() : Array(), patch.get_array());
    }
    return WithoutNulls(patch);
  }

  static Value WithoutNulls(const Value& value) {
    if (const Array* array = value.if_array()) {
      Array out;
      for (const Value& item : *array) out.push_back(WithoutNulls(item));
      return out;
    }
    const Object* object = value.if_object();
    if (object == nullptr) return value;
    Object out;
    for (const auto& member : *object) {
      if (!member.value().is_null()) out[member.key()] = WithoutNulls(member.value());
    }
    return out;
  }

  // What tells an item from the others; nullopt: nothing does.
  static std::optional<std::string> Identity(const std::string& key, const Value& item) {
    if (key.empty()) return swell::json::Print(item);
    const Value* value = swell::json::Find(item, {key});
    if (value == nullptr || value->is_structured()) return std::nullopt;
    return swell::json::Print(*value);
  }

  static Value MergeList(const Schema& schema, const Array& old, const Array& patch) {
    const std::string& key = schema.patch_merge_key;
    std::vector<std::pair<std::optional<std::string>, Value>> items;
    for (const Value& item : old) items.emplace_back(Identity(key, item), item);
    Array plain;
    std::vector<std::string> deleted;
    for (const Value& item : patch) {
      const std::string_view word = swell::json::GetString(item, {"$patch"});
      if (word == "delete") {
        deleted.push_back(*Identity(key, item));
      } else if (word == "replace") {
        items.clear();
        Value rest = item;
        swell::json::Remove(rest, {"$patch"});
        if (!rest.get_object().empty()) plain.push_back(rest);
      } else {
        plain.push_back(item);
      }
    }
    std::erase_if(items, [&deleted](const auto& item) {
      return item.first && std::count(deleted.begin(), deleted.end(), *item.first) > 0;
    });
    for (const Value& item : plain) {
      const auto identity = Identity(key, item);
      auto at = std::find_if(items.begin(), items.end(), [&identity](const auto& there) {
        return identity && there.first == identity;
      });
      if (at == items.end()) {
        items.emplace_back(identity, item.is_object() ? Value(Object()) : item);
        at = items.end() - 1;
      }
      if (!item.is_object() || !at->second.is_object()) continue;
      at->second = Merge(schema.items.get(), at->second.get_object(), item.get_object());
    }
    Array out;
    for (auto& [identity, item] : items) out.push_back(std::move(item));
    return out;
  }
};

// The same for lists that hold the same.
Value Sorted(const Value& value) {
  if (const Object* object = value.if_object()) {
    std::vector<std::pair<std::string, Value>> members;
    for (const auto& member : *object) {
      members.emplace_back(std::string(member.key()), Sorted(member.value()));
    }
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Object out;
    for (auto& [key, member] : members) out[key] = std::move(member);
    return out;
  }
  const Array* array = value.if_array();
  if (array == nullptr) return value;
  std::vector<std::pair<std::string, Value>> items;
  for (const Value& item : *array) {
    Value sorted = Sorted(item);
    std::string text = swell::json::Print(sorted);
    items.emplace_back(std::move(text), std::move(sorted));
  }
  std::sort(items.begin(), items.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Array out;
  for (auto& [text, item] : items) out.push_back(std::move(item));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  const auto before = swell::json::Parse(text.substr(0, cut), kLimits);
  const auto patch = swell::json::Parse(text.substr(cut + 1), kLimits);
  if (!before.ok() || !patch.ok()) return 0;
  Value after = *before;
  const swell::Status status = swell::api::ApplyStrategicMerge(PodLike(), after, *patch);
  if (!status.ok()) {
    SWELL_CHECK(!status.message().empty());
    SWELL_CHECK(swell::json::Equal(after, before->is_object() ? *before : Value(Object())) ||
                swell::json::Equal(after, *before));
    return 0;
  }
  const Value plain = Plain::Merge(
      &PodLike(), before->is_object() ? before->get_object() : Object(), patch->get_object());
  SWELL_CHECK_MSG(swell::json::Print(Sorted(after)) == swell::json::Print(Sorted(plain)),
                  swell::json::Print(after));
  return 0;
}
