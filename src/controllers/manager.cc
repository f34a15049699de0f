#include "controllers/manager.h"

#include "controllers/capacity_guard.h"
#include "controllers/endpoints.h"
#include "controllers/job_controller.h"
#include "controllers/pod_group.h"
#include "controllers/pytorch_job.h"

namespace swell::controllers {

struct Manager::Parts {
  Parts(const Context& context, const ManagerOptions& options)
      : guard(context),
        scheduler(context, options.scheduler),
        pod_groups(context),
        endpoints(context),
        pytorch_jobs(context, MakePyTorchJobKind({.host_network = options.host_network})) {}

  CapacityGuard guard;
  SchedulerLoop scheduler;
  PodGroupController pod_groups;
  EndpointsController endpoints;
  JobController pytorch_jobs;
};

Manager::Manager(Context context, ManagerOptions options)
    : context_(context), parts_(std::make_unique<Parts>(context_, options)) {}

Manager::~Manager() = default;

void Manager::Start() {
  parts_->scheduler.Start();
  context_.informers.Start();
}

bool Manager::synced() const { return context_.informers.synced(); }

const SchedulerLoop& Manager::scheduler() const { return parts_->scheduler; }

Status Manager::CheckBind(const json::Value& pod, const std::string& node) const {
  return parts_->guard.CheckBind(pod, node);
}

}  // namespace swell::controllers
