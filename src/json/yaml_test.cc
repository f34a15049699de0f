// Tests of reading and printing YAML.
#include "json/yaml.h"

#include <gtest/gtest.h>

#include "json/duplicates.h"
#include "json/json_test_util.h"

namespace swell::json {
namespace {

std::string ToJson(std::string_view yaml) {
  auto values = ParseYaml(yaml);
  if (!values.ok()) return values.status().message();
  std::string out;
  for (const Value& value : *values) out += (out.empty() ? "" : "\n") + Print(value);
  return out;
}

TEST(Yaml, NotesMembersNamedTwiceAndKeepsTheLast) {
  std::vector<std::string> duplicates;
  const auto values = ParseYamlNoting("a: 1\nb: {c: 1, c: 2}\na: 3\n", {}, duplicates);
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  ASSERT_EQ(values->size(), 1u);
  EXPECT_TRUE(Equal((*values)[0], *Parse(R"({"a":3,"b":{"c":2}})"))) << Print((*values)[0]);
  EXPECT_EQ(duplicates, (std::vector<std::string>{"line 2: key \"c\" already set in map",
                                                  "line 3: key \"a\" already set in map"}));
}

TEST(ParseYaml, ScalarsMeanWhatKubernetesReads) {
  const std::pair<std::string, std::string> cases[] = {
      {"yes", "true"},
      {"On", "true"},
      {"y", "true"},
      {"off", "false"},
      {"NO", "false"},
      {"yEs", "\"yEs\""},
      {"~", "null"},
      {"Null", "null"},
      {"0644", "420"},
      {"0o644", "420"},
      {"08", "8"},
      {"0x1F", "31"},
      {"0b101", "5"},
      {"1_000", "1000"},
      {"+5", "5"},
      {"-7", "-7"},
      {"1e3", "1000"},
      {".5", "0.5"},
      {"5.", "5"},
      {"1.0", "1"},
      {"1.10", "1.1"},
      {"'1'", "\"1\""},
      {"\"yes\"", "\"yes\""},
      {"!!str 1", "\"1\""},
      {"!!int 0x10", "16"},
      {"!!float 3", "3"},
      {"2026-01-01", "\"2026-01-01\""},
      {"1.2.3", "\"1.2.3\""},
      {"4Gi", "\"4Gi\""},
      {"[]", "[]"},
      {"100m", "\"100m\""},
      {"18446744073709551615", "18446744073709551615"},
      {"12:30", "\"12:30\""},
      {"-9223372036854775808", "-9223372036854775808"},
      {"_1", "\"_1\""},
      {"0x", "\"0x\""},
      {"18446744073709551616", "18446744073709551616"},
      {"-0", "0"},
      {"1__0", "10"},
      {"!!binary aGk=", "\"hi\""}};
  for (const auto& [yaml, json] : cases) {
    EXPECT_EQ(ToJson("a: " + yaml), "{\"a\":" + json + "}") << yaml;
  }
}

TEST(ParseYaml, ManifestsWithSeveralDocuments) {
  EXPECT_EQ(ToJson("# first\napiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
                   "    args: [\"-c\", 'x y']\n  - {name: b}\n---\n# nothing\n---\nkind: Job\n"
                   "text: |\n  one\n   two\nfold: >-\n  a\n  b\n...\n"),
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"name\":\"a\","
            "\"args\":[\"-c\",\"x y\"]},{\"name\":\"b\"}]}}\n"
            "{\"kind\":\"Job\",\"text\":\"one\\n two\\n\",\"fold\":\"a b\"}");
  EXPECT_EQ(ToJson(""), "");
  EXPECT_EQ(ToJson("---\n---\n# x\n"), "");
  EXPECT_EQ(ToJson("--- {a: 1}\n--- # c\nb: 2\r\n"), "{\"a\":1}\n{\"b\":2}");
  EXPECT_EQ(ToJson("%YAML 1.2\n---\na: 1\n"), "{\"a\":1}");
  EXPECT_EQ(ToJson("\xef\xbb\xbf"
                   "a: 1"),
            "{\"a\":1}");
  EXPECT_EQ(ToJson("{\"a\": 1,\n\t\"b\": [2]}"), "{\"a\":1,\"b\":[2]}");
  EXPECT_EQ(ToJson("{a: 1, b: [x]}"), "{\"a\":1,\"b\":[\"x\"]}");
}

TEST(ParseYaml, KeysAnchorsAndMerges) {
  EXPECT_EQ(ToJson("1: a\non: b\n\"2\": c\n1.5: d\n"),
            "{\"1\":\"a\",\"true\":\"b\",\"2\":\"c\",\"1.5\":\"d\"}");
  EXPECT_EQ(ToJson("base: &b {x: 1, z: 2}\nuse:\n  <<: *b\n  z: 3\ncopy: *b\n"),
            "{\"base\":{\"x\":1,\"z\":2},\"use\":{\"z\":3,\"x\":1},\"copy\":{\"x\":1,\"z\":2}}");
  EXPECT_EQ(ToJson("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}\n"),
            "{\"a\":{\"x\":1},\"b\":{\"x\":2,\"z\":3},\"c\":{\"x\":1,\"z\":3}}");
}

TEST(ParseYaml, ErrorsSayWhere) {
  const std::pair<std::string, std::string> cases[] = {
      {"a: 1\na: 2\n", "line 2, column 1: duplicate key \"a\""},
      {"x: 1\n---\na:\n  b: 1\n  b: 2\n", "line 5, column 3: duplicate key \"b\""},
      {"a: [1, 2\nb: 3\n", "line "},
      {"a: b\n}\n", "YAML"},
      {"a: b\n- c\n", "YAML"},
      {"a: *nope\n", "line 1"},
      {"a: &x [*x]\n", "the alias refers to a node that contains it"},
      {"? [1, 2]\n: 3\n", "a key must be a string or a number"},
      {"~: 3\n", "a key must be a string or a number"},
      {"a: .inf\n", "cannot be said in JSON"},
      {"a: !foo bar\n", "unknown tag"},
      {"a: !!int x\n", "cannot read \"x\""},
      {"a: \"\xff\"\n", "line 1: not UTF-8"},
      {"<<: 3\n", "merges a map"},
      {"\ta: 1\n", "line 1"},
      {"a:\n  b: 1\n  \tc: 2\n", "line 3, column 3: the line begins with a tab"},
      {"{\"a\": 1,, }", "line 1, column 9"},
      {"a: " + std::string(80, '[') + std::string(80, ']'), "nested too deeply"},
      {std::string(2000, '['), "nested too deeply"},
  };
  for (const auto& [yaml, message] : cases) {
    auto values = ParseYaml(yaml);
    ASSERT_FALSE(values.ok()) << yaml << ": " << ToJson(yaml);
    EXPECT_EQ(values.status().code(), Code::kBadRequest);
    EXPECT_NE(values.status().message().find(message), std::string::npos)
        << yaml << "\n"
        << values.status().message();
  }
}

TEST(ParseYaml, CountsValuesThoseOfAliasesToo) {
  const ParseLimits limits{.values = 8};
  EXPECT_TRUE(ParseYaml("{a: &x [1, 2], b: *x}", limits).ok());
  for (const char* text : {"{a: &x [1, 2, 3], b: *x}", "- 1\n- 2\n- 3\n- 4\n- \n- 6\n- 7\n- 8\n"}) {
    EXPECT_EQ(ParseYaml(text, limits).status().ToString(),
              "RequestEntityTooLarge: YAML: more than the 8 values allowed")
        << text;
  }
}

TEST(ParseYaml, ReadsNoFurtherThanItsLimits) {
  std::string text = "a:\n";
  for (int i = 0; i < 100'000; ++i) text += "- 0\n";
  text += "{ this is not YAML";
  EXPECT_EQ(ParseYaml(text, {.values = 100}).status().code(), Code::kTooLarge);
}

TEST(ParseYaml, AliasBombsAreRefused) {
  std::string bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 12; ++i) {
    std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k ? ", " : "") + last;
    bomb += "]\n";
  }
  auto values = ParseYaml(bomb);
  ASSERT_FALSE(values.ok());
  EXPECT_NE(values.status().message().find("expand to too much"), std::string::npos);
}

TEST(PrintYaml, LooksLikeKubectl) {
  auto value = Parse(
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","creationTimestamp":)"
      R"("2026-01-01T00:00:00Z","labels":{},"annotations":{"a":"true","b":"1","c":"x: y",)"
      R"("d":"","e":"it's","f":"- x","g":"#x","h":"a\tb","i":"@x","j":"1e3","k":"on"}},)"
      R"("spec":{"containers":[{"args":["-c","a\nb\n"],"image":"x:1"},{"name":null}],"l":[[1,2],[]],)"
      R"("n":1.5,"t":"a\nb"}})");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(
      PrintYaml(*value),
      "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    a: \"true\"\n    b: \"1\"\n"
      "    c: 'x: y'\n    d: \"\"\n    e: it's\n    f: '- x'\n    g: '#x'\n    h: \"a\\tb\"\n"
      "    i: '@x'\n    j: \"1e3\"\n    k: \"on\"\n"
      "  creationTimestamp: \"2026-01-01T00:00:00Z\"\n  labels: {}\n  name: p\nspec:\n"
      "  containers:\n  - args:\n    - -c\n    - |\n      a\n      b\n    image: x:1\n"
      "  - name: null\n  l:\n  - - 1\n    - 2\n  - []\n  \"n\": 1.5\n  t: |-\n    a\n    b\n");
}

TEST(PrintYaml, SortsKeysAndFoldsLongLines) {
  EXPECT_EQ(PrintYaml(*Parse(R"({"a10":1,"a9":2,"a":3,"B":4,"a-b":5,"a1b":6})")),
            "B: 4\na: 3\na-b: 5\na1b: 6\na9: 2\na10: 1\n");
  std::string words;
  for (int i = 0; i < 30; ++i) words += "word ";
  words += "end";
  std::string printed = PrintYaml(Value(Object{{"message", words}}));
  EXPECT_EQ(printed.find('\n'), printed.find("\n  word"));
  EXPECT_EQ(ToJson(printed), "{\"message\":\"" + words + "\"}");
}

TEST(PrintYaml, FoldsNoTextWhereADocumentWouldBegin) {
  for (const char* marker : {"---", "..."}) {
    const Value text(std::string(100, 'a') + " " + marker + " b");
    const auto again = ParseYaml(PrintYaml(text));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, std::vector<Value>{text}) << marker;
  }
}

