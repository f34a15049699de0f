// sinfo: node pools as partitions, and their nodes.
#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/iterate.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/values.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kUsual = "%9P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kLong = "%9P %.5a %.10l %.6D %.11T %.10G %.6c %.8m %N";
constexpr std::string_view kNodes = "%20N %.6D %9P %.6t ";
constexpr std::string_view kNodesLong = "%20N %.6D %9P %.11T %.6c %.8m %.12G %E";
constexpr std::string_view kReasons = "%20N %.6t %E";
constexpr std::string_view kSummary = "%9P %.5a %.10l %.16F %N";

// A line: nodes of one partition that are alike in what is shown.
struct Group {
  const Partition* partition;
  std::vector<const NodeView*> nodes;
};

// Slurm has it as a name alone.
constexpr char kGresUsed = '+';

std::string Title(char letter) {
  switch (letter) {
    case 'P':
    case 'R':
      return "PARTITION";
    case 'a':
      return "AVAIL";
    case 'l':
      return "TIMELIMIT";
    case 'D':
      return "NODES";
    case 'F':
      return "NODES(A/I/O/T)";
    case 't':
    case 'T':
      return "STATE";
    case 'N':
      return "NODELIST";
    case 'n':
      return "HOSTNAMES";
    case 'G':
      return "GRES";
    case 'c':
      return "CPUS";
    case 'C':
      return "CPUS(A/I/O/T)";
    case 'm':
      return "MEMORY";
    case 'f':
      return "AVAIL_FEATURES";
    case kGresUsed:
      return "GRES_USED";
    default:
      return "REASON";
  }
}
constexpr std::string_view kLetters = "PRalDFtTNnGcCmfE";
constexpr LongName kLongNames[] = {
    {"Available", 'a'},   {"CPUs", 'c'},          {"CPUsState", 'C'},      {"Features", 'f'},
    {"FeaturesAct", 'f'}, {"Gres", 'G'},          {"GresUsed", kGresUsed}, {"Memory", 'm'},
    {"NodeAIOT", 'F'},    {"NodeHost", 'n'},      {"NodeList", 'N'},       {"Nodes", 'D'},
    {"Partition", 'P'},   {"PartitionName", 'R'}, {"Reason", 'E'},         {"StateCompact", 't'},
    {"StateLong", 'T'},   {"Time", 'l'}};
// Those that say something of one node: nodes on a line are alike in them.
constexpr std::string_view kOfOneNode = "tTnGcmfE+";

// "3/1/0/4": allocated, idle, others, all.
std::string FourOf(int64_t taken, int64_t idle, int64_t other) {
  return StrCat(taken, "/", idle, "/", other, "/", taken + idle + other);
}

std::string CountText(const Group& group) {
  int64_t taken = 0, idle = 0, other = 0;
  for (const NodeView* node : group.nodes) {
    const NodeState state = StateOf(*node);
    (state.usable ? state.code == "idle" ? idle : taken : other) += 1;
  }
  return FourOf(taken, idle, other);
}

std::string CpuCounts(const Group& group) {
  int64_t taken = 0, idle = 0, other = 0;
  for (const NodeView* node : group.nodes) {
    const int64_t total = node->total.milli_cpu / 1000;
    const int64_t used = std::min(total, (node->used.milli_cpu + 999) / 1000);
    taken += used;
    (StateOf(*node).usable ? idle : other) += total - used;
  }
  return FourOf(taken, idle, other);
}

std::string Value(const Group& group, char letter) {
  const NodeView& first = *group.nodes.front();
  switch (letter) {
    case 'P':
    case 'R':
      return group.partition->name + (letter == 'P' && group.partition->usual ? "*" : "");
    case 'a':
      return "up";
    case 'l':
      return "infinite";
    case 'D':
      return std::to_string(group.nodes.size());
    case 'F':
      return CountText(group);
    case 't':
      return std::string(StateOf(first).code);
    case 'T':
      return std::string(StateOf(first).word);
    case 'N':
    case 'n': {
      std::vector<std::string> names;
      for (const NodeView* node : group.nodes) names.push_back(node->name);
      return CompressNames(std::move(names));
    }
    case 'G':
      return GresOf(first);
    case 'c':
      return std::to_string(first.total.milli_cpu / 1000);
    case 'C':
      return CpuCounts(group);
    case 'm':
      return std::to_string(first.total.memory >> 20);
    case 'f':
      return first.gpu_type.empty() ? "(null)" : first.gpu_type;
    case kGresUsed:
      return GresUsedOf(first);
    default:
      return OneLine(ReasonOf(first));
  }
}

class SinfoAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-N,--Node", &by_node_, "a line for each node");
    flags.Switch("-l,--long", &long_, "more columns");
    flags.Switch("-s,--summarize", &summary_, "a line for each partition");
    flags.Text("-o,--format", &format_, "FORMAT", "columns, such as '%P %D %t %G %N'");
    flags.Text("-O,--Format", &long_format_, "NAMES",
               "columns by name, such as NodeHost:10,Gres,GresUsed");
    flags.Text("-p,--partition", &partitions_, "POOL[,POOL]", "only these node pools");
    flags.Text("-n,--nodes", &nodes_, "NODES", "only these nodes");
    flags.Text("-t,--states", &states_, "STATE[,STATE]",
               "only nodes in these states: idle, mix, …");
    flags.Switch("-h,--noheader", &no_header_, "omit the header");
    AcceptSwitches(flags, &ignored_,
                   {{"-a,--all", "nothing is hidden"},
                    {"--hide", "nothing is hidden"},
                    {"-e,--exact", "only nodes that are alike share a line"},
                    {"--local", "there is one cluster"},
                    {"--federation", "there is one cluster"},
                    {"--noconvert", "amounts are printed as they are"},
                    {"-v,--verbose", "nothing more is said"}});
    flags.Switch("-r,--responding", &responding_, "only nodes that are ready");
    flags.Switch("-R,--list-reasons", &reasons_, "nodes that get no jobs, and why");
    flags.Refuse("-d,--dead", "-t down lists the nodes that do not answer");
    flags.Refuse("-S,--sort", "nodes are in the order of their names; pipe them to sort");
    flags.Refuse("-T,--reservation", "there are no reservations; a node pool is a --partition");
    flags.Refuse("-M,--clusters", "--context NAME selects another cluster");
    for (const char* name : {"--json", "--yaml"}) {
      flags.Refuse(name, "kubectl get nodes -o json has all about the nodes");
    }
    iterate_.Declare(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    std::string unknown;
    SWELL_ASSIGN_OR_RETURN(const auto format, Format(&unknown));
    if (!unknown.empty()) session.ErrLine(StrCat("sinfo: ", UnknownColumns(unknown)));
    SWELL_RETURN_IF_ERROR(CheckStates());
    SWELL_ASSIGN_OR_RETURN(const auto names, ExpandNames("--nodes", nodes_));
    named_.insert(names.begin(), names.end());
    return iterate_.Run(session, [&] { return Print(session, format, names); });
  }

 private:
  Status Print(Session& session,
               const std::vector<FormatPart>& format,
               const std::vector<std::string>& names) const {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes,
                           ReadNodesToShow(session, *api, {names.begin(), names.end()}));
    SWELL_ASSIGN_OR_RETURN(std::vector<Partition> partitions, ReadPartitions(*api, nodes));
    SWELL_RETURN_IF_ERROR(CheckPartitions("--partition", partitions_, partitions));
    // A node's reason is told once, whatever partitions it is in.
    if (reasons_ && partitions_.empty()) partitions.erase(partitions.begin(), partitions.end() - 1);
    if (!no_header_) session.Out(FormatRow(format, Title));
    for (const Group& group : Groups(partitions, format)) {
      session.Out(FormatRow(format, [&group](char letter) { return Value(group, letter); }));
    }
    return Status::Ok();
  }

  Result<std::vector<FormatPart>> Format(std::string* unknown) const {
    if (!long_format_.empty()) return ParseLongFormat(long_format_, kLongNames, unknown);
    const std::string_view usual = reasons_            ? kReasons
                                   : by_node_ && long_ ? kNodesLong
                                   : by_node_          ? kNodes
                                   : summary_          ? kSummary
                                   : long_             ? kLong
                                                       : kUsual;
    return ParseFormat("--format", format_.empty() ? usual : format_, kLetters, unknown);
  }

  Status CheckStates() const {
    static constexpr std::string_view kStates[] = {"all",   "idle",      "mix",   "mixed",
                                                   "alloc", "allocated", "drain", "drained",
                                                   "drng",  "draining",  "down"};
    for (const std::string& one : CommaList(ToLower(states_))) {
      if (std::find(std::begin(kStates), std::end(kStates), one) != std::end(kStates)) continue;
      return Misuse(
          StrCat("--states ", Quote(one), ": expected idle, mix, alloc, drain, drng, down or all"));
    }
    return Status::Ok();
  }

  bool Takes(const NodeView& node) const {
    const NodeState state = StateOf(node);
    if (reasons_ && state.usable) return false;
    const std::vector<std::string> wanted = CommaList(ToLower(states_));
    const bool in_state =
        wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&state](const auto& one) {
          return one == state.code || one == state.word || one == "all";
        });
    return in_state && (named_.empty() || named_.contains(node.name)) &&
           (!responding_ || node.ready);
  }

  // The same for nodes that are on one line of a partition.
  std::string KeyOf(const Partition& partition,
                    const NodeView* node,
                    const std::vector<FormatPart>& format) const {
    if (by_node_) return node->name;
    std::string key;
    if (summary_) return key;
    for (const FormatPart& part : format) {
      if (kOfOneNode.find(part.letter) == std::string_view::npos) continue;
      key += StrCat(Value({&partition, {node}}, part.letter), "/");
    }
    return key;
  }

  std::vector<Group> Groups(const std::vector<Partition>& partitions,
                            const std::vector<FormatPart>& format) const {
    const std::vector<std::string> wanted = CommaList(partitions_);
    std::vector<Group> groups;
    for (const Partition& partition : partitions) {
      if (!wanted.empty() &&
          std::find(wanted.begin(), wanted.end(), partition.name) == wanted.end()) {
        continue;
      }
      // Lines are in the order of their first nodes.
      std::map<std::string, size_t> place;
      for (const NodeView* node : partition.nodes) {
        if (!Takes(*node)) continue;
        const auto [at, is_new] = place.try_emplace(KeyOf(partition, node, format), groups.size());
        if (is_new) groups.push_back({&partition, {}});
        groups[at->second].nodes.push_back(node);
      }
    }
    return groups;
  }

  bool by_node_ = false, long_ = false, summary_ = false, no_header_ = false, responding_ = false;
  bool ignored_ = false, reasons_ = false;
  std::string format_, long_format_, partitions_, nodes_, states_;
  std::set<std::string> named_;
  Iterate iterate_;
};

}  // namespace

Command SinfoSpec() {
  Command command;
  command.name = "sinfo";
  command.summary = "List node pools as partitions, and the states of their nodes.";
  command.examples = {{"Each node with its GPUs", "sinfo -N -o '%N %t %G'"}};
  command.notes = "A star marks the partition of jobs that name none: every node.";
  command.make = Makes<SinfoAction>();
  return command;
}

}  // namespace swell::cli::slurm
