#include "kube/store/entry_codec.h"

#include <cstring>
#include <vector>

namespace swell::store {
namespace {

void AppendNumber(std::string& out, uint64_t n) {
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  out += static_cast<char>(n);
}

void AppendText(std::string& out, std::string_view text) {
  AppendNumber(out, text.size());
  out += text;
}

void AppendPairs(std::string& out, const api::StringPairs& pairs) {
  uint64_t count = 0;
  for ([[maybe_unused]] const auto& pair : pairs) ++count;
  AppendNumber(out, count);
  for (const auto& [key, value] : pairs) {
    AppendText(out, key);
    AppendText(out, value);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint64_t Number() {
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      unsigned char byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      n |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return n;
    }
    ok_ = false;
    return 0;
  }
  std::string_view Text() {
    uint64_t length = Number();
    if (length > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }
  api::StringPairs ReadPairs() {
    uint64_t count = Number();
    if (count > rest_.size()) {  // each takes two bytes at least
      ok_ = false;
      return {};
    }
    std::vector<api::StringPairs::Pair> pairs;
    pairs.reserve(count);
    for (uint64_t i = 0; i < count && ok_; ++i) {
      const std::string_view key = Text();
      pairs.emplace_back(key, Text());
    }
    return api::StringPairs::Of(pairs);
  }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Eight bytes at a time; the length goes in too, so that moving a boundary changes the sum.
uint64_t Mix(uint64_t sum, std::string_view bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
  auto add = [&sum](uint64_t word) {
    sum = (sum ^ word) * kFactor;
    sum ^= sum >> 29;
  };
  add(bytes.size());
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    add(word);
  }
  uint64_t tail = 0;
  if (i < bytes.size()) std::memcpy(&tail, bytes.data() + i, bytes.size() - i);
  add(tail);
  return sum;
}

}  // namespace

std::string EncodeAttributes(const Attributes& attributes) {
  std::string out;
  AppendText(out, attributes.uid);
  AppendPairs(out, attributes.labels);
  AppendPairs(out, attributes.fields);
  return out;
}

std::optional<Attributes> DecodeAttributes(std::string_view bytes) {
  Reader reader(bytes);
  Attributes attributes;
  attributes.uid = reader.Text();
  attributes.labels = reader.ReadPairs();
  attributes.fields = reader.ReadPairs();
  if (!reader.done()) return std::nullopt;
  return attributes;
}

uint64_t EntryChecksum(const Key& key,
                       uint64_t version,
                       std::string_view attributes,
                       std::string_view bytes) {
  uint64_t sum = Mix(version, key.resource);
  sum = Mix(sum, key.ns);
  sum = Mix(sum, key.name);
  sum = Mix(sum, attributes);
  return Mix(sum, bytes);
}

}  // namespace swell::store
