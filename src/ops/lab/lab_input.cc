#include "ops/lab/lab_input.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "kube/client/usage_record.h"
#include "ops/lab/lab_cluster.h"
#include "sched/state/amount_text.h"

namespace swell::ops {
namespace {

constexpr int64_t kNodesMax = 100'000;
constexpr int64_t kGpusPerNodeMax = 1'000;
constexpr size_t kTracesMax = 1'000;
constexpr double kQuotaMax = 1e8;

// "6x4:aws": nodes, GPUs on each, their type.
std::optional<lab::NodeGroup> ParseGroup(std::string_view text) {
  lab::NodeGroup group;
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    group.type = std::string(text.substr(colon + 1));
    // It becomes part of a file's name.
    if (group.type.empty() || group.type.find('/') != std::string::npos) return std::nullopt;
  }
  const std::vector<std::string_view> parts = Split(text.substr(0, colon), 'x');
  if (parts.size() != 2) return std::nullopt;
  const auto nodes = ParseInt(parts[0]), gpus = ParseInt(parts[1]);
  if (!nodes || !gpus || *nodes < 1 || *nodes > kNodesMax || *gpus < 1 || *gpus > kGpusPerNodeMax) {
    return std::nullopt;
  }
  group.nodes = static_cast<int>(*nodes);
  group.gpus_per_node = static_cast<int>(*gpus);
  return group;
}

}  // namespace

void LabInput::Declare(cli::Flags& flags) {
  flags.Switch("--from-cluster", &from_cluster_,
               "play the cluster's own jobs that are over, instead of a file");
  flags.Text("--last", &last_, "SPAN",
             "with --from-cluster: play jobs submitted in the last SPAN, for example 24h or 30d "
             "(default 7d)");
  flags.Text("--save-trace", &save_trace_, "FILE",
             "with --from-cluster: also write the jobs as a trace, which can be played again");
  flags.Text("--usage-namespace", &usage_namespace_, "NAME",
             "with --from-cluster: namespace of the usage records (default swell-system)");
  flags.Text("--cluster", &cluster_, "NODESxGPUS[:TYPE],...",
             "nodes, and GPUs on each of them, for each type of GPU (default 16x4, or the shape of "
             "the cluster)");
  flags.List("--quota", &quotas_, "PROJECT=GPUS",
             "quota of a project under the policies fair, goodput, recurring and rubick, "
             "repeatable (default none, or those of the cluster)");
  flags.Text("--profiles", &profiles_dir_, "DIR",
             "measurements of applications, for traces that name them");
  flags.Text("--gpu-type", &gpu_type_, "TYPE",
             "GPU type of the profiles: placements-TYPE.csv (default aws)");
  flags.Int("--resize-cost", &resize_s_, "SECONDS",
            "time without progress at a start, resize or move (default 30; with --rules sia: what "
            "Sia's authors measured for each application; with --rules rubick: 260; with "
            "--from-cluster: the median of its jobs)");
  flags.Choice("--rules", &rules_, "NAME", {"pollux", "sia", "rubick"},
               "whose published simulator to follow: pollux, sia or rubick (default pollux)");
  flags.Choice("--plans", &plans_, "WHICH", {"requested", "fastest"},
               "plan of jobs with execution plans: the one that each requested, or the fastest one "
               "on each placement (default requested)");
  flags.Int("--round", &round_s_, "SECONDS",
            "let every policy decide in rounds of this length (default: each policy's own times)");
}

Status LabInput::Read(cli::Session& session, const std::vector<std::string>& files) {
  files_ = files;
  SWELL_RETURN_IF_ERROR(CheckFlags());
  SWELL_RETURN_IF_ERROR(ReadShape());
  SWELL_RETURN_IF_ERROR(from_cluster_ ? ReadCluster(session) : ReadFiles());
  SWELL_RETURN_IF_ERROR(ReadQuotas());
  return ReadProfiles();
}

