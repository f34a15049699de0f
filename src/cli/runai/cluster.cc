// runai cluster-info, get, top: the cluster and its projects as a whole.
#include <algorithm>

#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/runai/print.h"
#include "cli/runai/runai.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"

namespace swell::cli::runai {
namespace {

class ClusterInfoAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, *api, {}));
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    int64_t gpus = 0, held = 0, free = 0, unhealthy = 0;
    int64_t ready = 0;
    for (const NodeView& node : nodes) {
      gpus += node.gpus();
      held += node.used.milli_gpus;
      free += node.FreeMilliGpus();
      unhealthy += node.unhealthy_gpus;
      ready += node.ready;
    }
    session.OutLine(StrCat("CLUSTER: ", api->connection().url));
    session.OutLine(StrCat("NODES: ", ready, " ready of ", nodes.size()));
    session.OutLine(StrCat("GPUS: ", GpuText(held), " allocated of ", gpus, ", ", GpuText(free),
                           " free", unhealthy > 0 ? StrCat(", ", unhealthy, " unhealthy") : ""));
    session.Out(StrCat("\nNodes:\n", NodesTable(session, nodes)));
    if (tree.projects.empty()) return 0;
    session.Out("\nProjects:\n");
    TextTable table({"PROJECT", "GPUs Allocated/Quota", "FAIR SHARE", "REQUESTED", "STATE"}, 2);
    for (const ProjectView& project : tree.projects) {
      const Share& gpu = project.gpu();
      const std::string state(gpu.State());
      table.Add({project.name, HeldText(gpu, ShareOf::kGpu),
                 gpu.fair_share ? ShareText(*gpu.fair_share, ShareOf::kGpu) : "-",
                 ShareText(gpu.requested, ShareOf::kGpu),
                 gpu.over_quota() ? session.Paint(Colour::kYellow, state) : state});
    }
    session.Out(table.ToString());
    return 0;
  }
};

class GetResourcesAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT", "output format: json or yaml");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    std::vector<ProjectView> shown;
    for (const ProjectView& project : scope.tree.projects) {
      if (scope.all ? !project.department : project.name == scope.project.name) {
        shown.push_back(project);
      }
    }
    if (shown.empty()) {
      session.ErrLine("No projects. Create one with: runai project create NAME --gpu-quota N");
      return 0;
    }
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const ProjectView& project : shown) objects.push_back(project.object);
      session.Out(FormatObject(form, objects.size() == 1 ? *objects[0] : MakeList(objects), ""));
      return 0;
    }
    bool first = true;
    for (const ProjectView& project : shown) {
      if (!first) session.OutLine("");
      first = false;
      session.OutLine(StrCat("PROJECT: ", project.name, ", ", QuotaText(project)));
      session.OutLine(
          StrCat("NODE POOLS: ", project.pools.empty() ? "all nodes" : Join(project.pools, ", ")));
      session.OutLine("");
      session.Out(SharesTable(session, project));
    }
    return 0;
  }

 private:
  std::string output_;
};

class GetPoolsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT", "output format: json or yaml");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<PoolView> pools, ReadPools(*api));
    PrintPools(session, pools, form, "");
    if (pools.empty() || !form.table()) return 0;
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    TextTable table({"POOL", "PROJECT", "GPU QUOTA", "GPU LIMIT", "OVER-QUOTA WEIGHT"});
    for (const ProjectView& project : tree.projects) {
      for (const api::ProjectPool& pool : api::ProjectSpec(*project.object).pools) {
        const api::ResourceShare& gpu = pool.shares.gpu;
        table.Add({pool.name, project.name,
                   ShareText(gpu.quota.value_or(kUnlimitedShare), ShareOf::kGpu),
                   ShareText(gpu.limit.value_or(kUnlimitedShare), ShareOf::kGpu),
                   ShareText(gpu.over_quota_weight.value_or(1), ShareOf::kGpu)});
      }
    }
    if (table.size() > 1) session.Out(StrCat("\nQuotas:\n", table.ToString()));
    return 0;
  }

 private:
  std::string output_;
};

class TopNodeAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-d,--details", &details_, "show the pods that use GPUs");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, *api, words));
    session.Out(NodesTable(session, nodes));
    if (!details_) return 0;
    TextTable table({"NODE", "POD", "NAMESPACE", "GPUs", "DEVICES"}, 2);
    for (const NodeView& node : nodes) {
      for (const json::SharedValue& pod : node.pods) {
        if (MilliGpus(*pod) == 0) continue;
        std::string_view devices = api::Annotation(*pod, api::keys::kGpuDevices);
        table.Add({node.name, std::string(api::Name(*pod)), std::string(api::Namespace(*pod)),
                   GpuText(MilliGpus(*pod)), devices.empty() ? "-" : std::string(devices)});
      }
    }
    session.Out(StrCat("\n", table.ToString()));
    return 0;
  }

 private:
  bool details_ = false;
};

class TopJobAction final : public Action {
 public:
  void Declare(Flags& flags) override { flags.Switch("-A,--all-projects", &all_, "all projects"); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs,
                           ListShownJobs(session, *scope.api, all_ ? "" : scope.ns()));
    TextTable table(
        {"PROJECT", "NAME", "STATUS", "GPUs Allocated (Requested)", "CPUs", "MEMORY", "PODs"}, 2);
    for (const JobView& job : jobs) {
      if (!words.empty() && std::find(words.begin(), words.end(), job.name) == words.end()) {
        continue;
      }
      Amounts held;
      for (const json::SharedValue& pod : job.pods) {
        bool placed = api::IsBound(*pod);
        if (placed && !api::HasEnded(*pod)) held.AddPod(*pod);
      }
      std::string status = StatusWord(job);
      table.Add(
          {ProjectOf(scope, job), job.name, session.Paint(StatusColour(status), status),
           StrCat(GpuText(held.milli_gpus), " (", GpuText(job.over() ? 0 : job.milli_gpus), ")"),
           CpuText(held.milli_cpu), MemoryText(held.memory),
           StrCat(job.RunningPods(), "/", job.replicas)});
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  bool all_ = false;
};

}  // namespace

Command ClusterInfoSpec() {
  return {
      .name = "cluster-info",
      .summary = "Show nodes, GPUs and the shares of the projects.",
      .examples = {{"Nodes and projects", "runai cluster-info"}},
      .make = Makes<ClusterInfoAction>(),
  };
}

Command GetSpec() {
  Command get{
      .name = "get",
      .summary = "Show quotas and node pools.",
  };
  Command resources{
      .name = "resources",
      .summary = "Show use and quota of a project.",
      .examples = {{"One project", "runai get resources --project team-a"}},
      .make = Makes<GetResourcesAction>(),
  };
  get.children = {std::move(resources), PoolsSpec()};
  // kubectl's and Arena's people look for the rest here.
  for (Command& child : ListSpec().children) {
    if (child.name != "node-pools") get.children.push_back(std::move(child));
  }
  return get;
}

Command PoolsSpec() {
  return {
      .name = "node-pools",
      .aliases = {"nodepools", "node-pool", "nodepool"},
      .summary = "Show node pools and the quotas in them.",
      .make = Makes<GetPoolsAction>(),
  };
}

Command TopSpec() {
  Command top{
      .name = "top",
      .summary = "Show the use of GPUs.",
  };
  Command node{
      .name = "node",
      .aliases = {"nodes"},
      .summary = "Show GPUs, CPUs and memory of each node.",
      .usage = "[NODE...]",
      .completes = Completes::kNode,
      .make = Makes<TopNodeAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs"},
      .summary = "Show the resources of each workload.",
      .usage = "[WORKLOAD...]",
      .completes = Completes::kJob,
      .make = Makes<TopJobAction>(),
  };
  top.children = {std::move(node), std::move(job)};
  return top;
}

}  // namespace swell::cli::runai
