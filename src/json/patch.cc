#include "json/patch.h"

#include <optional>

#include "base/strings.h"
#include "json/erase.h"

namespace swell::json {
namespace {

constexpr size_t kMaxOperations = 10'000;
// Copies double documents: bounded in all, and in depth, so that a short patch stays cheap.
constexpr size_t kMaxCopiedBytes = 4 << 20;
constexpr size_t kMaxDepth = 128;
// What operations shift or look through in all: for each that may be most of the document.
constexpr size_t kMaxTouched = 4'000'000;

using Pointer = std::vector<std::string>;

Status Malformed(std::string_view what) { return Status(Code::kBadRequest, std::string(what)); }
Status Inapplicable(std::string_view what) { return Status(Code::kInvalid, std::string(what)); }

Result<Pointer> ParsePointer(std::string_view text) {
  Pointer pointer;
  if (text.empty()) return pointer;
  if (text[0] != '/') return Malformed(StrCat("path ", Quote(text), " must begin with \"/\""));
  for (std::string_view part : Split(text.substr(1), '/')) {
    std::string step;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] != '~') {
        step += part[i];
        continue;
      }
      ++i;
      if (i == part.size() || (part[i] != '0' && part[i] != '1')) {
        return Malformed(StrCat("path ", Quote(text), ": \"~\" must be followed by 0 or 1"));
      }
      step += part[i] == '0' ? '~' : '/';
    }
    pointer.push_back(std::move(step));
  }
  if (text == "/") pointer.emplace_back();
  if (pointer.size() > kMaxDepth) return Malformed("path is too deep");
  return pointer;
}

// An index below `end`, without leading zeros.
std::optional<size_t> ParseIndex(std::string_view step, size_t end) {
  if (step.empty() || step[0] < '0' || step[0] > '9') return std::nullopt;
  if (step.size() > 1 && step[0] == '0') return std::nullopt;
  auto index = ParseUint(step);
  if (!index || *index >= end) return std::nullopt;
  return static_cast<size_t>(*index);
}

Value* Step(Value& at, const std::string& step) {
  if (Object* object = at.if_object()) return object->if_contains(step);
  if (Array* array = at.if_array()) {
    auto index = ParseIndex(step, array->size());
    return index ? &(*array)[*index] : nullptr;
  }
  return nullptr;
}

Value* Walk(Value& root, const Pointer& pointer, size_t steps) {
  Value* at = &root;
  for (size_t i = 0; i < steps && at != nullptr; ++i) at = Step(*at, pointer[i]);
  return at;
}

size_t Depth(const Value& value) {
  size_t deepest = 0;
  if (const Object* object = value.if_object()) {
    for (const auto& member : *object) deepest = std::max(deepest, Depth(member.value()));
  } else if (const Array* array = value.if_array()) {
    for (const Value& item : *array) deepest = std::max(deepest, Depth(item));
  }
  return deepest + 1;
}

size_t ValuesIn(const Value& value) {
  size_t values = 1;
  if (const Object* object = value.if_object()) {
    for (const auto& member : *object) values += ValuesIn(member.value());
  } else if (const Array* array = value.if_array()) {
    for (const Value& item : *array) values += ValuesIn(item);
  }
  return values;
}

