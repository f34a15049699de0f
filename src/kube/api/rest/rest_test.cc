// Tests of query strings and bodies.
#include "kube/api/rest/rest.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::api {
namespace {

TEST(Query, ParsesStrictly) {
  auto pairs = ParseQuery("watch=1&labelSelector=a%3Db%2Cc+d&empty=&flag&&x=y=z");
  ASSERT_TRUE(pairs.ok());
  using P = std::pair<std::string, std::string>;
  EXPECT_EQ(*pairs, (std::vector<P>{{"watch", "1"},
                                    {"labelSelector", "a=b,c d"},
                                    {"empty", ""},
                                    {"flag", ""},
                                    {"x", "y=z"}}));
  EXPECT_TRUE(ParseQuery("")->empty());
  for (const char* bad : {"a=%", "a=%4", "a=%zz", "%x=1", "a=%ff"}) {
    EXPECT_EQ(ParseQuery(bad).status().code(), Code::kBadRequest) << bad;
  }
}

TEST(Query, EscapedTextComesBack) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::string text;
    for (uint64_t n = random.Below(30); n > 0; --n) text += static_cast<char>(random.Below(128));
    auto pairs = ParseQuery("k=" + EscapeQuery(text));
    ASSERT_TRUE(pairs.ok()) << "seed " << seed;
    EXPECT_EQ((*pairs)[0].second, text) << "seed " << seed;
    std::string segment = EscapePathSegment(text);
    EXPECT_EQ(segment.find_first_of("/?# +"), std::string::npos);
  }
  EXPECT_EQ(EscapePathSegment("a:b/c d"), "a:b%2Fc%20d");
  EXPECT_EQ(EscapeQuery("\xc3\xa9"), "%C3%A9");
}

TEST(Response, JoinsItsChunks) {
  RestResponse response;
  EXPECT_EQ(response.BodyString(), "");
  response.body = {MakeChunk("a"), MakeChunk(""), MakeChunk("bc")};
  EXPECT_EQ(response.BodyString(), "abc");
}

}  // namespace
}  // namespace swell::api
