#include "ops/lab/lab_cluster.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"
#include "kube/client/usage_record.h"
#include "ops/lab/lab_past_jobs.h"
#include "sched/state/amount_text.h"

namespace swell::ops {
namespace {

constexpr std::string_view kTraceName = "from-cluster";

Result<std::vector<client::UsageDay>> ReadDays(cli::Api& api,
                                               const std::string& ns,
                                               std::vector<std::string>& notes) {
  std::vector<client::UsageDay> days;
  auto found = api.List(client::resources::kConfigMaps, ns,
                        {.label_selector = StrCat(client::kUsageLabel, "=day")});
  if (found.status().code() == Code::kForbidden) {
    notes.emplace_back(
        "The accounts are for administrators to read: jobs that were deleted are missing.");
    return days;
  }
  if (!found.ok()) return found.status().WithContext("usage records");
  for (const json::SharedValue& object : *found) {
    auto day = client::UsageDay::FromConfigMap(*object);
    if (day.ok()) {
      days.push_back(std::move(*day));
    } else {
      notes.push_back(StrCat("Left out: ", day.status().message(), "."));
    }
  }
  return days;
}

PriorityValues ReadPriorities(cli::Api& api, std::vector<std::string>& notes) {
  PriorityValues values;
  auto classes = api.List(client::resources::kPriorityClasses, "");
  if (!classes.ok()) {
    notes.push_back(StrCat("Priorities cannot be read: all jobs have the same here (",
                           classes.status().message(), ")."));
    return values;
  }
  for (const json::SharedValue& one : *classes) {
    values[std::string(api::Name(*one))] = static_cast<int>(json::GetInt(*one, {"value"}));
  }
  return values;
}

Result<lab::ClusterShape> ReadShape(cli::Api& api, std::vector<std::string>& notes) {
  auto nodes = api.List(client::resources::kNodes, "");
  if (nodes.status().code() == Code::kForbidden) {
    return cli::Misuse(StrCat("expected --cluster NODESxGPUS: you may not read the nodes (",
                              nodes.status().message(), ")"));
  }
  if (!nodes.ok()) return nodes.status().WithContext("nodes");
  return ShapeOf(cli::ViewNodes(std::move(*nodes), {}), notes);
}

}  // namespace

Result<lab::ClusterShape> ShapeOf(const std::vector<cli::NodeView>& nodes,
                                  std::vector<std::string>& notes) {
  std::map<int64_t, int64_t> groups;  // nodes by their GPUs
  for (const cli::NodeView& node : nodes) {
    if (node.gpus() > 0) ++groups[node.gpus()];
  }
  if (groups.empty()) {
    return cli::Misuse("give --cluster NODESxGPUS: the cluster has no node with GPUs");
  }
  const auto largest = std::max_element(groups.begin(), groups.end(), [](auto& a, auto& b) {
    return a.first * a.second < b.first * b.second;
  });
  const std::string taken = StrCat(largest->second, "x", largest->first);
  if (groups.size() > 1) {
    std::vector<std::string> words;
    for (const auto& [gpus, count] : groups) words.push_back(StrCat(count, "x", gpus));
    notes.push_back(StrCat("Nodes differ (", Join(words, ", "), " GPUs): the largest group, ",
                           taken, ", is played. --cluster chooses another shape."));
  }
  return lab::ClusterShape(static_cast<int>(std::min<int64_t>(largest->second, 100'000)),
                           static_cast<int>(std::min<int64_t>(largest->first, 1'000)));
}

std::map<std::string, lab::TenantShare> SharesOf(const cli::ProjectTree& tree) {
  std::map<std::string, lab::TenantShare> shares;
  for (const cli::ProjectView& project : tree.projects) {
    if (project.department) continue;
    shares[project.name] = {project.gpu().quota, project.gpu().weight.value_or(1)};
  }
  return shares;
}

Result<LabCluster> ReadLabCluster(cli::Session& session, const LabClusterQuery& query) {
  LabCluster cluster;
  SWELL_ASSIGN_OR_RETURN(cli::Api * api, session.Server());
  SWELL_ASSIGN_OR_RETURN(const cli::ShownJobs shown, cli::FindShownJobs(session, *api, ""));
  std::vector<client::UsageDay> days;
  if (shown.partial) {
    cluster.notes.push_back(StrCat(cli::kPartialJobs, " There may be more."));
  } else {
    SWELL_ASSIGN_OR_RETURN(days, ReadDays(*api, query.usage_namespace, cluster.notes));
  }
  const auto tree = cli::ReadProjects(*api);
  const cli::ProjectTree projects = tree.ok() ? *tree : cli::ProjectTree();
  if (!tree.ok()) {
    cluster.notes.push_back(
        StrCat("Projects cannot be read: none has a quota here (", tree.status().message(), ")."));
  }
  const PriorityValues priorities = ReadPriorities(*api, cluster.notes);
  PastJobs past = PastJobsOf(shown.jobs, projects, priorities, days, session.Now() - query.last);
  auto history = lab::HistoryOf(std::string(kTraceName), std::move(past.jobs));
  if (!history.ok()) {
    return Status(Code::kNotFound,
                  StrCat("no job with GPUs was submitted in the last ",
                         api::HumanDuration(query.last), " and has ended",
                         past.left_out > 0 ? StrCat(" (", past.left_out,
                                                    " used no GPU, never began or still "
                                                    "run)")
                                           : "",
                         "; --last 30d reads more, and swell report --by job lists what is known"));
  }
  cluster.history = std::move(*history);
  cluster.history.trace.left_out += past.left_out;
  if (past.unclear > 0) {
    cluster.notes.push_back(
        StrCat(sched::Plural(past.unclear, "row"),
               " of the accounts left out: of services, of several jobs of one name on one day, "
               "or of jobs of which too little is known."));
  }
  if (query.read_shape) {
    SWELL_ASSIGN_OR_RETURN(cluster.shape, ReadShape(*api, cluster.notes));
  }
  cluster.shape.tenants = SharesOf(projects);
  return cluster;
}

}  // namespace swell::ops
