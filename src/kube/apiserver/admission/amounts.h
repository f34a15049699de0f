// Amounts of a pod: what its containers ask for together. Shared by quotas and limit ranges.
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>

#include "json/value.h"
#include "kube/api/quantity.h"

namespace swell::apiserver {

using Amounts = std::map<std::string, api::Quantity>;

// {cpu: "1", memory: 2Gi} as amounts; what is none is left out, for the schema has refused it.
Amounts ReadAmounts(const json::Value& object, json::Path path);
// `field` is requests or limits: the containers' sum, or one init container's where that is more.
Amounts PodAmounts(const json::Value& pod, std::string_view field);
void Add(Amounts& to, const Amounts& more);
json::Object ToJson(const Amounts& amounts);

}  // namespace swell::apiserver
