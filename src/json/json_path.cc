#include "json/json_path.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace swell::json {

using Values = std::vector<const Value*>;

struct JsonPath::Step {
  enum class Kind { kField, kWildcard, kRecursive, kIndices, kSlice, kFilter };
  Kind kind = Kind::kField;
  std::string field;
  std::vector<int64_t> indices;
  std::optional<int64_t> from, to;
  // Filter: @left OP right, where right is a literal or another path of the element.
  std::vector<Step> left;
  std::string op;  // empty: left exists
  Value literal;
  std::vector<Step> right;
  bool right_is_path = false;
};

struct JsonPath::Node {
  enum class Kind { kText, kExpression, kRange };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<Step> steps;
  bool from_root = false;  // $: the document, else the element of the innermost range
  std::vector<Node> body;
};

namespace {

using Step = JsonPath::Step;
using Node = JsonPath::Node;

constexpr int kDepthMax = 32;

// Recursive descent over the template's text.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Node>> Template() {
    std::vector<Node> nodes;
    SWELL_RETURN_IF_ERROR(Nodes(nodes, false, 0));
    return nodes;
  }

 private:
  Status Wrong(std::string_view why) const {
    return Status(Code::kBadRequest,
                  StrCat("jsonpath ", Quote(text_), ", at character ", at_ + 1, ": ", why));
  }
  bool End() const { return at_ >= text_.size(); }
  char Peek() const { return End() ? '\0' : text_[at_]; }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void Spaces() {
    while (Peek() == ' ') ++at_;
  }

  Status Nodes(std::vector<Node>& nodes, bool in_range, int depth) {
    if (depth > kDepthMax) return Wrong("nested too deeply");
    while (!End()) {
      if (Peek() != '{') {
        Node text;
        while (!End() && Peek() != '{') text.text += text_[at_++];
        nodes.push_back(std::move(text));
        continue;
      }
      ++at_;
      Spaces();
      if (Take("end")) {
        Spaces();
        if (!Take("}")) return Wrong("expected } after end");
        if (!in_range) return Wrong("end without range");
        return Status::Ok();
      }
      if (Take("range ")) {
        Node range;
        range.kind = Node::Kind::kRange;
        Spaces();
        SWELL_RETURN_IF_ERROR(Expression(range, depth));
        SWELL_RETURN_IF_ERROR(Nodes(range.body, true, depth + 1));
        nodes.push_back(std::move(range));
        continue;
      }
      SWELL_RETURN_IF_ERROR(Braced(nodes, depth));
    }
    return in_range ? Wrong("range without end") : Status::Ok();
  }

  // One {…}: texts and expressions, until the brace closes.
  Status Braced(std::vector<Node>& nodes, int depth) {
    while (!Take("}")) {
      if (End()) return Wrong("} is missing");
      Node node;
      if (Peek() == '"' || Peek() == '\'') {
        SWELL_ASSIGN_OR_RETURN(node.text, Quoted());
      } else {
        node.kind = Node::Kind::kExpression;
        SWELL_RETURN_IF_ERROR(Path(node.steps, &node.from_root, depth));
      }
      nodes.push_back(std::move(node));
      Spaces();
    }
    return Status::Ok();
  }

  Status Expression(Node& node, int depth) {
    SWELL_RETURN_IF_ERROR(Path(node.steps, &node.from_root, depth));
    Spaces();
    return Take("}") ? Status::Ok() : Wrong("expected }");
  }

  Result<std::string> Quoted() {
    char quote = text_[at_++];
    std::string out;
    while (!End() && Peek() != quote) {
      char c = text_[at_++];
      if (c == '\\' && !End()) {
        char escaped = text_[at_++];
        c = escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
      }
      out += c;
    }
    if (End()) return Wrong("the quote is not closed");
    ++at_;
    return out;
  }

  Status Path(std::vector<Step>& steps, bool* from_root, int depth) {
    if (depth > kDepthMax) return Wrong("nested too deeply");
    size_t begin = at_;
    if (Take("$")) {
      *from_root = true;
    } else {
      Take("@");
    }
    while (!End()) {
      if (Take("..")) {
        steps.push_back({.kind = Step::Kind::kRecursive});
        if (Peek() == '[') continue;
        SWELL_RETURN_IF_ERROR(Field(steps));
      } else if (Take(".")) {
        if (Peek() == '[' || Peek() == '}' || Peek() == ' ' || End()) continue;
        SWELL_RETURN_IF_ERROR(Field(steps));
      } else if (Take("[")) {
        SWELL_RETURN_IF_ERROR(Bracket(steps, depth));
      } else if (at_ == begin && FieldCharacter(Peek())) {
        SWELL_RETURN_IF_ERROR(Field(steps));
      } else {
        break;
      }
    }
    return at_ == begin ? Wrong("expected a path like .metadata.name") : Status::Ok();
  }

  static bool FieldCharacter(char c) {
    return c != '\0' && std::string_view(".[]{}()=!<>\"' ,|&").find(c) == std::string_view::npos;
  }

  Status Field(std::vector<Step>& steps) {
    if (Take("*")) {
      steps.push_back({.kind = Step::Kind::kWildcard});
      return Status::Ok();
    }
    Step step;
    while (!End() && (FieldCharacter(Peek()) || Peek() == '\\')) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      step.field += text_[at_++];
    }
    if (step.field.empty()) return Wrong("expected a field name");
    steps.push_back(std::move(step));
    return Status::Ok();
  }

  std::optional<int64_t> Number() {
    size_t begin = at_;
    if (Peek() == '-') ++at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    auto number = ParseInt(text_.substr(begin, at_ - begin));
    if (!number) at_ = begin;
    return number;
  }

  Status Bracket(std::vector<Step>& steps, int depth) {
    Step step;
    Spaces();
    if (Take("*")) {
      step.kind = Step::Kind::kWildcard;
    } else if (Take("?(")) {
      step.kind = Step::Kind::kFilter;
      SWELL_RETURN_IF_ERROR(Filter(step, depth));
    } else if (Peek() == '"' || Peek() == '\'') {
      SWELL_ASSIGN_OR_RETURN(step.field, Quoted());
    } else {
      std::optional<int64_t> number = Number();
      if (Take(":")) {
        step.kind = Step::Kind::kSlice;
        step.from = number;
        step.to = Number();
      } else {
        step.kind = Step::Kind::kIndices;
        if (!number) return Wrong("expected an index, *, a quoted name or a filter");
        step.indices.push_back(*number);
        while (Take(",")) {
          Spaces();
          auto more = Number();
          if (!more) return Wrong("expected an index");
          step.indices.push_back(*more);
        }
      }
    }
    Spaces();
    if (!Take("]")) return Wrong("expected ]");
    steps.push_back(std::move(step));
    return Status::Ok();
  }

  Status Filter(Step& step, int depth) {
    bool ignored = false;
    Spaces();
    SWELL_RETURN_IF_ERROR(Path(step.left, &ignored, depth + 1));
    Spaces();
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (Take(op)) {
        step.op = op;
        break;
      }
    }
    Spaces();
    if (!step.op.empty()) SWELL_RETURN_IF_ERROR(Operand(step, depth));
    Spaces();
    return Take(")") ? Status::Ok() : Wrong("expected )");
  }

  Status Operand(Step& step, int depth) {
    if (Peek() == '"' || Peek() == '\'') {
      SWELL_ASSIGN_OR_RETURN(std::string text, Quoted());
      step.literal = Value(boost::json::string_view(text.data(), text.size()));
    } else if (Peek() == '@' || Peek() == '$' || Peek() == '.') {
      step.right_is_path = true;
      bool ignored = false;
      return Path(step.right, &ignored, depth + 1);
    } else {
      size_t begin = at_;
      while (!End() && Peek() != ')' && Peek() != ' ') ++at_;
      auto parsed = Parse(text_.substr(begin, at_ - begin));
      if (!parsed.ok()) return Wrong("expected a quoted text, a number, true or false");
      step.literal = std::move(*parsed);
    }
    return Status::Ok();
  }

  std::string_view text_;
  size_t at_ = 0;
};

