#include "manager/manager.h"

#include <algorithm>
#include <list>
#include <optional>

#include "autoscaling/goodput_scaler.h"
#include "autoscaling/log_autoscaler.h"
#include "autoscaling/pod_autoscaler.h"
#include "autoscaling/target_autoscaler.h"
#include "jobs/crons/cron_controller.h"
#include "jobs/decisions/job_gates.h"
#include "jobs/job_controller.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/progress/progress_metrics.h"
#include "jobs/progress/progress_reader.h"
#include "kube/api/crd/definitions.h"
#include "kube/controllers/cluster/certificate_cleaner.h"
#include "kube/controllers/cluster/device_taints.h"
#include "kube/controllers/cluster/ephemeral_volumes.h"
#include "kube/controllers/cluster/garbage_collector.h"
#include "kube/controllers/cluster/namespace.h"
#include "kube/controllers/cluster/namespace_defaults.h"
#include "kube/controllers/cluster/node_lifecycle.h"
#include "kube/controllers/cluster/pod_janitor.h"
#include "kube/controllers/cluster/resource_claims.h"
#include "kube/controllers/cluster/role_aggregation.h"
#include "kube/controllers/cluster/volume_binder.h"
#include "kube/controllers/workloads/batch_job.h"
#include "kube/controllers/workloads/cron_job.h"
#include "kube/controllers/workloads/daemon_set.h"
#include "kube/controllers/workloads/deployment.h"
#include "kube/controllers/workloads/disruption.h"
#include "kube/controllers/workloads/endpoint_slices.h"
#include "kube/controllers/workloads/endpoints.h"
#include "kube/controllers/workloads/queued_jobs.h"
#include "kube/controllers/workloads/replica_set.h"
#include "kube/controllers/workloads/stateful_set.h"
#include "projects/idle_rules.h"
#include "projects/job_accounts.h"
#include "projects/project_members.h"
#include "projects/projects.h"
#include "projects/usage_ledger.h"
#include "scheduling/capacity_guard.h"
#include "scheduling/gang_conditions.h"
#include "scheduling/node_health.h"
#include "scheduling/pod_group.h"
#include "scheduling/pod_grouper.h"
#include "scheduling/scheduler_pod.h"
#include "scheduling/scheduler_settings.h"
#include "scheduling/unserved_pods.h"

namespace swell::manager {
namespace {

using controllers::Context;

constexpr char kGarbageCollector[] = "garbagecollector";

template <class T, class... Arguments>
std::shared_ptr<void> Make(Arguments&&... arguments) {
  return std::make_shared<T>(std::forward<Arguments>(arguments)...);
}

// What kube-controller-manager does on a real cluster, under its names.
struct ClusterPart {
  std::string name;
  std::shared_ptr<void> (*make)(const Context&, const ManagerOptions&);
};

// A part that needs no option.
template <class T>
std::shared_ptr<void> MakePlain(const Context& context, const ManagerOptions&) {
  return std::make_shared<T>(context);
}

const std::vector<ClusterPart>& ClusterPartTable() {
  using Options = ManagerOptions;
  static const std::vector<ClusterPart> table = {
      {"endpoint", MakePlain<controllers::EndpointsController>},
      {"endpointslice", MakePlain<controllers::EndpointSliceController>},
      {"cronjob", MakePlain<controllers::CronJobController>},
      {"replicaset",
       [](const Context& c, const Options&) {
         return Make<controllers::ReplicaSetController>(c, controllers::ReplicaSets());
       }},
      {"replicationcontroller",
       [](const Context& c, const Options&) {
         return Make<controllers::ReplicaSetController>(c, controllers::ReplicationControllers());
       }},
      {"deployment", MakePlain<controllers::DeploymentController>},
      {"statefulset", MakePlain<controllers::StatefulSetController>},
      {"daemonset", MakePlain<controllers::DaemonSetController>},
      {"job", MakePlain<controllers::BatchJobController>},
      {"nodelifecycle",
       [](const Context& c, const Options& o) {
         return Make<controllers::NodeLifecycle>(
             c, controllers::NodeLifecycleOptions{.grace = o.node_grace,
                                                  .eviction_delay = o.eviction_delay});
       }},
      {"horizontalpodautoscaling",
       [](const Context& c, const Options& o) {
         return Make<autoscaling::PodAutoscaler>(c, *o.scheme);
       }},
      {"disruption", MakePlain<controllers::DisruptionController>},
      {"podgc",
       [](const Context& c, const Options& o) {
         return Make<controllers::PodJanitor>(c, o.ended_pods_max);
       }},
      {"resourceclaim-controller", MakePlain<controllers::ResourceClaimController>},
      {"device-taint-eviction-controller", MakePlain<controllers::DeviceTaintEviction>},
      {"serviceaccount",
       [](const Context& c, const Options& o) {
         return Make<controllers::NamespaceDefaults>(c, o.root_ca_pem);
       }},
      {"csrsigning",
       [](const Context& c, const Options& o) {
         return o.sign_client_certificate
                    ? Make<controllers::CertificateSigner>(c, o.sign_client_certificate)
                    : nullptr;
       }},
      {"csrcleaner", MakePlain<controllers::CertificateCleaner>},
      {"clusterrole-aggregation", MakePlain<controllers::RoleAggregation>},
      {"ephemeral-volume-controller", MakePlain<controllers::EphemeralVolumes>},
      {"persistentvolume-binder",
       [](const Context& c, const Options& o) {
         return Make<controllers::VolumeBinder>(c, o.remove_volume);
       }},
      {"namespace",
       [](const Context& c, const Options& o) {
         return Make<controllers::NamespaceController>(c, *o.scheme);
       }},
  };
  return table;
}

bool Enabled(const std::vector<std::string>& controllers, const std::string& name) {
  bool all = false;
  for (const std::string& item : controllers) {
    if (item == name) return true;
    if (item == "-" + name) return false;
    all = all || item == "*";
  }
  return all;
}

struct ClusterParts {
  ClusterParts(const Context& context, const ManagerOptions& options) {
    for (const ClusterPart& part : ClusterPartTable()) {
      if (Enabled(options.controllers, part.name)) parts.push_back(part.make(context, options));
    }
    if (Enabled(options.controllers, kGarbageCollector)) {
      garbage.emplace(context, *options.scheme);
    }
  }