TEST(YamlProperty, ReadingWhatWasPrintedGivesTheSameDocument) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    Value value = Object{{"v", RandomValue(random, 4)}};
    std::string text = PrintYaml(value);
    auto again = ParseYaml(text);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status().ToString() << "\n" << text;
    ASSERT_EQ(again->size(), 1u) << "seed " << seed << "\n" << text;
    ASSERT_TRUE(Equal(value, again->front())) << "seed " << seed << "\n"
                                              << text << "\n"
                                              << Print(value) << "\n"
                                              << Print(again->front());
  }
}

TEST(YamlProperty, DamagedTextsAreRefusedOrReadButNeverCrash) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    std::string text = PrintYaml(RandomValue(random, 4));
    for (uint64_t k = random.Below(4) + 1; k > 0; --k) {
      std::string piece = RandomText(random);
      text.insert(random.Below(text.size() + 1), piece);
    }
    auto values = ParseYaml(text);
    if (!values.ok()) {
      ASSERT_FALSE(values.status().message().empty()) << seed;
    }
  }
}

TEST(Yaml, EscapesOfOneByteBecomeCharacters) {
  auto documents = ParseYaml(R"(["a\Nb\_c", "\xe9", "\u00e9"])");
  ASSERT_TRUE(documents.ok()) << documents.status().message();
  EXPECT_EQ(Print(documents->front()),
            "[\"a\xc2\x85"
            "b\xc2\xa0"
            "c\",\"\xc3\xa9\",\"\xc3\xa9\"]");
  EXPECT_FALSE(ParseYaml(R"("\ud800")").ok());
}

}  // namespace
}  // namespace swell::json