void Children(const Value& value, Values& out) {
  if (value.is_array()) {
    for (const Value& item : value.get_array()) out.push_back(&item);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) out.push_back(&member.value());
  }
}

bool Compare(const Value& a, const std::string& op, const Value& b) {
  if (op == "==") return Equal(a, b);
  if (op == "!=") return !Equal(a, b);
  int order = 0;
  if (a.is_number() && b.is_number()) {
    double x = a.to_number<double>();
    double y = b.to_number<double>();
    order = x < y ? -1 : x > y;
  } else if (a.is_string() && b.is_string()) {
    order = View(a.get_string()).compare(View(b.get_string()));
  } else {
    return false;
  }
  if (op == "<") return order < 0;
  if (op == ">") return order > 0;
  return op == "<=" ? order <= 0 : order >= 0;
}

// Follows steps through a document; looks at `visits` values at most.
class Walker {
 public:
  explicit Walker(size_t visits) : visits_(visits) {}

  Values Walk(const Value& root, const std::vector<Step>& steps) {
    Values now{&root};
    for (const Step& step : steps) {
      Values next;
      for (const Value* value : now) {
        if (visits_ == 0) break;
        --visits_;
        TakeStep(*value, step, next);
      }
      now = std::move(next);
    }
    return now;
  }

