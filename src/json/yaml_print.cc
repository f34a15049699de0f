// Printing YAML, in the style of kubectl -o yaml.
#include <algorithm>

#include "base/strings.h"
#include "json/yaml.h"
#include "json/yaml_scalar.h"

namespace swell::json {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kMaxSimpleKey = 128;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool Contains(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

size_t DigitsEnd(std::string_view s, size_t begin) {
  while (begin < s.size() && IsDigit(s[begin])) ++begin;
  return begin;
}

// Order of keys, as people expect it: a9 before a10; symbols, then digits, then letters.
bool KeyLess(std::string_view a, std::string_view b) {
  auto rank = [](char c) { return IsLetter(c) ? 2 : IsDigit(c) ? 1 : 0; };
  for (size_t i = 0; i < a.size() && i < b.size();) {
    if (rank(a[i]) != rank(b[i])) return rank(a[i]) < rank(b[i]);
    if (!IsDigit(a[i])) {
      if (a[i] != b[i]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
      ++i;
      continue;
    }
    std::string_view x = a.substr(i, DigitsEnd(a, i) - i);
    std::string_view y = b.substr(i, DigitsEnd(b, i) - i);
    size_t length = x.size();
    if (x != y) {
      auto significant = [](std::string_view s) {
        return s.substr(std::min(s.find_first_not_of('0'), s.size()));
      };
      std::string_view m = significant(x);
      std::string_view n = significant(y);
      if (m.size() != n.size()) return m.size() < n.size();
      return m != n ? m < n : x.size() < y.size();
    }
    i += length;
  }
  return a.size() < b.size();
}

// How a text may be written without changing its meaning.
struct Styles {
  bool plain = true;
  bool single_quoted = true;
  bool literal = true;
};

// Where a character of a text stands.
struct Place {
  bool first = false;
  bool after_space = false;
  bool before_space = false;
};

bool IsIndicator(char c, Place place) {
  if (place.first) {
    if (Contains("#,[]{}&*!|>'\"%@`", c)) return true;
    return Contains("?:-", c) && place.before_space;
  }
  return (c == ':' && place.before_space) || (c == '#' && place.after_space);
}

// At the begin of a line it begins or ends a document, quoted or not.
bool IsDocumentMarker(std::string_view s) { return s.starts_with("---") || s.starts_with("..."); }

Styles Analyze(std::string_view s) {
  Styles styles;
  if (s.empty()) return {true, true, false};
  if (IsDocumentMarker(s)) styles.plain = false;
  bool special = !IsValidUtf8(s);
  bool after_space = true;
  bool break_then_space = false;
  bool space_then_break = false;
  for (size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    unsigned char byte = static_cast<unsigned char>(c);
    bool space = c == ' ';
    bool followed = i + 1 == s.size() || Contains(" \t\n\r", s[i + 1]);
    if (IsIndicator(c, {.first = i == 0, .after_space = after_space, .before_space = followed})) {
      styles.plain = false;
    }
    std::string_view rest = s.substr(i);
    bool unprintable = (byte < 0x20 && c != '\n') || byte == 0x7f ||
                       (byte == 0xc2 && static_cast<unsigned char>(rest[1]) < 0xa0) ||
                       rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9") ||
                       rest.starts_with("\xef\xbb\xbf") || rest.starts_with("\xef\xbf\xbe") ||
                       rest.starts_with("\xef\xbf\xbf");
    special = special || unprintable;
    if (space && i > 0 && s[i - 1] == '\n') break_then_space = true;
    if (c == '\n' && i > 0 && s[i - 1] == ' ') space_then_break = true;
    if (c == '\n') styles.plain = false;
    after_space = space || c == '\n' || c == '\t';
  }
  if (s.front() == ' ' || s.back() == ' ') styles.plain = false;
  if (s.back() == ' ') styles.literal = false;
  if (break_then_space) styles.single_quoted = false;
  if (space_then_break || special) styles = {false, false, false};
  return styles;
}

class Printer {
 public:
  std::string Run(const Value& value) {
    Node(value, 0, /*inline_start=*/true);
    if (!out_.ends_with('\n')) out_ += '\n';
    return std::move(out_);
  }

 private:
  void Put(char c) {
    out_ += c;
    if (c == '\n') {
      column_ = 0;
    } else if ((c & 0xc0) != 0x80) {
      ++column_;
    }
  }
  void Put(std::string_view s) {
    for (char c : s) Put(c);
  }
  void Line(size_t indent) {
    if (!out_.empty() && !out_.ends_with('\n')) Put('\n');
    for (size_t i = 0; i < indent; ++i) Put(' ');
  }

  // `indent` is the column of the node's own keys or dashes; `inline_start`: the cursor already is
  // there ("- key: value").
  void Node(const Value& value, size_t indent, bool inline_start) {
    if (const Object* object = value.if_object(); object && !object->empty()) {
      Map(*object, indent, inline_start);
    } else if (const Array* array = value.if_array(); array && !array->empty()) {
      for (const Value& item : *array) {
        if (!inline_start) Line(indent);
        inline_start = false;
        Put("- ");
        Node(item, indent + 2, true);
      }
    } else if (value.is_string()) {
      Scalar(View(value.get_string()), indent, false);
    } else {
      Put(Print(value));
    }
  }

  void Map(const Object& object, size_t indent, bool inline_start) {
    std::vector<const Object::value_type*> members;
    for (const auto& member : object) members.push_back(&member);
    auto key = [](const auto* m) { return std::string_view(m->key().data(), m->key().size()); };
    std::sort(members.begin(), members.end(),
              [&](const auto* a, const auto* b) { return KeyLess(key(a), key(b)); });
    for (const auto* member : members) {
      if (!inline_start) Line(indent);
      inline_start = false;
      bool simple = key(member).size() <= kMaxSimpleKey;
      if (!simple) Put("? ");
      Scalar(key(member), indent + 2, true);
      if (!simple) Line(indent);
      Put(':');
      const Value& value = member->value();
      bool map = value.is_object() && !value.get_object().empty();
      bool list = value.is_array() && !value.get_array().empty();
      // Lists stand at their key's own column.
      if (!map && !list) Put(' ');
      Node(value, list ? indent : indent + 2, false);
    }
  }

  void Scalar(std::string_view s, size_t indent, bool key) {
    Styles styles = Analyze(s);
    bool reads_as_string = ReadsAsYamlString(s);
    if (!key && styles.literal && Contains(s, '\n')) return Literal(s, indent);
    if (!reads_as_string && !Contains(s, '\n')) return DoubleQuoted(s, indent, key);
    if (styles.plain) return Plain(s, indent, key);
    if (styles.single_quoted && !Contains(s, '\n')) return SingleQuoted(s, indent, key);
    DoubleQuoted(s, indent, key);
  }

  // Whether a line is so long that the space at `i` becomes a line break.
  bool Folds(std::string_view s, size_t i, size_t indent, bool key) const {
    return !key && column_ > kWidth && s[i] == ' ' && i > 0 && i + 1 < s.size() &&
           s[i - 1] != ' ' && s[i + 1] != ' ' && (indent > 0 || !IsDocumentMarker(s.substr(i + 1)));
  }

  void Plain(std::string_view s, size_t indent, bool key) {
    for (size_t i = 0; i < s.size(); ++i) {
      if (Folds(s, i, indent, key)) {
        Line(indent);
      } else {
        Put(s[i]);
      }
    }
  }

  void SingleQuoted(std::string_view s, size_t indent, bool key) {
    Put('\'');
    for (size_t i = 0; i < s.size(); ++i) {
      if (Folds(s, i, indent, key)) {
        Line(indent);
      } else {
        Put(s[i]);
        if (s[i] == '\'') Put('\'');
      }
    }
    Put('\'');
  }

  void DoubleQuoted(std::string_view s, size_t indent, bool key) {
    if (!IsValidUtf8(s)) {
      // Printing JSON replaces what is not UTF-8, and JSON strings are YAML.
      Put(Print(Value(boost::json::string_view(s.data(), s.size()))));
      return;
    }
    Put('"');
    for (size_t i = 0; i < s.size(); ++i) {
      if (Folds(s, i, indent, key)) {
        Line(indent);
      } else {
        i += Escaped(s.substr(i)) - 1;
      }
    }
    Put('"');
  }

  // Writes the first character, escaped if need be; returns how many bytes it had.
  size_t Escaped(std::string_view s) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    static constexpr std::string_view kFrom("\0\a\b\t\n\v\f\r\x1b\"\\", 11);
    static constexpr std::string_view kTo = "0abtnvfre\"\\";
    size_t named = kFrom.find(s[0]);
    unsigned char byte = static_cast<unsigned char>(s[0]);
    if (named != std::string_view::npos) {
      Put('\\');
      Put(kTo[named]);
    } else if (byte < 0x20 || byte == 0x7f) {
      Put("\\x");
      Put(kHex[byte >> 4]);
      Put(kHex[byte & 15]);
    } else if (byte == 0xc2 && static_cast<unsigned char>(s[1]) <= 0xa0) {
      unsigned char second = static_cast<unsigned char>(s[1]);
      Put("\\x");
      Put(kHex[second >> 4]);
      Put(kHex[second & 15]);
      return 2;
    } else if (s.starts_with("\xe2\x80\xa8") || s.starts_with("\xe2\x80\xa9")) {
      Put(s[2] == '\xa8' ? "\\L" : "\\P");
      return 3;
    } else if (s.starts_with("\xef\xbb\xbf")) {
      Put("\\uFEFF");
      return 3;
    } else {
      Put(s[0]);
    }
    return 1;
  }

  void Literal(std::string_view s, size_t indent) {
    Put('|');
    if (s.front() == ' ' || s.front() == '\n') Put('2');
    if (s.back() != '\n') {
      Put('-');
    } else if (s.size() == 1 || s[s.size() - 2] == '\n') {
      Put('+');
    }
    Put('\n');
    // At the top of a document there is no parent to be indented against.
    indent = std::max<size_t>(indent, 2);
    for (size_t at = 0; at < s.size();) {
      size_t end = std::min(s.find('\n', at), s.size());
      if (end > at) Put(std::string(indent, ' '));
      Put(s.substr(at, end - at));
      Put('\n');
      at = end + 1;
    }
  }

  std::string out_;
  size_t column_ = 0;
};

}  // namespace

std::string PrintYaml(const Value& value) { return Printer().Run(value); }

}  // namespace swell::json
