// TensorBoard beside a job: a Deployment and a NodePort Service, as Arena makes them.
// - Threads: as Api.
#pragma once

#include <string>

#include "cli/jobs/pytorch_spec.h"
#include "cli/session.h"

namespace swell::cli::arena {

struct TensorboardSpec {
  bool wanted = false;
  std::string image =
      "registry.cn-zhangjiakou.aliyuncs.com/tensorflow-samples/tensorflow:1.12.0-devel";
  std::string log_dir = "/training_logs";
};

Status CreateTensorboard(Session& session,
                         Api& api,
                         const PyTorchSpec& job,
                         const TensorboardSpec& spec);
// Removes what CreateTensorboard made; missing is fine. True when there was one.
Result<bool> DeleteTensorboard(Session& session,
                               Api& api,
                               const std::string& ns,
                               const std::string& job);

}  // namespace swell::cli::arena
