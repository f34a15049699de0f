#include "kube/api/patch/strategic.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"
#include "json/erase.h"
#include "kube/api/schema/decode_problem.h"

namespace swell::api {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList/";

boost::json::string_view Boost(std::string_view text) { return {text.data(), text.size()}; }

// What Kubernetes has no reason for, but a code of 500.
Status Malformed(std::string what) { return Status(Code::kInternal, std::move(what)); }

Status UnknownDirective(const json::Value& patch) {
  return Malformed(StrCat("unknown patch type: ", GoText(*json::Find(patch, {kPatch})),
                          " in map: ", GoText(patch)));
}

Status NotAList(const json::Value& given) {
  const std::string_view type = given.is_string()   ? "string"
                                : given.is_bool()   ? "bool"
                                : given.is_int64()  ? "int64"
                                : given.is_number() ? "float64"
                                                    : "map[string]interface {}";
  return Malformed(StrCat("expected a []interface {}, but received a ", type));
}

const Schema* ChildSchema(const Schema* schema, std::string_view key) {
  if (schema == nullptr) return nullptr;
  if (schema->type == SchemaType::kMap) return schema->items.get();
  const SchemaField* field = schema->Field(key);
  return field ? field->schema.get() : nullptr;
}

bool MergesAsList(const Schema* schema) {
  return schema != nullptr && schema->type == SchemaType::kArray && schema->patch_merge;
}

// A null inside something new means that the field is absent.
void StripNulls(json::Value& value) {
  if (json::Array* array = value.if_array()) {
    for (json::Value& item : *array) StripNulls(item);
    return;
  }
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  for (auto it = object->begin(); it != object->end();) {
    if (it->value().is_null()) {
      it = object->stable_erase(it);
    } else {
      StripNulls(it->value());
      ++it;
    }
  }
}

// The identity of a list element: scalars by value, objects by their merge key. nullopt when an
// object lacks the key (or a scalar stands among objects).
std::optional<std::string> Identity(std::string_view merge_key, const json::Value& item) {
  if (merge_key.empty()) return json::Print(item);
  const json::Value* key = json::Find(item, {merge_key});
  if (key == nullptr || key->is_structured()) return std::nullopt;
  return json::Print(*key);
}

constexpr size_t kNowhere = SIZE_MAX;

// Where each element stands in a list; of two equal ones, the first.
class Positions {
 public:
  Positions(std::string_view merge_key, const json::Array& list) : merge_key_(merge_key) {
    for (size_t i = 0; i < list.size(); ++i) Add(list[i], i);
  }
  void Add(const json::Value& item, size_t position) {
    if (auto identity = Identity(merge_key_, item)) {
      positions_.emplace(std::move(*identity), position);
    }
  }
  size_t Find(const json::Value& item) const {
    auto identity = Identity(merge_key_, item);
    auto it = identity ? positions_.find(*identity) : positions_.end();
    return it == positions_.end() ? kNowhere : it->second;
  }
  bool Contains(const json::Value& item) const { return Find(item) != kNowhere; }

