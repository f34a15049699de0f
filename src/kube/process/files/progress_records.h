// ReadProgressRecords: the progress records in a pod's report folder, as the SDK keeps them.
// - Threads: any; reads files.
#pragma once

#include <string>

#include "kube/node/runtime/runtime.h"

namespace swell::process {

// A record that changes while it is read is left out: the next reading finds it. The folder is the
// pod's: links and special files are not followed, and only so many entries are looked at.
node::ProgressRecords ReadProgressRecords(const std::string& dir);

}  // namespace swell::process
