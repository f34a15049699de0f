#include "cli/runai/print.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"

namespace swell::cli::runai {
namespace {

// "node-1", or the first of several with how many more.
std::string NodeText(const JobView& job) {
  std::vector<std::string> nodes;
  for (const json::SharedValue& pod : job.pods) {
    std::string node(api::NodeName(*pod));
    if (node.empty() || api::HasEnded(*pod)) continue;
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
      nodes.push_back(std::move(node));
    }
  }
  if (nodes.empty()) return "-";
  return nodes.size() == 1 ? nodes[0] : StrCat(nodes[0], " +", nodes.size() - 1);
}

const json::Value* FirstPodSpec(const JobView& job) {
  for (const RoleEntry& role : RolesOf(*job.object, *job.kind)) {
    if (const json::Value* pod = api::TemplateOf(*role.spec)) return pod;
  }
  if (const json::Value* pod = api::TemplateOf(api::Spec(*job.object))) return pod;
  // A kind may have no templates; its pods say the same.
  return job.pods.empty() ? nullptr : job.pods.front().get();
}

std::string ImageText(const JobView& job) {
  const json::Value* pod = FirstPodSpec(job);
  if (pod == nullptr) return "";
  const json::Array& containers = api::Containers(*pod);
  return containers.empty() ? "" : std::string(json::GetString(containers[0], {"image"}));
}

std::string DurationText(const JobView& job, WallTime now) {
  const std::optional<Duration> run = job.RunTime(now);
  return run ? api::HumanDuration(*run) : "-";
}

int64_t EndedPods(const JobView& job, std::string_view phase) {
  return std::count_if(job.pods.begin(), job.pods.end(),
                       [phase](const json::SharedValue& pod) { return api::Phase(*pod) == phase; });
}

// "train (50), preemptible".
std::string PriorityText(Api& api, const JobView& job) {
  if (job.priority.empty()) return "none (0), preemptible";
  std::string text = job.priority;
  int64_t value = 0;
  auto found = api.Get(client::resources::kPriorityClasses, "", job.priority);
  if (found.ok()) {
    value = json::GetInt(**found, {"value"});
    text += StrCat(" (", value, ")");
  }
  constexpr int64_t kPreemptibleBelow = 100;
  std::string_view said = job.group ? api::Preemptibility(*job.group) : std::string_view();
  bool preemptible = said.empty() ? value < kPreemptibleBelow : said == "Preemptible";
  return StrCat(text, preemptible ? ", preemptible" : ", non-preemptible");
}

std::string PreemptionText(const JobView& job, WallTime now) {
  const JobPreemptions preemptions = job.Preemptions();
  if (preemptions.total() == 0) return "";
  const int64_t times = preemptions.whole;
  if (!job.group || times == 0) return preemptions.Text();
  const api::GroupPreemption last =
      api::LastPreemptionOf(*job.group).value_or(api::GroupPreemption{});
  const std::string count =
      preemptions.shrinks > 0 ? preemptions.Text() : StrCat(times, times == 1 ? " time" : " times");
  return StrCat(count,
                last.time ? StrCat(", last ", api::HumanDuration(now - *last.time), " ago") : "",
                ": ", OneLine(last.message));
}

std::string FractionText(const JobView& job) {
  const json::Value* pod = FirstPodSpec(job);
  if (pod == nullptr) return "";
  std::string_view memory = api::Annotation(*pod, api::keys::kGpuMemory);
  if (!memory.empty()) return StrCat(memory, " MiB of a GPU");
  return std::string();
}

std::string PodsText(Session& session, const JobView& job) {
  TextTable table({"POD", "STATUS", "TYPE", "AGE", "NODE"});
  for (const json::SharedValue& pod : job.pods) {
    std::string word = PodStatusWord(*pod);
    std::string_view node = api::NodeName(*pod);
    std::string_view host = api::HostIp(*pod);
    table.Add({std::string(api::Name(*pod)), session.Paint(StatusColour(word), ToUpper(word)),
               ToUpper(TypeWord(job)), AgeOf(api::CreationTimestamp(*pod), session.Now()),
               node.empty()   ? "-"
               : host.empty() ? std::string(node)
                              : StrCat(node, "/", host)});
  }
  return table.ToString();
}

}  // namespace

