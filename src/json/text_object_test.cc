// Tests of changing few members of an object's text.
#include "json/text_object.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/json_test_util.h"
#include "json/value.h"

namespace swell::json {
namespace {

TEST(TextObject, ReadsMembersAsTheyAreWritten) {
  const std::string text = R"({"a":"x,\"}{","b":{"c":[1,{"d":"]"}]},"e":-1.5e3,"f":[],"g":null})";
  const auto object = TextObject::Read(text);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->Get("a"), R"("x,\"}{")");
  EXPECT_EQ(object->Get("b"), R"({"c":[1,{"d":"]"}]})");
  EXPECT_EQ(object->Get("e"), "-1.5e3");
  EXPECT_EQ(object->Get("f"), "[]");
  EXPECT_EQ(object->Get("g"), "null");
  EXPECT_EQ(object->Get("c"), "");
  EXPECT_EQ(object->Print(), text);
}

TEST(TextObject, SetsInPlaceOrAtTheEnd) {
  auto object = TextObject::Read(R"({"a":1,"b":{"c":2}})");
  ASSERT_TRUE(object);
  object->Set("a", "[3]");
  object->Set("d", "\"new\"");
  object->Set("a", "4");
  EXPECT_EQ(object->Get("a"), "4");
  EXPECT_EQ(object->Get("d"), "\"new\"");
  EXPECT_EQ(object->Print(), R"({"a":4,"b":{"c":2},"d":"new"})");
  auto empty = TextObject::Read("{}");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->Print(), "{}");
  empty->Set("a", "1");
  EXPECT_EQ(empty->Print(), R"({"a":1})");
}

TEST(TextObject, RefusesWhatIsNoCompactObject) {
  for (const char* text : {"", "{", "}", "[]", "1", "\"a\"", "{\"a\"}", "{\"a\":}", "{\"a\":1",
                           "{\"a\":1,}", "{\"a\":1}x", "{\"a\":1]", "{\"a\":\"x}", "{\"a\":[1}",
                           "{ \"a\":1}", "{\"a\" :1}", "{a:1}", "{\"a\\\"", "{\"a\":1,\"b\"}"}) {
    const auto object = TextObject::Read(text);
    EXPECT_FALSE(object) << text;
  }
}

// Setting members of any document's text does what setting them in the document does.
TEST(TextObject, AgreesWithDocuments) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(StrCat("seed ", seed));
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    Value document = Object{};
    for (int i = static_cast<int>(random.Below(6)); i > 0; --i) {
      Set(document, {StrCat("k", random.Below(8))}, RandomValue(random, 3));
    }
    const std::string before = Print(document);
    auto text = TextObject::Read(before);
    ASSERT_TRUE(text) << before;
    EXPECT_EQ(text->Print(), before);
    for (int i = 0; i < 3; ++i) {
      const std::string key = StrCat("k", random.Below(10));
      const Value value = RandomValue(random, 2);
      text->Set(key, Print(value));
      Set(document, {key}, value);
    }
    const std::string gone = StrCat("k", random.Below(10));
    text->Remove(gone);
    StableErase(document.get_object(), gone);
    EXPECT_EQ(text->Print(), Print(document));
  }
}

}  // namespace
}  // namespace swell::json
