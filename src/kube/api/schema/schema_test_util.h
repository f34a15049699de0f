// Schemas in one line each, for tests and fuzzers of what follows them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/api/schema/schema.h"

namespace swell::api {

inline SchemaPtr Scalar() {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kString;
  return schema;
}

inline SchemaPtr List(SchemaPtr items, bool merge, std::string key = "") {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kArray;
  schema->items = std::move(items);
  schema->patch_merge = merge;
  schema->patch_merge_key = std::move(key);
  return schema;
}

inline std::shared_ptr<Schema> Fields(
    const std::vector<std::pair<std::string, SchemaPtr>>& fields) {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kObject;
  for (const auto& [name, field] : fields) schema->fields.push_back({name, field});
  return schema;
}

}  // namespace swell::api
