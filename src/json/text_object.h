// TextObject: a JSON object's compact text taken apart into its members, so that a few of them are
// read and changed without a document being built of them all.
//
// Thread-safety: none. Ownership: it points into the text it was read from, which must outlive it.
// Invariant: what is not set is printed as it was read, in its order.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swell::json {

class TextObject {
 public:
  // nullopt: the text is no object as Print() writes it. What is inside its members is only looked
  // at as far as it takes to find their ends.
  static std::optional<TextObject> Read(std::string_view text);

  // The member's value as text; empty: there is none. `key` needs no escaping.
  std::string_view Get(std::string_view key) const;
  // Replaces the member's value, or adds the member at the end.
  void Set(std::string_view key, std::string value);
  void Remove(std::string_view key);
  std::string Print() const;

 private:
  struct Member {
    std::string_view key;  // as written, without its quotes
    std::string_view value;
  };
  std::vector<Member> members_;
  std::list<std::string> own_;  // what was set
};

}  // namespace swell::json
