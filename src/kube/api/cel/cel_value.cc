// CEL's values: equality, order, members, text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

const json::Value* JsonOf(const CelValue& value) {
  const auto* json = std::get_if<const json::Value*>(&value.data);
  return json ? *json : nullptr;
}

bool IsNumber(const CelValue& value) {
  return std::holds_alternative<int64_t>(value.data) ||
         std::holds_alternative<uint64_t>(value.data) || std::holds_alternative<double>(value.data);
}

template <typename T>
int Order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

long double AsNumber(const CelValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value.data)) return static_cast<long double>(*i);
  if (const auto* u = std::get_if<uint64_t>(&value.data)) return static_cast<long double>(*u);
  if (const auto* d = std::get_if<double>(&value.data)) return *d;
  return 0;
}

}  // namespace

CelValue CelValue::FromJson(const json::Value& value) {
  CelValue out;
  if (value.is_bool()) out.data = value.get_bool();
  if (value.is_int64()) out.data = value.get_int64();
  if (value.is_uint64()) out.data = value.get_uint64();
  if (value.is_double()) out.data = value.get_double();
  if (value.is_string()) out.data = std::string(json::View(value.get_string()));
  if (value.is_object() || value.is_array()) out.data = &value;
  return out;
}

std::string_view CelValue::TypeName() const {
  if (IsCelList(*this)) return "list";
  if (IsCelMap(*this)) return "map";
  if (std::holds_alternative<CelQuantity>(data)) return "kubernetes.Quantity";
  if (std::holds_alternative<Duration>(data)) return "google.protobuf.Duration";
  if (std::holds_alternative<WallTime>(data)) return "google.protobuf.Timestamp";
  if (const auto* object = std::get_if<CelObjectPtr>(&data)) return CelObjectType(**object);
  static constexpr std::string_view kNames[] = {"null_type", "bool",   "int",
                                                "uint",      "double", "string"};
  return data.index() < std::size(kNames) ? kNames[data.index()] : "dyn";
}

Status CelBudget::Spend(size_t units) {
  // What is spent already stays so, however much more is asked for: `||` bears with the error.
  if (left >= 0) left -= static_cast<int64_t>(std::min(units, static_cast<size_t>(left))) + 1;
  return left >= 0 ? Status::Ok()
                   : Status(Code::kInvalid, "call cost exceeds limit, no further evaluation");
}

void CelBudget::Charge(size_t units) {
  if (left < 0) return;
  left = units > static_cast<size_t>(left) ? -1 : left - static_cast<int64_t>(units);
}

void CelBudget::ChargeCopy(const CelValue& value) {
  constexpr size_t kCopiedBytes = 100;
  if (const auto* text = std::get_if<std::string>(&value.data)) Charge(text->size() / kCopiedBytes);
}

bool IsCelList(const CelValue& value) {
  const json::Value* json = JsonOf(value);
  return std::holds_alternative<CelList>(value.data) || (json != nullptr && json->is_array());
}

bool IsCelMap(const CelValue& value) {
  const json::Value* json = JsonOf(value);
  return std::holds_alternative<CelMap>(value.data) || (json != nullptr && json->is_object());
}

