// swell top node, job, project: who has the CPUs, the memory and the GPUs, by what is requested.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/node_commands.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/print/view_output.h"
#include "cli/top/top_command.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/project_view.h"
#include "cli/views/view_json.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

std::string OfTotal(const std::string& used, const std::string& total, int64_t a, int64_t b) {
  return StrCat(used, "/", total, b > 0 ? StrCat(" (", a * 100 / b, "%)") : "");
}

class TopNodeAction final : public Action {
 public:
  void Declare(Flags& flags) override { output_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadShownNodes(session, *api, words));
    if (nodes.empty()) return Status(Code::kNotFound, "the cluster has no nodes");
    TextTable table({"NAME", "STATUS", "GPUS", "CPU", "MEMORY", "PODS"});
    Amounts all, all_used;
    int64_t unhealthy = 0;
    json::Array list;
    for (const NodeView& node : nodes) {
      json::Object one = NodeUseJson(node.used, node.total, node.unhealthy_gpus);
      one["name"] = node.name;
      one["status"] = node.StatusWord();
      one["pods"] = node.pods.size();
      list.push_back(std::move(one));
      table.Add(Row(session, node.name, node.StatusWord(), node.used, node.total,
                    node.unhealthy_gpus, static_cast<int64_t>(node.pods.size())));
      unhealthy += node.unhealthy_gpus;
      all.Add(node.total);
      all_used.Add(node.used);
    }
    if (output_.is_document()) {
      output_.Print(session, json::Object{{"nodes", std::move(list)},
                                          {"all", NodeUseJson(all_used, all, unhealthy)}});
      return 0;
    }
    if (nodes.size() > 1) table.Add(Row(session, "all", "", all_used, all, unhealthy, -1));
    session.Out(table.ToString());
    return 0;
  }

 private:
  static std::vector<std::string> Row(Session& session,
                                      std::string name,
                                      const std::string& status,
                                      const Amounts& used,
                                      const Amounts& total,
                                      int64_t unhealthy,
                                      int64_t pods) {
    return {
        std::move(name),
        session.Paint(StatusColour(status), status),
        StrCat(OfTotal(GpuText(used.milli_gpus), GpuText(total.milli_gpus), used.milli_gpus,
                       total.milli_gpus),
               unhealthy > 0 ? StrCat(", ", unhealthy, " unhealthy") : ""),
        OfTotal(CpuText(used.milli_cpu), CpuText(total.milli_cpu), used.milli_cpu, total.milli_cpu),
        OfTotal(MemoryText(used.memory), MemoryText(total.memory), used.memory, total.memory),
        pods < 0 ? "" : std::to_string(pods)};
  }

  ViewOutput output_;
};

class TopJobAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces");
    output_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto jobs,
                           ListShownJobs(session, *api, all_ ? "" : session.Namespace()));
    std::vector<std::string> header{"NAME", "STATUS", "PRIORITY", "GPUS", "CPU", "MEMORY", "NODES"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header);
    json::Array list;
    for (const JobView& job : jobs) {
      if (!words.empty() && std::find(words.begin(), words.end(), job.name) == words.end())
        continue;
      Amounts held;
      std::vector<std::string> nodes;
      for (const json::SharedValue& pod : job.pods) {
        std::string node(api::NodeName(*pod));
        if (node.empty() || api::HasEnded(*pod)) continue;
        held.AddPod(*pod);
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
          nodes.push_back(std::move(node));
        }
      }
      json::Object one = JobJson(job);
      one["cpuHeld"] = UnitsJson(held.milli_cpu);
      one["memoryHeldBytes"] = held.memory;
      one["nodes"] = json::Array(nodes.begin(), nodes.end());
      list.push_back(std::move(one));
      std::vector<std::string> row{job.name,
                                   session.Paint(StatusColour(job.status), job.status),
                                   job.priority.empty() ? "-" : job.priority,
                                   StrCat(GpuText(held.milli_gpus), "/", GpuText(job.milli_gpus)),
                                   CpuText(held.milli_cpu),
                                   MemoryText(held.memory),
                                   nodes.empty() ? "-" : Join(nodes, ",")};
      if (all_) row.insert(row.begin(), job.ns);
      table.Add(std::move(row));
    }
    if (output_.is_document()) {
      output_.Print(session, json::Object{{"jobs", std::move(list)}});
      return 0;
    }
    if (table.size() == 1) {
      session.ErrLine("No jobs");
      return 0;
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  bool all_ = false;
  ViewOutput output_;
};

class TopProjectAction final : public Action {
 public:
  void Declare(Flags& flags) override { output_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    std::vector<ProjectView> shown;
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(ProjectView view, FindProject(tree, word));
      shown.push_back(std::move(view));
    }
    if (words.empty()) shown = tree.projects;
    if (output_.is_document()) {
      json::Array list;
      for (const ProjectView& project : shown) list.push_back(ProjectJson(project));
      output_.Print(session, json::Object{{"projects", std::move(list)}});
      return 0;
    }
    if (shown.empty()) {
      session.ErrLine("No projects. All jobs share the cluster.");
      return 0;
    }
    session.Out(ProjectTable(session, tree, shown, {.wide = true}));
    return 0;
  }

 private:
  ViewOutput output_;
};

}  // namespace

std::unique_ptr<Action> MakeNodeTable() { return std::make_unique<TopNodeAction>(); }

Command TopCommandSpec() {
  Command top{
      .name = "top",
      .group = "Inspect",
      .summary = "Watch jobs, nodes, projects and events on the terminal.",
      .examples = {{"Leave it open; ? shows the keys", "swell top"},
                   {"One frame, for a script", "swell top --once --view projects"},
                   {"A table of the nodes", "swell top node"}},
      .make = [] { return MakeTopAction(); },
  };
  Command node{
      .name = "node",
      .aliases = {"nodes"},
      .summary = "Show what pods request of each node.",
      .usage = "[NODE...]",
      .examples = {{"All nodes", "swell top node"}, {"For a program", "swell top node -o json"}},
      .completes = Completes::kNode,
      .make = MakeNodeTable,
  };
  Command job{
      .name = "job",
      .aliases = {"jobs"},
      .summary = "Show what each job requests and holds.",
      .usage = "[JOB...]",
      .examples = {{"Jobs of all namespaces", "swell top job -A"}},
      .completes = Completes::kJob,
      .make = Makes<TopJobAction>(),
  };
  Command project{
      .name = "project",
      .aliases = {"projects"},
      .summary = "Show what each project holds, its quota and its fair share.",
      .usage = "[PROJECT...]",
      .examples = {{"Projects with their use and quota", "swell top project"}},
      .make = Makes<TopProjectAction>(),
  };
  top.children = {std::move(node), std::move(job), std::move(project)};
  return top;
}

}  // namespace swell::cli
