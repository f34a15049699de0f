#include "kube/store/packed_text.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/words.h"

namespace swell::store {
namespace {

constexpr size_t kLeast = 600;  // what is smaller is not worth looking at
constexpr size_t kWindow = 16;  // the shortest piece that is looked for
constexpr size_t kStride = 8;   // every window of another text that begins here can be found
constexpr size_t kSlots = 1 << 15;
constexpr size_t kOthers = 256;  // that are remembered
// Of what packs, but not well, one in so many is kept whole: those after it will pack well.
constexpr int kPoorPerWhole = 8;

void AppendNumber(std::string& out, size_t number) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  out += static_cast<char>(number);
}

size_t TakeNumber(std::string_view& code) {
  size_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(code.front());
    code.remove_prefix(1);
    number |= static_cast<size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
}

uint64_t WindowHash(const char* at) {
  uint64_t words[2];
  static_assert(sizeof(words) == kWindow);
  std::memcpy(words, at, kWindow);
  uint64_t hash = (words[0] * 0x9e3779b97f4a7c15ULL) ^ std::rotl(words[1], 29);
  hash *= 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 32);
}

}  // namespace

// Packs texts, and remembers those that it kept whole.
class Packer {
 public:
  using Steps = PackedText::Steps;

  // nullptr: `text` is to be kept whole, and Remember()ed.
  std::unique_ptr<const Steps> Pack(std::string_view text) {
    auto steps = std::make_unique<Steps>();
    used_.clear();
    size_t told = 0;
    size_t own = 0;
    for (size_t at = 0; at + kWindow <= text.size();) {
      const Match match = Find(text, at, told);
      if (match.size == 0) {
        ++at;
        continue;
      }
      const size_t begin = at - match.before;
      own += begin - told;
      AppendNumber(steps->code, begin - told);
      steps->code.append(text.substr(told, begin - told));
      AppendNumber(steps->code, match.size);
      AppendNumber(steps->code, match.from * PackedText::kOthersMost + match.other);
      at = told = begin + match.size;
    }
    own += text.size() - told;
    AppendNumber(steps->code, text.size() - told);
    steps->code.append(text.substr(told));
    if (own > text.size() / 2) return nullptr;
    if (own > text.size() / 8 && ++poor_ % kPoorPerWhole == 0) return nullptr;
    steps->code.shrink_to_fit();
    for (size_t i = 0; i < used_.size(); ++i) steps->others[i] = std::move(used_[i].text);
    return steps;
  }

  void Remember(const api::Chunk& text) {
    const size_t number = next_++ % kOthers;
    others_[number] = text;
    for (size_t at = 0; at + kWindow <= text->size(); at += kStride) {
      const uint64_t hash = WindowHash(text->data() + at);
      slots_[hash % kSlots] = {static_cast<uint32_t>(hash >> 32), static_cast<uint16_t>(number),
                               static_cast<uint16_t>(at / kStride)};
    }
  }

 private:
  // Where a window was seen last; what came to its place since is found out by looking.
  struct Slot {
    uint32_t tag;
    uint16_t number;
    uint16_t place;
  };
  static_assert(PackedText::kMost / kStride <= UINT16_MAX);

  struct Used {
    size_t number;
    api::Chunk text;
  };

  struct Match {
    size_t size = 0;
    size_t before = 0;  // so many of its bytes are before the window
    size_t from = 0;
    size_t other = 0;
  };

  // What another text has in common with `text` around `at`, but nothing before `told`.
  Match Find(std::string_view text, size_t at, size_t told) {
    const uint64_t hash = WindowHash(text.data() + at);
    const Slot& slot = slots_[hash % kSlots];
    if (slot.tag != static_cast<uint32_t>(hash >> 32)) return {};
    const size_t place = slot.place * kStride;
    const size_t other = Use(slot.number, place, text.substr(at, kWindow));
    if (other == PackedText::kOthersMost) return {};
    const std::string_view from = *used_[other].text;
    size_t before = 0;
    while (before < at - told && before < place &&
           text[at - before - 1] == from[place - before - 1]) {
      ++before;
    }
    const size_t most = std::min(text.size() - at, from.size() - place);
    const size_t after = CommonStart(text.data() + at, from.data() + place, most);
    return {before + after, before, place - before, other};
  }

  // The place in used_ of the text that has `window` there; kOthersMost: that is gone, or one too
  // many.
  size_t Use(size_t number, size_t place, std::string_view window) {
    size_t i = 0;
    while (i < used_.size() && used_[i].number != number) ++i;
    if (i == PackedText::kOthersMost) return i;
    api::Chunk text = i < used_.size() ? used_[i].text : others_[number].lock();
    if (text == nullptr || place > text->size() || text->compare(place, kWindow, window) != 0) {
      return PackedText::kOthersMost;
    }
    if (i == used_.size()) used_.push_back({number, std::move(text)});
    return i;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::vector<std::weak_ptr<const std::string>> others_ =
      std::vector<std::weak_ptr<const std::string>>(kOthers);
  size_t next_ = 0;
  std::vector<Used> used_;  // by the text at hand
  int poor_ = 0;
};

PackedText::PackedText(std::string text) : size_(text.size()) {
  thread_local Packer packer;
  const bool worth = size_ >= kLeast && size_ <= kMost;
  if (worth) steps_ = packer.Pack(text);
  if (steps_ != nullptr) return;
  text.shrink_to_fit();  // it is kept, the room in which it grew is not
  whole_ = api::MakeChunk(std::move(text));
  if (worth) packer.Remember(whole_);
}

template <class Each>
void PackedText::ForPieces(Each each) const {
  if (whole_ != nullptr) {
    each(std::string_view(*whole_));
    return;
  }
  for (std::string_view code = steps_->code;;) {
    const size_t own = TakeNumber(code);
    if (!each(code.substr(0, own))) return;
    code.remove_prefix(own);
    if (code.empty()) return;
    const size_t size = TakeNumber(code);
    const size_t place = TakeNumber(code);
    const std::string_view other = *steps_->others[place % kOthersMost];
    if (!each(other.substr(place / kOthersMost, size))) return;
  }
}

api::Chunk PackedText::Whole() const {
  if (whole_ != nullptr) return whole_;
  std::string text;
  text.reserve(size_);
  AppendTo(text);
  return api::MakeChunk(std::move(text));
}

void PackedText::AppendTo(std::string& out) const {
  ForPieces([&out](std::string_view piece) {
    out.append(piece);
    return true;
  });
}

bool PackedText::StartsWith(std::string_view start) const {
  ForPieces([&start](std::string_view piece) {
    const size_t size = std::min(piece.size(), start.size());
    if (piece.substr(0, size) != start.substr(0, size)) return false;
    start.remove_prefix(size);
    return !start.empty();
  });
  return start.empty();
}

}  // namespace swell::store
