// The JSON document tree: Boost.JSON behind one header, with limits, paths and printing.
//
// Documents are lossless: unknown fields, their order and their numbers survive. Use StableErase;
// Boost.JSON's own erase() reorders keys.
//
// - Threads: as std containers; const documents may be shared between threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"

namespace swell::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using SharedValue = std::shared_ptr<const Value>;

struct ParseLimits {
  size_t depth = 64;
  size_t bytes = 64 << 20;
  size_t values = SIZE_MAX;  // members and items, of all objects and arrays
};

// Strict JSON: one document, valid UTF-8, no duplicate keys, no trailing bytes. Errors are
// kBadRequest and say line, column and what was expected; kTooLarge beyond bytes or values.
Result<Value> Parse(std::string_view text, const ParseLimits& limits = {});

// Compact, keys in document order.
std::string Print(const Value& value);
// Two-space indentation, as `kubectl -o json` prints with four: `indent` spaces.
std::string PrintPretty(const Value& value, int indent = 4);

// Walks object keys. nullptr when a step is missing or not an object.
using Path = std::initializer_list<std::string_view>;
const Value* Find(const Value& root, Path path);
Value* FindMutable(Value& root, Path path);

// Typed reads with a default: also when the field has another type.
std::string_view GetString(const Value& root, Path path, std::string_view fallback = {});
int64_t GetInt(const Value& root, Path path, int64_t fallback = 0);
bool GetBool(const Value& root, Path path, bool fallback = false);
const Array& GetArray(const Value& root, Path path);    // empty when missing
const Object& GetObject(const Value& root, Path path);  // empty when missing

// Creates the objects on the way (replacing what is not an object) and sets the last step.
Value& Set(Value& root, Path path, Value value);
template <class Text>
requires(std::is_convertible_v<Text, std::string_view> &&
         !std::is_null_pointer_v<Text>) Value& Set(Value& root, Path path, const Text& text) {
  return Set(root, path, Value(boost::json::string_view(std::string_view(text))));
}
// Removes the last step if it is there.
void Remove(Value& root, Path path);
void StableErase(Object& object, std::string_view key);

inline std::string_view View(const boost::json::string& s) { return {s.data(), s.size()}; }

// Deep equality where 1, 1u and 1.0 are equal numbers and key order does not matter.
bool Equal(const Value& a, const Value& b);

}  // namespace swell::json
