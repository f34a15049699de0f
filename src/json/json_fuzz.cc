// Fuzzes the JSON side: what parses must print and parse to the same document, and the patches must
// keep their laws on any two documents. A JSON patch must give what its operations give when each
// makes a new document. The input is one or two documents, parted by a zero byte.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "json/patch.h"
#include "json/value.h"

namespace {

using swell::json::ParseLimits;
using swell::json::Value;

constexpr ParseLimits kLimits = {.depth = 32, .bytes = 1 << 16};

// A merge patch cannot make a null: its laws hold for documents without one.
bool HasNull(const Value& value) {
  if (value.is_null()) return true;
  if (const auto* array = value.if_array()) {
    for (const Value& item : *array) {
      if (HasNull(item)) return true;
    }
  }
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (HasNull(member.value())) return true;
    }
  }
  return false;
}

void CheckRoundTrip(const Value& value) {
  auto again = swell::json::Parse(swell::json::Print(value), kLimits);
  SWELL_CHECK(again.ok() && swell::json::Equal(value, *again));
  auto pretty = swell::json::Parse(swell::json::PrintPretty(value));
  SWELL_CHECK(pretty.ok() && swell::json::Equal(value, *pretty));
}

// JSON Patch in the plainest way. nullopt: refused.
class PlainPatch {
 public:
  static std::optional<Value> Apply(Value document, const Value& patch) {
    const auto* operations = patch.if_array();
    if (operations == nullptr) return std::nullopt;
    for (const Value& operation : *operations) {
      auto next = One(document, operation);
      if (!next) return std::nullopt;
      document = std::move(*next);
    }
    return document;
  }

 private:
  using Steps = std::vector<std::string>;
  enum class Edit { kAdd, kReplace, kRemove };
  static constexpr size_t kDepthMost = 128;