 private:
  void Descendants(const Value& value, Values& out) {
    if (visits_ == 0) return;
    --visits_;
    out.push_back(&value);
    Values children;
    Children(value, children);
    for (const Value* child : children) Descendants(*child, out);
  }

  bool Passes(const Value& element, const Step& filter) {
    Values left = Walk(element, filter.left);
    if (left.empty()) return false;
    if (filter.op.empty()) return true;
    if (!filter.right_is_path) return Compare(*left[0], filter.op, filter.literal);
    Values right = Walk(element, filter.right);
    return !right.empty() && Compare(*left[0], filter.op, *right[0]);
  }

  void TakeStep(const Value& value, const Step& step, Values& out) {
    switch (step.kind) {
      case Step::Kind::kField:
        if (const Value* found = Find(value, {step.field})) out.push_back(found);
        return;
      case Step::Kind::kWildcard:
        return Children(value, out);
      case Step::Kind::kRecursive:
        return Descendants(value, out);
      case Step::Kind::kFilter: {
        Values children;
        Children(value, children);
        for (const Value* child : children) {
          if (Passes(*child, step)) out.push_back(child);
        }
        return;
      }
      case Step::Kind::kIndices:
      case Step::Kind::kSlice:
        break;
    }
    if (!value.is_array()) return;
    const Array& array = value.get_array();
    auto size = static_cast<int64_t>(array.size());
    auto place = [size](int64_t index) { return index < 0 ? index + size : index; };
    if (step.kind == Step::Kind::kIndices) {
      for (int64_t index : step.indices) {
        int64_t at = place(index);
        if (at >= 0 && at < size) out.push_back(&array[static_cast<size_t>(at)]);
      }
      return;
    }
    int64_t from = std::clamp<int64_t>(place(step.from.value_or(0)), 0, size);
    int64_t to = std::clamp<int64_t>(step.to ? place(*step.to) : size, 0, size);
    for (int64_t i = from; i < to; ++i) out.push_back(&array[static_cast<size_t>(i)]);
  }

  size_t visits_;
};

void PrintNodes(const std::vector<Node>& nodes,
                const Value& root,
                const Value& current,
                std::string& out) {
  for (const Node& node : nodes) {
    if (node.kind == Node::Kind::kText) {
      out += node.text;
      continue;
    }
    Values found = Walker(SIZE_MAX).Walk(node.from_root ? root : current, node.steps);
    if (node.kind == Node::Kind::kRange) {
      for (const Value* value : found) PrintNodes(node.body, root, *value, out);
      continue;
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (i > 0) out += ' ';
      out += PlainText(*found[i]);
    }
  }
}

}  // namespace

JsonPath::JsonPath() = default;
JsonPath::~JsonPath() = default;
JsonPath::JsonPath(JsonPath&&) noexcept = default;
JsonPath& JsonPath::operator=(JsonPath&&) noexcept = default;

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  std::string braced(text);
  if (text.find('{') == std::string_view::npos) braced = StrCat("{", text, "}");
  SWELL_ASSIGN_OR_RETURN(std::vector<Node> nodes, Parser(braced).Template());
  JsonPath path;
  path.nodes_ = std::move(nodes);
  return path;
}

std::string JsonPath::Print(const Value& root) const {
  std::string out;
  PrintNodes(nodes_, root, root, out);
  return out;
}

std::vector<const Value*> JsonPath::Find(const Value& root, size_t visits) const {
  for (const Node& node : nodes_) {
    if (node.kind == Node::Kind::kExpression) return Walker(visits).Walk(root, node.steps);
  }
  return {};
}

std::string PlainText(const Value& value) {
  if (value.is_string()) return std::string(View(value.get_string()));
  return json::Print(value);
}

}  // namespace swell::json