Status LabInput::CheckFlags() {
  if (from_cluster_ && !files_.empty()) {
    return cli::Misuse(
        StrCat("--from-cluster and the trace ", Quote(files_.front()), " exclude each other"));
  }
  if (!from_cluster_) {
    for (const auto& [flag, value] :
         {std::pair("--last", &last_), std::pair("--save-trace", &save_trace_),
          std::pair("--usage-namespace", &usage_namespace_)}) {
      if (!value->empty()) return cli::Misuse(StrCat(flag, " needs --from-cluster"));
    }
    if (files_.empty()) return cli::Misuse("expected TRACE... or --from-cluster");
  }
  if (files_.size() > kTracesMax) return cli::Misuse(StrCat("more than ", kTracesMax, " traces"));
  if (resize_s_ != kByRules && (resize_s_ < 0 || resize_s_ > 86'400)) {
    return cli::Misuse(StrCat("--resize-cost ", resize_s_, ": expected 0 to 86400"));
  }
  if (round_s_ != kByRules && (round_s_ < 1 || round_s_ > 86'400)) {
    return cli::Misuse(StrCat("--round ", round_s_, ": expected 1 to 86400"));
  }
  if (resize_s_ != kByRules) options_.resize_s = resize_s_;
  if (rules_ == "sia") options_.rules = lab::Rules::kSia;
  if (rules_ == "rubick") options_.rules = lab::Rules::kRubick;
  options_.fastest_plans = plans_ == "fastest";
  if (round_s_ != kByRules) options_.round_s = round_s_;
  return {};
}

// "16x4", "6x4:aws,2x8:dgx-ext": nodes, GPUs on each, for each type.
Status LabInput::ReadShape() {
  if (cluster_.empty()) return {};
  std::vector<lab::NodeGroup> groups;
  std::set<std::string> types;
  for (std::string_view text : Split(cluster_, ',')) {
    const std::optional<lab::NodeGroup> group = ParseGroup(text);
    if (!group) {
      return cli::Misuse(
          StrCat("--cluster ", Quote(cluster_),
                 ": expected NODESxGPUS, 16x4 for 16 nodes with 4 GPUs each; at most ", kNodesMax,
                 "x", kGpusPerNodeMax, "; with types of GPU, 6x4:aws,2x8:dgx-ext"));
    }
    if (!types.insert(group->type).second) {
      return cli::Misuse(
          StrCat("--cluster ", Quote(cluster_), ": type ", Quote(group->type), " is given twice"));
    }
    groups.push_back(*group);
  }
  if (groups.size() > lab::kGroupsMax) {
    return cli::Misuse(
        StrCat("--cluster ", Quote(cluster_), ": more than ", lab::kGroupsMax, " types"));
  }
  if (groups.size() > 1 && types.contains("")) {
    return cli::Misuse(StrCat("--cluster ", Quote(cluster_),
                              ": expected a type for each group of nodes, as 6x4:aws"));
  }
  options_.shape.groups = std::move(groups);
  return {};
}

// An unknown tenant is refused: it would change nothing, and nobody would see it.
Status LabInput::ReadQuotas() {
  std::set<std::string> tenants;
  for (const lab::Trace& trace : traces_) {
    for (const lab::TraceJob& job : trace.jobs) {
      if (!job.tenant.empty()) tenants.insert(job.tenant);
    }
  }
  for (const std::string& text : quotas_) {
    const size_t equals = text.rfind('=');
    const std::string tenant = text.substr(0, equals);
    double gpus = -1;
    if (equals != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data() + equals + 1, end, gpus);
      if (read.ec != std::errc() || read.ptr != end) gpus = -1;
    }
    if (!(gpus >= 0 && gpus <= kQuotaMax)) {
      return cli::Misuse(StrCat("--quota ", Quote(text), ": expected PROJECT=GPUS, vision=8"));
    }
    if (!tenants.contains(tenant)) {
      const std::vector<std::string> all(tenants.begin(), tenants.end());
      return cli::Misuse(StrCat("--quota ", Quote(text), ": no job belongs to ", Quote(tenant),
                                "; the projects are ", all.empty() ? "none" : Join(all, ", ")));
    }
    options_.shape.tenants[tenant].quota = gpus;
  }
  return {};
}

Status LabInput::ReadFiles() {
  for (const std::string& path : files_) {
    SWELL_ASSIGN_OR_RETURN(lab::Trace trace, lab::ReadTrace(path));
    traces_.push_back(std::move(trace));
  }
  return {};
}

Status LabInput::ReadCluster(cli::Session& session) {
  LabClusterQuery query;
  query.read_shape = cluster_.empty();
  query.usage_namespace =
      usage_namespace_.empty() ? std::string(client::kUsageNamespace) : usage_namespace_;
  SWELL_ASSIGN_OR_RETURN(query.last, cli::ParseDuration(last_.empty() ? "7d" : last_, "--last"));
  if (query.last <= Duration::zero()) {
    return cli::Misuse(StrCat("--last ", Quote(last_), ": expected a span like 24h or 7d"));
  }
  SWELL_ASSIGN_OR_RETURN(LabCluster cluster, ReadLabCluster(session, query));
  if (query.read_shape) {
    options_.shape = cluster.shape;
  } else {
    options_.shape.tenants = std::move(cluster.shape.tenants);
  }
  notes_ = std::move(cluster.notes);
  if (resize_s_ == kByRules && options_.rules == lab::Rules::kPollux) {
    options_.resize_s = cluster.history.start_s;
    measured_start_ = true;
  }
  if (!save_trace_.empty()) {
    SWELL_RETURN_IF_ERROR(WriteThrough(save_trace_, lab::TraceAsCsv(cluster.history.trace)));
  }
  traces_.push_back(std::move(cluster.history.trace));
  as_it_was_ = std::move(cluster.history.as_it_was);
  return {};
}

Status LabInput::ReadProfiles() {
  std::set<std::string> named;
  for (const lab::Trace& trace : traces_) {
    for (const lab::TraceJob& job : trace.jobs) named.insert(job.application);
  }
  std::vector<std::string> types;
  for (const lab::NodeGroup& group : options_.shape.groups) {
    types.push_back(group.type.empty() ? gpu_type_ : group.type);
  }
  if (!profiles_dir_.empty()) {
    SWELL_ASSIGN_OR_RETURN(profiles_,
                           lab::ProfileLibrary::Load(profiles_dir_, types, options_.rules, &named));
    return {};
  }
  for (const lab::Trace& trace : traces_) {
    for (const lab::TraceJob& job : trace.jobs) {
      if (job.application.empty()) continue;
      return cli::Misuse(
          StrCat(trace.name, " names applications (", Quote(job.application),
                 "): expected --profiles DIR with DIR/", job.application,
                 job.plan.empty() ? StrCat("/placements-", types.front()) : "/placements", ".csv"));
    }
  }
  return {};
}

std::vector<std::string> LabInput::TraceNames() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < traces_.size(); ++i) {
    const bool twice = std::count_if(traces_.begin(), traces_.end(), [&](const auto& other) {
                         return other.name == traces_[i].name;
                       }) > 1;
    names.push_back(twice ? files_[i] : traces_[i].name);
  }
  return names;
}

