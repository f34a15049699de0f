// Chooses a pod's service account and mounts the account's token into its containers.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

Status AdmitServiceAccount(Admission& admission, json::Value& pod);

}  // namespace swell::apiserver
