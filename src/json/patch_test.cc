// Tests of JSON Patch and JSON Merge Patch.
#include "json/patch.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"

namespace swell::json {
namespace {

TEST(JsonPatch, Applies) {
  struct Case {
    std::string document, patch, result;
  };
  const Case cases[] = {
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2,3]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])", R"({"a":[1,2]})"},
      {R"({"a":1,"b":2,"c":3})", R"([{"op":"remove","path":"/b"}])", R"({"a":1,"c":3})"},
      {R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/0"}])", R"({"a":[2]})"},
      {R"({"a":1})", R"([{"op":"replace","path":"/a","value":{"x":1}}])", R"({"a":{"x":1}})"},
      {R"({"a":1})", R"([{"op":"replace","path":"","value":[]}])", "[]"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a/b","path":"/c"}])", R"({"a":{},"c":1})"},
      {R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/a/c"}])",
       R"({"a":{"b":1,"c":{"b":1}}})"},
      {R"({"a/b":1,"m~n":2})",
       R"([{"op":"test","path":"/a~1b","value":1.0},{"op":"remove","path":"/m~0n"}])",
       R"({"a/b":1})"},
      {R"({"":1})", R"([{"op":"replace","path":"/","value":2}])", R"({"":2})"},
      {R"({"a":null})", R"([{"op":"test","path":"/a","value":null}])", R"({"a":null})"},
  };
  for (const Case& c : cases) {
    auto result = ApplyJsonPatch(J(c.document), J(c.patch));
    ASSERT_TRUE(result.ok()) << c.patch << ": " << result.status().ToString();
    EXPECT_EQ(Print(*result), c.result) << c.patch;
  }
}

TEST(JsonPatch, RefusesWithTheOperationNamed) {
  struct Case {
    std::string patch;
    Code code;
    std::string message;
  };
  const Case cases[] = {
      {R"({})", Code::kBadRequest, "array"},
      {R"([1])", Code::kBadRequest, "operation 0"},
      {R"([{"op":"jump","path":"/a"}])", Code::kBadRequest, "unknown op \"jump\""},
      {R"([{"op":"add","path":"/a"}])", Code::kBadRequest, "needs a value"},
      {R"([{"op":"add","value":1}])", Code::kBadRequest, "needs a path"},
      {R"([{"op":"add","path":"a","value":1}])", Code::kBadRequest, "must begin"},
      {R"([{"op":"add","path":"/a~2","value":1}])", Code::kBadRequest, "must be followed"},
      {R"([{"op":"test","path":"/a","value":1},{"op":"test","path":"/a","value":2}])",
       Code::kInvalid, "operation 1 (test \"/a\"): the value there is another"},
      {R"([{"op":"remove","path":"/nope"}])", Code::kInvalid, "does not exist"},
      {R"([{"op":"remove","path":""}])", Code::kInvalid, "whole document"},
      {R"([{"op":"replace","path":"/l/2","value":1}])", Code::kInvalid, "does not exist"},
      {R"([{"op":"add","path":"/l/3","value":1}])", Code::kInvalid, "no index \"3\""},
      {R"([{"op":"add","path":"/l/01","value":1}])", Code::kInvalid, "no index"},
      {R"([{"op":"add","path":"/x/y","value":1}])", Code::kInvalid, "parent does not exist"},
      {R"([{"op":"move","from":"/o","path":"/o/x"}])", Code::kInvalid, "into itself"},
      {R"([{"op":"copy","from":"/q","path":"/r"}])", Code::kInvalid, "from does not exist"},
  };
  for (const Case& c : cases) {
    auto result = ApplyJsonPatch(J(R"({"a":1,"l":[1,2],"o":{}})"), J(c.patch));
    ASSERT_FALSE(result.ok()) << c.patch;
    EXPECT_EQ(result.status().code(), c.code) << c.patch;
    EXPECT_NE(result.status().message().find(c.message), std::string::npos)
        << c.patch << ": " << result.status().message();
  }
}

TEST(JsonPatch, CopiesCannotGrowWithoutBound) {
  Array doubling;
  Array deepening;
  for (int i = 0; i < 9000; ++i) {
    doubling.push_back(J(R"({"op":"copy","from":"/a","path":"/a/-"})"));
    deepening.push_back(J(R"({"op":"copy","from":"/o","path":"/o/x"})"));
  }
  auto wide = ApplyJsonPatch(J(R"({"a":["0123456789"]})"), doubling);
  EXPECT_FALSE(wide.ok());
  auto deep = ApplyJsonPatch(J(R"({"o":{}})"), deepening);
  EXPECT_FALSE(deep.ok());
}

Value Members(int count, const Value& value) {
  Object object;
  for (int i = 0; i < count; ++i) object[StrCat("k", i)] = value;
  return object;
}

TEST(JsonPatch, RemovalsAndMovesOfManyAreBounded) {
  const Value document = Object{{"data", Members(90'000, 1)}};
  Array some, removals, moves, additions;
  for (int i = 0; i < 9999; ++i) {
    const Value removal = Object{{"op", "remove"}, {"path", StrCat("/data/k", i)}};
    if (i < 40) some.push_back(removal);
    removals.push_back(removal);
    additions.push_back(Object{{"op", "add"}, {"path", StrCat("/data/n", i)}, {"value", Array{}}});
    moves.push_back(Object{{"op", "move"},
                           {"from", i % 2 == 0 ? "/data" : "/other"},
                           {"path", i % 2 == 0 ? "/other" : "/data"}});
  }
  const auto fewer = ApplyJsonPatch(document, some);
  ASSERT_TRUE(fewer.ok()) << fewer.status().ToString();
  EXPECT_EQ(Find(*fewer, {"data"})->get_object().size(), 89'960U);
  EXPECT_TRUE(ApplyJsonPatch(document, additions).ok()) << "they shift nobody";
  EXPECT_EQ(ApplyJsonPatch(document, removals).status().code(), Code::kTooLarge);
  EXPECT_EQ(ApplyJsonPatch(document, moves).status().code(), Code::kTooLarge);
}

// One by one this takes minutes.
TEST(MergePatch, ManyMembersGoInOnePass) {
  Value document = Members(200'000, 1);
  Value patch = Members(200'000, nullptr);
  patch.get_object()["k7"] = 2;
  Remove(patch, {"k9"});
  ApplyMergePatch(document, patch);
  EXPECT_EQ(Print(document), R"({"k7":2,"k9":1})");
}

TEST(MergePatch, FollowsTheExamplesOfTheStandard) {
  const std::vector<std::string> cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"(["a"])", R"({"a":1})", R"({"a":1})"},
      {R"({"a":1})", R"(["c"])", R"(["c"])"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
  };
  for (const auto& c : cases) {
    Value document = J(c[0]);
    ApplyMergePatch(document, J(c[1]));
    EXPECT_EQ(Print(document), c[2]) << c[1];
  }
}

TEST(MergePatch, DifferenceAppliedGivesTheOther) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    Value from = RandomValue(random, 4, false);
    Value to = random.OneIn(2) ? RandomValue(random, 4, false) : from;
    if (to.is_object()) {
      to.get_object()["k" + std::to_string(random.Below(8))] = RandomValue(random, 2, false);
    }
    Value patch = MakeMergePatch(from, to);
    Value result = from;
    ApplyMergePatch(result, patch);
    ASSERT_TRUE(Equal(result, to)) << "seed " << seed << "\n"
                                   << Print(from) << "\n"
                                   << Print(to) << "\n"
                                   << Print(patch);
    if (from.is_object()) {
      ASSERT_EQ(Print(MakeMergePatch(from, from)), "{}") << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace swell::json
