// Strategic merge patch, driven by the schema's merge keys. Source: Kubernetes API conventions,
// "strategic merge patch" ($patch, $setElementOrder, $deleteFromPrimitiveList, $retainKeys).
// - Threads: pure functions.
#pragma once

#include "json/value.h"
#include "kube/api/schema/schema.h"

namespace swell::api {

// What is wrong with a patch is told in Kubernetes' words: kBadRequest for $retainKeys that do not
// fit, kInternal for the rest (kube-apiserver answers 500 without a reason).
Status ApplyStrategicMerge(const Schema& schema, json::Value& document, const json::Value& patch);

}  // namespace swell::api
