// Kinds of two groups that share their name: PyTorchJob, TFJob, XGBoostJob and MPIJob are
// Kubeflow's and KubeDL's, and ElasticDLJob is of elasticdl.org and KubeDL's. kubectl takes the
// plain word `pytorchjob` for the first group's; where only the other group has the object of that
// name, or objects in that namespace to show in a table, it is the other that people mean.
//
// What programs see is not touched: lists and watches of all objects are those of their group.
//
// - Threads: core executor only.
#pragma once

#include <string_view>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Before access is decided: sends the request to the other group where users mean that group.
void ResolveAmbiguousKind(const Core& core, std::string_view verb, Call& call);

}  // namespace swell::apiserver
