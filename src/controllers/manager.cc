#include "controllers/manager.h"

#include <optional>

#include "controllers/batch_job.h"
#include "controllers/capacity_guard.h"
#include "controllers/disruption.h"
#include "controllers/endpoints.h"
#include "controllers/garbage_collector.h"
#include "controllers/job_controller.h"
#include "controllers/namespace.h"
#include "controllers/node_lifecycle.h"
#include "controllers/pod_group.h"
#include "controllers/pod_janitor.h"
#include "controllers/projects.h"
#include "controllers/pytorch_job.h"

namespace swell::controllers {
namespace {

// What kube-controller-manager does on a real cluster.
struct ClusterParts {
  ClusterParts(const Context& context, const ManagerOptions& options)
      : endpoints(context),
        batch_jobs(context),
        nodes(context, {.grace = options.node_grace, .eviction_delay = options.eviction_delay}),
        disruption(context),
        janitor(context, options.ended_pods_max),
        namespaces(context, *options.scheme),
        garbage(context, *options.scheme) {}

  EndpointsController endpoints;
  BatchJobController batch_jobs;
  NodeLifecycle nodes;
  DisruptionController disruption;
  PodJanitor janitor;
  NamespaceController namespaces;
  GarbageCollector garbage;
};

}  // namespace

struct Manager::Parts {
  Parts(const Context& context, const ManagerOptions& options)
      : guard(context),
        scheduler(context, options.scheduler),
        projects(context, scheduler.model()),
        pod_groups(context),
        pytorch_jobs(context, MakePyTorchJobKind({.host_network = options.host_network})) {
    scheduler.OnCycle([this] { projects.OnCycle(); });
    if (options.scheme != nullptr) cluster.emplace(context, options);
  }

  CapacityGuard guard;
  SchedulerLoop scheduler;
  ProjectController projects;
  PodGroupController pod_groups;
  JobController pytorch_jobs;
  std::optional<ClusterParts> cluster;
};

Manager::Manager(Context context, ManagerOptions options)
    : context_(context), parts_(std::make_unique<Parts>(context_, options)) {}

Manager::~Manager() = default;

void Manager::Start() {
  parts_->scheduler.Start();
  context_.informers.Start();
  // Last: it shares the informers that the others have asked for.
  if (parts_->cluster) parts_->cluster->garbage.Start();
}

bool Manager::synced() const { return context_.informers.synced(); }

const SchedulerLoop& Manager::scheduler() const { return parts_->scheduler; }

Status Manager::CheckBind(const json::Value& pod, const std::string& node) {
  return parts_->guard.CheckBind(pod, node);
}

}  // namespace swell::controllers