  static std::optional<Steps> Pointer(const Value& operation, const char* field) {
    const Value* given = swell::json::Find(operation, {field});
    if (given == nullptr || !given->is_string()) return std::nullopt;
    const std::string text(given->get_string());
    Steps steps;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '/') {
        steps.emplace_back();
      } else if (steps.empty()) {
        return std::nullopt;  // it begins with something else
      } else if (text[i] != '~') {
        steps.back() += text[i];
      } else if (++i < text.size() && (text[i] == '0' || text[i] == '1')) {
        steps.back() += text[i] == '0' ? '~' : '/';
      } else {
        return std::nullopt;
      }
    }
    return steps.size() > kDepthMost ? std::nullopt : std::optional(steps);
  }

  static std::optional<Value> One(const Value& document, const Value& operation) {
    const std::string_view op = swell::json::GetString(operation, {"op"});
    const auto path = Pointer(operation, "path");
    if (!path) return std::nullopt;
    if (op == "remove") return Edited(document, *path, 0, Edit::kRemove, {});
    if (op == "add" || op == "replace" || op == "test") {
      const Value* value = swell::json::Find(operation, {"value"});
      if (value == nullptr) return std::nullopt;
      if (op == "test") {
        const auto there = At(document, *path);
        return there && swell::json::Equal(*there, *value) ? std::optional(document) : std::nullopt;
      }
      if (op == "replace" && !At(document, *path)) return std::nullopt;
      return Edited(document, *path, 0, op == "add" ? Edit::kAdd : Edit::kReplace, *value);
    }
    const auto from = Pointer(operation, "from");
    if ((op != "move" && op != "copy") || !from) return std::nullopt;
    const auto value = At(document, *from);
    if (!value) return std::nullopt;
    if (op == "copy") return Edited(document, *path, 0, Edit::kAdd, *value);
    if (*from == *path) return document;
    const auto without = Edited(document, *from, 0, Edit::kRemove, {});
    return without ? Edited(*without, *path, 0, Edit::kAdd, *value) : std::nullopt;
  }

  static std::optional<size_t> Index(const std::string& step, size_t end) {
    if (step.empty() || step.size() > 6 || (step.size() > 1 && step[0] == '0')) return std::nullopt;
    size_t index = 0;
    for (const char c : step) {
      if (c < '0' || c > '9') return std::nullopt;
      index = index * 10 + static_cast<size_t>(c - '0');
    }
    return index < end ? std::optional(index) : std::nullopt;
  }

  static std::optional<Value> At(const Value& root, const Steps& path) {
    const Value* at = &root;
    for (const std::string& step : path) {
      const Value* next = nullptr;
      if (const auto* object = at->if_object()) next = object->if_contains(step);
      if (const auto* array = at->if_array()) {
        if (const auto index = Index(step, array->size())) next = &(*array)[*index];
      }
      if (next == nullptr) return std::nullopt;
      at = next;
    }
    return *at;
  }

  static size_t Depth(const Value& value) {
    size_t deepest = 0;
    if (const auto* object = value.if_object()) {
      for (const auto& member : *object) deepest = std::max(deepest, Depth(member.value()));
    } else if (const auto* array = value.if_array()) {
      for (const Value& item : *array) deepest = std::max(deepest, Depth(item));
    }
    return deepest + 1;
  }

  // `at` is where the first `done` steps of the path lead.
  static std::optional<Value> Edited(
      const Value& at, const Steps& path, size_t done, Edit edit, const Value& value) {
    if (done == path.size()) {
      if (edit == Edit::kRemove) return std::nullopt;
      const bool fits =
          (path.empty() && edit == Edit::kAdd) || path.size() + Depth(value) <= kDepthMost;
      return fits ? std::optional(value) : std::nullopt;
    }
    if (const auto* object = at.if_object()) return EditedMember(*object, path, done, edit, value);
    if (const auto* array = at.if_array()) return EditedItem(*array, path, done, edit, value);
    return std::nullopt;
  }

  static std::optional<Value> EditedMember(const swell::json::Object& object,
                                           const Steps& path,
                                           size_t done,
                                           Edit edit,
                                           const Value& value) {
    const std::string& step = path[done];
    const bool last = done + 1 == path.size();
    const Value* old = object.if_contains(step);
    if (old == nullptr && !(last && edit == Edit::kAdd)) return std::nullopt;
    swell::json::Object out;
    for (const auto& member : object) {
      if (member.key() != step) out.insert(member);
    }
    if (last && edit == Edit::kRemove) return out;
    auto inner = Edited(old == nullptr ? Value() : *old, path, done + 1, edit, value);
    if (!inner) return std::nullopt;
    out[step] = std::move(*inner);
    return out;
  }

  static std::optional<Value> EditedItem(const swell::json::Array& array,
                                         const Steps& path,
                                         size_t done,
                                         Edit edit,
                                         const Value& value) {
    const std::string& step = path[done];
    const bool last = done + 1 == path.size();
    const bool insert = last && edit == Edit::kAdd;
    const auto index =
        insert && step == "-" ? array.size() : Index(step, array.size() + (insert ? 1 : 0));
    if (!index) return std::nullopt;
    swell::json::Array out;
    for (size_t i = 0; i <= array.size(); ++i) {
      if (i == *index && !(last && edit == Edit::kRemove)) {
        auto inner = Edited(insert ? Value() : array[i], path, done + 1, edit, value);
        if (!inner) return std::nullopt;
        out.push_back(std::move(*inner));
      }
      if (i < array.size() && (i != *index || insert)) out.push_back(array[i]);
    }
    return out;
  }
};

void CheckJsonPatch(const Value& from, const Value& patch) {
  const auto patched = swell::json::ApplyJsonPatch(from, patch);
  if (patched.status().code() == swell::Code::kTooLarge) return;
  const auto plain = PlainPatch::Apply(from, patch);
  SWELL_CHECK_MSG(patched.ok() == plain.has_value(), patched.status().ToString());
  if (!plain) return SWELL_CHECK(!patched.status().message().empty());
  SWELL_CHECK_MSG(swell::json::Equal(*patched, *plain), swell::json::Print(*patched));
  CheckRoundTrip(*patched);
}

void CheckPatches(const Value& from, const Value& to) {
  CheckJsonPatch(from, to);
  Value merged = from;
  swell::json::ApplyMergePatch(merged, to);
  CheckRoundTrip(merged);
  if (!from.is_object() || !to.is_object() || HasNull(from) || HasNull(to)) return;
  Value target = from;
  swell::json::ApplyMergePatch(target, swell::json::MakeMergePatch(from, to));
  SWELL_CHECK(swell::json::Equal(target, to));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t cut = text.find('\0');
  auto first = swell::json::Parse(text.substr(0, cut), kLimits);
  if (!first.ok()) {
    SWELL_CHECK(!first.status().message().empty());
    return 0;
  }
  CheckRoundTrip(*first);
  if (cut == std::string_view::npos) return 0;
  auto second = swell::json::Parse(text.substr(cut + 1), kLimits);
  if (second.ok()) CheckPatches(*first, *second);
  return 0;
}