  std::vector<std::shared_ptr<void>> parts;
  std::optional<controllers::GarbageCollector> garbage;
};

}  // namespace

struct Manager::Parts {
  Parts(const Context& context, const ManagerOptions& options)
      : guard(context),
        scheduler(context, options.scheduler),
        projects(context, scheduler.model(), [this] { return scheduler.past_use(); }),
        pod_groups(context),
        gang_conditions(context, [this](const std::string& group) { grouper.Reread(group); }),
        grouper(context,
                {.scheduler_names = options.scheduler_names,
                 .ns = options.grouping_namespace,
                 .rules = options.grouping_rules,
                 .release = [this](const json::Value& pod) { scheduler.RefreshPod(pod); }}) {
    AddJobKinds(context, options);
    idle.emplace(context);
    node_health.emplace(context);
    scheduler.HoldWhile([this](const json::Value& pod) { return grouper.Holds(pod); });
    scheduler.OnCycle([this] { projects.OnCycle(); });
    scheduler.Serve(options.scheduler_names);
    scheduler.MarkTogether(options.mark_together);
    scheduler.Record(options.recorder);
    if (options.scheme != nullptr) {
      members.emplace(context);
      job_accounts.emplace(context);
      cluster.emplace(context, options);
      ResumeQueued(context, options);
      unserved.emplace(context, options.scheduler_names);
    }
    // Last: it shares the informers of all kinds of jobs.
    gates.emplace(context);
    registered = RegisterMetrics(context.metrics, [&informers =
                                                       context.informers](MetricPage& page) {
      for (const client::Resource& resource : informers.resources()) {
        const client::Informer& informer = *informers.Find(resource);
        page.Add(
            {"swell_informer_objects", MetricType::kGauge, "Objects in the cache.", {"resource"}},
            {resource.GroupResource()}, static_cast<double>(informer.objects().size()));
        page.Add({"swell_informer_lists_total",
                  MetricType::kCounter,
                  "How often the cache was filled by a list.",
                  {"resource"}},
                 {resource.GroupResource()}, informer.lists());
      }
    });
    if (!options.own_namespace.empty()) KeepRecords(context, options);
    if (!options.log_file.empty()) scheduler_pod.emplace(context, options.log_file);
  }

