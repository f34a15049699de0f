// Documents for the tests of this folder.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include <gtest/gtest.h>

#include "json/yaml.h"

namespace swell::api {

// The only document in the text. The test fails if the text has another number of documents.
inline json::Value Document(std::string_view yaml) {
  auto documents = json::ParseYaml(yaml);
  const bool one = documents.ok() && documents->size() == 1;
  EXPECT_TRUE(one) << yaml;
  return one ? documents->front() : json::Value();
}

}  // namespace swell::api
