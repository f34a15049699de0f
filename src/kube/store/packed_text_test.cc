// Tests of texts that are kept as what they have in common.
#include "kube/store/packed_text.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "base/test_seeds.h"

namespace swell::store {
namespace {

std::string RandomText(Random& random, size_t size) {
  std::string text;
  while (text.size() < size) text += random.Uuid();
  text.resize(size);
  return text;
}

// As a job's pods: what tells one from the others comes between what they all say.
std::string Member(const std::string& common, size_t number, Random& random) {
  std::string text;
  for (size_t at = 0; at < common.size(); at += 500) {
    text += common.substr(at, 500) + StrCat("\"member-", number, "\",\"", random.Next(), "\"");
  }
  return text;
}

std::string Again(const PackedText& text) {
  std::string again = "before ";
  text.AppendTo(again);
  EXPECT_EQ(again.substr(7), *text.Whole());
  return again.substr(7);
}

// What was changed here and there: cut, put in, doubled, moved.
std::string Changed(std::string text, Random& random) {
  for (uint64_t i = random.Below(6); i > 0 && !text.empty(); --i) {
    const size_t at = random.Below(text.size());
    const size_t size = random.Below(random.OneIn(4) ? 2000 : 40);
    switch (random.Below(4)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, RandomText(random, size));
        break;
      case 2:
        text.insert(random.Below(text.size()), text.substr(at, size));
        break;
      default:
        text = text.substr(at) + text.substr(0, at);
    }
  }
  return text;
}

TEST(PackedText, SaysWhatItWasMadeOf) {
  const TestSeeds seeds = TestSeeds::FromEnvironment(30);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    std::vector<std::string> texts{""};
    std::vector<PackedText> kept;
    for (int i = 0; i < 300; ++i) {
      texts.push_back(random.OneIn(10)
                          ? RandomText(random, random.Below(random.OneIn(5) ? 60'000 : 3000))
                          : Changed(texts[random.Below(texts.size())], random));
      kept.emplace_back(texts.back());
      if (random.OneIn(3)) {
        const size_t gone = random.Below(kept.size());
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(gone));
        texts.erase(texts.begin() + static_cast<ptrdiff_t>(gone) + 1);
      }
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      ASSERT_EQ(Again(kept[i]), texts[i + 1]) << "seed " << seed;
      ASSERT_EQ(kept[i].size(), texts[i + 1].size());
    }
  }
}

TEST(PackedText, TextsThatResembleEachOtherAreKeptAsTheirDifferences) {
  Random random(1);
  const std::string common = RandomText(random, 3000);
  std::optional<PackedText> first(Member(common, 0, random));
  EXPECT_FALSE(first->packed());
  std::vector<PackedText> members;
  std::vector<std::string> texts;
  for (size_t i = 1; i < 100; ++i) {
    texts.push_back(Member(common, i, random));
    members.emplace_back(texts.back());
    EXPECT_TRUE(members.back().packed()) << i;
  }
  first.reset();
  for (size_t i = 0; i < members.size(); ++i) EXPECT_EQ(Again(members[i]), texts[i]);
}

// Every pod is written again with much that none had before: who runs it, and who says so.
TEST(PackedText, WhatIsNewInManyTextsIsSoonInCommon) {
  Random random(1);
  const std::string common = RandomText(random, 3000);
  const std::string more = RandomText(random, 1000);
  const PackedText first(Member(common, 0, random));
  std::vector<PackedText> kept;
  size_t whole = 0;
  for (size_t i = 0; i < 100; ++i) {
    kept.emplace_back(Member(common + more, i, random));
    if (!kept.back().packed()) ++whole;
  }
  EXPECT_EQ(whole, 1U);
}

TEST(PackedText, SmallVeryLargeAndSingularTextsAreKeptWhole) {
  Random random(1);
  for (const size_t size : {size_t{0}, size_t{15}, size_t{100}, PackedText::kMost + 1}) {
    const std::string text = RandomText(random, size);
    const PackedText first(text);
    const PackedText second(text);
    EXPECT_FALSE(second.packed());
    EXPECT_EQ(Again(second), text);
  }
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(PackedText(RandomText(random, 3000)).packed());
}

TEST(PackedText, KnowsHowItStarts) {
  Random random(1);
  const std::string common = RandomText(random, 2000);
  const std::string text = "{" + common;
  const PackedText first(common);
  const PackedText second(text);
  ASSERT_TRUE(second.packed());
  for (const PackedText* kept : {&second, &first}) {
    const std::string whole = *kept->Whole();
    for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, size_t{1500}, whole.size()}) {
      EXPECT_TRUE(kept->StartsWith(whole.substr(0, size)));
      EXPECT_FALSE(kept->StartsWith(whole.substr(0, size) + "?"));
      EXPECT_FALSE(kept->StartsWith("?" + whole.substr(0, size)));
    }
  }
}

TEST(PackedText, IsReadByOtherThreads) {
  Random random(1);
  const std::string common = RandomText(random, 3000);
  const PackedText first(Member(common, 0, random));
  const std::string text = Member(common, 1, random);
  auto kept = std::make_unique<const PackedText>(text);
  ASSERT_TRUE(kept->packed());
  std::string read;
  std::thread reader([&] {
    read = *kept->Whole();
    kept.reset();
  });
  const PackedText another(Member(common, 2, random));
  reader.join();
  EXPECT_EQ(read, text);
}

}  // namespace
}  // namespace swell::store
