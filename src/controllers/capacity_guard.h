// CapacityGuard: does a pod still fit a node? Asked by the embedded API server at every binding, so
// that two schedulers, or one with an old picture, cannot fill a node twice. What it let through
// counts at once, until the watch shows the pod bound or gone (or ten seconds pass: the write
// failed). Thread-safety: core executor only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controllers/context.h"

namespace swell::controllers {

class CapacityGuard {
 public:
  explicit CapacityGuard(Context context);

  // kConflict names the resource, what is asked and what is free. A node that is not known is
  // let through: the agent checks again.
  Status CheckBind(const json::Value& pod, const std::string& node);

 private:
  struct Approved {
    std::string node;
    std::map<std::string, int64_t> requests;
    SteadyTime at;
  };

  void ForgetSettled();

  Clock& clock_;
  std::map<std::string, Approved> approved_;  // by pod uid
  client::Informer& pods_;
  client::Informer& nodes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace swell::controllers
