// KeyReader: the keys that a terminal's bytes mean.
// - Threads: one thread.
// - Invariants: bytes that mean nothing are skipped; at most a few bytes of an unfinished sequence
//   are kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace swell::cli {

struct Key {
  enum class Kind {
    kText,
    kEnter,
    kEscape,
    kBackspace,
    kTab,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kControl
  };
  Kind kind = Kind::kText;
  std::string text;  // kText: one character of UTF-8; kControl: the letter, "c" for Ctrl-C
  bool operator==(const Key&) const = default;
};

class KeyReader {
 public:
  // The keys that are complete with these bytes. A lone ESC at their end is the key Escape: a
  // terminal sends the sequence of a key in one piece.
  std::vector<Key> Feed(std::string_view bytes);

 private:
  std::string kept_;  // the beginning of a UTF-8 character
};

}  // namespace swell::cli
