// FuzzSeeds: what a libFuzzer target is given in builds without libFuzzer: each input of its
// corpus, and mutations of them that are the same each time. cmake/component.cmake makes a test of
// every target so; SWELL_SEED and SWELL_SEEDS choose the mutations.
//
// - Threads: none.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/test_seeds.h"

namespace swell {

class FuzzSeeds {
 public:
  using Target = int (*)(const uint8_t* data, size_t size);

  FuzzSeeds(const std::string& corpus, Target target) : target_(target) {
    auto names = ListDir(corpus);
    EXPECT_TRUE(names.ok() && !names->empty()) << corpus << " has no seeds";
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      auto bytes = ReadFile(StrCat(corpus, "/", name));
      EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
      if (bytes.ok()) inputs_.push_back(std::move(*bytes));
    }
  }

  void Run() {
    Give("");
    for (const std::string& input : inputs_) Give(input);
    if (inputs_.empty()) return;
    const TestSeeds seeds = TestSeeds::FromEnvironment(kMutations);
    // A target that finds something aborts; its seed must be known then.
    const auto before = std::signal(SIGABRT, [](int) {
      std::fprintf(stderr, "again: SWELL_SEED=%llu\n", static_cast<unsigned long long>(now));
    });
    for (now = seeds.first; now < seeds.first + seeds.count; ++now) Give(Mutated(now));
    std::signal(SIGABRT, before);
  }

 private:
  static constexpr uint64_t kMutations = 500;

  // libFuzzer's inputs are copies of exactly their size, too: what is read beyond is seen by asan.
  void Give(const std::string& input) const {
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    target_(bytes.data(), bytes.size());
  }

  std::string Mutated(uint64_t seed) const {
    Random random(seed);
    std::string out = inputs_[random.Below(inputs_.size())];
    for (uint64_t left = 1 + random.Below(4); left > 0; --left) {
      const size_t at = random.Below(out.size() + 1);
      const size_t some = random.Below(9);
      switch (random.Below(4)) {
        case 0:
          if (at < out.size()) out[at] = static_cast<char>(random.Next());
          break;
        case 1:
          if (at < out.size()) out[at] = static_cast<char>(out[at] ^ 1 << random.Below(8));
          break;
        case 2:
          out.erase(at, some);
          break;
        default: {
          const std::string& other = inputs_[random.Below(inputs_.size())];
          out.insert(at, other.substr(random.Below(other.size() + 1), some * some));
        }
      }
    }
    return out;
  }

  const Target target_;
  std::vector<std::string> inputs_;
  static inline uint64_t now = 0;
};

}  // namespace swell
