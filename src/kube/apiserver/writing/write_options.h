// What the query of a write says about it: dryRun, fieldManager, fieldValidation, force.
// - Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "kube/apiserver/call.h"

namespace swell::apiserver {

// Checks the options of a create, update, patch, delete or deletecollection; sets `dry_run`.
Status ReadWriteOptions(Call& call, std::string_view verb);

// Checks dryRun's values, of a query or of DeleteOptions.
Status ReadDryRun(Call& call,
                  const std::vector<std::string_view>& values,
                  std::string_view options_kind);

}  // namespace swell::apiserver
