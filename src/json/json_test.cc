// Tests of parsing, printing and the tree helpers.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/duplicates.h"
#include "json/json_test_util.h"
#include "json/text_writer.h"
#include "json/value.h"

namespace swell::json {
namespace {

TEST(Parse, ReadsEveryKindExactly) {
  auto value =
      Parse(R"( {"s":"a\u00e9\n","i":-9223372036854775808,"u":18446744073709551615,"d":0.1,)"
            R"("big":1.7976931348623157e308,"t":true,"n":null,"a":[1,[],{}]} )");
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(GetString(*value, {"s"}), "a\xc3\xa9\n");
  EXPECT_EQ(Find(*value, {"i"})->get_int64(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Find(*value, {"u"})->get_uint64(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Find(*value, {"d"})->get_double(), 0.1);
  EXPECT_EQ(Find(*value, {"big"})->get_double(), std::numeric_limits<double>::max());
  EXPECT_TRUE(GetBool(*value, {"t"}));
  EXPECT_TRUE(Find(*value, {"n"})->is_null());
  EXPECT_EQ(GetArray(*value, {"a"}).size(), 3u);
}

TEST(Parse, NotesMembersNamedTwiceAndKeepsTheLast) {
  std::vector<std::string> duplicates;
  const auto value = ParseNoting(
      R"({"a":1,"b":[{"c":1},{"c":1,"d":[[],{"e":0,"\u0065":2}],"c":3}],"a":{"x":1,"x":2}})", {},
      duplicates);
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(duplicates, (std::vector<std::string>{"b[1].d[1].e", "b[1].c", "a", "a.x"}));
  EXPECT_TRUE(Equal(*value, *Parse(R"({"a":{"x":2},"b":[{"c":1},{"c":3,"d":[[],{"e":2}]}]})")))
      << Print(*value);
  duplicates.clear();
  EXPECT_TRUE(ParseNoting("{\"a\":1}", {}, duplicates).ok());
  EXPECT_TRUE(duplicates.empty());
  EXPECT_FALSE(ParseNoting("{\"a\":1,\"a\":", {}, duplicates).ok());
}

TEST(Parse, ErrorsSayWhereAndWhatWasExpected) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"", "line 1, column 1: unexpected end, expected a value"},
      {"{\n  \"a\": 1,\n  \"a\": 2}", "line 3, column 4: duplicate key \"a\""},
      {R"({"x":{"a":1},"y":{"b":1,"\u0062":2}})", "duplicate key \"b\""},
      {"{\"a\":\n  x}", "line 2, column 3: unexpected \"x\", expected a value"},
      {"[1 2]", "line 1, column 4: unexpected \"2\", expected ',', ':' or the end"},
      {"{\"a\" 1}", "line 1, column 6"},
      {"{} {}", "line 1, column 4: expected the end of the document"},
      {"[1,]", "line 1, column 4"},
      {"\"a", "unexpected end"},
      {"[\"\xff\"]", "invalid UTF-8"},
      {"[\"\xed\xa0\x80\"]", "invalid UTF-8"},
      {"[\"\t\x01\"]", "line 1, column"},
      {"[1e999]", "number out of range"},
      {"[-1e400]", "number out of range"},
      {"NaN", "line 1, column 1"},
      {std::string(70, '[') + std::string(70, ']'), "nested too deeply"},
  };
  for (const Case& c : cases) {
    auto value = Parse(c.text);
    ASSERT_FALSE(value.ok()) << c.text;
    EXPECT_EQ(value.status().code(), Code::kBadRequest) << c.text;
    EXPECT_NE(value.status().message().find(c.message), std::string::npos)
        << c.text << "\n"
        << value.status().message();
  }
}

TEST(Parse, HoldsItsLimits) {
  EXPECT_TRUE(Parse(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(Parse("[[]]", {.depth = 1}).ok());
  auto value = Parse("[1,2,3]", {.bytes = 4});
  EXPECT_EQ(value.status().code(), Code::kTooLarge);
  EXPECT_TRUE(Parse("1e-400").ok());
}

TEST(Parse, CountsMembersAndItems) {
  const ParseLimits limits{.values = 5};
  EXPECT_TRUE(Parse(R"({"a":[1,2],"b":{"c":{}}})", limits).ok());
  for (const char* text :
       {R"({"a":[1,2],"b":{"c":{}},"d":1})", "[0,0,0,0,0,0]", "[[[[[[]]]]],{}]"}) {
    EXPECT_EQ(Parse(text, limits).status().ToString(),
              "RequestEntityTooLarge: JSON: more than the 5 values allowed")
        << text;
  }
}

TEST(Print, WritesNumbersAsKubernetesDoes) {
  const std::pair<double, std::string> cases[] = {
      {0.1, "0.1"},
      {1.0, "1"},
      {1e21, "1e+21"},
      {1e20, "100000000000000000000"},
      {1e-6, "0.000001"},
      {1e-7, "1e-7"},
      {-2.5, "-2.5"},
      {1.5e-10, "1.5e-10"},
      {std::numeric_limits<double>::infinity(), "null"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(Print(Value(number)), text);
}

TEST(Print, EscapesAndRepairsStrings) {
  auto print = [](std::string_view s) {
    return Print(Value(boost::json::string_view(s.data(), s.size())));
  };
  EXPECT_EQ(print("a\"b\\c\n\r\t\x01/"), R"("a\"b\\c\n\r\t\u0001/")");
  EXPECT_EQ(print("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"),
            "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
  EXPECT_EQ(print("x\xffy\xc3"), "\"x\xef\xbf\xbdy\xef\xbf\xbd\"");
  EXPECT_EQ(print("\xc3\xa9\xa9z"), "\"\xc3\xa9\xef\xbf\xbdz\"");
}

TEST(Print, TextWriterSaysWhatATreeWould) {
  TextWriter out;
  out.Open('{');
  out.Member("a\n", "\xff\"");
  out.MemberUnlessEmpty("none", "");
  out.Number("n", -7);
  out.Key("list").Open('[');
  out.Item("x");
  out.Open('{').Close('}');
  out.Item("y");
  out.Close(']');
  out.Key("empty").Open('[').Close(']');
  out.Close('}');
  const Value tree =
      Object{{"a\n", "\xff\""}, {"n", -7}, {"list", Array{"x", Object(), "y"}}, {"empty", Array()}};
  EXPECT_EQ(out.Take(), Print(tree));
}

TEST(Print, PrettyMatchesKubectl) {
  auto value = Parse(R"({"kind":"Pod","spec":{"a":[1,{"b":null}],"e":{},"f":[]}})");
  EXPECT_EQ(PrintPretty(*value),
            "{\n    \"kind\": \"Pod\",\n    \"spec\": {\n        \"a\": [\n            1,\n"
            "            {\n                \"b\": null\n            }\n        ],\n"
            "        \"e\": {},\n        \"f\": []\n    }\n}");
}

TEST(Tree, PathsReadAndWrite) {
  Value root = Object();
  Set(root, {"spec", "template", "name"}, "x");
  EXPECT_EQ(Print(root), R"({"spec":{"template":{"name":"x"}}})");
  Set(root, {"spec", "template", "name", "deep"}, 3);
  EXPECT_EQ(GetInt(root, {"spec", "template", "name", "deep"}), 3);
  EXPECT_EQ(GetInt(root, {"spec", "template"}, 7), 7);
  EXPECT_EQ(GetString(root, {"nope", "x"}, "d"), "d");
  EXPECT_EQ(Find(root, {"spec", "nope"}), nullptr);
  EXPECT_TRUE(GetArray(root, {"spec"}).empty());
  EXPECT_TRUE(GetObject(root, {"spec", "template"}).contains("name"));
  Remove(root, {"spec", "nope", "x"});
  Remove(root, {"spec", "template", "name"});
  EXPECT_EQ(Print(root), R"({"spec":{"template":{}}})");
}

TEST(Tree, RemovingKeepsTheOrder) {
  Value root = *Parse(R"({"a":1,"b":2,"c":3,"d":4})");
  StableErase(root.get_object(), "b");
  EXPECT_EQ(Print(root), R"({"a":1,"c":3,"d":4})");
}

TEST(Equal, ComparesNumbersByValueAndIgnoresKeyOrder) {
  EXPECT_TRUE(Equal(Value(int64_t{1}), Value(uint64_t{1})));
  EXPECT_TRUE(Equal(Value(1.0), Value(int64_t{1})));
  EXPECT_FALSE(Equal(Value(1.5), Value(int64_t{1})));
  EXPECT_FALSE(Equal(Value(uint64_t{18446744073709551615u}), Value(int64_t{-1})));
  EXPECT_FALSE(Equal(Value(0x1p70), Value(int64_t{0})));
  EXPECT_FALSE(Equal(Value(9007199254740993), Value(9007199254740992.0)));
  EXPECT_TRUE(Equal(*Parse(R"({"a":1,"b":[1,2]})"), *Parse(R"({"b":[1,2],"a":1.0})")));
  EXPECT_FALSE(Equal(*Parse(R"({"a":1})"), *Parse(R"({"b":1})")));
  EXPECT_FALSE(Equal(*Parse("[1,2]"), *Parse("[2,1]")));
  EXPECT_FALSE(Equal(Value(nullptr), Value(false)));
}

TEST(JsonProperty, ParsingWhatWasPrintedGivesTheSameDocument) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    Value value = RandomValue(random, 5);
    std::string text = Print(value);
    auto again = Parse(text);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status().ToString() << "\n" << text;
    ASSERT_TRUE(Equal(value, *again)) << "seed " << seed << ": " << text;
    ASSERT_EQ(Print(*again), text) << "seed " << seed;
    auto pretty = Parse(PrintPretty(value));
    ASSERT_TRUE(pretty.ok() && Equal(value, *pretty)) << "seed " << seed;
  }
}

TEST(JsonProperty, DamagedTextsAreRefusedOrReadButNeverCrash) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    std::string text = Print(RandomValue(random, 4));
    for (uint64_t k = random.Below(3) + 1; k > 0; --k) {
      size_t at = random.Below(text.size());
      if (random.OneIn(3)) {
        text.resize(at + 1);
      } else {
        text[at] = static_cast<char>(random.Below(256));
      }
    }
    auto value = Parse(text);
    if (value.ok()) {
      ASSERT_TRUE(Parse(Print(*value)).ok()) << "seed " << seed;
    } else {
      ASSERT_FALSE(value.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace swell::json
