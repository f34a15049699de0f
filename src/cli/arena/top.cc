// arena top node, top job: who has the GPUs.
#include <algorithm>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/print/text_table.h"
#include "cli/views/node_view.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

constexpr size_t kDashes = 89;
// Whole GPUs, as v0.5.0 counted them.
int64_t Held(const NodeView& node) { return (node.used.milli_gpus + 999) / 1000; }

// Masters first, as in Arena's listing; each part by name.
Result<std::vector<NodeView>> ArenaNodes(Session& session,
                                         Api& api,
                                         const std::vector<std::string>& names) {
  SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, api, names));
  std::stable_sort(nodes.begin(), nodes.end(), [](const NodeView& a, const NodeView& b) {
    return a.role != "<none>" && b.role == "<none>";
  });
  return nodes;
}

std::string Share(int64_t used, int64_t total) {
  return StrCat(used, "/", total, " (", total > 0 ? used * 100 / total : 0, "%)");
}

struct Sums {
  int64_t used = 0, total = 0, active_used = 0, active_total = 0, unhealthy = 0;
  bool inactive = false;  // a node with GPUs is not ready

  explicit Sums(const std::vector<NodeView>& nodes) {
    for (const NodeView& node : nodes) {
      used += node.used.milli_gpus;
      total += node.gpus();
      unhealthy += node.unhealthy_gpus;
      if (node.ready) {
        active_used += node.used.milli_gpus;
        active_total += node.gpus();
      } else if (node.gpus() > 0) {
        inactive = true;
      }
    }
    used = (used + 999) / 1000;
    active_used = (active_used + 999) / 1000;
  }

  std::string Footer() const {
    std::string out = StrCat("Allocated/Total GPUs In Cluster:\n", Share(used, total), "\n");
    if (inactive) {
      out += StrCat("Allocated/Total GPUs(Active) In Cluster:\n", Share(active_used, active_total),
                    "\n");
    }
    if (unhealthy > 0) {
      out += StrCat("Unhealthy/Total GPUs In Cluster:\n", Share(unhealthy, total), "\n");
    }
    return out;
  }
};

class TopNodeAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-d,--details", &details_, "show the pods that use GPUs");
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
    flags.Switch("-r,--refresh", &refresh_, "accepted for compatibility; prints once");
    flags.Text(
        "-m,--gpu-mode", &mode_, "MODE",
        "nodes of this kind: n (none: without GPUs), e (exclusive) and s (share), both those "
        "with GPUs, t (topology: none)");
    flags.Switch("--metric", &metric_, "accepted for compatibility");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    SWELL_RETURN_IF_ERROR(CheckMode());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ArenaNodes(session, *api, words));
    std::erase_if(nodes, [this](const NodeView& node) { return !IsOfMode(node); });
    if (IsData(output_)) {
      session.Out(Serialise(output_, Describe(nodes)));
    } else {
      details_ ? Details(session, nodes) : Summary(session, nodes);
    }
    return 0;
  }

 private:
  Status CheckMode() const {
    constexpr std::string_view kModes[] = {"",  "n",        "none", "e",    "exclusive",
                                           "t", "topology", "s",    "share"};
    if (std::ranges::find(kModes, mode_) != std::end(kModes)) return Status::Ok();
    return WrongValue("--gpu-mode", mode_, {"none", "exclusive", "topology", "share"});
  }
  // Each GPU may be taken whole, or in parts.
  bool IsOfMode(const NodeView& node) const {
    if (mode_.empty()) return true;
    if (mode_.starts_with('t')) return false;
    return mode_.starts_with('n') == (node.gpus() == 0);
  }

  static json::Value Describe(const std::vector<NodeView>& nodes) {
    json::Array all;
    for (const NodeView& node : nodes) {
      json::Array pods;
      for (const json::SharedValue& pod : node.pods) {
        if (MilliGpus(*pod) == 0) continue;
        pods.push_back(json::Object{{"name", api::Name(*pod)},
                                    {"namespace", api::Namespace(*pod)},
                                    {"requestGPU", MilliGpus(*pod) / 1000}});
      }
      all.push_back(json::Object{{"name", node.name},
                                 {"ip", node.address},
                                 {"status", node.ready ? "ready" : "notReady"},
                                 {"role", node.role},
                                 {"totalGPUs", node.gpus()},
                                 {"allocatedGPUs", Held(node)},
                                 {"unhealthyGPUs", node.unhealthy_gpus},
                                 {"instances", std::move(pods)}});
    }
    const Sums sums(nodes);
    return json::Object{{"nodes", std::move(all)},
                        {"totalGPUsInCluster", sums.total},
                        {"allocatedGPUsInCluster", sums.used}};
  }

  static void Summary(Session& session, const std::vector<NodeView>& nodes) {
    Sums sums(nodes);
    std::vector<std::string> header{"NAME",   "IPADDRESS",  "ROLE",
                                    "STATUS", "GPU(Total)", "GPU(Allocated)"};
    if (sums.unhealthy > 0) header.emplace_back("GPU(Unhealthy)");
    TextTable table(header, 2);
    for (const NodeView& node : nodes) {
      std::vector<std::string> row{node.name,
                                   node.address,
                                   node.role,
                                   node.ready ? "ready" : "notReady",
                                   std::to_string(node.gpus()),
                                   std::to_string(Held(node))};
      if (sums.unhealthy > 0) row.push_back(std::to_string(node.unhealthy_gpus));
      table.Add(std::move(row));
    }
    session.Out(StrCat(table.ToString(), std::string(kDashes, '-'), "\n", sums.Footer()));
  }

  static void Details(Session& session, const std::vector<NodeView>& nodes) {
    std::string out;
    for (const NodeView& node : nodes) {
      TextTable head({}, 2);
      head.Add({"NAME:", node.name});
      head.Add({"IPADDRESS:", node.address});
      head.Add({"ROLE:", node.role});
      out += StrCat("\n", head.ToString(), "\n");
      if (node.used.milli_gpus > 0) {
        TextTable table({"NAMESPACE", "NAME", "GPU REQUESTS", "GPU LIMITS"}, 2);
        for (const json::SharedValue& pod : node.pods) {
          if (MilliGpus(*pod) == 0) continue;
          std::string gpus = GpuText(MilliGpus(*pod));
          table.Add({std::string(api::Namespace(*pod)), std::string(api::Name(*pod)), gpus, gpus});
        }
        out += StrCat(table.ToString(), "\n");
      }
      const std::string unhealthy =
          node.unhealthy_gpus == 0
              ? ""
              : StrCat("Unhealthy GPUs In Node ", node.name, ":  ", node.unhealthy_gpus, "\n");
      out += StrCat("Total GPUs In Node ", node.name, ":      ", node.gpus(), "\n",
                    "Allocated GPUs In Node ", node.name, ":  ", Held(node), " (",
                    node.gpus() > 0 ? Held(node) * 100 / node.gpus() : 0, "%)\n", unhealthy,
                    std::string(kDashes, '-'), "\n");
    }
    session.Out(StrCat(out, "\n", Sums(nodes).Footer()));
  }

  bool details_ = false, refresh_ = false, metric_ = false;
  std::string output_, mode_;
};

class TopJobAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
    flags.Text("-i,--instance", &instance_, "POD", "one instance");
    flags.Switch("-r,--refresh", &refresh_, "accepted for compatibility; prints once");
    type_.Declare(flags);
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    std::vector<JobView> jobs;
    if (words.size() > 1) return Misuse("one job at a time: arena top job [JOB]");
    if (words.size() == 1) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindArenaJob(session, *api, words[0], type_));
      jobs.push_back(std::move(job));
    } else {
      SWELL_ASSIGN_OR_RETURN(jobs, ListArenaJobs(session, *api, all_, type_));
    }
    WallTime now = session.Now();
    if (IsData(output_)) {
      json::Array all;
      for (const JobView& job : jobs) all.push_back(DescribeJob(job, now));
      session.Out(Serialise(output_, words.empty() ? json::Value(std::move(all)) : all[0]));
      return 0;
    }
    std::vector<std::string> header{"NAME", "GPU(Requests)", "GPU(Allocated)", "STATUS", "TRAINER",
                                    "AGE",  "NODE"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header, 2);
    int64_t requested = 0, allocated = 0;
    for (const JobView& job : jobs) {
      int64_t held = job.HeldMilliGpus();
      requested += job.over() ? 0 : job.milli_gpus;
      allocated += held;
      std::vector<std::string> row{job.name,
                                   GpuText(job.milli_gpus),
                                   GpuText(held),
                                   StatusWord(job),
                                   TrainerWord(job),
                                   Age(job, now),
                                   job.pods.empty() ? "N/A" : HostOf(*job.pods[0])};
      if (all_) row.insert(row.begin(), job.ns);
      table.Add(std::move(row));
    }
    session.Out(StrCat(table.ToString(), "\n\nTotal Allocated GPUs of Training Job: \n",
                       GpuText(allocated), "\n\nTotal Requested GPUs of Training Job: \n",
                       GpuText(requested), "\n"));
    return 0;
  }

 private:
  bool all_ = false, refresh_ = false;
  TypeFlag type_;
  std::string instance_, output_;
};

}  // namespace

Command TopSpec() {
  Command top{
      .name = "top",
      .summary = "Show the use of GPUs.",
  };
  Command node{
      .name = "node",
      .aliases = {"nodes"},
      .summary = "Show total and allocated GPUs of each node.",
      .usage = "[NODE...]",
      .examples = {{"All nodes", "arena top node"},
                   {"With the pods that use them", "arena top node -d"}},
      .completes = Completes::kNode,
      .make = Makes<TopNodeAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs"},
      .summary = "Show requested and allocated GPUs of each job.",
      .usage = "[JOB]",
      .examples = {{"All jobs", "arena top job"}},
      .completes = Completes::kJob,
      .make = Makes<TopJobAction>(),
  };
  top.children = {std::move(node), std::move(job)};
  return top;
}

}  // namespace swell::cli::arena
