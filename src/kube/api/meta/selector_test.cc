// Tests of label and field selectors.
#include "kube/api/meta/selector.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace swell::api {
namespace {

TEST(HasLabels, AsksForAllOfThem) {
  const json::Value object =
      json::Object{{"metadata", json::Object{{"labels", json::Object{{"a", "1"}, {"b", "2"}}}}}};
  EXPECT_TRUE(HasLabels(object, {}));
  EXPECT_TRUE(HasLabels(object, {{"a", "1"}}));
  EXPECT_TRUE(HasLabels(object, {{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(HasLabels(object, {{"a", "1"}, {"b", "1"}}));
  EXPECT_FALSE(HasLabels(object, {{"c", "1"}}));
  EXPECT_FALSE(HasLabels(object, {{"a", 1}}));
  EXPECT_FALSE(HasLabels(json::Object{}, {{"a", "1"}}));
}

TEST(LabelSelector, ParsesAndMatches) {
  const StringPairs labels = {{"app", "web"}, {"gpu", "8"}, {"tier", ""}};
  const json::Value object = json::Object{{"app", "web"}, {"gpu", "8"}, {"tier", ""}};
  const std::pair<std::string, bool> cases[] = {
      {"", true},
      {"app=web", true},
      {"app==web", true},
      {"app = web , gpu", true},
      {"app!=web", false},
      {"zone!=x", true},
      {"app in (web,db)", true},
      {"app in(db)", false},
      {"app notin (db)", true},
      {"zone notin (a, b)", true},
      {"app notin (web)", false},
      {"zone", false},
      {"!zone", true},
      {"!app", false},
      {"gpu>7", true},
      {"gpu>8", false},
      {"gpu<9", true},
      {"app>1", false},
      {"tier=", true},
      {"tier in ()", true},
      {"app in (,web)", true},
      {"in in (a)", false},
      {"example.com/a_b", false},
  };
  for (const auto& [text, matches] : cases) {
    auto selector = LabelSelector::Parse(text);
    ASSERT_TRUE(selector.ok()) << text << ": " << selector.status().ToString();
    EXPECT_EQ(selector->Matches(labels), matches) << text;
    EXPECT_EQ(selector->Matches(object), matches) << text;
    auto again = LabelSelector::Parse(selector->ToString());
    ASSERT_TRUE(again.ok()) << selector->ToString();
    EXPECT_EQ(again->ToString(), selector->ToString());
    EXPECT_EQ(again->Matches(labels), matches) << text;
  }
  EXPECT_TRUE(LabelSelector::Parse(" ")->everything());
  EXPECT_EQ(LabelSelector::Parse("z in (c,b,c),!f,a=b,g>1")->ToString(), "a=b,!f,g>1,z in (b,c)");
}

TEST(LabelSelector, RefusesWhatIsNone) {
  for (const char* text : {",",      "a,",    "a b",   "a=b=c",      "a in", "a in (", "a in (b",
                           "a in b", "=a",    "!",     "!a=b",       "a>b",  "a>",     "-a",
                           "a=-b",   "a/b/c", "a=b c", "a in (b c)", "a!",   "(a)",    "a=\xff"}) {
    auto selector = LabelSelector::Parse(text);
    ASSERT_FALSE(selector.ok()) << text;
    EXPECT_EQ(selector.status().code(), Code::kBadRequest) << text;
  }
  EXPECT_EQ(LabelSelector::Parse("a b").status().message(),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
}

TEST(LabelSelector, ReadsJson) {
  EXPECT_FALSE(LabelSelector::FromJson(nullptr)->Matches(StringPairs{}));
  EXPECT_FALSE(LabelSelector::FromJson(nullptr)->everything());
  json::Value empty = json::Object();
  EXPECT_TRUE(LabelSelector::FromJson(&empty)->Matches(StringPairs{{"a", "b"}}));
  json::Value selector = *json::Parse(
      R"({"matchLabels":{"app":"x"},"matchExpressions":[{"key":"role","operator":"In",
          "values":["a","b"]},{"key":"old","operator":"DoesNotExist"}]})");
  auto parsed = LabelSelector::FromJson(&selector);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->ToString(), "app=x,!old,role in (a,b)");
  EXPECT_TRUE(parsed->Matches(StringPairs{{"app", "x"}, {"role", "b"}}));
  EXPECT_FALSE(parsed->Matches(StringPairs{{"app", "x"}, {"old", ""}, {"role", "b"}}));
  for (const char* bad :
       {R"(3)", R"({"matchLabels":{"a":1}})", R"({"matchLabels":{"-":"b"}})",
        R"({"matchExpressions":[{"key":"a","operator":"Near"}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In","values":[]}]})",
        R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In","values":[1]}]})"}) {
    json::Value value = *json::Parse(bad);
    EXPECT_EQ(LabelSelector::FromJson(&value).status().code(), Code::kInvalid) << bad;
  }
}

TEST(FieldSelector, ParsesAndMatches) {
  const StringPairs fields = {{"metadata.name", "p"}, {"spec.nodeName", "a,b=c\\"}};
  const std::pair<std::string, bool> cases[] = {
      {"", true},
      {"metadata.name=p", true},
      {"metadata.name==p", true},
      {"metadata.name!=p", false},
      {"status.phase=", true},
      {"status.phase!=Failed", true},
      {"metadata.name=p,status.phase=Running", false},
      {"spec.nodeName=a\\,b\\=c\\\\", true},
      {",metadata.name=p,", true},
  };
  for (const auto& [text, matches] : cases) {
    auto selector = FieldSelector::Parse(text);
    ASSERT_TRUE(selector.ok()) << text;
    EXPECT_EQ(selector->Matches(fields), matches) << text;
  }
  for (const char* bad : {"a", "=a", "a=b=c", "a=\\x", "a=b\\"}) {
    EXPECT_EQ(FieldSelector::Parse(bad).status().code(), Code::kBadRequest) << bad;
  }
  EXPECT_EQ(FieldSelector::Parse("x,a=b").status().message(),
            "invalid selector: 'x,a=b'; can't understand 'x'");
}

TEST(SelectorProperty, RandomTextsAreRefusedOrReadButNeverCrash) {
  static constexpr std::string_view kPieces[] = {"a",     "b",  "=",  "==", "!=",  "!", "in",
                                                 "notin", "(",  ")",  ",",  " ",   ">", "<",
                                                 "1",     "\\", "x/", "-",  "\xff"};
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    std::string text;
    for (uint64_t n = random.Below(10); n > 0; --n) {
      text += kPieces[random.Below(std::size(kPieces))];
    }
    auto labels = LabelSelector::Parse(text);
    if (labels.ok()) {
      labels->Matches(StringPairs{{"a", "1"}});
      ASSERT_TRUE(LabelSelector::Parse(labels->ToString()).ok()) << text;
    }
    auto fields = FieldSelector::Parse(text);
    if (fields.ok()) fields->Matches(StringPairs{{"a", "1"}});
  }
}

}  // namespace
}  // namespace swell::api
