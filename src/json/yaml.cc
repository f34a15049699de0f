#include "json/yaml.h"

#include <istream>
#include <map>
#include <optional>
#include <streambuf>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/strings.h"
#include "json/duplicates.h"
#include "json/yaml_scalar.h"

namespace swell::json {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
// What aliases may add to a document, in nodes.
constexpr size_t kMaxAliasedNodes = 1'000'000;

Value Text(std::string_view text) {
  return Value(boost::json::string_view(text.data(), text.size()));
}

// yaml-cpp reads the escapes \N and \_ as the single bytes of Latin-1; here they become characters.
std::string WithWholeCharacters(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead == 0x85 || lead == 0xa0) out += '\xc2';
    out.append(text, i, length);
    i += length - 1;
  }
  return out;
}

// Turns yaml-cpp's events for one document into a tree. The first error is kept and everything
// after it ignored, for events have no way to stop the parser but exceptions.
class Builder final : public YAML::EventHandler {
 public:
  // `duplicates`: where they are noted; without it, one is an error.
  Builder(const ParseLimits& limits, int first_line, std::vector<std::string>* duplicates = nullptr)
      : limits_(limits), first_line_(first_line), duplicates_(duplicates) {}

  Result<Value> Take() {
    if (!error_.ok()) return error_;
    return std::move(root_);
  }
  bool failed() const { return !error_.ok(); }
  void Fail(const YAML::Mark& mark, std::string_view what) {
    if (!error_.ok()) return;
    error_ = Status(Code::kBadRequest, StrCat("YAML: line ", mark.line + first_line_, ", column ",
                                              mark.column + 1, ": ", what));
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Count(1);
    Add(mark, anchor, Value(nullptr), {1, 0});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (failed()) return;
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) return Fail(mark, "the alias refers to a node that contains it");
    const auto& [value, cost] = it->second;
    Count(cost.nodes);
    aliased_.nodes += cost.nodes;
    aliased_.bytes += cost.bytes;
    if (aliased_.nodes > kMaxAliasedNodes || aliased_.bytes > limits_.bytes) {
      return Fail(mark, "the aliases expand to too much");
    }
    if (frames_.size() + cost.depth > limits_.depth) return Fail(mark, "nested too deeply");
    Add(mark, 0, value, cost);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& raw) override {
    Count(frames_.empty() || !AtKey() ? 1 : 0);
    if (failed()) return;
    const std::string text = IsValidUtf8(raw) ? raw : WithWholeCharacters(raw);
    if (!IsValidUtf8(text)) return Fail(mark, "an escape names no character");
    if (!frames_.empty() && tag == "?" && text == "<<" && AtKey()) {
      frames_.back().key = text;
      frames_.back().merging = true;
      return;
    }
    auto value = Resolve(tag, text);
    if (!value.ok()) return Fail(mark, value.status().message());
    Add(mark, anchor, std::move(*value), {1, text.size()});
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor, Array());
  }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor, Object());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Cost {
    size_t nodes = 0;
    size_t bytes = 0;
    size_t depth = 0;
  };
  struct Frame {
    Value container;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key;
    bool merging = false;       // the pending key is "<<"
    std::vector<Value> merged;  // maps merged in, the first wins
    Cost cost = {1, 0, 1};
  };

  void Count(size_t values) {
    values_ += values;
    if (values_ <= limits_.values || failed()) return;
    error_ =
        Status(Code::kTooLarge, StrCat("YAML: more than the ", limits_.values, " values allowed"));
  }

  bool AtKey() const { return frames_.back().container.is_object() && !frames_.back().key; }

  static Result<Value> Resolve(const std::string& tag, const std::string& text) {
    if (tag == "?") return ResolveYamlScalar(text);
    if (tag == "!") return Text(text);
    auto mismatch = [&] {
      return Status(Code::kBadRequest, StrCat("cannot read ", Quote(text), " as ", tag));
    };
    if (!std::string_view(tag).starts_with(kTagPrefix)) {
      return Status(Code::kBadRequest, StrCat("unknown tag ", Quote(tag)));
    }
    std::string_view type = std::string_view(tag).substr(kTagPrefix.size());
    if (type == "str" || type == "timestamp") return Text(text);
    if (type == "binary") {
      auto bytes = Base64Decode(text);
      if (!bytes || !IsValidUtf8(*bytes)) return mismatch();
      return Text(*bytes);
    }
    SWELL_ASSIGN_OR_RETURN(Value value, ResolveYamlScalar(text));
    bool fits = (type == "int" && (value.is_int64() || value.is_uint64())) ||
                (type == "float" && value.is_number()) || (type == "bool" && value.is_bool()) ||
                (type == "null" && value.is_null());
    if (!fits) return mismatch();
    return value;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Value container) {
    Count(1);
    if (failed()) return;
    if (frames_.size() >= limits_.depth) return Fail(mark, "nested too deeply");
    if (!frames_.empty() && AtKey()) return Fail(mark, "a key must be a string or a number");
    Frame frame;
    frame.container = std::move(container);
    frame.mark = mark;
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void Close() {
    if (failed()) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    // Explicit keys win over merged ones, which is why these come last.
    for (const Value& source : frame.merged) {
      Object& target = frame.container.get_object();
      for (const auto& member : source.get_object()) target.insert(member);
    }
    Add(frame.mark, frame.anchor, std::move(frame.container), frame.cost);
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Value value, Cost cost) {
    if (failed()) return;
    if (anchor != 0) anchors_[anchor] = {value, cost};
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    frame.cost.nodes += cost.nodes;
    frame.cost.bytes += cost.bytes;
    frame.cost.depth = std::max(frame.cost.depth, cost.depth + 1);
    if (Array* array = frame.container.if_array()) {
      array->push_back(std::move(value));
    } else if (!frame.key) {
      AddKey(mark, frame, value);
    } else if (frame.merging) {
      AddMerge(mark, frame, std::move(value));
    } else {
      frame.container.get_object()[*frame.key] = std::move(value);
      frame.key.reset();
    }
  }

  void AddKey(const YAML::Mark& mark, Frame& frame, const Value& key) {
    if (key.is_structured() || key.is_null()) {
      return Fail(mark, "a key must be a string or a number");
    }
    frame.key = key.is_string() ? std::string(View(key.get_string())) : Print(key);
    if (!frame.container.get_object().contains(*frame.key)) return;
    if (duplicates_ == nullptr) return Fail(mark, StrCat("duplicate key ", Quote(*frame.key)));
    constexpr size_t kMost = 100;
    if (duplicates_->size() >= kMost) return;
    duplicates_->push_back(StrCat("line ", mark.line + first_line_, ": key ", Quote(*frame.key),
                                  " already set in map"));
  }

  void AddMerge(const YAML::Mark& mark, Frame& frame, Value value) {
    frame.key.reset();
    frame.merging = false;
    if (value.is_object()) {
      frame.merged.push_back(std::move(value));
      return;
    }
    if (!value.is_array()) return Fail(mark, "\"<<\" merges a map or a list of maps");
    for (Value& item : value.get_array()) {
      if (!item.is_object()) return Fail(mark, "\"<<\" merges a map or a list of maps");
      frame.merged.push_back(std::move(item));
    }
  }

  const ParseLimits& limits_;
  const int first_line_;
  std::vector<std::string>* const duplicates_;
  Value root_;
  Status error_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, std::pair<Value, Cost>> anchors_;
  Cost aliased_;
  size_t values_ = 0;
};

