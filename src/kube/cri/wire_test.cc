#include "kube/cri/wire.h"

#include <gtest/gtest.h>

namespace swell::cri {
namespace {

TEST(CriWire, WritesWhatProtobufWrites) {
  // As protoc encodes {1: "ab", 2: 300, 3: {1: "x"}, 4: [1, 300]}.
  const Message inner = Message().Text(1, "x");
  const Message message = Message().Text(1, "ab").Number(2, 300).Add(3, inner).Packed(4, {1, 300});
  EXPECT_EQ(message.bytes(), std::string("\x0a\x02"
                                         "ab\x10\xac\x02\x1a\x03\x0a\x01x\x22\x03\x01\xac\x02"));
}

TEST(CriWire, LeavesOutDefaults) {
  EXPECT_EQ(Message().Text(1, "").Number(2, 0).Bool(3, false).Packed(4, {}).bytes(), "");
  EXPECT_EQ(Message().Add(1, Message()).bytes(), std::string("\x0a\0", 2));
}

TEST(CriWire, ReadsWhatItWrites) {
  const Message message = Message().Text(1, "one").Number(2, -1).Texts(3, {{"k", "v"}, {"e", ""}});
  std::string text;
  int64_t number = 0;
  std::map<std::string, std::string> map;
  Fields fields(message.bytes());
  while (fields.Next()) {
    if (fields.number() == 1) text = fields.text();
    if (fields.number() == 2) number = fields.value();
    if (fields.number() == 3) ReadEntry(fields.bytes(), map);
  }
  EXPECT_FALSE(fields.broken());
  EXPECT_EQ(text, "one");
  EXPECT_EQ(number, -1);
  EXPECT_EQ(map, (std::map<std::string, std::string>{{"e", ""}, {"k", "v"}}));
}

TEST(CriWire, StopsAtWhatIsNotProtobuf) {
  const std::string good = Message().Text(1, "one").Number(2, 70'000).bytes();
  // Cut anywhere: it ends, and never reads beyond.
  for (size_t size = 0; size < good.size(); ++size) {
    Fields fields(std::string_view(good).substr(0, size));
    int count = 0;
    while (fields.Next()) ++count;
    EXPECT_LE(count, 1) << size;
    EXPECT_EQ(fields.broken(), size != 0 && size != 5) << size;
  }
  for (const char* bad : {"\x0b", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    Fields fields(bad);
    EXPECT_FALSE(fields.Next());
    EXPECT_TRUE(fields.broken());
  }
}

}  // namespace
}  // namespace swell::cri
