// Tests of changing a few members of an object's text.
#include "kube/api/patch/edit_text.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/json_test_util.h"
#include "json/value.h"

namespace swell::api {
namespace {

std::string Edited(std::string_view text, const std::vector<TextEdit>& edits) {
  return EditText(text, edits).value_or("none");
}

TEST(EditText, SetsInPlaceOrAtTheEnd) {
  const std::string pod = R"({"kind":"Pod","metadata":{"name":"a","x":{"y":[1]}},"spec":{}})";
  EXPECT_EQ(Edited(pod, {}), pod);
  EXPECT_EQ(Edited(pod, {{"metadata", "name", "\"b\""}}),
            R"({"kind":"Pod","metadata":{"name":"b","x":{"y":[1]}},"spec":{}})");
  EXPECT_EQ(
      Edited(pod, {{"spec", "nodeName", "\"n\""}, {"metadata", "y", "2"}}),
      R"({"kind":"Pod","metadata":{"name":"a","x":{"y":[1]},"y":2},"spec":{"nodeName":"n"}})");
}

TEST(EditText, MakesPartsThatAreMissing) {
  EXPECT_EQ(Edited("{}", {{"status", "a", "1"}}), R"({"status":{"a":1}})");
  EXPECT_EQ(
      Edited(R"({"kind":"Pod"})", {{"status", "a", "1"}, {"spec", "b", "2"}, {"status", "c", "3"}}),
      R"({"kind":"Pod","status":{"a":1,"c":3},"spec":{"b":2}})");
  EXPECT_EQ(Edited(R"({"kind":"Pod"})", {{"status", "a", ""}}), R"({"kind":"Pod"})");
}

TEST(EditText, RemovesFirstMiddleAndLast) {
  const std::string text = R"({"m":{"a":1,"b":2,"c":3},"s":{"a":4}})";
  EXPECT_EQ(Edited(text, {{"m", "a", ""}}), R"({"m":{"b":2,"c":3},"s":{"a":4}})");
  EXPECT_EQ(Edited(text, {{"m", "b", ""}}), R"({"m":{"a":1,"c":3},"s":{"a":4}})");
  EXPECT_EQ(Edited(text, {{"m", "c", ""}}), R"({"m":{"a":1,"b":2},"s":{"a":4}})");
  EXPECT_EQ(Edited(text, {{"m", "a", ""}, {"s", "a", ""}}), R"({"m":{"b":2,"c":3},"s":{}})");
  EXPECT_EQ(Edited(text, {{"m", "a", ""}, {"m", "b", ""}, {"m", "c", ""}}),
            R"({"m":{},"s":{"a":4}})");
  EXPECT_EQ(Edited(text, {{"m", "d", ""}}), text);
}

TEST(EditText, TakesWhatLooksLikeAMemberInsideOthersForText) {
  const std::string text = R"({"a":"\"m\":{","b":[{"m":{"k":1}}],"m":{"j":{"k":"}\\"},"k":2}})";
  EXPECT_EQ(Edited(text, {{"m", "k", "3"}}),
            R"({"a":"\"m\":{","b":[{"m":{"k":1}}],"m":{"j":{"k":"}\\"},"k":3}})");
}

TEST(EditText, RefusesWhatIsNoCompactObject) {
  for (const char* text : {"",           "{",
                           "}",          "[]",
                           "1",          "\"a\"",
                           "{\"a\"}",    "{\"a\":}",
                           "{\"a\":1",   "{\"a\":1,}",
                           "{\"a\":1]",  "{\"a\":\"x}",
                           "{\"a\":[1}", "{ \"a\":1}",
                           "{\"a\" :1}", "{a:1}",
                           "{\"a\\\"",   "{\"a\":1,\"b\"}",
                           "{\"m\":1}",  "{\"m\":null}",
                           "{\"m\":[]}", "{\"m\":{\"k\"",
                           "{\"m\":"}) {
    EXPECT_EQ(Edited(text, {{"m", "k", "1"}}), "none") << text;
  }
}

// Editing any document's text does what editing the document does.
TEST(EditText, AgreesWithDocuments) {
  const uint64_t seed = 20261122;
  SCOPED_TRACE(StrCat("seed ", seed));
  Random random(seed);
  for (int round = 0; round < 1000; ++round) {
    json::Value document = json::Object{{"k8", json::RandomValue(random, 2)}};
    for (int i = static_cast<int>(random.Below(12)); i > 0; --i) {
      json::Set(document, {StrCat("k", random.Below(4)), StrCat("k", random.Below(6))},
                json::RandomValue(random, 3));
    }
    const std::string before = json::Print(document);
    std::vector<std::string> keys;
    for (const char* part : {"k0", "k1", "k2", "k3", "k4"}) {
      if (random.Below(2) == 0) keys.emplace_back(part);
    }
    std::vector<TextEdit> edits;
    for (const std::string& part : keys) {
      const std::string& key = keys[random.Below(keys.size())];
      if (random.Below(3) == 0) {
        edits.push_back({part, key, ""});
        json::Remove(document, {part, key});
      } else {
        const json::Value value = json::RandomValue(random, 2);
        edits.push_back({part, key, json::Print(value)});
        json::Set(document, {part, key}, value);
      }
    }
    const auto edited = EditText(before, edits);
    ASSERT_TRUE(edited) << before;
    EXPECT_EQ(*edited, json::Print(document)) << before;
  }
}

}  // namespace
}  // namespace swell::api