// A document's text, which ends where the builder has failed: yaml-cpp reads on otherwise, and it
// is slow.
class Source final : public std::streambuf {
 public:
  Source(std::string_view text, const Builder& builder) : rest_(text), builder_(builder) {}

 protected:
  int_type underflow() override {
    constexpr size_t kPieceBytes = 4096;
    if (rest_.empty() || builder_.failed()) return traits_type::eof();
    piece_ = rest_.substr(0, kPieceBytes);
    rest_.remove_prefix(piece_.size());
    setg(piece_.data(), piece_.data(), piece_.data() + piece_.size());
    return traits_type::to_int_type(piece_[0]);
  }

 private:
  std::string_view rest_;
  const Builder& builder_;
  std::string piece_;
};

struct Document {
  std::string_view text;
  int first_line = 1;
  bool blank = true;  // comments and directives only
};

bool IsSeparator(std::string_view line) {
  return line.starts_with("---") &&
         (line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
}

// Documents begin at lines that begin with "---", as kubectl cuts them.
std::vector<Document> SplitDocuments(std::string_view text) {
  std::vector<Document> documents;
  Document current;
  size_t begin = 0;
  size_t at = 0;
  int line_number = 1;
  while (at < text.size()) {
    size_t newline = text.find('\n', at);
    size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    std::string_view line = text.substr(at, next - at);
    if (line.ends_with('\n')) line.remove_suffix(1);
    bool separator = IsSeparator(line);
    if (separator && at > begin) {
      current.text = text.substr(begin, at - begin);
      documents.push_back(current);
    }
    if (separator) {
      current = {{}, line_number, true};
      begin = at;
      line.remove_prefix(3);
    }
    std::string_view content = Trim(line);
    current.blank = current.blank && (content.empty() || content[0] == '#' || line[0] == '%');
    at = next;
    ++line_number;
  }
  current.text = text.substr(begin);
  documents.push_back(current);
  return documents;
}

// Whether a tab is in the indentation of a line; the first is 0.
bool BeginsWithTab(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  const size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && text[first] == '\t';
}

Result<Value> ParseDocument(const Document& document,
                            const ParseLimits& limits,
                            std::vector<std::string>* duplicates) {
  Builder builder(limits, document.first_line, duplicates);
  try {
    Source source(document.text, builder);
    std::istream stream(&source);
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder) && !builder.failed()) {
      SWELL_ASSIGN_OR_RETURN(Value value, builder.Take());
      // yaml-cpp would take what follows for a document of its own, even without "---".
      Builder rest(limits, document.first_line);
      if (parser.HandleNextDocument(rest)) {
        return Status(Code::kBadRequest,
                      StrCat("YAML: in the document at line ", document.first_line,
                             ": unexpected content after its end"));
      }
      return value;
    }
  } catch (const YAML::Exception& e) {
    builder.Fail(e.mark, BeginsWithTab(document.text, e.mark.line)
                             ? "the line begins with a tab; indent with spaces"
                             : e.msg);
  } catch (const std::exception& e) {
    builder.Fail(YAML::Mark(), e.what());
  }
  return builder.Take();
}

