// Documents in tests: as written, and random ones for property tests.
// - Threads: pure functions.
#pragma once

#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/random.h"
#include "json/value.h"

namespace swell::json {

inline Value J(std::string_view text) {
  const Result<Value> value = Parse(text);
  EXPECT_TRUE(value.ok()) << value.status().ToString() << " in " << text;
  return value.ok() ? *value : Value();
}

inline std::string RandomText(Random& random) {
  static constexpr std::string_view kPieces[] = {"a",
                                                 "spec",
                                                 " ",
                                                 "\n",
                                                 "  ",
                                                 ":",
                                                 ": ",
                                                 "#",
                                                 " #",
                                                 "-",
                                                 "- ",
                                                 "\"",
                                                 "'",
                                                 "\\",
                                                 "0",
                                                 "17",
                                                 ".5",
                                                 "e3",
                                                 "true",
                                                 "no",
                                                 "~",
                                                 "null",
                                                 "\t",
                                                 "\x01",
                                                 "{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "&",
                                                 "\xc3\xa9",
                                                 "*",
                                                 "\r",
                                                 "%",
                                                 "/",
                                                 "---",
                                                 "...",
                                                 "2026-01-01",
                                                 "<<",
                                                 "|",
                                                 ">",
                                                 "\xf0\x9f\x98\x80",
                                                 "?",
                                                 "words of some length ",
                                                 "=",
                                                 "\x7f",
                                                 "\xc2\x85",
                                                 "\xe2\x80\xa8",
                                                 "\xef\xbb\xbf",
                                                 "0x1f",
                                                 "1_000",
                                                 "12:30:45",
                                                 ","};
  std::string text;
  for (uint64_t n = random.Below(8); n > 0; --n) {
    text += kPieces[random.Below(std::size(kPieces))];
  }
  return text;
}

// No null inside objects when `nulls` is false (merge patches cannot express it).
inline Value RandomValue(Random& random, int depth, bool nulls = true) {
  auto text = [&] {
    std::string s = RandomText(random);
    return Value(boost::json::string_view(s.data(), s.size()));
  };
  switch (random.Below(depth > 0 ? 9 : 6)) {
    case 0:
      return nulls ? Value(nullptr) : Value(0);
    case 1:
      return random.OneIn(2);
    case 2:
      return static_cast<int64_t>(random.Next() >> random.Below(64));
    case 3:
      return random.Next();
    case 4:
      return (random.Unit() - 0.5) * std::pow(10.0, static_cast<double>(random.Below(40)) - 20);
    case 5:
      return text();
    case 6: {
      Array array;
      for (uint64_t n = random.Below(5); n > 0; --n) {
        array.push_back(RandomValue(random, depth - 1, nulls));
      }
      return array;
    }
    default: {
      Object object;
      for (uint64_t n = random.Below(6); n > 0; --n) {
        object[random.OneIn(2) ? "k" + std::to_string(random.Below(8)) : RandomText(random)] =
            RandomValue(random, depth - 1, nulls);
      }
      return object;
    }
  }
}

}  // namespace swell::json
