#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <exception>
#include <set>

#include <boost/json/basic_parser_impl.hpp>

#include "base/strings.h"
#include "json/duplicates.h"
#include "json/erase.h"
#include "json/text_writer.h"
#include "json/value.h"

namespace swell::json {
namespace {

namespace bj = boost::json;

// ---- Parsing ------------------------------------------------------------------------------------

// What both handlers below ignore: the sizes Boost asks about, numbers in pieces, comments.
struct HandlerBase {
  static constexpr size_t max_object_size = Object::max_size();
  static constexpr size_t max_array_size = Array::max_size();
  static constexpr size_t max_key_size = bj::string::max_size();
  static constexpr size_t max_string_size = bj::string::max_size();

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

// Builds the tree. Boost keeps the last of two equal keys without a word, so the keys read are
// counted: fewer in the tree means that there were duplicates.
struct TreeHandler : HandlerBase {
  bj::value_stack stack;
  size_t keys = 0;
  size_t values_left = SIZE_MAX;
  bool too_many_values = false;
  std::string number;
  bool number_too_large = false;

  bool Fits(size_t n, bj::error_code& error) {
    too_many_values = n > values_left;
    if (too_many_values) error = bj::error::array_too_large;
    values_left -= too_many_values ? 0 : n;
    return !too_many_values;
  }
  bool on_object_begin(bj::error_code&) { return true; }
  bool on_object_end(size_t n, bj::error_code& error) {
    if (!Fits(n, error)) return false;
    keys += n;
    stack.push_object(n);
    return true;
  }
  bool on_array_begin(bj::error_code&) { return true; }
  bool on_array_end(size_t n, bj::error_code& error) {
    if (!Fits(n, error)) return false;
    stack.push_array(n);
    return true;
  }
  bool on_key_part(bj::string_view s, size_t, bj::error_code&) {
    stack.push_chars(s);
    return true;
  }
  bool on_key(bj::string_view s, size_t, bj::error_code&) {
    stack.push_key(s);
    return true;
  }
  bool on_string_part(bj::string_view s, size_t, bj::error_code&) {
    stack.push_chars(s);
    return true;
  }
  bool on_string(bj::string_view s, size_t, bj::error_code&) {
    stack.push_string(s);
    return true;
  }
  bool on_number_part(bj::string_view s, bj::error_code&) {
    number.append(s.data(), s.size());
    return true;
  }
  bool on_int64(int64_t i, bj::string_view, bj::error_code&) {
    number.clear();
    stack.push_int64(i);
    return true;
  }
  bool on_uint64(uint64_t u, bj::string_view, bj::error_code&) {
    number.clear();
    stack.push_uint64(u);
    return true;
  }
  // Boost 1.81 may be off in the last place, so the text is converted again, exactly.
  bool on_double(double d, bj::string_view s, bj::error_code& error) {
    number.append(s.data(), s.size());
    double exact = 0;
    auto [end, result] = std::from_chars(number.data(), number.data() + number.size(), exact);
    if (result == std::errc::result_out_of_range) {
      number_too_large = !(std::fabs(d) < 1);
      exact = 0;
    } else if (result != std::errc() || end != number.data() + number.size()) {
      exact = d;
    }
    number.clear();
    if (number_too_large) {
      error = bj::error::exponent_overflow;
      return false;
    }
    stack.push_double(exact);
    return true;
  }
  bool on_bool(bool b, bj::error_code&) {
    stack.push_bool(b);
    return true;
  }
  bool on_null(bj::error_code&) {
    stack.push_null();
    return true;
  }
};

// Second pass over a document known to have duplicate keys: finds the first, with its place.
struct DuplicateFinder : HandlerBase {
  std::string_view text;
  std::vector<std::set<std::string, std::less<>>> objects;
  std::string key;
  std::string duplicate;
  size_t offset = 0;

