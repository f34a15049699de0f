// CapacityGuard: does a pod still fit a node? Asked by the embedded API server at every binding, so
// that two schedulers, or one with an old picture, cannot fill a node twice.
// Thread-safety: core executor only.
#pragma once

#include <string>

#include "controllers/context.h"

namespace swell::controllers {

class CapacityGuard {
 public:
  explicit CapacityGuard(Context context);

  // kConflict names the resource, what is asked and what is free. A node that is not known is
  // let through: the agent checks again.
  Status CheckBind(const json::Value& pod, const std::string& node) const;

 private:
  client::Informer& pods_;
  client::Informer& nodes_;
};

}  // namespace swell::controllers
