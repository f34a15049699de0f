// Strategic merge patch, driven by the schema's merge keys.
// Source: Kubernetes API conventions, "strategic merge patch" ($patch, $setElementOrder,
// $deleteFromPrimitiveList, $retainKeys).
#pragma once

#include "api/schema.h"
#include "json/value.h"

namespace swell::api {

// kInvalid when a list element lacks its merge key or a directive is malformed.
Status ApplyStrategicMerge(const Schema& schema, json::Value& document, const json::Value& patch);

}  // namespace swell::api