  void Note(bj::string_view s) {
    std::less<const char*> before;
    bool inside = !before(s.data(), text.data()) && before(s.data(), text.data() + text.size());
    if (inside) offset = static_cast<size_t>(s.data() - text.data());
  }
  bool on_object_begin(bj::error_code&) {
    objects.emplace_back();
    return true;
  }
  bool on_object_end(size_t, bj::error_code&) {
    objects.pop_back();
    return true;
  }
  bool on_array_begin(bj::error_code&) { return true; }
  bool on_array_end(size_t, bj::error_code&) { return true; }
  bool on_key_part(bj::string_view s, size_t, bj::error_code&) {
    key.append(s.data(), s.size());
    return true;
  }
  bool on_key(bj::string_view s, size_t, bj::error_code& error) {
    Note(s);
    key.append(s.data(), s.size());
    if (!objects.back().insert(key).second) {
      duplicate = key;
      error = bj::error::syntax;
      return false;
    }
    key.clear();
    return true;
  }
  bool on_string_part(bj::string_view, size_t, bj::error_code&) { return true; }
  bool on_string(bj::string_view s, size_t, bj::error_code&) {
    Note(s);
    return true;
  }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }
  bool on_int64(int64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_uint64(uint64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_double(double, bj::string_view, bj::error_code&) { return true; }
  bool on_bool(bool, bj::error_code&) { return true; }
  bool on_null(bj::error_code&) { return true; }
};

// Second pass, too: the paths of all duplicate keys.
struct DuplicateLister : HandlerBase {
  struct Frame {
    bool array = false;
    size_t values = 0;  // begun, of an array
    std::string key;    // the latest, of an object
    std::set<std::string, std::less<>> keys = {};
  };
  std::vector<Frame> frames;
  std::string key;
  std::vector<std::string> found;

  std::string Path() const {
    std::string path;
    for (const Frame& frame : frames) {
      if (frame.array) {
        path += StrCat("[", frame.values - 1, "]");
      } else {
        path += StrCat(path.empty() ? "" : ".", frame.key);
      }
    }
    return path;
  }
  bool Begin() {
    if (!frames.empty() && frames.back().array) ++frames.back().values;
    return true;
  }
  bool on_object_begin(bj::error_code&) {
    Begin();
    frames.emplace_back();
    return true;
  }
  bool on_object_end(size_t, bj::error_code&) {
    frames.pop_back();
    return true;
  }
  bool on_array_begin(bj::error_code&) {
    Begin();
    frames.emplace_back().array = true;
    return true;
  }
  bool on_array_end(size_t, bj::error_code&) {
    frames.pop_back();
    return true;
  }
  bool on_key_part(bj::string_view s, size_t, bj::error_code&) {
    key.append(s.data(), s.size());
    return true;
  }
  bool on_key(bj::string_view s, size_t, bj::error_code&) {
    constexpr size_t kMost = 100;
    key.append(s.data(), s.size());
    Frame& frame = frames.back();
    frame.key = key;
    if (!frame.keys.insert(std::move(key)).second && found.size() < kMost) found.push_back(Path());
    key.clear();
    return true;
  }
  bool on_string_part(bj::string_view, size_t, bj::error_code&) { return true; }
  bool on_string(bj::string_view, size_t, bj::error_code&) { return Begin(); }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }
  bool on_int64(int64_t, bj::string_view, bj::error_code&) { return Begin(); }
  bool on_uint64(uint64_t, bj::string_view, bj::error_code&) { return Begin(); }
  bool on_double(double, bj::string_view, bj::error_code&) { return Begin(); }
  bool on_bool(bool, bj::error_code&) { return Begin(); }
  bool on_null(bj::error_code&) { return Begin(); }
};

size_t CountKeys(const Value& value) {
  size_t keys = 0;
  if (const Object* object = value.if_object()) {
    keys = object->size();
    for (const auto& member : *object) keys += CountKeys(member.value());
  } else if (const Array* array = value.if_array()) {
    for (const Value& item : *array) keys += CountKeys(item);
  }
  return keys;
}

std::string Place(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  std::string_view before = text.substr(0, offset);
  size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  size_t newline = before.rfind('\n');
  size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return StrCat("line ", line, ", column ", column);
}

// What could have stood where parsing stopped, judged from what stands before it.
std::string_view Expected(std::string_view text, size_t offset) {
  size_t last = text.substr(0, offset).find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return "a value";
  switch (text[last]) {
    case '{':
      return "a key in double quotes or '}'";
    case '[':
      return "a value or ']'";
    case ':':
      return "a value";
    case ',':
      return "a value, or a key in double quotes";
    default:
      return "',', ':' or the end of the object or array";
  }
}

Status SyntaxError(std::string_view text, size_t offset, const bj::error_code& error) {
  std::string place = Place(text, offset);
  auto fail = [&](std::string_view what) {
    return Status(Code::kBadRequest, StrCat("JSON: ", place, ": ", what));
  };
  if (error == bj::error::too_deep) return fail("nested too deeply");
  if (error == bj::error::extra_data) return fail("expected the end of the document");
  if (error == bj::error::exponent_overflow) return fail("number out of range");
  if (error == bj::error::incomplete || offset >= text.size()) {
    return fail(StrCat("unexpected end, expected ", Expected(text, offset)));
  }
  if (error != bj::error::syntax) return fail(error.message());
  unsigned char c = static_cast<unsigned char>(text[offset]);
  if (c >= 0x80 && !IsValidUtf8(text)) return fail("invalid UTF-8");
  if (c < 0x20 && c != '\n' && c != '\r' && c != '\t') return fail("unescaped control character");
  return fail(
      StrCat("unexpected ", Quote(text.substr(offset, 1)), ", expected ", Expected(text, offset)));
}

bj::parse_options Options(const ParseLimits& limits) {
  bj::parse_options options;
  options.max_depth = limits.depth;
  return options;
}

Status DuplicateKeyError(std::string_view text, const ParseLimits& limits) {
  bj::basic_parser<DuplicateFinder> parser(Options(limits));
  parser.handler().text = text;
  bj::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  const DuplicateFinder& found = parser.handler();
  return Status(Code::kBadRequest, StrCat("JSON: ", Place(text, found.offset), ": duplicate key ",
                                          Quote(found.duplicate)));
}

std::vector<std::string> ListDuplicates(std::string_view text, const ParseLimits& limits) {
  bj::basic_parser<DuplicateLister> parser(Options(limits));
  bj::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  return std::move(parser.handler().found);
}

// `duplicates`: where they are noted; without it, one is an error.
Result<Value> ParseChecked(std::string_view text,
                           const ParseLimits& limits,
                           std::vector<std::string>* duplicates) {
  bj::basic_parser<TreeHandler> parser(Options(limits));
  TreeHandler& handler = parser.handler();
  handler.stack.reset();
  handler.values_left = limits.values;
  bj::error_code error;
  size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = bj::error::extra_data;
  if (handler.too_many_values) {
    return Status(Code::kTooLarge,
                  StrCat("JSON: more than the ", limits.values, " values allowed"));
  }
  if (error) return SyntaxError(text, used, error);
  Value value = handler.stack.release();
  if (handler.keys != CountKeys(value)) {
    if (duplicates == nullptr) return DuplicateKeyError(text, limits);
    *duplicates = ListDuplicates(text, limits);
  }
  return value;
}

Result<Value> ParseBounded(std::string_view text,
                           const ParseLimits& limits,
                           std::vector<std::string>* duplicates = nullptr) {
  if (text.size() > limits.bytes) {
    return Status(Code::kTooLarge, StrCat("JSON: ", text.size(), " bytes are more than the ",
                                          limits.bytes, " allowed"));
  }
  try {
    return ParseChecked(text, limits, duplicates);
  } catch (const std::exception& e) {
    return Status(Code::kBadRequest, StrCat("JSON: ", e.what()));
  }
}

// ---- Printing -----------------------------------------------------------------------------------

// 0: copy as is; 1: needs an escape; 2: part of a sequence that must be checked to be UTF-8.
constexpr std::array<uint8_t, 256> MakeCharClasses() {
  std::array<uint8_t, 256> classes{};
  for (size_t c = 0; c < 256; ++c) {
    classes[c] = c < 0x20 || c == '"' || c == '\\' ? 1 : c >= 0x80 ? 2 : 0;
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kCharClasses = MakeCharClasses();

void AppendEscape(std::string& out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

// Strings that our own code put into a tree may hold bytes of logs: what is not UTF-8 becomes
// U+FFFD, so that what is printed can always be parsed.
}  // namespace

void AppendString(std::string& out, std::string_view s) {
  out += '"';
  size_t begin = 0;
  size_t i = 0;
  while (i < s.size()) {
    uint8_t kind = kCharClasses[static_cast<unsigned char>(s[i])];
    if (kind == 0) {
      ++i;
      continue;
    }
    if (kind == 2) {
      size_t length = 1;
      while (length < 4 && i + length < s.size() && (s[i + length] & 0xc0) == 0x80) ++length;
      // The longest prefix of the run that is one character.
      while (length > 1 && !IsValidUtf8(s.substr(i, length))) --length;
      if (length > 1) {
        i += length;
        continue;
      }
      out.append(s, begin, i - begin);
      out += "\xef\xbf\xbd";
    } else {
      out.append(s, begin, i - begin);
      AppendEscape(out, static_cast<unsigned char>(s[i]));
    }
    begin = ++i;
  }
  out.append(s, begin, s.size() - begin);
  out += '"';
}

namespace {

template <class Int>
void AppendInt(std::string& out, Int n) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, n).ptr);
}

// Shortest text that reads back as the same number, in the form other Kubernetes software prints.
void AppendDouble(std::string& out, double d) {
  if (!std::isfinite(d)) {
    out += "null";  // JSON has no word for it
    return;
  }
  char buffer[64];
  double magnitude = std::fabs(d);
  bool scientific = magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21);
  auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  char* end = std::to_chars(buffer, buffer + sizeof buffer, d, format).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  size_t zero = text.find("e-0");
  if (scientific && zero != std::string_view::npos) {
    out.append(text, 0, zero + 2);
    text.remove_prefix(zero + 3);
  }
  out += text;
}

// Everything but containers.
void AppendScalar(std::string& out, const Value& value) {
  switch (value.kind()) {
    case bj::kind::null:
      out += "null";
      return;
    case bj::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case bj::kind::int64:
      AppendInt(out, value.get_int64());
      return;
    case bj::kind::uint64:
      AppendInt(out, value.get_uint64());
      return;
    case bj::kind::double_:
      AppendDouble(out, value.get_double());
      return;
    default:
      AppendString(out, View(value.get_string()));
  }
}

void Append(std::string& out, const Value& value) {
  char separator;
  if (const Object* object = value.if_object()) {
    if (object->empty()) {
      out += "{}";
      return;
    }
    separator = '{';
    for (const auto& member : *object) {
      out += separator;
      AppendString(out, {member.key().data(), member.key().size()});
      out += ':';
      Append(out, member.value());
      separator = ',';
    }
    out += '}';
  } else if (const Array* array = value.if_array()) {
    if (array->empty()) {
      out += "[]";
      return;
    }
    separator = '[';
    for (const Value& item : *array) {
      out += separator;
      Append(out, item);
      separator = ',';
    }
    out += ']';
  } else {
    AppendScalar(out, value);
  }
}

void AppendPretty(std::string& out, const Value& value, size_t indent, size_t depth) {
  auto line = [&](size_t level) {
    out += '\n';
    out.append(indent * level, ' ');
  };
  bool first = true;
  auto next = [&] {
    if (!first) out += ',';
    first = false;
    line(depth + 1);
  };
  if (const Object* object = value.if_object(); object && !object->empty()) {
    out += '{';
    for (const auto& member : *object) {
      next();
      AppendString(out, {member.key().data(), member.key().size()});
      out += ": ";
      AppendPretty(out, member.value(), indent, depth + 1);
    }
    line(depth);
    out += '}';
  } else if (const Array* array = value.if_array(); array && !array->empty()) {
    out += '[';
    for (const Value& item : *array) {
      next();
      AppendPretty(out, item, indent, depth + 1);
    }
    line(depth);
    out += ']';
  } else {
    Append(out, value);
  }
}

bool EqualNumbers(const Value& a, const Value& b) {
  auto whole = [](const Value& v) {
    return v.is_int64() ? static_cast<__int128>(v.get_int64())
                        : static_cast<__int128>(v.get_uint64());
  };
  if (!a.is_double() && !b.is_double()) return whole(a) == whole(b);
  if (a.is_double() && b.is_double()) return a.get_double() == b.get_double();
  double d = a.is_double() ? a.get_double() : b.get_double();
  // Beyond ±2^65 no integer of ours is equal, and the conversion below would not be defined.
  if (!(std::fabs(d) < 0x1p65) || d != std::trunc(d)) return false;
  return static_cast<__int128>(d) == whole(a.is_double() ? b : a);
}

}  // namespace

Result<Value> Parse(std::string_view text, const ParseLimits& limits) {
  return ParseBounded(text, limits);
}

Result<Value> ParseNoting(std::string_view text,
                          const ParseLimits& limits,
                          std::vector<std::string>& duplicates) {
  return ParseBounded(text, limits, &duplicates);
}

std::string Print(const Value& value) {
  std::string out;
  out.reserve(512);
  Append(out, value);
  return out;
}

std::string PrintPretty(const Value& value, int indent) {
  std::string out;
  AppendPretty(out, value, static_cast<size_t>(std::max(indent, 0)), 0);
  return out;
}

const Value* Find(const Value& root, Path path) {
  const Value* at = &root;
  for (std::string_view step : path) {
    const Object* object = at->if_object();
    if (object == nullptr) return nullptr;
    at = object->if_contains(bj::string_view(step.data(), step.size()));
    if (at == nullptr) return nullptr;
  }
  return at;
}

Value* FindMutable(Value& root, Path path) {
  return const_cast<Value*>(Find(root, path));  // root itself is not const
}

std::string_view GetString(const Value& root, Path path, std::string_view fallback) {
  const Value* found = Find(root, path);
  return found && found->is_string() ? View(found->get_string()) : fallback;
}

int64_t GetInt(const Value& root, Path path, int64_t fallback) {
  const Value* found = Find(root, path);
  if (found == nullptr) return fallback;
  if (const int64_t* n = found->if_int64()) return *n;
  if (const double* d = found->if_double(); d && std::fabs(*d) < 0x1p63 && *d == std::trunc(*d)) {
    return static_cast<int64_t>(*d);
  }
  return fallback;  // also for what is beyond int64
}

bool GetBool(const Value& root, Path path, bool fallback) {
  const Value* found = Find(root, path);
  return found && found->is_bool() ? found->get_bool() : fallback;
}

const Array& GetArray(const Value& root, Path path) {
  static const Array empty;
  const Value* found = Find(root, path);
  return found && found->is_array() ? found->get_array() : empty;
}

const Object& GetObject(const Value& root, Path path) {
  static const Object empty;
  const Value* found = Find(root, path);
  return found && found->is_object() ? found->get_object() : empty;
}

Value& Set(Value& root, Path path, Value value) {
  Value* at = &root;
  for (std::string_view step : path) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[bj::string_view(step.data(), step.size())];
  }
  *at = std::move(value);
  return *at;
}

