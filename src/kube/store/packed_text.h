// PackedText: an object's text as the store keeps it. Tens of thousands of objects say nearly the
// same (the pods of a job, and what is written of their fields), so a text is kept as what it
// repeats of a few others and the little that it alone says. What resembles nothing is kept whole,
// and others are packed against it.
// - Threads: immutable; any thread may read it. Each thread packs against texts that it kept
//   itself.
// - Ownership: holds the texts that it repeats, which may be of objects long gone. It never holds
//   more than kOthersMost of them, none larger than kMost.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "kube/api/rest.h"

namespace swell::store {

class PackedText {
 public:
  explicit PackedText(std::string text);

  size_t size() const { return size_; }  // of the text
  bool packed() const { return steps_ != nullptr; }
  // The text that is kept, or one made anew.
  api::Chunk Whole() const;
  void AppendTo(std::string& out) const;
  bool StartsWith(std::string_view start) const;

  static constexpr size_t kOthersMost = 4;
  static constexpr size_t kMost = 32 << 10;

 private:
  friend class Packer;
  // Again and again: how many bytes of `code` follow that are the text's own, and they; how many
  // bytes are those of another text, and where (its number below its place). Numbers are LEB128.
  struct Steps {
    std::array<api::Chunk, kOthersMost> others;
    std::string code;
  };

  // Calls each(piece) for the text's pieces, in order, until it answers false.
  template <class Each>
  void ForPieces(Each each) const;

  size_t size_;
  api::Chunk whole_;
  std::unique_ptr<const Steps> steps_;  // one of the two
};

}  // namespace swell::store
