#include "kube/api/patch/edit_text.h"

#include <algorithm>
#include <array>

#include "base/byte_words.h"

namespace swell::api {
namespace {

// Behind the string that begins at `i`; npos: it has no end.
size_t AfterString(std::string_view text, size_t i) {
  const size_t begin = ++i;
  for (; (i = FindByte(text, '"', i)) != std::string_view::npos; ++i) {
    size_t slashes = 0;
    while (slashes < i - begin && text[i - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return i + 1;
  }
  return std::string_view::npos;
}

constexpr std::array<bool, 256> MakeTelling() {
  std::array<bool, 256> telling{};
  for (const unsigned char c : {'"', '{', '}', '[', ']', ','}) telling[c] = true;
  return telling;
}
// What says where a value is over; most of it does not.
constexpr std::array<bool, 256> kTelling = MakeTelling();

// Before the comma or the bracket that follows the value that begins at `i`; npos: none does.
size_t AfterValue(std::string_view text, size_t i) {
  int depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (!kTelling[static_cast<unsigned char>(c)]) {
      ++i;
    } else if (c == '"') {
      i = AfterString(text, i);
    } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
      return i;
    } else {
      if (c != ',') depth += c == '{' || c == '[' ? 1 : -1;
      ++i;
    }
  }
  return std::string_view::npos;
}

class Editor {
 public:
  Editor(std::string_view text, const std::vector<TextEdit>& edits)
      : text_(text), edits_(edits), done_(edits.size()), left_(edits.size()) {
    size_t size = text.size();
    for (const TextEdit& edit : edits) {
      size += edit.part.size() + edit.key.size() + edit.value.size() + sizeof R"("":{},"":,)";
    }
    out_.reserve(size);
  }

  std::optional<std::string> Run() {
    if (!Object({})) return std::nullopt;
    out_.append(text_, at_);
    out_.shrink_to_fit();
    return std::move(out_);
  }

 private:
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // The object that begins here with its edits: one of the parts, or the whole (`part` is empty).
  // Where nothing is left to do it stops: what follows is copied.
  bool Object(std::string_view part) {
    if (!Take('{')) return false;
    out_ += '{';
    bool empty = true;
    if (!Take('}')) {
      do {
        if (!Member(part, empty)) return false;
        if (left_ == 0) return true;
      } while (Take(','));
      if (!Take('}')) return false;
    }
    Append(part, empty);
    out_ += '}';
    return true;
  }

  bool Member(std::string_view part, bool& empty) {
    const size_t begin = at_;
    if (!Take('"')) return false;
    at_ = AfterString(text_, begin);
    if (!Take(':')) return false;
    const size_t value = at_;
    const std::string_view key = text_.substr(begin + 1, value - begin - 3);
    if (part.empty() && IsPart(key)) {
      Separate(empty);
      out_.append(text_, begin, value - begin);
      return Object(key);
    }
    at_ = AfterValue(text_, value);
    if (at_ == std::string_view::npos || at_ == value) return false;
    const size_t edit = Find(part, key);
    if (edit == edits_.size()) {
      Separate(empty);
      out_.append(text_, begin, at_ - begin);
      return true;
    }
    Finish(edit);
    if (!edits_[edit].value.empty()) {
      Separate(empty);
      out_.append(text_, begin, value - begin).append(edits_[edit].value);
    } else if (empty && left_ == 0) {
      Take(',');  // what follows is copied, and comes first
    }
    return true;
  }

  // What was not there.
  void Append(std::string_view part, bool& empty) {
    for (size_t i = 0; i < edits_.size(); ++i) {
      const auto& [of, key, value] = edits_[i];
      if (done_[i] || (!part.empty() && of != part)) continue;
      if (value.empty()) {
        Finish(i);
      } else if (part.empty()) {
        Separate(empty);
        out_.append(1, '"').append(of).append("\":{");
        bool none = true;
        Append(of, none);
        out_ += '}';
      } else {
        Separate(empty);
        out_.append(1, '"').append(key).append("\":").append(value);
        Finish(i);
      }
    }
  }

  void Separate(bool& empty) {
    if (!empty) out_ += ',';
    empty = false;
  }
  void Finish(size_t edit) {
    done_[edit] = true;
    --left_;
  }
  bool IsPart(std::string_view key) const {
    return std::any_of(edits_.begin(), edits_.end(),
                       [key](const TextEdit& edit) { return edit.part == key; });
  }
  size_t Find(std::string_view part, std::string_view key) const {
    return static_cast<size_t>(
        std::find_if(edits_.begin(), edits_.end(),
                     [&](const TextEdit& edit) { return edit.part == part && edit.key == key; }) -
        edits_.begin());
  }

  const std::string_view text_;
  const std::vector<TextEdit>& edits_;
  std::vector<bool> done_;
  size_t left_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> EditText(std::string_view text, const std::vector<TextEdit>& edits) {
  return Editor(text, edits).Run();
}

}  // namespace swell::api
