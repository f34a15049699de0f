// Fuzzes the texts that are kept as what they repeat of others. The input says how each text is
// made of those before it; all of them must be told again as they were, whatever became of the
// others meanwhile.
#include "kube/store/packed_text.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace {

using swell::store::PackedText;

constexpr size_t kTexts = 12;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ == size_; }
  size_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  size_t Number() { return Byte() * 256 + Byte(); }
  std::string Bytes(size_t most) {
    const size_t size = std::min(most, size_ - at_);
    at_ += size;
    return std::string(reinterpret_cast<const char*>(data_) + at_ - size, size);
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

std::string MakeText(Input& input, const std::vector<std::string>& before) {
  std::string text;
  for (size_t left = 1 + input.Byte() % 16; left > 0 && text.size() < 2 * PackedText::kMost;
       --left) {
    const size_t what = input.Byte();
    if (what % 4 == 0) {
      text += input.Bytes(what / 4);
    } else if (what % 4 == 1) {
      const std::string piece = input.Bytes(1 + what / 32);
      for (size_t i = input.Number() % 1000; i > 0; --i) text += piece;
    } else if (what % 4 == 2 && !before.empty()) {
      const std::string& other = before[input.Byte() % before.size()];
      const size_t from = input.Number() % (other.size() + 1);
      text += other.substr(from, input.Number());
    } else {
      // Much that nothing else says.
      uint64_t state = input.Number() + 1;
      for (size_t i = input.Number() % 4096; i > 0; --i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        text += static_cast<char>(state >> 56);
      }
    }
  }
  return text;
}

void Check(const PackedText& packed, const std::string& text, size_t cut) {
  SWELL_CHECK(packed.size() == text.size());
  SWELL_CHECK(*packed.Whole() == text);
  std::string again = "before";
  packed.AppendTo(again);
  SWELL_CHECK(again == "before" + text);
  std::string start = text.substr(0, cut % (text.size() + 1));
  SWELL_CHECK(packed.StartsWith(start));
  if (start.empty()) return;
  start.back() = static_cast<char>(start.back() ^ 1);
  SWELL_CHECK(!packed.StartsWith(start));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  std::vector<std::string> texts;
  std::vector<std::unique_ptr<PackedText>> packed;
  while (!input.empty() && texts.size() < kTexts) {
    texts.push_back(MakeText(input, texts));
    packed.push_back(std::make_unique<PackedText>(texts.back()));
    const size_t gone = input.Byte();
    if (gone % 3 == 0) packed[gone % packed.size()] = nullptr;
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (packed[i] != nullptr) Check(*packed[i], texts[i], size * 31 + i);
  }
  return 0;
}