void Remove(Value& root, Path path) {
  if (path.size() == 0) return;
  Value* at = &root;
  for (const std::string_view* step = path.begin(); step != path.end() - 1; ++step) {
    at = FindMutable(*at, {*step});
    if (at == nullptr) return;
  }
  if (Object* object = at->if_object()) StableErase(*object, *(path.end() - 1));
}

void StableErase(Object& object, std::string_view key) {
  auto it = object.find(bj::string_view(key.data(), key.size()));
  if (it != object.end()) object.stable_erase(it);
}

void EraseMembers(Object& object, const std::function<bool(std::string_view key)>& goes) {
  const auto leaves = [&goes](const Object::value_type& member) {
    return goes({member.key().data(), member.key().size()});
  };
  const auto first = std::find_if(object.begin(), object.end(), leaves);
  if (first == object.end()) return;
  Object kept(object.storage());
  kept.reserve(object.size() - 1);
  for (auto& member : object) {
    if (!leaves(member)) kept.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(kept);
}

void EraseMembers(Object& object, const std::set<std::string, std::less<>>& keys) {
  if (keys.empty()) return;
  EraseMembers(object, [&keys](std::string_view key) { return keys.contains(key); });
}

bool Equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return EqualNumbers(a, b);
  if (a.kind() != b.kind()) return false;
  if (const Array* items = a.if_array()) {
    const Array& others = b.get_array();
    return items->size() == others.size() &&
           std::equal(items->begin(), items->end(), others.begin(), Equal);
  }
  if (const Object* members = a.if_object()) {
    const Object& others = b.get_object();
    if (members->size() != others.size()) return false;
    for (const auto& member : *members) {
      const Value* other = others.if_contains(member.key());
      if (other == nullptr || !Equal(member.value(), *other)) return false;
    }
    return true;
  }
  if (a.is_string()) return a.get_string() == b.get_string();
  return a.is_null() || a.get_bool() == b.get_bool();
}

}  // namespace swell::json
