// Projects that are put below another one: work belongs to projects with none below them, so one
// that still has work of its own takes none. `swell project` says the same.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// kInvalid names the work. `old`: null for a new project.
Status CheckParent(const Admission& admission, const json::Value& project, const json::Value* old);

}  // namespace swell::apiserver
