// Manager: every controller and the scheduler, made and started together. What `swell up`, `swell
// controller` and the simulation run.
// - Threads: core executor only.
// - Ownership: the Context's parts outlive it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/kinds/job_kind.h"
#include "kube/api/schema/scheme.h"
#include "kube/controllers/cluster/certificate_signer.h"
#include "kube/controllers/context.h"
#include "scheduling/grouping_rules.h"
#include "scheduling/scheduler_loop.h"

namespace swell::manager {

struct ManagerOptions {
  // The embedded cluster's kinds. Null: a real cluster, whose own controller manager does what is
  // not Swell's: nodes, garbage collection, namespaces, endpoints, jobs, disruption budgets.
  const api::Scheme* scheme = nullptr;
  // Which of the scheme's controllers run, as kube-controller-manager's --controllers says it:
  // "*" all, "name" one, "-name" not this one. Swell's own always run.
  std::vector<std::string> controllers = {"*"};
  std::string root_ca_pem;  // what pods trust the API server by; empty: they are told nothing
  // Signs certificates of clients by the cluster's authority; empty: nobody does here.
  controllers::SignClientCertificate sign_client_certificate;
  // See JobKindOptions.
  std::function<Result<jobs::SshKeyPair>()> make_ssh_key;
  // Pods of these schedulers are Swell's to place.
  std::vector<std::string> scheduler_names = {"swell"};
  bool host_network = false;
  // Kinds whose own operator makes their pods, which are only placed: "pytorchjobs.kubeflow.org".
  std::set<std::string> others_jobs;
  // How other operators' pods form gangs: rules from a file, and the namespace of the ConfigMap
  // with rules (empty: none is read). See PodGrouper.
  std::vector<scheduling::GroupingRule> grouping_rules;
  std::string grouping_namespace;
  // The file that has the scheduler's log, for the pod that shows it. May be empty.
  std::string log_file;
  // Removes what a provisioned volume of that handle holds; empty: nothing is held.
  std::function<void(const std::string&)> remove_volume;
  sched::Settings scheduler;
  // The autoscaling mode of elastic TrainingJobs that name none, where no project has a default:
  // Goodput, None or empty.
  std::string autoscaling_default;
  // So many evicted members of one gang are marked by one write to their group (evictions.h).
  size_t mark_together = 16;
  sched::Recorder* recorder = nullptr;  // of the scheduler's cycles; outlives the Manager
  // A node that is silent for this long is lost; its pods go after `eviction_delay` more, unless
  // they say themselves how long they tolerate it.
  Duration node_grace = std::chrono::seconds(40);
  Duration eviction_delay = std::chrono::seconds(300);
  // Where Swell keeps what is its own: the account of who held what, and the scheduler's settings.
  // Empty: neither is kept.
  std::string own_namespace;
  // Ended pods beyond this many are removed, oldest first.
  size_t ended_pods_max = 12'500;
};

// Names that `controllers` may say.
const std::vector<std::string>& ControllerNames();

class Manager {
 public:
  Manager(controllers::Context context, ManagerOptions options);
  ~Manager();

  void Start();
  // Before its end: writes down what only it knows. `done` runs when that is done, or within
  // seconds.
  void Flush(std::function<void()> done);
  bool synced() const;
  const scheduling::SchedulerLoop& scheduler() const;
  // For the embedded API server's bindings; see CapacityGuard.
  Status CheckBind(const json::Value& pod, const std::string& node);

 private:
  struct Parts;
  controllers::Context context_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace swell::manager
