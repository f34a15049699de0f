// What `swell install` puts into a cluster: CustomResourceDefinitions, priority classes, a
// namespace, service accounts and their rights. In the order in which they can be made.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace swell {

// Marks what install made: uninstall removes nothing else.
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "swell";

std::vector<json::Value> InstallObjects(const std::string& ns);

}  // namespace swell
