// swell top: who has the CPUs, the memory and the GPUs, by what is requested.
#include <algorithm>
#include <map>

#include "api/meta.h"
#include "api/quantity.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/text_table.h"

namespace swell::cli {
namespace {

struct Amounts {
  int64_t milli_cpu = 0;
  int64_t memory = 0;
  int64_t milli_gpus = 0;
};

int64_t Milli(const json::Value& root, json::Path path) {
  const json::Value* amount = json::Find(root, path);
  if (!amount) return 0;
  auto quantity = api::Quantity::FromJson(*amount);
  return quantity.ok() ? quantity->MilliValue() : 0;
}

int64_t Whole(const json::Value& root, json::Path path) {
  const json::Value* amount = json::Find(root, path);
  if (!amount) return 0;
  auto quantity = api::Quantity::FromJson(*amount);
  return quantity.ok() ? quantity->Value() : 0;
}

void AddRequests(const json::Value& pod, Amounts& to) {
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    to.milli_cpu += Milli(container, {"resources", "requests", "cpu"});
    to.memory += Whole(container, {"resources", "requests", "memory"});
  }
  to.milli_gpus += MilliGpus(pod);
}

std::string CpuText(int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : StrCat(milli, "m");
}

std::string MemoryText(int64_t bytes) {
  constexpr int64_t kMi = 1 << 20;
  if (bytes >= 10 * 1024 * kMi) return StrCat(bytes / (1024 * kMi), "Gi");
  return StrCat(bytes / kMi, "Mi");
}

std::string OfTotal(std::string used, std::string total, int64_t a, int64_t b) {
  return StrCat(used, "/", total, b > 0 ? StrCat(" (", a * 100 / b, "%)") : "");
}

class TopNodeAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto nodes, api->List(client::resources::kNodes, ""));
    SWELL_ASSIGN_OR_RETURN(auto pods, api->List(client::resources::kPods, ""));
    std::map<std::string, Amounts, std::less<>> used;
    std::map<std::string, int64_t, std::less<>> count;
    for (const json::SharedValue& pod : pods) {
      std::string node(json::GetString(*pod, {"spec", "nodeName"}));
      if (node.empty() || PodHasEnded(*pod)) continue;
      AddRequests(*pod, used[node]);
      ++count[node];
    }
    TextTable table({"NAME", "STATUS", "GPUS", "CPU", "MEMORY", "PODS"});
    Amounts all, all_used;
    for (const json::SharedValue& node : nodes) {
      std::string name(api::Name(*node));
      if (!words.empty() && std::find(words.begin(), words.end(), name) == words.end()) continue;
      Amounts total;
      total.milli_cpu = Milli(*node, {"status", "allocatable", "cpu"});
      total.memory = Whole(*node, {"status", "allocatable", "memory"});
      total.milli_gpus = Milli(*node, {"status", "allocatable", "nvidia.com/gpu"});
      const Amounts& taken = used[name];
      table.Add(Row(session, name, StatusOf(*node), taken, total, count[name]));
      all.milli_cpu += total.milli_cpu;
      all.memory += total.memory;
      all.milli_gpus += total.milli_gpus;
      all_used.milli_cpu += taken.milli_cpu;
      all_used.memory += taken.memory;
      all_used.milli_gpus += taken.milli_gpus;
    }
    if (table.size() == 1) {
      return Status(Code::kNotFound, words.empty() ? "the cluster has no nodes"
                                                   : StrCat("no such node: ", Join(words, ", ")));
    }
    if (table.size() > 2) table.Add(Row(session, "all", "", all_used, all, -1));
    session.Out(table.ToString());
    return 0;
  }

 private:
  static std::string StatusOf(const json::Value& node) {
    std::string word = api::ConditionIsTrue(node, "Ready") ? "Ready" : "NotReady";
    return json::GetBool(node, {"spec", "unschedulable"}) ? word + ",SchedulingDisabled" : word;
  }
  static std::vector<std::string> Row(Session& session,
                                      std::string name,
                                      const std::string& status,
                                      const Amounts& used,
                                      const Amounts& total,
                                      int64_t pods) {
    return {
        std::move(name),
        session.Paint(StatusColour(status), status),
        OfTotal(GpuText(used.milli_gpus), GpuText(total.milli_gpus), used.milli_gpus,
                total.milli_gpus),
        OfTotal(CpuText(used.milli_cpu), CpuText(total.milli_cpu), used.milli_cpu, total.milli_cpu),
        OfTotal(MemoryText(used.memory), MemoryText(total.memory), used.memory, total.memory),
        pods < 0 ? "" : std::to_string(pods)};
  }
};

class TopJobAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "in every namespace");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto jobs, ListJobs(*api, all_ ? "" : session.Namespace()));
    std::vector<std::string> header{"NAME", "STATUS", "PRIORITY", "GPUS", "CPU", "MEMORY", "NODES"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header);
    for (const JobView& job : jobs) {
      if (!words.empty() && std::find(words.begin(), words.end(), job.name) == words.end())
        continue;
      Amounts held;
      std::vector<std::string> nodes;
      for (const json::SharedValue& pod : job.pods) {
        std::string node(json::GetString(*pod, {"spec", "nodeName"}));
        if (node.empty() || PodHasEnded(*pod)) continue;
        AddRequests(*pod, held);
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
      }
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
    if (table.size() == 1) {
      session.ErrLine("No jobs");
      return 0;
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  bool all_ = false;
};

}  // namespace

Command TopCommandSpec() {
  Command top;
  top.name = "top";
  top.group = "Look";
  top.summary = "Shows who has the GPUs, the CPUs and the memory.";
  Command node;
  node.name = "node";
  node.aliases = {"nodes"};
  node.summary = "Shows how much of each node is taken, by what its pods request.";
  node.usage = "[NODE...]";
  node.examples = {{"All nodes", "swell top node"}};
  node.completes = Completes::kNode;
  node.make = Makes<TopNodeAction>();
  Command job;
  job.name = "job";
  job.aliases = {"jobs"};
  job.summary = "Shows what each job holds of what it asks for.";
  job.usage = "[JOB...]";
  job.examples = {{"Everybody's jobs", "swell top job -A"}};
  job.completes = Completes::kJob;
  job.make = Makes<TopJobAction>();
  top.children = {std::move(node), std::move(job)};
  return top;
}

}  // namespace swell::cli