  void AddJobKinds(const Context& context, const ManagerOptions& options) {
    const jobs::JobKindOptions of_cluster{
        .host_network = options.host_network,
        .find = [&informers = context.informers](
                    const client::Resource& resource,
                    std::string_view key) { return informers.Of(resource).Get(key); },
        .make_ssh_key = options.make_ssh_key};
    for (jobs::JobKindEntry& entry : jobs::MakeJobKinds(of_cluster)) {
      const client::Resource resource = entry.kind->resource();
      if (options.others_jobs.contains(resource.GroupResource())) continue;
      for (const client::Resource& used : entry.kind->References()) context.informers.Of(used);
      jobs.emplace_back(context, std::move(entry.kind));
      progress_readers.emplace_back(context, resource);
      progress_metrics.emplace_back(context, resource);
      if (entry.scale != nullptr) scalers.emplace_back(context, resource, entry.scale);
      if (entry.goodput != nullptr) {
        goodput_scalers.emplace_back(context, resource, entry.goodput, options.autoscaling_default,
                                     [this](const std::string& group, const std::string& label) {
                                       return scheduler.RoomsElsewhere(group, label);
                                     });
      }
      if (entry.target != nullptr) target_scalers.emplace_back(context, resource, entry.target);
    }
    // If KubeDL's own controller ran Crons too, each scheduled time would have two jobs.
    if (!options.others_jobs.contains(client::resources::kCrons.GroupResource()))
      crons.emplace(context);
  }

  // A batch Job is resumed by its own controller. On a real cluster all of them are Kueue's.
  void ResumeQueued(const Context& context, const ManagerOptions& options) {
    for (const api::Definition& kind : api::JobDefinitions()) {
      if (kind.suspend.empty() || options.others_jobs.contains(kind.GroupResource())) continue;
      queued.emplace_back(context, client::Resource{kind.group, kind.version, kind.plural, true},
                          kind.suspend, ToLower(kind.kind) + "-controller");
    }
  }

  void KeepRecords(const Context& context, const ManagerOptions& options) {
    settings.emplace(
        context,
        scheduling::SchedulerSettings{
            options.scheduler, {options.scheduler_names.begin(), options.scheduler_names.end()}},
        options.own_namespace);
    usage.emplace(context, scheduler.model(), options.own_namespace);
    scheduler.Observe(
        {.started = [this](const json::Value& pod,
                           Duration waited) { usage->OnStarted(pod, waited); },
         .preempted = [this](const json::Value& pod,
                             const sched::Decision& /*eviction*/) { usage->OnPreempted(pod); }});
  }

  scheduling::CapacityGuard guard;
  scheduling::SchedulerLoop scheduler;
  projects::ProjectController projects;
  std::optional<projects::ProjectMembers> members;
  std::optional<projects::JobAccounts> job_accounts;
  scheduling::PodGroupController pod_groups;
  scheduling::GangConditions gang_conditions;
  scheduling::PodGrouper grouper;
  std::list<jobs::JobController> jobs;
  std::list<controllers::QueuedJobs> queued;
  std::optional<jobs::CronController> crons;
  std::list<jobs::ProgressReader> progress_readers;
  std::list<jobs::ProgressMetrics> progress_metrics;
  std::list<autoscaling::LogAutoscaler> scalers;
  std::list<autoscaling::GoodputScaler> goodput_scalers;
  std::list<autoscaling::TargetAutoscaler> target_scalers;
  std::optional<scheduling::SchedulerPod> scheduler_pod;
  std::optional<scheduling::SettingsTeller> settings;
  std::optional<scheduling::UnservedPods> unserved;
  std::optional<projects::UsageLedger> usage;
  std::optional<projects::IdleRules> idle;
  std::optional<jobs::JobGates> gates;
  std::optional<scheduling::NodeHealthController> node_health;
  std::optional<ClusterParts> cluster;
  std::unique_ptr<Metrics::Registration> registered;
};

const std::vector<std::string>& ControllerNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{kGarbageCollector};
    for (const ClusterPart& part : ClusterPartTable()) all.push_back(part.name);
    std::sort(all.begin(), all.end());
    return all;
  }();
  return names;
}

Manager::Manager(Context context, ManagerOptions options)
    : context_(context), parts_(std::make_unique<Parts>(context_, options)) {}

Manager::~Manager() = default;

void Manager::Start() {
  parts_->scheduler.Start();
  if (parts_->settings) parts_->settings->Start();
  if (parts_->usage) parts_->usage->Start();
  parts_->idle->Start();
  parts_->gates->Start();
  context_.informers.Start();
  // Last: it shares the informers that the others have asked for.
  if (parts_->cluster && parts_->cluster->garbage) parts_->cluster->garbage->Start();
}

void Manager::Flush(std::function<void()> done) {
  if (!parts_->usage) return done();
  parts_->usage->FlushThen(std::move(done));
}

bool Manager::synced() const { return context_.informers.synced(); }

const scheduling::SchedulerLoop& Manager::scheduler() const { return parts_->scheduler; }

Status Manager::CheckBind(const json::Value& pod, const std::string& node) {
  return parts_->guard.CheckBind(pod, node);
}

}  // namespace swell::manager
