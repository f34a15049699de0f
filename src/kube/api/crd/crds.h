// The CustomResourceDefinitions that Swell brings, made from their schemas (schemas/crds.txt).
// Declared in scheme.h: SwellCrds. Here: how a schema becomes a CRD's openAPIV3Schema.
// - Threads: pure functions.
#pragma once

#include <vector>

#include "kube/api/schema/schema.h"

namespace swell::api {

// The priority classes of Run:ai's and Kubernetes' GPU users: train, interactive, build, inference.
std::vector<json::Value> SwellPriorityClasses();

// The ClusterTrainingRuntime that Kubeflow's trainer brings: torch-distributed.
json::Value TorchTrainingRuntime();

// JSON Schema as CRDs write it: every named type in place, nothing nullable.
json::Value StructuralSchemaJson(const Schema& schema);

}  // namespace swell::api