std::vector<std::string> LabInput::Notes() const {
  int64_t jobs = 0, not_played = 0;
  for (const lab::Trace& trace : traces_) {
    jobs += static_cast<int64_t>(trace.jobs.size());
    not_played += trace.left_out;
  }
  const std::string left_out = not_played == 0
                                   ? ""
                                   : StrCat(" ", sched::Plural(not_played, "more job"),
                                            " used no GPU, never began or still ran: left out.");
  const std::string of =
      from_cluster_ ? "the cluster" : sched::Plural(static_cast<int64_t>(traces_.size()), "trace");
  const std::string resize =
      options_.rules == lab::Rules::kSia && !options_.resize_s
          ? "Sia's delay of each application a resize."
          : StrCat(options_.resize_s.value_or(lab::CostsOf(options_.rules, "").resize_s),
                   " s a start or resize", measured_start_ ? " (the median of these jobs)." : ".");
  std::vector<std::string> lines{StrCat(sched::Plural(jobs, "job"), " of ", of, " on ",
                                        options_.shape.ToString(), " GPUs, ", resize, left_out)};
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  return lines;
}

Status LabInput::CheckOutput(std::string_view flag, const std::string& file) const {
  for (const std::string& trace : files_) {
    std::error_code none;
    if (file.empty() || !std::filesystem::equivalent(file, trace, none)) continue;
    return cli::Misuse(StrCat(flag, " ", file, ": this is the trace; expected another file"));
  }
  std::error_code none;
  if (file.empty() || file == "-" || std::filesystem::exists(file, none)) return {};
  std::string folder = std::filesystem::path(file).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, none)) {
    return cli::Misuse(StrCat(flag, " ", file, ": there is no folder ", folder));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return cli::Misuse(StrCat(flag, " ", file, ": you may not write to the folder ", folder));
  }
  return {};
}

}  // namespace swell::ops
