#include "ops/options/controller_replica.h"

#include "ops/access/job_keys.h"

namespace swell::ops {

Result<manager::ReplicaOptions> ReplicaOptionsOf(const ControllerOptions& controller,
                                                 const ClusterFacts& facts) {
  manager::ReplicaOptions replica;
  manager::ManagerOptions& manager = replica.manager;
  manager.make_ssh_key = MakeJobKey;
  manager.host_network = controller.host_network;
  manager.others_jobs = facts.others_jobs;
  SWELL_ASSIGN_OR_RETURN(manager.grouping_rules, ReadGroupingRules(controller.grouping_rules));
  manager.grouping_namespace = controller.election.ns;
  manager.own_namespace = controller.election.ns;
  manager.scheduler = controller.scheduler;
  manager.autoscaling_default = controller.autoscaling_default;
  replica.prepare = [policy_v1 = facts.policy_v1,
                     missing = facts.missing](controllers::Informers& informers) {
    if (!policy_v1) informers.UseVersion("policy", "v1beta1");
    for (const client::Resource& one : missing) informers.LeaveOut(one);
  };
  if (controller.election.elect) {
    SWELL_ASSIGN_OR_RETURN(replica.election, ReadElection(controller.election));
  }
  return replica;
}

}  // namespace swell::ops
