#include "json/document.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "json/value.h"

namespace swell::json {
namespace {

std::string PodText(int number) {
  return StrCat(
      R"({"metadata":{"name":"pod-)", number,
      R"(","labels":{}},"spec":{"tolerations":[{"key":"node.kubernetes.io/not-ready",)",
      R"("operator":"Exists","tolerationSeconds":300},{"key":"a-much-longer-key-than-most"}],)",
      R"("containers":[],"weight":0.5,"more":-1,"large":18446744073709551615,"none":null}})");
}

const Value* Tolerations(const SharedValue& pod) { return Find(*pod, {"spec", "tolerations"}); }

TEST(Keep, SaysWhatItWasGiven) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Value value = RandomValue(random, 4);
    std::vector<SharedValue> kept;
    for (int i = 0; i < 4; ++i) kept.push_back(Keep(value));
    kept.erase(kept.begin());
    for (const SharedValue& one : kept) EXPECT_EQ(Print(*one), Print(value)) << "seed " << seed;
  }
}

TEST(Keep, FindsKeysOfLargeObjects) {
  Value value = Object();
  for (int i = 0; i < 100; ++i) Set(value, {StrCat("key-", i)}, Value(i));
  const SharedValue kept = Keep(value);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(GetInt(*kept, {StrCat("key-", i)}), i);
}

TEST(Keep, SharesWhatDocumentsHaveInCommon) {
  const SharedValue first = Keep(J(PodText(1)));
  const SharedValue second = Keep(J(PodText(2)));
  const SharedValue third = Keep(J(PodText(3)));
  EXPECT_EQ(&GetArray(*second, {"spec", "tolerations"})[0],
            &GetArray(*third, {"spec", "tolerations"})[0]);
  EXPECT_EQ(Print(*first), PodText(1));
  EXPECT_EQ(Print(*third), PodText(3));
}

TEST(Keep, SharesOnlyWhatPrintsTheSame) {
  const std::string padding(200, 'x');
  auto kept = [&](std::string_view members) {
    const std::string text = StrCat(R"({"a":{"padding":")", padding, R"(",)", members, "}}");
    Keep(J(text));
    EXPECT_EQ(Print(*Keep(J(text))), text);
  };
  kept(R"("one":1,"two":2)");
  kept(R"("two":2,"one":1)");
  kept(R"("one":1.5,"two":2)");
  kept(R"("one":true,"two":null)");
  kept(R"("one":"1","two":{})");
  kept(R"("one":"1","two":[])");
}

TEST(Keep, PartsOutliveTheDocumentsThatBroughtThem) {
  std::vector<SharedValue> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(Keep(J(PodText(i))));
  const SharedValue last = kept.back();
  kept.clear();
  EXPECT_EQ(Print(*last), PodText(4));
  EXPECT_EQ(Tolerations(last)->get_array().size(), 2U);
}

TEST(Keep, ACopyNeedsTheDocumentNoMore) {
  std::optional<Value> pod, tolerations;
  {
    Keep(J(PodText(1)));
    const SharedValue kept = Keep(J(PodText(1)));
    pod = *kept;
    tolerations.emplace(*Tolerations(kept));
  }
  tolerations->get_array().push_back(Value("one more, which needs room"));
  Set(*pod, {"metadata", "labels", "changed"}, "yes");
  EXPECT_EQ(GetString(*pod, {"metadata", "labels", "changed"}), "yes");
  EXPECT_EQ(tolerations->get_array().size(), 3U);
  EXPECT_EQ(Print(*Keep(J(PodText(1)))), PodText(1));
}

TEST(Keep, TakesWhatIsNoObject) {
  for (std::string_view text : {"null", "17", "\"a string with more than fourteen bytes\"", "[]"}) {
    EXPECT_EQ(Print(*Keep(J(text))), text);
  }
}

TEST(Scratch, HoldsWhatIsParsedUntilItIsKept) {
  SharedValue kept;
  {
    Scratch scratch;
    Result<Value> parsed = Parse(PodText(7), {}, scratch);
    ASSERT_TRUE(parsed.ok());
    Remove(*parsed, {"metadata", "labels"});
    Set(*parsed, {"status", "phase"}, "Running");
    kept = Keep(*parsed);
  }
  EXPECT_EQ(GetString(*kept, {"metadata", "name"}), "pod-7");
  EXPECT_EQ(GetString(*kept, {"status", "phase"}), "Running");
  EXPECT_EQ(Find(*kept, {"metadata", "labels"}), nullptr);
}

TEST(Scratch, RefusesWhatParseRefuses) {
  Scratch scratch;
  const std::string_view twice = R"({"a":1,"a":2})";
  EXPECT_EQ(Parse(twice, {}, scratch).status().message(), Parse(twice).status().message());
}

}  // namespace
}  // namespace swell::json
