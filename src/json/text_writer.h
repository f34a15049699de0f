// TextWriter: writes JSON member by member, for callers that would build a tree only to print it.
//
//   TextWriter out;
//   out.Open('{');
//   out.Member("name", "x");
//   out.Key("list").Open('[');
//   out.Item("a");
//   out.Close(']').Close('}');
//
// Strings come out as json::Print has them. The caller closes what it opens.
//
// - Threads: none.
// - Ownership: the text is the writer's until taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace swell::json {

// As a JSON string: quoted, escaped, invalid UTF-8 replaced.
void AppendString(std::string& out, std::string_view text);

class TextWriter {
 public:
  explicit TextWriter(size_t expected_bytes = 512) { text_.reserve(expected_bytes); }

  TextWriter& Open(char bracket) {
    Separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  TextWriter& Close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  TextWriter& Key(std::string_view key) {
    Separate();
    AppendString(text_, key);
    text_ += ':';
    first_ = true;  // its value needs no comma
    return *this;
  }
  void Item(std::string_view value) {
    Separate();
    AppendString(text_, value);
  }
  void Member(std::string_view key, std::string_view value) { Key(key).Item(value); }
  // What most documents leave out when it is empty.
  void MemberUnlessEmpty(std::string_view key, std::string_view value) {
    if (!value.empty()) Member(key, value);
  }
  void Number(std::string_view key, int64_t value) {
    Key(key);
    text_ += std::to_string(value);
    first_ = false;
  }

  std::string Take() { return std::move(text_); }

 private:
  void Separate() {
    if (!std::exchange(first_, false)) text_ += ',';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace swell::json
