#include "kube/cri/wire.h"

namespace swell::cri {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kSized = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out += static_cast<char>(value);
}

std::string Tag(uint32_t field, WireType type) { return Varint(uint64_t{field} << 3 | type); }

}  // namespace

Message& Message::Text(uint32_t field, std::string_view text) {
  return text.empty() ? *this : Item(field, text);
}

Message& Message::Number(uint32_t field, int64_t value) {
  if (value != 0) bytes_ += Tag(field, kVarint) + Varint(static_cast<uint64_t>(value));
  return *this;
}

Message& Message::Item(uint32_t field, std::string_view text) {
  bytes_ += Tag(field, kSized) + Varint(text.size());
  bytes_ += text;
  return *this;
}

Message& Message::Texts(uint32_t field, const std::map<std::string, std::string>& map) {
  for (const auto& [key, value] : map) Add(field, Message().Text(1, key).Text(2, value));
  return *this;
}

Message& Message::Packed(uint32_t field, const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += Varint(static_cast<uint64_t>(value));
  return Text(field, packed);
}

Message& Message::Join(const Message& other) {
  bytes_ += other.bytes_;
  return *this;
}

bool Fields::Fail() {
  broken_ = true;
  rest_ = {};
  return false;
}

bool Fields::ReadNumber(uint64_t& out) {
  constexpr unsigned kBits = 64;
  out = 0;
  for (unsigned shift = 0; shift < kBits && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    out |= uint64_t{byte & 127U} << shift;
    if (byte < 128) return true;
  }
  return false;
}

bool Fields::Next() {
  bytes_ = {};
  value_ = 0;
  if (rest_.empty()) return false;
  uint64_t tag = 0, value = 0;
  if (!ReadNumber(tag)) return Fail();
  number_ = static_cast<uint32_t>(tag >> 3);
  const auto type = static_cast<uint32_t>(tag & 7);
  if (type == kVarint) {
    if (!ReadNumber(value)) return Fail();
    value_ = static_cast<int64_t>(value);
    return true;
  }
  uint64_t size = type == kFixed64 ? 8 : 4;
  if (type == kSized && !ReadNumber(size)) return Fail();
  if (type != kSized && type != kFixed64 && type != kFixed32) return Fail();
  if (size > rest_.size()) return Fail();
  // Numbers of a fixed size are in no field that is read.
  if (type == kSized) bytes_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

void ReadEntry(std::string_view bytes, std::map<std::string, std::string>& to) {
  std::string key, value;
  for (Fields entry(bytes); entry.Next();) {
    if (entry.number() == 1) key = entry.text();
    if (entry.number() == 2) value = entry.text();
  }
  to[key] = value;
}

}  // namespace swell::cri
