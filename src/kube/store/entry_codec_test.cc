// Tests of the attributes' bytes and the checksum.
#include "kube/store/entry_codec.h"

#include <map>

#include <gtest/gtest.h>

#include "base/random.h"

namespace swell::store {
namespace {

std::string RandomText(Random& random) {
  std::string text(random.Below(random.OneIn(10) ? 300 : 10), 'x');
  for (char& c : text) c = static_cast<char>(random.Below(256));
  return text;
}

Attributes RandomAttributes(Random& random) {
  Attributes attributes;
  attributes.uid = RandomText(random);
  for (api::StringPairs* kept : {&attributes.labels, &attributes.fields}) {
    std::map<std::string, std::string> pairs;
    for (uint64_t n = random.Below(6); n > 0; --n) {
      std::string key = RandomText(random);
      pairs.emplace(key, RandomText(random));
    }
    *kept = api::StringPairs::Of(pairs);
  }
  return attributes;
}

TEST(EntryCodec, AttributesComeBack) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Attributes attributes = RandomAttributes(random);
    auto decoded = DecodeAttributes(EncodeAttributes(attributes));
    ASSERT_TRUE(decoded.has_value()) << "seed " << seed;
    EXPECT_EQ(decoded->uid, attributes.uid);
    EXPECT_EQ(decoded->labels, attributes.labels);
    EXPECT_EQ(decoded->fields, attributes.fields);
  }
}

TEST(EntryCodec, DamagedBytesAreRefusedOrReadButNeverCrash) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string bytes = EncodeAttributes(RandomAttributes(random));
    EXPECT_FALSE(DecodeAttributes(bytes + "x").has_value()) << "seed " << seed;
    EXPECT_FALSE(DecodeAttributes(bytes.substr(0, random.Below(bytes.size()))).has_value());
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    DecodeAttributes(bytes);
  }
}

TEST(EntryCodec, ChecksumSeesEveryPart) {
  const Key key{"pods", "a", "b"};
  uint64_t sum = EntryChecksum(key, 7, "attributes", "the bytes of an object");
  EXPECT_EQ(sum, EntryChecksum(key, 7, "attributes", "the bytes of an object"));
  EXPECT_NE(sum, EntryChecksum(key, 8, "attributes", "the bytes of an object"));
  EXPECT_NE(sum, EntryChecksum({"pods", "ab", ""}, 7, "attributes", "the bytes of an object"));
  EXPECT_NE(sum, EntryChecksum({"pods", "", "ab"}, 7, "attributes", "the bytes of an object"));
  EXPECT_NE(sum, EntryChecksum(key, 7, "attribute", "sthe bytes of an object"));
  std::string bytes = "the bytes of an object";
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_NE(sum, EntryChecksum(key, 7, "attributes", damaged)) << "bit " << i;
  }
}

}  // namespace
}  // namespace swell::store