int64_t CelSize(const CelValue& value) {
  if (const json::Value* json = JsonOf(value)) {
    return static_cast<int64_t>(json->is_array() ? json->get_array().size()
                                                 : json->get_object().size());
  }
  if (const auto* list = std::get_if<CelList>(&value.data)) {
    return static_cast<int64_t>((*list)->size());
  }
  if (const auto* map = std::get_if<CelMap>(&value.data)) {
    return static_cast<int64_t>((*map)->size());
  }
  if (const auto* bytes = CelAs<CelBytes>(value)) return static_cast<int64_t>(bytes->octets.size());
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return -1;
  int64_t n = 0;
  for (char c : *text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

CelValue CelItem(const CelValue& list, size_t i, CelBudget& budget) {
  const json::Value* json = JsonOf(list);
  CelValue item = json != nullptr ? CelValue::FromJson(json->get_array()[i])
                                  : (*std::get<CelList>(list.data))[i];
  budget.ChargeCopy(item);
  return item;
}

std::vector<CelValue> CelKeys(const CelValue& map, CelBudget& budget) {
  std::vector<CelValue> keys;
  if (const json::Value* json = JsonOf(map)) {
    for (const auto& member : json->get_object()) {
      keys.push_back({std::string(std::string_view(member.key()))});
    }
  } else {
    for (const auto& [key, value] : *std::get<CelMap>(map.data)) keys.push_back(key);
  }
  budget.Charge(keys.size() / 10);
  for (const CelValue& key : keys) budget.ChargeCopy(key);
  return keys;
}

bool CelFind(const CelValue& map, const CelValue& key, CelValue& out, CelBudget& budget) {
  if (const json::Value* json = JsonOf(map)) {
    const auto* name = std::get_if<std::string>(&key.data);
    const json::Value* found = name ? json->get_object().if_contains(*name) : nullptr;
    if (found == nullptr) return false;
    out = CelValue::FromJson(*found);
    budget.ChargeCopy(out);
    return true;
  }
  budget.Charge(static_cast<size_t>(CelSize(map)) / 10);
  for (const auto& [one, value] : *std::get<CelMap>(map.data)) {
    if (!CelEqual(one, key, budget)) continue;
    out = value;
    budget.ChargeCopy(out);
    return true;
  }
  return false;
}

// Lists within lists may be shared, and there are more ways through them than items in memory.
bool CelEqual(const CelValue& a, const CelValue& b, CelBudget& budget, int depth) {
  constexpr int kDepthMax = 128;
  if (depth > kDepthMax || budget.left < 0) return false;
  if (IsNumber(a) && IsNumber(b)) return AsNumber(a) == AsNumber(b);
  if (IsCelList(a) && IsCelList(b)) {
    const int64_t size = CelSize(a);
    budget.Charge(1 + static_cast<size_t>(size) / 10);
    if (size != CelSize(b)) return false;
    for (int64_t i = 0; i < size; ++i) {
      const auto place = static_cast<size_t>(i);
      if (!CelEqual(CelItem(a, place, budget), CelItem(b, place, budget), budget, depth + 1)) {
        return false;
      }
    }
    return true;
  }
  if (IsCelMap(a) && IsCelMap(b)) {
    budget.Charge(1);
    if (CelSize(a) != CelSize(b)) return false;
    for (const CelValue& key : CelKeys(a, budget)) {
      CelValue mine;
      CelValue other;
      if (!CelFind(a, key, mine, budget) || !CelFind(b, key, other, budget)) return false;
      if (!CelEqual(mine, other, budget, depth + 1)) return false;
    }
    return true;
  }
  const bool timed =
      std::holds_alternative<WallTime>(a.data) || std::holds_alternative<WallTime>(b.data);
  if (timed) return CelTimeOf(a).has_value() && CelTimeOf(a) == CelTimeOf(b);
  if (a.data.index() != b.data.index() || IsCelList(a) || IsCelMap(a)) return false;
  if (const auto* object = std::get_if<CelObjectPtr>(&a.data)) {
    return CelObjectsEqual(**object, *std::get<CelObjectPtr>(b.data), budget, depth);
  }
  if (const auto* quantity = std::get_if<CelQuantity>(&a.data)) {
    return **quantity == *std::get<CelQuantity>(b.data);
  }
  return a.data == b.data;
}

Result<int> CelCompare(const CelValue& a, const CelValue& b) {
  if (IsNumber(a) && IsNumber(b)) return Order(AsNumber(a), AsNumber(b));
  const auto* text_a = std::get_if<std::string>(&a.data);
  const auto* text_b = std::get_if<std::string>(&b.data);
  if (text_a != nullptr && text_b != nullptr) return Order(*text_a, *text_b);
  const auto* bytes_a = CelAs<CelBytes>(a);
  const auto* bytes_b = CelAs<CelBytes>(b);
  if (bytes_a != nullptr && bytes_b != nullptr) return Order(bytes_a->octets, bytes_b->octets);
  const auto* bool_a = std::get_if<bool>(&a.data);
  const auto* bool_b = std::get_if<bool>(&b.data);
  if (bool_a != nullptr && bool_b != nullptr) return Order(*bool_a, *bool_b);
  const auto* span_a = std::get_if<Duration>(&a.data);
  const auto* span_b = std::get_if<Duration>(&b.data);
  if (span_a != nullptr && span_b != nullptr) return Order(*span_a, *span_b);
  const bool timed =
      std::holds_alternative<WallTime>(a.data) || std::holds_alternative<WallTime>(b.data);
  const auto time_a = timed ? CelTimeOf(a) : std::nullopt;
  const auto time_b = timed ? CelTimeOf(b) : std::nullopt;
  if (time_a && time_b) return Order(*time_a, *time_b);
  return Status(Code::kInvalid, "no such overload");
}

namespace {

// "3600s", "-0.5s": seconds, with the digits that there are.
std::string SecondsOf(Duration span) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t seconds = span.count() / kSecond;
  const int64_t rest = std::abs(span.count() % kSecond);
  std::string fraction = std::to_string(kSecond + rest).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  const bool sign_is_lost = span.count() < 0 && seconds == 0;
  return StrCat(sign_is_lost ? "-" : "", seconds, fraction.empty() ? "" : ".", fraction, "s");
}

}  // namespace

std::string CelText(const CelValue& value) {
  if (const auto* b = std::get_if<bool>(&value.data)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value.data)) return std::to_string(*i);
  if (const auto* u = std::get_if<uint64_t>(&value.data)) return std::to_string(*u);
  if (const auto* s = std::get_if<std::string>(&value.data)) return *s;
  if (const auto* span = std::get_if<Duration>(&value.data)) return SecondsOf(*span);
  if (const auto* time = std::get_if<WallTime>(&value.data)) return CelTimeText(*time);
  if (const auto* object = std::get_if<CelObjectPtr>(&value.data)) return CelObjectText(**object);
  if (const auto* d = std::get_if<double>(&value.data)) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof(text), *d);
    return std::string(text, end.ptr);
  }
  return {};
}

}  // namespace swell::api
