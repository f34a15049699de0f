#include "kube/api/cel/cel.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/cel/cel_test_util.h"
#include "kube/api/crd/crd_rules.h"

namespace swell::api {
namespace {

using cel_test::Case;
using cel_test::Eval;
using json::J;

TEST(Cel, Operators) {
  const Case kCases[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 / 2", "3"},
      {"-7 % 3", "-1"},
      {"1.5 + 1.0", "2.5"},
      {"2 < 10 && '2' > '10'", "true"},
      {"1 == 1.0", "true"},
      {"'a' + \"b\" + r'\\n'", "ab\\n"},
      {"'\\u00e9'.size()", "1"},
      {"[1, 2] + [3]", "[1 2 3]"},
      {"2 in [1, 2]", "true"},
      {"'k' in {'k': 1}", "true"},
      {"{'a': 1}['a']", "1"},
      {"true ? 'yes' : 'no'", "yes"},
      {"!true || false", "false"},
      {"1 / 0 == 1", "division by zero"},
      {"9223372036854775807 + 1", "integer overflow"},
      {"'a' + 1", "no such overload"},
      {"[1][1]", "index out of bounds: 1"},
      {"0x1F", "31"},
      {"type(1) == int && type('a') == string", "true"},
      {"null == null", "true"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(Cel, ErrorsOnTheSideThatDoesNotMatterAreBorne) {
  EXPECT_EQ(Eval("1 / 0 == 1 || true"), "true");
  EXPECT_EQ(Eval("1 / 0 == 1 && false"), "false");
  EXPECT_EQ(Eval("1 / 0 == 1 && true"), "division by zero");
  EXPECT_EQ(Eval("[0, 1].exists(i, 1 / i == 1)"), "true");
}

TEST(Cel, FieldsAndMacros) {
  const char* self = R"({"name": "web", "replicas": 3, "in-use": true, "labels": {"a": "x"},
                         "ports": [{"n": "http", "p": 80}, {"n": "https", "p": 443}]})";
  const Case kCases[] = {
      {"self.name", "web"},
      {"has(self.name) && !has(self.none)", "true"},
      {"self.none", "no such key: none"},
      {"self.in__dash__use", "true"},
      {"self.labels.a == self.labels['a']", "true"},
      {"self.labels.all(k, k.size() == 1)", "true"},
      {"self.ports.all(p, p.p > 0 && p.p < 65536)", "true"},
      {"self.ports.exists(p, p.n == 'https')", "true"},
      {"self.ports.exists_one(p, p.p > 0)", "false"},
      {"self.ports.map(p, p.p)", "[80 443]"},
      {"self.ports.map(p, p.p > 100, p.n)", "[https]"},
      {"self.ports.filter(p, p.p > 100).size()", "1"},
      {"self.ports.map(p, p.p).sum()", "523"},
      {"self.ports.all(p, self.ports.exists(q, q.p == p.p))", "true"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text, self), c.result) << c.text;
}

TEST(Cel, APatternTakesNoLongerThanItCosts) {
  // Backtracking would try more ways than there are atoms.
  EXPECT_EQ(Eval(StrCat("'", std::string(3000, 'a'), "c'.matches('(a*a*)*b|c$')")), "true");
  EXPECT_EQ(Eval(StrCat("'", std::string(3000, 'a'), "'.matches('a{400}b')")), "false");
  EXPECT_EQ(Eval("self.matches('a{900}b')", StrCat("\"", std::string(90'000, 'a'), "\"")),
            "call cost exceeds limit, no further evaluation");
  EXPECT_EQ(Eval("'a'.matches('((a{100}){100}){100}')"),
            "error parsing regexp: \"((a{100}){100}){100}\"");
}

TEST(Cel, Functions) {
  const Case kCases[] = {
      {"'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.contains('ell')", "true"},
      {"'v1.2'.matches('^v[0-9]+')", "true"},
      {"'a,b,c'.split(',')", "[a b c]"},
      {"['a', 'b'].join('-')", "a-b"},
      {"'hello'.substring(1, 3)", "el"},
      {"'hello'.substring(9)", "index out of range: 9"},
      {"'hello'.charAt(4) + 'x'.upperAscii() + ' y '.trim()", "oXy"},
      {"'hello'.indexOf('l') + 'hello'.lastIndexOf('l')", "5"},
      {"'aaa'.replace('a', 'b', 2)", "bba"},
      {"[3, 1, 2].max() - [3, 1, 2].min()", "2"},
      {"[1, 2, 2].isSorted() && ![2, 1].isSorted()", "true"},
      {"int('42') + int(1.9)", "43"},
      {"string(1.5) + string(true)", "1.5true"},
      {"double('2.5')", "2.5"},
      {"int('x')", "type conversion error: \"x\""},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(Cel, DurationsAndAddresses) {
  const Case kCases[] = {
      {"duration('1h30m') > duration('1h') && duration('60s') == duration('1m')", "true"},
      {"duration('1h') - duration('90m') < duration('0')", "true"},
      {"string(duration('1h') + duration('500ms'))", "3600.5s"},
      {"string(duration('-500ms'))", "-0.5s"},
      {"duration('90m').getHours() + duration('90m').getMinutes()", "91"},
      {"duration('1.5s').getSeconds() + duration('1.5s').getMilliseconds()", "1501"},
      {"duration('3d')", "type conversion error: \"3d\""},
      {"duration('90')", "type conversion error: \"90\""},
      {"duration('1h') < 3", "no such overload"},
      {"duration('876000h') + duration('876000h') + duration('876000h')", "integer overflow"},
      {"isIP('10.0.0.1') && isIP('fd00::1') && !isIP('10.0.0') && !isIP('10.0.0.0/8')", "true"},
      {"isCIDR('10.0.0.0/8') && isCIDR('fd00::/8') && !isCIDR('10.0.0.1')", "true"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(Cel, WrongExpressionsAreShownWithTheirPlace) {
  EXPECT_EQ(Eval("self.a >"),
            "ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'\n | self.a >\n | "
            "........^");
  EXPECT_EQ(Eval("slef.a"),
            "ERROR: <input>:1:1: undeclared reference to 'slef' (in container '')\n | slef.a\n | "
            "^");
  EXPECT_EQ(Eval("true &&\n  foo(1)"),
            "ERROR: <input>:2:3: undeclared reference to 'foo' (in container '')\n |   foo(1)\n | "
            "..^");
  for (const char* text : {"", "'abc", "1 2", "a ? b", "[1", "{1}", "self.", "has(1)",
                           "[1].all(1, true)", "#", "'\\q'"}) {
    EXPECT_NE(Eval(text).find("ERROR: <input>:1:"), std::string::npos) << text;
  }
}

TEST(Cel, WhatItCostsIsBounded) {
  EXPECT_NE(Eval(std::string(10'000, '(')).find("nested too deeply"), std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_NE(Eval(sum).find("too long"), std::string::npos);
  std::string list = "[1";
  for (int i = 0; i < 200; ++i) list += ",1";
  const std::string cubed =
      StrCat(list, "].all(a, ", list, "].all(b, ", list, "].all(c, a + b == c + 1)))");
  EXPECT_EQ(Eval(cubed), "call cost exceeds limit, no further evaluation");
}

// --- Rules of schemas ----------------------------------------------------------------------------

std::string Texts(const std::vector<FieldError>& errors) {
  std::string out;
  for (const FieldError& e : errors) {
    out += StrCat(out.empty() ? "" : "\n", e.field, ": ", e.message);
  }
  return out;
}

constexpr const char* kSchema = R"j({"type": "object", "properties": {"spec": {
    "type": "object",
    "x-kubernetes-validations": [
      {"rule": "self.min <= self.max", "message": "min is above max"},
      {"rule": "self.min >= 0"},
      {"rule": "!has(self.mode) || self.mode == oldSelf.mode", "reason": "FieldValueForbidden",
       "fieldPath": ".mode", "message": "stays"},
      {"rule": "self.max < 100", "messageExpression": "'at most 99, not ' + string(self.max)"}],
    "properties": {"min": {"type": "integer"}, "max": {"type": "integer"},
      "mode": {"type": "string"},
      "parts": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object",
          "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size"}],
          "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}}})j";

std::string CheckRules(std::string_view object, std::string_view old = {}) {
  std::vector<FieldError> errors;
  const json::Value schema = J(kSchema);
  const auto rules = ReadCrdRules(schema, "schema", errors);
  EXPECT_EQ(Texts(errors), "");
  const json::Value now = J(object);
  const json::Value before = old.empty() ? json::Value() : J(old);
  return Texts(CheckCrdRules(*rules, now, old.empty() ? nullptr : &before));
}

TEST(Cel, Quantities) {
  const Case kCases[] = {
      {"quantity('1Gi').compareTo(quantity('1024Mi'))", "0"},
      {"quantity('1500m').isGreaterThan(quantity('1'))", "true"},
      {"quantity('1k').isLessThan(quantity('1Ki'))", "true"},
      {"quantity('1.5').add(quantity('500m')).asInteger()", "2"},
      {"quantity('1.5').isInteger()", "false"},
      {"quantity('1.5').asInteger()", "cannot convert value to integer"},
      {"quantity('1.5').asApproximateFloat() > 1.4", "true"},
      {"quantity('-2').sign()", "-1"},
      {"quantity('2') == quantity('2000m')", "true"},
      {"quantity('2') == 2", "false"},
      {"quantity('2') < quantity('3')", "no such overload"},
      {"quantity('two')", "invalid quantity: \"two\""},
      {"isQuantity('two') || isQuantity('2Mi')", "true"},
      {"quantity(2)", "no such overload"},
      {"quantity('2').add('1')", "no such overload"},
      {"type(quantity('2'))", "kubernetes.Quantity"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CrdRules, ObjectsAreHeldAgainstThem) {
  EXPECT_EQ(CheckRules(R"j({"spec": {"min": 1, "max": 2}})j"), "");
  EXPECT_EQ(CheckRules(R"j({"spec": {"min": -1, "max": -2}})j"),
            "spec: Invalid value: \"object\": min is above max\n"
            "spec: Invalid value: \"object\": failed rule: self.min >= 0");
  EXPECT_EQ(CheckRules(R"j({"spec": {"min": 1, "max": 200}})j"),
            "spec: Invalid value: \"object\": at most 99, not 200");
  EXPECT_EQ(CheckRules(R"j({"spec": {"max": 2}})j"),
            "spec: Invalid value: \"object\": no such key: min evaluating rule: min is above max\n"
            "spec: Invalid value: \"object\": no such key: min evaluating rule: self.min >= 0");
}

TEST(CrdRules, ChangesAreHeldAgainstThem) {
  const char* old = R"j({"spec": {"min": 1, "max": 2, "mode": "a",
                        "parts": [{"name": "x", "size": 5}, {"name": "y", "size": 1}]}})j";
  EXPECT_EQ(CheckRules(R"j({"spec": {"min": 1, "max": 2, "mode": "b"}})j", old),
            "spec.mode: Forbidden: stays");
  EXPECT_EQ(CheckRules(R"j({"spec": {"min": 1, "max": 2, "parts": [
                           {"name": "y", "size": 2}, {"name": "x", "size": 4},
                           {"name": "z", "size": 0}]}})j",
                       old),
            "spec.parts[1]: Invalid value: \"object\": failed rule: self.size >= oldSelf.size");
}

TEST(CrdRules, DefinitionsAreChecked) {
  const Case kCases[] = {
      {R"j({"rule": ""})j", "rule: Required value: rule is not specified"},
      {R"j({"rule": "self.none > 1"})j", "undefined field 'none'\n | self.none > 1\n | ....^"},
      {R"j({"rule": "self.list.all(i, i.none)"})j", "undefined field 'none'"},
      {R"j({"rule": "self.list.all(i, i.a == 1)"})j", ""},
      {R"j({"rule": "self.size"})j", "cel expression must evaluate to a bool"},
      {R"j({"rule": "1 + 1"})j", "cel expression must evaluate to a bool"},
      {R"j({"rule": "self.size >"})j", "compilation failed: ERROR: <input>:1:12: Syntax error"},
      {R"j({"rule": "true", "message": "a\nb"})j", "message must not contain line breaks"},
      {R"j({"rule": "true", "messageExpression": "1"})j",
       "messageExpression must evaluate to a string"},
      {R"j({"rule": "true", "reason": "Because"})j", "reason: Unsupported value: \"Because\""},
      {R"j({"rule": "self.metadata.name.size() < 9 && self.kind != ''"})j", ""},
  };
  for (const Case& c : kCases) {
    const json::Value schema =
        J(StrCat(R"j({"type": "object", "x-kubernetes-validations": [)j", c.text,
                 R"j(], "properties": {"size": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "object",
                 "properties": {"a": {"type": "integer"}}}}}})j"));
    std::vector<FieldError> errors;
    (void)ReadCrdRules(schema, "s", errors);
    const std::string got = Texts(errors);
    EXPECT_TRUE(*c.result == '\0' ? got.empty() : got.find(c.result) != std::string::npos)
        << c.text << " says: " << got;
  }
}

TEST(CrdRules, OldItemsOfAListThatHasNoKeysCannotBeAskedFor) {
  std::vector<FieldError> errors;
  const json::Value schema = J(R"j({"type": "object", "properties": {"a": {"type": "array",
      "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}})j");
  (void)ReadCrdRules(schema, "s", errors);
  EXPECT_NE(Texts(errors).find("oldSelf cannot be used on the uncorrelatable portion of the schema "
                               "within s.properties[a]"),
            std::string::npos);
}

}  // namespace
}  // namespace swell::api