 private:
  std::string_view merge_key_;
  std::unordered_map<std::string, size_t> positions_;
};

// Elements that `order` names take its order; the others keep the order they had among each other
// and go where the old list had them, as far as both can hold.
json::Array Reorder(const json::Array& merged,
                    const json::Array& order,
                    const json::Array& before,
                    std::string_view merge_key) {
  Positions wanted(merge_key, order);
  Positions had(merge_key, before);
  std::vector<std::pair<size_t, const json::Value*>> named;
  std::vector<std::pair<size_t, const json::Value*>> others;
  for (const json::Value& item : merged) {
    size_t at = wanted.Find(item);
    if (at != kNowhere) {
      named.emplace_back(at, &item);
    } else {
      others.emplace_back(had.Find(item), &item);
    }
  }
  auto by_index = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(named.begin(), named.end(), by_index);
  std::stable_sort(others.begin(), others.end(), by_index);
  json::Array result;
  result.reserve(merged.size());
  size_t i = 0;
  for (const auto& [unused, item] : named) {
    size_t place = had.Find(*item);
    while (i < others.size() && place != kNowhere && others[i].first < place) {
      result.push_back(*others[i++].second);
    }
    result.push_back(*item);
  }
  for (; i < others.size(); ++i) result.push_back(*others[i].second);
  return result;
}

Status NoMergeKey(std::string_view merge_key, const json::Value& item) {
  return Malformed(
      StrCat("map: ", GoText(item), " does not contain declared merge key: ", merge_key));
}

class Merger {
 public:
  // `document` becomes what `patch` makes of it. Both are objects.
  Status Objects(const Schema* schema, json::Object& document, const json::Object& patch) {
    if (const json::Value* directive = patch.if_contains(Boost(kPatch))) {
      std::string_view word =
          directive->is_string() ? json::View(directive->get_string()) : std::string_view();
      if (word == "delete") {
        document.clear();
        return Status::Ok();
      }
      if (word == "replace") {
        document.clear();
      } else if (word != "merge") {
        return UnknownDirective(json::Value(patch));
      }
    }
    SWELL_RETURN_IF_ERROR(RetainKeys(document, patch));
    bool nulls = false;
    for (const auto& member : patch) {
      std::string_view key = std::string_view(member.key());
      if (key == kPatch || key == kRetainKeys) continue;
      if (key.starts_with(kSetElementOrder)) {
        SWELL_RETURN_IF_ERROR(
            OrderOnly(schema, document, patch, key.substr(kSetElementOrder.size())));
      } else if (key.starts_with(kDeleteFromPrimitiveList)) {
        SWELL_RETURN_IF_ERROR(DeletePrimitives(
            document, key.substr(kDeleteFromPrimitiveList.size()), member.value()));
      } else if (member.value().is_null()) {
        nulls = true;
      } else {
        SWELL_RETURN_IF_ERROR(Member(schema, document, patch, member));
      }
    }
    if (!nulls) return Status::Ok();
    json::EraseMembers(document, [&patch](std::string_view key) {
      const json::Value* told = patch.if_contains(Boost(key));
      return told != nullptr && told->is_null();
    });
    return Status::Ok();
  }

 private:
  Status Member(const Schema* schema,
                json::Object& document,
                const json::Object& patch,
                const json::Object::value_type& member) {
    std::string_view key = std::string_view(member.key());
    const json::Value& value = member.value();
    const Schema* child = ChildSchema(schema, key);
    json::Value* old = document.if_contains(Boost(key));
    if (const json::Object* object = value.if_object()) {
      // Merged into nothing, so that directives and nulls inside are obeyed there too.
      json::Value merged = old && old->is_object() ? std::move(*old) : json::Object();
      SWELL_RETURN_IF_ERROR(Objects(child, merged.get_object(), *object));
      document[member.key()] = std::move(merged);
      return Status::Ok();
    }
    if (value.is_array() && MergesAsList(child)) {
      json::Array before = old && old->is_array() ? std::move(old->get_array()) : json::Array();
      json::Array after;
      SWELL_RETURN_IF_ERROR(Lists(*child, before, value.get_array(), Order(patch, key), after));
      document[member.key()] = std::move(after);
      return Status::Ok();
    }
    json::Value replacement = value;
    StripNulls(replacement);
    document[member.key()] = std::move(replacement);
    return Status::Ok();
  }

  static Status RetainKeys(json::Object& document, const json::Object& patch) {
    Status bad(Code::kBadRequest, "invalid patch format of retainKeys");
    const json::Value* keep = patch.if_contains(Boost(kRetainKeys));
    if (keep == nullptr) return Status::Ok();
    if (!keep->is_array()) return bad;
    std::unordered_set<std::string_view> listed;
    for (const json::Value& key : keep->get_array()) {
      if (key.is_string()) listed.insert(json::View(key.get_string()));
    }
    for (const auto& member : patch) {
      const std::string_view key = std::string_view(member.key());
      if (!key.starts_with('$') && !member.value().is_null() && !listed.contains(key)) return bad;
    }
    json::EraseMembers(document, [&](std::string_view key) { return !listed.contains(key); });
    return Status::Ok();
  }

  static const json::Value* Order(const json::Object& patch, std::string_view field) {
    return patch.if_contains(Boost(StrCat(kSetElementOrder, field)));
  }

  // $setElementOrder for a list that the patch itself does not touch.
  Status OrderOnly(const Schema* schema,
                   json::Object& document,
                   const json::Object& patch,
                   std::string_view field) {
    const json::Value* order = Order(patch, field);
    if (order == nullptr || !order->is_array()) {
      return NotAList(order == nullptr ? json::Value() : *order);
    }
    if (patch.contains(Boost(field))) return Status::Ok();  // done with the list itself
    json::Value* old = document.if_contains(Boost(field));
    const Schema* child = ChildSchema(schema, field);
    if (old == nullptr || !old->is_array() || !MergesAsList(child)) return Status::Ok();
    json::Array before = old->get_array();
    *old = Reorder(before, order->get_array(), before, child->patch_merge_key);
    return Status::Ok();
  }

