#include "kube/api/openapi/protobuf.h"

#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/schema_text.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

// A time that a WallTime cannot hold, such as Go's year 1, to the second.
std::string FarTimeText(int64_t seconds, bool micro) {
  const std::chrono::sys_seconds at{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(at - day);
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d%sZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), micro ? ".000000" : "");
  return text;
}

using json::Value;

constexpr int kMaxDepth = 64;            // of the document that it becomes: as deep as JSON may be
constexpr size_t kMaxItems = 1'000'000;  // list items and map members of one body

Status Malformed(std::string_view why) {
  return Status(Code::kBadRequest, StrCat("the protobuf body is malformed: ", why));
}

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = kVarint;
  uint64_t integer = 0;    // kVarint, kFixed64, kFixed32
  std::string_view bytes;  // kBytes
};

// Reads one message's fields in order.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end and at what is not protobuf; `bad()` tells them apart.
  bool Next(WireField& field) {
    if (rest_.empty()) return false;
    uint64_t key = 0;
    if (!Varint(key)) return false;
    field.number = static_cast<uint32_t>(key >> 3);
    field.type = static_cast<WireType>(key & 7);
    switch (key & 7) {
      case kVarint:
        return Varint(field.integer);
      case kFixed64:
        return Fixed(8, field.integer);
      case kFixed32:
        return Fixed(4, field.integer);
      case kBytes: {
        uint64_t size = 0;
        if (!Varint(size) || size > rest_.size()) return Fail();
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
      default:
        return Fail();
    }
  }
  bool ReadVarint(uint64_t& out) { return !rest_.empty() && Varint(out); }
  bool bad() const { return bad_; }

 private:
  bool Fail() {
    bad_ = true;
    return false;
  }
  bool Varint(uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return Fail();
      auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return Fail();
  }
  bool Fixed(size_t size, uint64_t& out) {
    if (rest_.size() < size) return Fail();
    out = 0;
    std::memcpy(&out, rest_.data(), size);  // little-endian on the wire and on our machines
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool bad_ = false;
};

// The fields of a small message as Kubernetes' special types are on the wire.
Result<std::vector<WireField>> AllFields(std::string_view bytes) {
  constexpr size_t kMaxFields = 16;
  std::vector<WireField> out;
  WireReader reader(bytes);
  WireField field;
  while (out.size() < kMaxFields && reader.Next(field)) out.push_back(field);
  if (reader.bad()) return Malformed("a field is cut off");
  return out;
}

// `depth`: how many objects and lists are around what is read.
class Decoder {
 public:
  Result<Value> Message(const Schema& schema, std::string_view bytes, int depth);

 private:
  Status Fields(
      const Schema& schema, int outer, std::string_view bytes, json::Object& out, int depth);
  // A boolean or a `schema`.
  Result<Value> SchemaOrBool(const Schema& schema, std::string_view bytes, int depth);
  Status Add(const SchemaField& field, const WireField& wire, json::Object& out, int depth);
  // Null for what means absence.
  Result<Value> One(const Schema& schema, const WireField& wire, int depth);
  Result<Value> Special(const Schema& schema, std::string_view bytes, int depth);
  Status AddMapEntry(const Schema& schema, std::string_view bytes, json::Object& out, int depth);

  size_t items_ = 0;
};

Result<Value> Decoder::Message(const Schema& schema, std::string_view bytes, int depth) {
  json::Object out;
  SWELL_RETURN_IF_ERROR(Fields(schema, 0, bytes, out, depth));
  return Value(std::move(out));
}

Status Decoder::Fields(
    const Schema& schema, int outer, std::string_view bytes, json::Object& out, int depth) {
  if (depth + 1 >= kMaxDepth) return Malformed("nested too deeply");  // a list may be in it
  WireReader reader(bytes);
  WireField wire;
  while (reader.Next(wire)) {
    if (wire.number == 0) return Malformed("a field has no number");
    const SchemaField* target = nullptr;
    const SchemaField* alternative = nullptr;
    bool inner = false;
    const int number = static_cast<int>(wire.number);
    // What a message in this field is called by fields inside it; -1: too far in, or too large.
    const bool named = outer <= kMostInnerNumber && wire.number <= kMostInnerNumber;
    const int path = named ? InnerMessage(outer, number) : -1;
    for (const SchemaField& field : schema.fields) {
      if (field.proto_outer == outer && field.proto == number) {
        target = &field;
        break;
      }
      if (field.proto_outer == path && field.proto == 0) alternative = &field;
      inner = inner || (field.proto_outer == path && field.proto != 0) ||
              field.proto_outer / (kMostInnerNumber + 1) == path;
    }
    if (target != nullptr) {
      SWELL_RETURN_IF_ERROR(Add(*target, wire, out, depth + 1));
    } else if (alternative != nullptr && wire.type == kBytes) {
      SWELL_ASSIGN_OR_RETURN(out[alternative->name], SchemaOrBool(schema, wire.bytes, depth + 1));
    } else if (inner && wire.type == kBytes) {
      SWELL_RETURN_IF_ERROR(Fields(schema, path, wire.bytes, out, depth));
    }  // else: a field of a newer version
  }
  return reader.bad() ? Malformed("a field is cut off") : Status::Ok();
}

Result<Value> Decoder::SchemaOrBool(const Schema& schema, std::string_view bytes, int depth) {
  if (++items_ > kMaxItems) return Malformed("too many items");
  SWELL_ASSIGN_OR_RETURN(const std::vector<WireField> parts, AllFields(bytes));
  bool allows = false;
  for (const WireField& part : parts) {
    if (part.number == 2 && part.type == kBytes) return Message(schema, part.bytes, depth);
    if (part.number == 1) allows = part.integer != 0;
  }
  return Value(allows);
}

Status Decoder::Add(const SchemaField& field, const WireField& wire, json::Object& out, int depth) {
  if (++items_ > kMaxItems) return Malformed("too many items");
  const Schema& schema = *field.schema;
  if (schema.type == SchemaType::kMap) {
    Value& map = out[field.name];
    if (!map.is_object()) map = json::Object();
    if (wire.type != kBytes) return Malformed(StrCat("field ", field.name, " is not a map"));
    return AddMapEntry(schema, wire.bytes, map.get_object(), depth + 1);
  }
  if (schema.type == SchemaType::kArray) {
    Value& list = out[field.name];
    if (!list.is_array()) list = json::Array();
    if (wire.type == kBytes && schema.items->type == SchemaType::kInteger) {  // packed
      WireReader packed(wire.bytes);
      WireField number{wire.number, kVarint, 0, {}};
      while (packed.ReadVarint(number.integer)) {
        if (++items_ > kMaxItems) return Malformed("too many items");
        list.get_array().emplace_back(static_cast<int64_t>(number.integer));
      }
      return packed.bad() ? Malformed("a packed list is cut off") : Status::Ok();
    }
    SWELL_ASSIGN_OR_RETURN(Value item, One(*schema.items, wire, depth + 1));
    list.get_array().push_back(std::move(item));
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(Value value, One(schema, wire, depth));
  if (value.is_null()) return Status::Ok();
  if (!field.proto_pointer) {
    // Without a pointer in Kubernetes' types, zero is on the wire although nobody wrote it.
    bool zero = (value.is_string() && value.get_string().empty()) ||
                (!field.required && ((value.is_object() && value.get_object().empty()) ||
                                     (value.is_bool() && !value.get_bool()) ||
                                     (value.is_int64() && value.get_int64() == 0)));
    if (zero) return Status::Ok();
  }
  out[field.name] = std::move(value);
  return Status::Ok();
}

Status Decoder::AddMapEntry(const Schema& schema,
                            std::string_view bytes,
                            json::Object& out,
                            int depth) {
  SWELL_ASSIGN_OR_RETURN(std::vector<WireField> parts, AllFields(bytes));
  std::string_view key = "";  // never null: JSON objects copy it
  WireField value{2, kBytes, 0, {}};
  for (const WireField& part : parts) {
    if (part.number == 1 && part.type == kBytes) key = part.bytes;
    if (part.number == 2) value = part;
  }
  if (!IsValidUtf8(key)) return Malformed("a key is not UTF-8");
  SWELL_ASSIGN_OR_RETURN(Value decoded, One(*schema.items, value, depth));
  out[key] = std::move(decoded);
  return Status::Ok();
}

Result<Value> Decoder::One(const Schema& schema, const WireField& wire, int depth) {
  switch (schema.type) {
    case SchemaType::kString:
      if (wire.type != kBytes) return Malformed("expected text");
      if (schema.format == "byte") return Value(Base64Encode(wire.bytes));
      if (!IsValidUtf8(wire.bytes)) return Malformed("a text is not UTF-8");
      return Value(std::string(wire.bytes));
    case SchemaType::kInteger:
      if (wire.type == kBytes) return Malformed("expected a number");
      return schema.format == "int32"
                 ? Value(static_cast<int64_t>(static_cast<int32_t>(wire.integer)))
                 : Value(static_cast<int64_t>(wire.integer));
    case SchemaType::kBoolean:
      if (wire.type == kBytes) return Malformed("expected a boolean");
      return Value(wire.integer != 0);
    case SchemaType::kNumber: {
      if (wire.type != kFixed64) return Malformed("expected a double");
      double number = 0;
      std::memcpy(&number, &wire.integer, sizeof number);
      return Value(number);
    }
    case SchemaType::kObject:
      if (wire.type != kBytes) return Malformed("expected a message");
      return Message(schema, wire.bytes, depth);
    default:
      if (wire.type != kBytes) return Malformed("expected a message");
      return Special(schema, wire.bytes, depth);
  }
}

// Times are {seconds, nanos}, quantities {text}, int-or-string {which, number, text}, and anything
// is {json}.
Result<Value> Decoder::Special(const Schema& schema, std::string_view bytes, int depth) {
  SWELL_ASSIGN_OR_RETURN(std::vector<WireField> parts, AllFields(bytes));
  uint64_t numbers[4] = {};
  std::string_view texts[4];
  for (const WireField& part : parts) {
    if (part.number < 1 || part.number > 3) continue;
    numbers[part.number] = part.integer;
    if (part.type == kBytes) texts[part.number] = part.bytes;
  }
  for (std::string_view text : texts) {
    if (!IsValidUtf8(text)) return Malformed("a text is not UTF-8");
  }
  switch (schema.type) {
    case SchemaType::kTime:
    case SchemaType::kMicroTime: {
      if (parts.empty()) return Value();  // no time
      auto seconds = static_cast<int64_t>(numbers[1]);
      constexpr int64_t kYear1 = -62'135'596'800, kYear9999 = 253'402'300'799;
      if (seconds < kYear1 || seconds > kYear9999) return Malformed("a time is out of range");
      constexpr int64_t kYear2262 = 9'223'372'035;  // the last that nanoseconds can tell
      if (seconds < -kYear2262 || seconds > kYear2262) {
        return Value(FarTimeText(seconds, schema.type == SchemaType::kMicroTime));
      }
      WallTime time{seconds * 1'000'000'000 + static_cast<int32_t>(numbers[2])};
      return schema.type == SchemaType::kTime ? Value(FormatTime(time))
                                              : Value(FormatMicroTime(time));
    }
    case SchemaType::kQuantity:
      return Value(std::string(texts[1].empty() ? "0" : texts[1]));
    case SchemaType::kIntOrString:
      if (numbers[1] == 1) return Value(std::string(texts[3]));
      return Value(static_cast<int64_t>(static_cast<int32_t>(numbers[2])));
    case SchemaType::kAny: {
      if (texts[1].empty()) return Value();
      const json::ParseLimits limits{.depth = static_cast<size_t>(kMaxDepth - depth)};
      Result<Value> parsed = json::Parse(texts[1], limits);
      if (!parsed.ok()) {
        return Malformed(StrCat("an embedded document: ", parsed.status().message()));
      }
      return std::move(*parsed);
    }
    default:
      return Malformed("a value of an unknown type");
  }
}

// "rbac.authorization.k8s.io/v1" is written in io.k8s.api.rbac.v1.
std::string PackageOf(const GroupVersionKind& gvk) {
  if (gvk.group == "apiextensions.k8s.io") {
    return StrCat("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.", gvk.version);
  }
  if (gvk.group == "apiregistration.k8s.io") {
    return StrCat("io.k8s.kube-aggregator.pkg.apis.apiregistration.", gvk.version);
  }
  std::string_view group = gvk.group.empty() ? std::string_view("core") : gvk.group;
  return StrCat("io.k8s.api.", group.substr(0, group.find('.')), ".", gvk.version);
}

}  // namespace

Result<Value> DecodeKubernetesProtobuf(std::string_view body) {
  constexpr std::string_view kMagic("k8s\0", 4);
  if (!body.starts_with(kMagic)) return Malformed("it does not begin with k8s and a zero byte");
  SWELL_ASSIGN_OR_RETURN(std::vector<WireField> unknown, AllFields(body.substr(kMagic.size())));
  std::string api_version;
  std::string kind;
  std::string_view raw;
  for (const WireField& part : unknown) {
    if (part.number == 2 && part.type == kBytes) raw = part.bytes;
    if (part.number != 1 || part.type != kBytes) continue;
    SWELL_ASSIGN_OR_RETURN(std::vector<WireField> meta, AllFields(part.bytes));
    for (const WireField& text : meta) {
      if (!IsValidUtf8(text.bytes)) return Malformed("a text is not UTF-8");
      if (text.number == 1) api_version = std::string(text.bytes);
      if (text.number == 2) kind = std::string(text.bytes);
    }
  }
  if (kind.empty()) return Malformed("it does not say its kind");
  GroupVersionKind gvk = ParseGvk(api_version, kind);
  // Made once, from constants: reading all texts takes longer than decoding most bodies.
  thread_local SchemaLibrary library(EmbeddedSchemas());
  SchemaPtr schema = library.Find(StrCat(PackageOf(gvk), ".", kind));
  if (schema == nullptr) {
    schema = library.Find(StrCat("io.k8s.apimachinery.pkg.apis.meta.v1.", kind));
  }
  if (schema == nullptr || schema->type != SchemaType::kObject ||
      schema->Field("kind") == nullptr || schema->fields.size() < 3) {
    return Status(Code::kUnsupportedMediaType,
                  StrCat("no protobuf form is known of ", Quote(kind), " in ", Quote(api_version),
                         "; send application/json"));
  }
  json::Object out;
  out["apiVersion"] = api_version;
  out["kind"] = kind;
  SWELL_ASSIGN_OR_RETURN(Value fields, Decoder().Message(*schema, raw, 0));
  for (auto& member : fields.get_object()) out[member.key()] = std::move(member.value());
  return Value(std::move(out));
}

}  // namespace swell::api