Result<std::vector<Value>> ParseDocuments(std::string_view text,
                                          const ParseLimits& limits,
                                          std::vector<std::string>* duplicates) {
  if (text.size() > limits.bytes) {
    return Status(Code::kTooLarge, StrCat("YAML: ", text.size(), " bytes are more than the ",
                                          limits.bytes, " allowed"));
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (size_t at = 0, line = 1; at < text.size(); ++line) {
    size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view row = text.substr(at, end - at);
    if (!IsValidUtf8(row) || row.find('\0') != std::string_view::npos) {
      return Status(Code::kBadRequest, StrCat("YAML: line ", line, ": not UTF-8 text"));
    }
    at = end;
  }
  std::vector<Value> values;
  std::string_view trimmed = Trim(text);
  Status json_error;
  if (trimmed.starts_with('{') || trimmed.starts_with('[')) {
    auto value = Parse(text, limits);
    if (value.ok()) {
      values.push_back(std::move(*value));
      return values;
    }
    json_error = value.status();
  }
  for (const Document& document : SplitDocuments(text)) {
    if (document.blank) continue;
    auto value = ParseDocument(document, limits, duplicates);
    if (!value.ok()) {
      const bool as_yaml = json_error.ok() || value.status().code() == Code::kTooLarge;
      return as_yaml ? value.status() : json_error;
    }
    if (!value->is_null()) values.push_back(std::move(*value));
  }
  return values;
}

}  // namespace

Result<std::vector<Value>> ParseYaml(std::string_view text, const ParseLimits& limits) {
  return ParseDocuments(text, limits, nullptr);
}

Result<std::vector<Value>> ParseYamlNoting(std::string_view text,
                                           const ParseLimits& limits,
                                           std::vector<std::string>& duplicates) {
  return ParseDocuments(text, limits, &duplicates);
}

}  // namespace swell::json