  static Status DeletePrimitives(json::Object& document,
                                 std::string_view field,
                                 const json::Value& gone) {
    if (!gone.is_array()) return NotAList(gone);
    json::Value* old = document.if_contains(Boost(field));
    if (old == nullptr || !old->is_array()) return Status::Ok();
    json::Array kept;
    for (json::Value& item : old->get_array()) {
      const json::Array& list = gone.get_array();
      bool deleted = std::any_of(list.begin(), list.end(),
                                 [&](const json::Value& g) { return json::Equal(g, item); });
      if (!deleted) kept.push_back(std::move(item));
    }
    *old = std::move(kept);
    return Status::Ok();
  }

  // Takes the elements with a $patch directive out of the patch and obeys them.
  static Status Directives(std::string_view merge_key,
                           json::Array& list,
                           const json::Array& patch,
                           json::Array& plain) {
    json::Array deleted;
    for (const json::Value& item : patch) {
      const json::Value* directive = json::Find(item, {kPatch});
      if (directive == nullptr) {
        plain.push_back(item);
        continue;
      }
      std::string_view word = json::GetString(item, {kPatch});
      if (word == "replace") {
        list.clear();
        // Anything beside the directive is an element of its own.
        json::Value rest = item;
        json::StableErase(rest.get_object(), kPatch);
        if (!rest.get_object().empty()) plain.push_back(std::move(rest));
      } else if (word == "delete") {
        if (merge_key.empty() || !Identity(merge_key, item)) {
          return NoMergeKey(merge_key, item);
        }
        deleted.push_back(item);
      } else {
        return UnknownDirective(item);
      }
    }
    if (deleted.empty()) return Status::Ok();
    Positions gone(merge_key, deleted);
    json::Array kept;
    for (json::Value& old : list) {
      if (!gone.Contains(old)) kept.push_back(std::move(old));
    }
    list = std::move(kept);
    return Status::Ok();
  }

  Status Lists(const Schema& schema,
               const json::Array& before,
               const json::Array& patch,
               const json::Value* order,
               json::Array& after) {
    const std::string& merge_key = schema.patch_merge_key;
    json::Array merged = before;
    json::Array plain;
    SWELL_RETURN_IF_ERROR(Directives(merge_key, merged, patch, plain));
    const bool ordered = order != nullptr && order->is_array();
    const json::Array& final_order = ordered ? order->get_array() : plain;
    Positions listed(merge_key, final_order);
    Positions present(merge_key, merged);
    for (const json::Value& item : plain) {
      if (!Identity(merge_key, item)) {
        if (item.is_object() &&
            before.empty()) {  // nothing to find by a key: validation asks for it
          json::Object made;
          SWELL_RETURN_IF_ERROR(Objects(schema.items.get(), made, item.get_object()));
          merged.emplace_back(std::move(made));
          continue;
        }
        if (item.is_object()) return NoMergeKey(merge_key, item);
        return Malformed(StrCat("list element types are not identical: [", GoText(before), " ",
                                GoText(patch), "]"));
      }
      if (!listed.Contains(item)) {
        return Malformed(StrCat("The order in patch list:\n", GoText(plain),
                                "\n doesn't match $setElementOrder list:\n", GoText(final_order),
                                "\n"));
      }
      size_t at = present.Find(item);
      if (at == kNowhere) {
        at = merged.size();
        merged.push_back(item.is_object() ? json::Value(json::Object()) : item);
        present.Add(item, at);
      }
      if (!item.is_object() || !merged[at].is_object()) continue;
      SWELL_RETURN_IF_ERROR(
          Objects(schema.items.get(), merged[at].get_object(), item.get_object()));
    }
    after = Reorder(merged, final_order, before, merge_key);
    return Status::Ok();
  }
};

}  // namespace

Status ApplyStrategicMerge(const Schema& schema, json::Value& document, const json::Value& patch) {
  if (!patch.is_object()) return Status(Code::kInvalid, "the patch must be an object");
  if (!document.is_object()) document.emplace_object();
  json::Value result = document;  // an error leaves the document as it was
  SWELL_RETURN_IF_ERROR(Merger().Objects(&schema, result.get_object(), patch.get_object()));
  document = std::move(result);
  return Status::Ok();
}

}  // namespace swell::api