std::string JobsTable(Session& session,
                      const Scope& scope,
                      const std::vector<JobView>& jobs,
                      bool headers) {
  std::vector<std::string> header{"NAME",
                                  "STATUS",
                                  "AGE",
                                  "NODE",
                                  "IMAGE",
                                  "TYPE",
                                  "PROJECT",
                                  "USER",
                                  "GPUs Allocated (Requested)",
                                  "PODs Running (Pending)",
                                  "SERVICE URL(S)"};
  TextTable table(headers ? header : std::vector<std::string>{}, 2);
  ServiceUrls urls(*scope.api, scope.ns());
  for (const JobView& job : jobs) {
    std::string status = StatusWord(job);
    int64_t requested = job.over() ? 0 : job.milli_gpus;
    table.Add({job.name, session.Paint(StatusColour(status), status), AgeWord(job, session.Now()),
               NodeText(job), OrDash(ImageText(job)), TypeWord(job), ProjectOf(scope, job),
               OrDash(job.user),
               StrCat(GpuText(job.HeldMilliGpus()), " (", GpuText(requested), ")"),
               StrCat(job.RunningPods(), " (", job.PendingPods(), ")"), urls.Of(job)});
  }
  return table.ToString();
}

std::string NodesTable(Session& session, const std::vector<NodeView>& nodes) {
  TextTable table({"NAME", "STATUS", "IPADDRESS", "ROLE", "GPUs Allocated (Total)",
                   "CPUs Allocated (Total)", "MEMORY Allocated (Total)", "PODs", "GPU TYPE"},
                  2);
  for (const NodeView& node : nodes) {
    std::string status = node.StatusWord();
    table.Add(
        {node.name, session.Paint(StatusColour(status), status), OrDash(node.address), node.role,
         StrCat(GpuText(node.used.milli_gpus), " (", node.gpus(), ")",
                node.unhealthy_gpus > 0 ? StrCat(", ", node.unhealthy_gpus, " unhealthy") : ""),
         StrCat(CpuText(node.used.milli_cpu), " (", CpuText(node.total.milli_cpu), ")"),
         StrCat(MemoryText(node.used.memory), " (", MemoryText(node.total.memory), ")"),
         std::to_string(node.pods.size()), OrDash(node.gpu_type)});
  }
  return table.ToString();
}

std::string QuotaText(const ProjectView& project) {
  const Share& gpu = project.gpu();
  const std::string held = HeldText(gpu, ShareOf::kGpu);
  return gpu.quota < 0 ? held + " GPUs" : StrCat(held, " GPUs (", gpu.State(), ")");
}

std::string DescribeWorkload(Session& session, const Scope& scope, const JobView& job) {
  WallTime now = session.Now();
  std::string out;
  auto add = [&out](std::string_view key, const std::string& value) {
    if (!value.empty()) out += StrCat(key, ": ", PaintedLine(value), "\n");
  };
  std::string status = StatusWord(job);
  add("NAME", job.name);
  add("NAMESPACE", job.ns);
  std::string project_name = ProjectOf(scope, job);
  const ProjectView* project = scope.tree.Find(project_name);
  add("PROJECT", project ? StrCat(project_name, ", ", QuotaText(*project)) : project_name);
  add("TYPE", TypeWord(job));
  add("STATUS", session.Paint(StatusColour(status), status));
  if (!job.over()) add("REASON", OneLine(job.failure ? job.failure->Sentence() : job.waits));
  if (job.over()) add("MESSAGE", OneLine(job.message));
  // People grep for this word.
  add("Priority", PriorityText(*scope.api, job));
  add("PREEMPTED", PreemptionText(job, now));
  add("TRAINING DURATION", DurationText(job, now));
  add("IMAGE", ImageText(job));
  add("GPUS", GpuText(job.replicas > 0 ? job.milli_gpus / job.replicas : job.milli_gpus));
  add("TOTAL REQUESTED GPUS", GpuText(job.over() ? 0 : job.milli_gpus));
  add("ALLOCATED GPUS", GpuText(job.HeldMilliGpus()));
  add("ALLOCATED GPUS MEMORY", FractionText(job));
  add("RUNNING PODS", std::to_string(job.RunningPods()));
  add("PENDING PODS", std::to_string(job.PendingPods()));
  add("PARALLELISM", std::to_string(job.replicas));
  int64_t least =
      job.group ? json::GetInt(*job.group, {"status", "minMember"}, job.replicas) : job.replicas;
  if (least < job.replicas) add("ELASTIC", StrCat(least, " to ", job.replicas, " pods"));
  add("COMPLETIONS",
      std::to_string(json::GetInt(*job.object, {"spec", "completions"}, job.replicas)));
  add("SUCCEEDED PODS", std::to_string(EndedPods(job, "Succeeded")));
  add("FAILED PODS", std::to_string(EndedPods(job, "Failed")));
  // A Job's runs have nothing to do with each other.
  add("IS DISTRIBUTED WORKLOAD", job.replicas > 1 && job.kind->kind != "Job" ? "true" : "false");
  add("CREATED BY CLI", job.command_line.empty() ? "false" : "true");
  add("USER", job.user);
  add("SERVICE URL(S)", ServiceUrls(*scope.api, job.ns).Of(job));
  add("COMMAND LINE", OneLine(job.command_line));
  out += "\nPods:\n";
  return out + (job.pods.empty() ? "none\n" : PodsText(session, job));
}

