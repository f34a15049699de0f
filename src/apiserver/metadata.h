// Rules for metadata that hold for every kind.
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "api/scheme.h"

namespace swell::apiserver {

// Names, labels, annotations, owners and finalizers, worded as Kubernetes words it.
std::vector<api::FieldError> ValidateMetadata(const api::KindInfo& kind, const json::Value& object,
                                              const json::Value* old);

}  // namespace swell::apiserver