// `touched` grows by what had to make room.
Status Add(Value& root, const Pointer& path, Value value, size_t& touched) {
  if (path.empty()) {
    root = std::move(value);
    return Status::Ok();
  }
  if (path.size() + Depth(value) > kMaxDepth) return Inapplicable("the result is too deep");
  Value* parent = Walk(root, path, path.size() - 1);
  if (parent == nullptr) return Inapplicable("the path's parent does not exist");
  const std::string& last = path.back();
  if (Object* object = parent->if_object()) {
    (*object)[last] = std::move(value);
    return Status::Ok();
  }
  Array* array = parent->if_array();
  if (array == nullptr) return Inapplicable("the path's parent is neither object nor array");
  auto index = last == "-" ? array->size() : ParseIndex(last, array->size() + 1);
  if (!index)
    return Inapplicable(StrCat("no index ", Quote(last), " in an array of ", array->size()));
  touched += array->size() - *index;
  array->insert(array->begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  return Status::Ok();
}

Status RemoveAt(Value& root, const Pointer& path, size_t& touched) {
  if (path.empty()) return Inapplicable("the whole document cannot be removed");
  Value* parent = Walk(root, path, path.size() - 1);
  if (parent == nullptr || Step(*parent, path.back()) == nullptr) {
    return Inapplicable("the path does not exist");
  }
  if (Object* object = parent->if_object()) {
    touched += object->size();
    StableErase(*object, path.back());
  } else {
    Array& array = parent->get_array();
    auto index = ParseIndex(path.back(), array.size());
    touched += array.size() - *index;
    array.erase(array.begin() + static_cast<std::ptrdiff_t>(*index));
  }
  return Status::Ok();
}

class Patcher {
 public:
  explicit Patcher(Value document) : document_(std::move(document)) {}

  Status Apply(const Value& operation) {
    if (touched_ > kMaxTouched) {
      return Status(Code::kTooLarge, StrCat("moves, removals and insertions before it touched more "
                                            "than ",
                                            kMaxTouched, " members and items"));
    }
    if (!operation.is_object()) return Malformed("must be an object");
    std::string_view op = GetString(operation, {"op"});
    const Value* value = Find(operation, {"value"});
    bool wants_value = op == "add" || op == "replace" || op == "test";
    bool wants_from = op == "move" || op == "copy";
    if (!wants_value && !wants_from && op != "remove") {
      return Malformed(StrCat("unknown op ", Quote(op)));
    }
    if (wants_value && value == nullptr) return Malformed("needs a value");
    SWELL_ASSIGN_OR_RETURN(Pointer path, ReadPointer(operation, "path"));
    if (wants_from) {
      SWELL_ASSIGN_OR_RETURN(Pointer from, ReadPointer(operation, "from"));
      return op == "move" ? Move(from, path) : Copy(from, path);
    }
    if (op == "add") return Add(document_, path, *value, touched_);
    if (op == "remove") return RemoveAt(document_, path, touched_);
    Value* target = Walk(document_, path, path.size());
    if (target == nullptr) return Inapplicable("the path does not exist");
    if (op == "replace") {
      if (path.size() + Depth(*value) > kMaxDepth) return Inapplicable("the result is too deep");
      *target = *value;
      return Status::Ok();
    }
    return Equal(*target, *value) ? Status::Ok() : Inapplicable("the value there is another");
  }

  Value Take() { return std::move(document_); }

 private:
  static Result<Pointer> ReadPointer(const Value& operation, std::string_view field) {
    const Value* text = Find(operation, {field});
    if (text == nullptr || !text->is_string()) return Malformed(StrCat("needs a ", field));
    return ParsePointer(View(text->get_string()));
  }

  Status Move(const Pointer& from, const Pointer& path) {
    bool inside = path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin());
    if (inside) return Inapplicable("a value cannot move into itself");
    Value* source = Walk(document_, from, from.size());
    if (source == nullptr) return Inapplicable("from does not exist");
    if (from == path) return Status::Ok();
    touched_ += ValuesIn(*source);  // Add looks how deep it is
    Value moved = std::move(*source);
    SWELL_RETURN_IF_ERROR(RemoveAt(document_, from, touched_));
    return Add(document_, path, std::move(moved), touched_);
  }

  Status Copy(const Pointer& from, const Pointer& path) {
    const Value* source = Walk(document_, from, from.size());
    if (source == nullptr) return Inapplicable("from does not exist");
    copied_bytes_ += Print(*source).size();
    if (copied_bytes_ > kMaxCopiedBytes) {
      return Status(Code::kTooLarge, StrCat("copies more than ", kMaxCopiedBytes, " bytes"));
    }
    return Add(document_, path, *source, touched_);
  }

  Value document_;
  size_t copied_bytes_ = 0;
  size_t touched_ = 0;
};

}  // namespace

Result<Value> ApplyJsonPatch(const Value& document, const Value& patch) {
  const Array* operations = patch.if_array();
  if (operations == nullptr) return Malformed("a JSON patch must be an array of operations");
  if (operations->size() > kMaxOperations) {
    return Status(Code::kTooLarge,
                  StrCat("JSON patch: ", operations->size(), " operations are more than the ",
                         kMaxOperations, " allowed"));
  }
  Patcher patcher(document);
  for (size_t i = 0; i < operations->size(); ++i) {
    const Value& operation = (*operations)[i];
    Status applied = patcher.Apply(operation);
    if (!applied.ok()) {
      return applied.WithContext(StrCat("JSON patch: operation ", i, " (",
                                        GetString(operation, {"op"}, "?"), " ",
                                        Quote(GetString(operation, {"path"})), ")"));
    }
  }
  return patcher.Take();
}

void ApplyMergePatch(Value& document, const Value& patch) {
  const Object* members = patch.if_object();
  if (members == nullptr) {
    document = patch;
    return;
  }
  if (!document.is_object()) document.emplace_object();
  Object& object = document.get_object();
  bool nulls = false;
  for (const auto& member : *members) {
    if (member.value().is_null()) {
      nulls = true;
    } else {
      ApplyMergePatch(object[member.key()], member.value());
    }
  }
  if (!nulls) return;
  EraseMembers(object, [members](std::string_view key) {
    const Value* told = members->if_contains(key);
    return told != nullptr && told->is_null();
  });
}

Value MakeMergePatch(const Value& from, const Value& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Object patch;
  const Object& before = from.get_object();
  const Object& after = to.get_object();
  for (const auto& member : before) {
    if (!after.contains(member.key())) patch[member.key()] = nullptr;
  }
  for (const auto& member : after) {
    const Value* old = before.if_contains(member.key());
    if (old == nullptr) {
      patch[member.key()] = member.value();
    } else if (!Equal(*old, member.value())) {
      patch[member.key()] = MakeMergePatch(*old, member.value());
    }
  }
  return patch;
}

}  // namespace swell::json
