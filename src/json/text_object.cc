#include "json/text_object.h"

#include <algorithm>

namespace swell::json {
namespace {

// Where the string that begins at `i` is over; npos: nowhere.
size_t AfterString(std::string_view text, size_t i) {
  const size_t begin = ++i;
  for (; (i = text.find('"', i)) != std::string_view::npos; ++i) {
    size_t slashes = 0;
    while (slashes < i - begin && text[i - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return i + 1;
  }
  return std::string_view::npos;
}

// Where the member's value that begins at `i` is over: before a comma or the object's end.
size_t AfterValue(std::string_view text, size_t i) {
  int depth = 0;
  while (i < text.size()) {
    switch (text[i]) {
      case '"':
        i = AfterString(text, i);
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (depth-- == 0) return i;
        break;
      case ',':
        if (depth == 0) return i;
        break;
      default:
        break;
    }
    ++i;
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<TextObject> TextObject::Read(std::string_view text) {
  TextObject object;
  if (text == "{}") return object;
  if (!text.starts_with('{')) return std::nullopt;
  char before = ',';
  size_t at = 1;
  while (before == ',') {
    if (at >= text.size() || text[at] != '"') return std::nullopt;
    const size_t colon = AfterString(text, at);
    if (colon >= text.size() || text[colon] != ':') return std::nullopt;
    const size_t end = AfterValue(text, colon + 1);
    if (end >= text.size() || end == colon + 1) return std::nullopt;
    object.members_.push_back(
        {text.substr(at + 1, colon - at - 2), text.substr(colon + 1, end - colon - 1)});
    before = text[end];
    at = end + 1;
  }
  if (before != '}' || at != text.size()) return std::nullopt;
  return object;
}

std::string_view TextObject::Get(std::string_view key) const {
  auto member = std::find_if(members_.begin(), members_.end(),
                             [key](const Member& it) { return it.key == key; });
  return member == members_.end() ? std::string_view() : member->value;
}

void TextObject::Set(std::string_view key, std::string value) {
  auto member = std::find_if(members_.begin(), members_.end(),
                             [key](const Member& it) { return it.key == key; });
  if (member == members_.end()) {
    members_.push_back({own_.emplace_back(key), {}});
    member = std::prev(members_.end());
  }
  member->value = own_.emplace_back(std::move(value));
}

void TextObject::Remove(std::string_view key) {
  std::erase_if(members_, [key](const Member& it) { return it.key == key; });
}

std::string TextObject::Print() const {
  size_t size = 2;
  for (const Member& member : members_) size += member.key.size() + member.value.size() + 4;
  std::string text;
  text.reserve(size);
  text += '{';
  for (const Member& member : members_) {
    if (text.size() > 1) text += ',';
    text.append(1, '"').append(member.key).append("\":").append(member.value);
  }
  text += '}';
  return text;
}

}  // namespace swell::json
