// CEL's syntax: tokens, and a parser by recursive descent whose depth is bounded.
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

constexpr size_t kTextMax = 64 << 10;
constexpr int kDepthMax = 64;

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kBytes, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string text;  // a string's own text, the octets of bytes
  size_t offset = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

Status SyntaxError(size_t offset, std::string_view what) {
  return Status(Code::kInvalid, StrCat(offset, " Syntax error: ", what));
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> Run() {
    std::vector<Token> out;
    while (true) {
      SkipSpace();
      Token token;
      token.offset = at_;
      if (at_ >= text_.size()) {
        out.push_back(std::move(token));
        return out;
      }
      SWELL_RETURN_IF_ERROR(Next(token));
      out.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '/' && Peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        ++at_;
      } else {
        return;
      }
    }
  }

  Status Next(Token& token) {
    const char c = Peek();
    if (const std::optional<size_t> prefix = StringPrefix()) {
      const std::string_view letters = text_.substr(at_, *prefix);
      at_ += *prefix;
      const bool bytes = letters.find_first_of("bB") != std::string_view::npos;
      token.kind = bytes ? Token::Kind::kBytes : Token::Kind::kString;
      return ReadString(token, letters.find_first_of("rR") != std::string_view::npos);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      ReadNumber(token);
      return Status::Ok();
    }
    if (IsLetter(c)) {
      token.kind = Token::Kind::kName;
      while (IsLetter(Peek()) || IsDigit(Peek())) token.text += text_[at_++];
      return Status::Ok();
    }
    token.kind = Token::Kind::kPunctuation;
    for (std::string_view two : {"==", "!=", "<=", ">=", "&&", "||"}) {
      if (!text_.substr(at_).starts_with(two)) continue;
      token.text = two;
      at_ += 2;
      return Status::Ok();
    }
    if (std::string_view("+-*/%<>!?:.,()[]{}").find(c) == std::string_view::npos) {
      return SyntaxError(at_, StrCat("token recognition error at: '", std::string(1, c), "'"));
    }
    token.text = c;
    ++at_;
    return Status::Ok();
  }

  // How many letters stand before the quotation mark of a string (r) or of bytes (b); nullopt:
  // what comes is neither.
  std::optional<size_t> StringPrefix() const {
    for (std::string_view prefix : {"", "r", "b", "br"}) {
      const bool there = ToLower(text_.substr(at_, prefix.size())) == prefix;
      const char quote = Peek(prefix.size());
      if (there && (quote == '"' || quote == '\'')) return prefix.size();
    }
    return std::nullopt;
  }

  void ReadNumber(Token& token) {
    token.kind = Token::Kind::kNumber;
    const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    if (hex) {
      token.text = "0x";
      at_ += 2;
    }
    while (true) {
      const char c = Peek();
      const bool sign = (c == '+' || c == '-') && !hex && !token.text.empty() &&
                        (token.text.back() == 'e' || token.text.back() == 'E');
      // "1.size()" is a method, "1.5" a number.
      const bool point = c == '.' && !hex && IsDigit(Peek(1));
      const bool letter =
          hex ? isxdigit(static_cast<unsigned char>(c)) != 0 : (c == 'e' || c == 'E');
      if (!IsDigit(c) && !sign && !point && !letter) break;
      token.text += c;
      ++at_;
    }
    if (Peek() == 'u' || Peek() == 'U') token.text += text_[at_++];
  }

  Status ReadString(Token& token, bool raw) {
    const char quote = Peek();
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    while (true) {
      if (at_ >= text_.size() || (!is_long && Peek() == '\n')) {
        return SyntaxError(token.offset, "unterminated string");
      }
      if (is_long ? text_.substr(at_).starts_with(triple) : Peek() == quote) {
        at_ += is_long ? 3 : 1;
        return Status::Ok();
      }
      if (Peek() == '\\' && !raw) {
        SWELL_RETURN_IF_ERROR(ReadEscape(token.text, token.kind == Token::Kind::kBytes));
      } else {
        token.text += text_[at_++];
      }
    }
  }

  // In bytes, a number is an octet; in texts, a character.
  Status ReadEscape(std::string& out, bool bytes) {
    const size_t start = at_++;
    const char c = Peek();
    static constexpr std::string_view kNames = "abfnrtv\\?\"'`";
    static constexpr std::string_view kMeant = "\a\b\f\n\r\t\v\\?\"'`";
    if (const size_t i = kNames.find(c); c != '\0' && i != std::string_view::npos) {
      out += kMeant[i];
      ++at_;
      return Status::Ok();
    }
    const bool octal = c >= '0' && c <= '3';
    const bool wide = c == 'u' || c == 'U';
    const size_t digits = octal ? 3 : c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    at_ += octal ? 0 : 1;
    uint32_t code = 0;
    if (digits > 0 && at_ + digits <= text_.size() && !(bytes && wide)) {
      const char* first = text_.data() + at_;
      const auto end = std::from_chars(first, first + digits, code, octal ? 8 : 16);
      if (end.ptr == first + digits && code <= 0x10FFFF) {
        if (bytes) {
          out += static_cast<char>(code);
        } else {
          AppendUtf8(out, code);
        }
        at_ += digits;
        return Status::Ok();
      }
    }
    return SyntaxError(start, "bad escape sequence");
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<CelExprPtr> Run() {
    SWELL_ASSIGN_OR_RETURN(CelExprPtr root, Ternary());
    if (Now().kind != Token::Kind::kEnd) return Unexpected();
    return root;
  }

 private:
  // Counts how deep the parser is for as long as it lives.
  class Depth {
   public:
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };

  const Token& Now() const { return tokens_[at_]; }
  bool Is(std::string_view text) const {
    return Now().kind == Token::Kind::kPunctuation && Now().text == text;
  }
  bool Take(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }
  Status Unexpected() const {
    const bool end = Now().kind == Token::Kind::kEnd;
    return SyntaxError(Now().offset, StrCat("mismatched input '", end ? "<EOF>" : Now().text, "'"));
  }
  Status Expect(std::string_view text) { return Take(text) ? Status::Ok() : Unexpected(); }

  static CelExprPtr Make(CelExpr::Kind kind,
                         std::string text,
                         std::vector<CelExprPtr> args,
                         size_t offset,
                         bool optional = false) {
    auto expr = std::make_shared<CelExpr>();
    expr->kind = kind;
    expr->text = std::move(text);
    expr->args = std::move(args);
    expr->offset = offset;
    expr->optional = optional;
    return expr;
  }

  Result<CelExprPtr> Ternary() {
    const Depth depth(depth_);
    if (depth_ > kDepthMax) return SyntaxError(Now().offset, "expression is nested too deeply");
    SWELL_ASSIGN_OR_RETURN(CelExprPtr condition, Binary(0));
    const size_t offset = Now().offset;
    if (!Take("?")) return condition;
    SWELL_ASSIGN_OR_RETURN(CelExprPtr yes, Binary(0));
    SWELL_RETURN_IF_ERROR(Expect(":"));
    SWELL_ASSIGN_OR_RETURN(CelExprPtr no, Ternary());
    return Make(CelExpr::Kind::kOperator, "?:", {condition, yes, no}, offset);
  }

  // The operators of each rank, the loosest first.
  std::string OperatorOf(size_t rank) const {
    static const std::vector<std::string_view> kRanks[] = {
        {"||"}, {"&&"}, {"<", "<=", ">=", ">", "==", "!="}, {"+", "-"}, {"*", "/", "%"}};
    if (rank == 2 && Now().kind == Token::Kind::kName && Now().text == "in") return "in";
    if (Now().kind != Token::Kind::kPunctuation) return {};
    for (std::string_view op : kRanks[rank]) {
      if (Now().text == op) return std::string(op);
    }
    return {};
  }

  Result<CelExprPtr> Binary(size_t rank) {
    constexpr size_t kRanks = 5;
    if (rank == kRanks) return Unary();
    SWELL_ASSIGN_OR_RETURN(CelExprPtr left, Binary(rank + 1));
    for (std::string op = OperatorOf(rank); !op.empty(); op = OperatorOf(rank)) {
      const size_t offset = Now().offset;
      ++at_;
      SWELL_ASSIGN_OR_RETURN(CelExprPtr right, Binary(rank + 1));
      if (++links_ > kLinksMax) return SyntaxError(offset, "expression is too long");
      left = Make(CelExpr::Kind::kOperator, op, {left, right}, offset);
    }
    return left;
  }

  Result<CelExprPtr> Unary() {
    const Depth depth(depth_);
    if (depth_ > kDepthMax) return SyntaxError(Now().offset, "expression is nested too deeply");
    const size_t offset = Now().offset;
    if (Take("!")) {
      SWELL_ASSIGN_OR_RETURN(CelExprPtr inner, Unary());
      return Make(CelExpr::Kind::kOperator, "!", {inner}, offset);
    }
    if (Take("-")) {
      if (Now().kind == Token::Kind::kNumber) return Members(Number(true));
      SWELL_ASSIGN_OR_RETURN(CelExprPtr inner, Unary());
      return Make(CelExpr::Kind::kOperator, "neg", {inner}, offset);
    }
    return Members(Primary());
  }

  // What follows a value: .field, .method(…), [index].
  Result<CelExprPtr> Members(Result<CelExprPtr> start) {
    if (!start.ok()) return start;
    CelExprPtr value = *start;
    while (true) {
      const size_t offset = Now().offset;
      if (++links_ > kLinksMax) return SyntaxError(offset, "expression is too long");
      if (Take(".")) {
        const bool optional = Take("?");
        if (Now().kind != Token::Kind::kName) return Unexpected();
        std::string name = tokens_[at_++].text;
        if (Is("(") && !optional) {
          SWELL_ASSIGN_OR_RETURN(value, Call(value, std::move(name), offset));
        } else {
          value = Make(CelExpr::Kind::kSelect, std::move(name), {value}, offset, optional);
        }
      } else if (Take("[")) {
        const bool optional = Take("?");
        SWELL_ASSIGN_OR_RETURN(CelExprPtr index, Ternary());
        SWELL_RETURN_IF_ERROR(Expect("]"));
        value = Make(CelExpr::Kind::kIndex, "", {value, index}, offset, optional);
      } else {
        return value;
      }
    }
  }

  // An item of a list, or the key of a map, that is left out where its value is missing.
  static CelExprPtr OptionalIf(bool optional, CelExprPtr item, size_t offset) {
    return optional ? Make(CelExpr::Kind::kOptionalItem, "", {std::move(item)}, offset) : item;
  }

  Result<std::vector<CelExprPtr>> Arguments(std::string_view close) {
    std::vector<CelExprPtr> out;
    while (!Take(close)) {
      if (!out.empty()) SWELL_RETURN_IF_ERROR(Expect(","));
      if (!out.empty() && close != ")" && Take(close)) return out;
      const size_t offset = Now().offset;
      const bool optional = close == "]" && Take("?");
      SWELL_ASSIGN_OR_RETURN(CelExprPtr argument, Ternary());
      out.push_back(OptionalIf(optional, std::move(argument), offset));
    }
    return out;
  }

  // How many variables and expressions each takes; of one name, those with two variables need more.
  struct MacroShape {
    std::string_view name;
    size_t variables, least, most;
  };
  static const MacroShape* ShapeOf(std::string_view name, const std::vector<CelExprPtr>& given) {
    static constexpr MacroShape kShapes[] = {
        {"all", 1, 1, 1},           {"all", 2, 1, 1},          {"exists", 1, 1, 1},
        {"exists", 2, 1, 1},        {"exists_one", 1, 1, 1},   {"exists_one", 2, 1, 1},
        {"existsOne", 2, 1, 1},     {"filter", 1, 1, 1},       {"map", 1, 1, 2},
        {"transformList", 2, 1, 2}, {"transformMap", 2, 1, 2}, {"transformMapEntry", 2, 1, 2},
        {"sortBy", 1, 1, 1},        {"optMap", 1, 1, 1},       {"optFlatMap", 1, 1, 1}};
    for (const MacroShape& shape : kShapes) {
      const bool fits = given.size() >= shape.variables + shape.least &&
                        given.size() <= shape.variables + shape.most;
      if (shape.name == name && fits) return &shape;
    }
    return nullptr;
  }
  static bool IsMacro(std::string_view name, const std::vector<CelExprPtr>& given) {
    return ShapeOf(name, given) != nullptr;
  }

  static Result<CelExprPtr> Macro(const CelExprPtr& target,
                                  std::string name,
                                  std::vector<CelExprPtr> arguments,
                                  size_t offset) {
    const MacroShape& shape = *ShapeOf(name, arguments);
    for (size_t i = 0; i < shape.variables; ++i) {
      if (arguments[i]->kind == CelExpr::Kind::kVariable) continue;
      return Status(Code::kInvalid,
                    StrCat(arguments[i]->offset, " argument must be a simple name"));
    }
    const bool binds = name == "optMap" || name == "optFlatMap";
    auto expr = std::make_shared<CelExpr>();
    expr->kind = binds ? CelExpr::Kind::kBind : CelExpr::Kind::kComprehension;
    expr->text = name == "existsOne" ? "exists_one" : std::move(name);
    expr->variable = arguments[0]->text;
    if (shape.variables > 1) expr->second = arguments[1]->text;
    expr->args = {target};
    expr->args.insert(expr->args.end(), arguments.begin() + static_cast<ptrdiff_t>(shape.variables),
                      arguments.end());
    expr->offset = offset;
    return CelExprPtr(expr);
  }

  // `target` is null for a function.
  Result<CelExprPtr> Call(const CelExprPtr& target, std::string name, size_t offset) {
    SWELL_RETURN_IF_ERROR(Expect("("));
    SWELL_ASSIGN_OR_RETURN(std::vector<CelExprPtr> arguments, Arguments(")"));
    if (target == nullptr && name == "has") {
      if (arguments.size() != 1 || arguments[0]->kind != CelExpr::Kind::kSelect) {
        return Status(Code::kInvalid, StrCat(offset, " invalid argument to has() macro"));
      }
      return Make(CelExpr::Kind::kHas, arguments[0]->text, arguments[0]->args, offset);
    }
    if (target != nullptr && IsMacro(name, arguments)) {
      return Macro(target, std::move(name), std::move(arguments), offset);
    }
    // ip.isCanonical(…): a function of a library that has a name, where no variable has it.
    if (target != nullptr && target->kind == CelExpr::Kind::kVariable) {
      std::string full = StrCat(target->text, ".", name);
      if (IsCelFunction(full, false, arguments.size())) {
        return Make(CelExpr::Kind::kCall, std::move(full), std::move(arguments), offset);
      }
    }
    auto expr = std::make_shared<CelExpr>();
    expr->kind = CelExpr::Kind::kCall;
    expr->text = std::move(name);
    expr->method = target != nullptr;
    if (target != nullptr) expr->args.push_back(target);
    expr->args.insert(expr->args.end(), arguments.begin(), arguments.end());
    expr->offset = offset;
    return CelExprPtr(expr);
  }

  Result<CelExprPtr> Primary() {
    const size_t offset = Now().offset;
    if (Now().kind == Token::Kind::kNumber) return Number(false);
    if (Now().kind == Token::Kind::kString) {
      return Literal({tokens_[at_++].text}, offset);
    }
    if (Now().kind == Token::Kind::kBytes) {
      return Literal(CelOf(CelBytes{tokens_[at_++].text}), offset);
    }
    if (Now().kind == Token::Kind::kName) return Name();
    if (Take("(")) {
      SWELL_ASSIGN_OR_RETURN(CelExprPtr inner, Ternary());
      SWELL_RETURN_IF_ERROR(Expect(")"));
      return inner;
    }
    if (Take("[")) {
      SWELL_ASSIGN_OR_RETURN(std::vector<CelExprPtr> items, Arguments("]"));
      return Make(CelExpr::Kind::kList, "", std::move(items), offset);
    }
    if (Take("{")) return Map(offset);
    return Unexpected();
  }

  Result<CelExprPtr> Map(size_t offset) {
    std::vector<CelExprPtr> members;
    while (!Take("}")) {
      if (!members.empty()) SWELL_RETURN_IF_ERROR(Expect(","));
      if (!members.empty() && Take("}")) break;
      const size_t at = Now().offset;
      const bool optional = Take("?");
      SWELL_ASSIGN_OR_RETURN(CelExprPtr key, Ternary());
      SWELL_RETURN_IF_ERROR(Expect(":"));
      SWELL_ASSIGN_OR_RETURN(CelExprPtr value, Ternary());
      members.push_back(OptionalIf(optional, std::move(key), at));
      members.push_back(std::move(value));
    }
    return Make(CelExpr::Kind::kMap, "", std::move(members), offset);
  }

  Result<CelExprPtr> Name() {
    const size_t offset = Now().offset;
    std::string name = tokens_[at_++].text;
    if (name == "true" || name == "false") return Literal({name == "true"}, offset);
    if (name == "null") return Literal({}, offset);
    if (name == "in") return SyntaxError(offset, "mismatched input 'in'");
    if (Is("(")) return Call(nullptr, std::move(name), offset);
    return Make(CelExpr::Kind::kVariable, std::move(name), {}, offset);
  }

  static CelExprPtr Literal(CelValue value, size_t offset) {
    auto expr = std::make_shared<CelExpr>();
    expr->literal = std::move(value);
    expr->offset = offset;
    return expr;
  }

  Result<CelExprPtr> Number(bool negative) {
    const size_t offset = Now().offset;
    std::string text = StrCat(negative ? "-" : "", tokens_[at_++].text);
    const auto bad = [&](std::string_view type) {
      return SyntaxError(offset, StrCat("invalid ", type, " literal"));
    };
    const bool is_unsigned = text.ends_with('u') || text.ends_with('U');
    if (is_unsigned) text.pop_back();
    const bool hex = text.find("0x") != std::string::npos;
    if (!hex && !is_unsigned && text.find_first_of(".eE") != std::string::npos) {
      double value = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
      if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return bad("double");
      return Literal({value}, offset);
    }
    if (hex) text.erase(text.find("0x"), 2);
    const char* last = text.data() + text.size();
    if (is_unsigned) {
      uint64_t value = 0;
      const auto end = std::from_chars(text.data(), last, value, hex ? 16 : 10);
      if (end.ec != std::errc() || end.ptr != last) return bad("uint");
      return Literal({value}, offset);
    }
    int64_t value = 0;
    const auto end = std::from_chars(text.data(), last, value, hex ? 16 : 10);
    if (end.ec != std::errc() || end.ptr != last) return bad("int");
    return Literal({value}, offset);
  }

  // The longest chain of operators or members: its tree is as deep as the chain is long.
  static constexpr int kLinksMax = 2000;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int links_ = 0;
};

}  // namespace

Result<CelExprPtr> ParseCel(std::string_view text) {
  if (text.size() > kTextMax) return SyntaxError(0, "expression is too long");
  SWELL_ASSIGN_OR_RETURN(std::vector<Token> tokens, Lexer(text).Run());
  return Parser(std::move(tokens)).Run();
}

}  // namespace swell::api
