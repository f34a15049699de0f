// Message, Fields: protobuf's wire format, as much as the Container Runtime Interface uses of it:
// numbers, texts, messages, lists and maps of texts. Field numbers stand where messages are made
// and read (requests.cc, answers.cc); api.proto of kubernetes/cri-api is where they come from.
//
//   Message().Text(1, "name").Number(4, attempt).bytes()
//   for (Fields fields(bytes); fields.Next();) if (fields.number() == 1) id = fields.text();
//
// - Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace swell::cri {

class Message {
 public:
  // A field that has its default value is left out, as protobuf does.
  Message& Text(uint32_t field, std::string_view text);
  Message& Number(uint32_t field, int64_t value);
  Message& Bool(uint32_t field, bool value) { return Number(field, value ? 1 : 0); }
  // An element of a list. It is kept even if it is empty.
  Message& Item(uint32_t field, std::string_view text);
  // A message. It is kept even if it is empty.
  Message& Add(uint32_t field, const Message& message) { return Item(field, message.bytes_); }
  Message& Texts(uint32_t field, const std::map<std::string, std::string>& map);

  // Numbers of a list, as proto3 packs them.
  Message& Packed(uint32_t field, const std::vector<int64_t>& values);
  // Appends the fields of another message to this one's.
  Message& Join(const Message& other);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Walks over the fields of a message. The texts are parts of its bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // The next field; false at the end, and at what is not protobuf.
  bool Next();
  // Whether the bytes turned out not to be protobuf.
  bool broken() const { return broken_; }

  uint32_t number() const { return number_; }
  // 0 where the field is not a number; empty where it is not a text or a message.
  int64_t value() const { return value_; }
  std::string_view bytes() const { return bytes_; }
  std::string text() const { return std::string(bytes_); }

 private:
  bool Fail();
  bool ReadNumber(uint64_t& out);

  std::string_view rest_;
  std::string_view bytes_;
  uint32_t number_ = 0;
  int64_t value_ = 0;
  bool broken_ = false;
};

// Reads one entry of a map of texts.
void ReadEntry(std::string_view bytes, std::map<std::string, std::string>& to);

}  // namespace swell::cri
