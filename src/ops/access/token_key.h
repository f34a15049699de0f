// The key that signs service account tokens: DIR/pki/sa.key, made at the first start.
// - Threads: main thread; the key itself is immutable.
#pragma once

#include <memory>

#include "kube/apiserver/api_server.h"
#include "ops/data_dir.h"

namespace swell::ops {

Result<std::shared_ptr<const apiserver::TokenKey>> LoadOrMakeTokenKey(const DataDir& dir);

}  // namespace swell::ops