std::string EventsText(Session& session, const std::vector<EventView>& events, size_t shown) {
  if (events.empty()) return "\nEvents: none\n";
  TextTable table({"SOURCE", "TYPE", "AGE", "MESSAGE"}, 2);
  table.Add({"--------", "----", "---", "-------"});
  for (size_t i = events.size() - std::min(shown, events.size()); i < events.size(); ++i) {
    const EventView& event = events[i];
    table.Add({StrCat(ToLower(event.object_kind), "/", event.object),
               event.type == "Warning" ? session.Paint(Colour::kYellow, event.type) : event.type,
               event.LastSeen(session.Now()),
               StrCat("[", event.reason, "] ", OneLine(event.message))});
  }
  std::string title = shown < events.size() ? StrCat("\nEvents (the last ", shown, " of ",
                                                     events.size(), "; --show-events shows all):\n")
                                            : std::string("\nEvents:\n");
  return title + table.ToString();
}

std::string SharesTable(Session& session, const ProjectView& project) {
  TextTable table({"RESOURCE", "ALLOCATED/QUOTA", "FAIR SHARE", "REQUESTED", "LIMIT", "STATE"});
  constexpr std::string_view kTitles[] = {"GPU", "CPU", "Memory"};
  for (size_t i = 0; i < project.shares.size(); ++i) {
    const Share& share = project.shares[i];
    auto what = static_cast<ShareOf>(i);
    const std::string state(share.State());
    table.Add({std::string(kTitles[i]), HeldText(share, what),
               share.fair_share ? ShareText(*share.fair_share, what) : "-",
               ShareText(share.requested, what), ShareText(share.limit, what),
               share.over_quota() ? session.Paint(Colour::kYellow, state) : state});
  }
  return table.ToString();
}

std::string DescribeProject(Session& session, const ProjectView& project) {
  std::string out;
  auto add = [&out](std::string_view key, const std::string& value) {
    if (!value.empty()) out += StrCat(key, ": ", PaintedLine(value), "\n");
  };
  add("NAME", project.name);
  add("DESCRIPTION", OneLine(project.description));
  add("DEPARTMENT", project.parent);
  if (!project.department) add("NAMESPACE", project.ns);
  add("NODE POOLS", project.pools.empty() ? "all nodes" : Join(project.pools, ", "));
  add("GPU QUOTA", ShareText(project.gpu().quota, ShareOf::kGpu));
  add("GPU USAGE", QuotaText(project));
  add("OVER-QUOTA WEIGHT",
      project.gpu().weight ? ShareText(*project.gpu().weight, ShareOf::kGpu) : "1");
  add("Priority", std::to_string(project.priority));
  out += StrCat("\nResources:\n", SharesTable(session, project));
  if (project.pool_use.empty()) return out;
  return StrCat(out, "\nNode pools:\n", ProjectPoolTable(session, {project}));
}

}  // namespace swell::cli::runai
