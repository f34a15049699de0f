// squeue: jobs that run, wait or end.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/iterate.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/values.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kUsual = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R";
constexpr std::string_view kLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";

struct Column {
  char letter;
  std::string_view title;
  std::string (*value)(const JobInfo&, WallTime now);
};

std::string LimitText(const JobInfo& job) {
  return job.time_limit_s > 0 ? TimeText(std::chrono::seconds(job.time_limit_s)) : "UNLIMITED";
}
std::string LeftText(const JobInfo& job, WallTime now) {
  if (job.time_limit_s == 0) return "UNLIMITED";
  const Duration used = job.Elapsed(now).value_or(Duration(0));
  return TimeText(std::chrono::seconds(job.time_limit_s) - used);
}
std::string NodesText(const JobInfo& job) { return CompressNames(job.node_list); }
std::string NodesOrReason(const JobInfo& job) {
  if (job.state.code == kPending.code) return StrCat("(", job.reason, ")");
  return NodesText(job);
}
std::string OrNull(const std::string& text) { return text.empty() ? "(null)" : text; }
std::string GresText(const JobInfo& job) {
  return job.milli_gpus > 0 ? StrCat("gres/gpu:", GpuText(job.milli_gpus / job.nodes)) : "N/A";
}

constexpr Column kColumns[] = {
    {'i', "JOBID", [](const JobInfo& j, WallTime) { return j.JobId(); }},
    {'A', "JOBID", [](const JobInfo& j, WallTime) { return j.id; }},
    {'F', "ARRAY_JOB_ID",
     [](const JobInfo& j, WallTime) { return j.array_id.empty() ? j.id : j.array_id; }},
    {'K', "ARRAY_TASK_ID",
     [](const JobInfo& j, WallTime) { return j.task_id.empty() ? "N/A" : j.task_id; }},
    {'P', "PARTITION", [](const JobInfo& j, WallTime) { return OrNull(j.partition); }},
    {'j', "NAME", [](const JobInfo& j, WallTime) { return j.name; }},
    {'u', "USER", [](const JobInfo& j, WallTime) { return j.user; }},
    {'a', "ACCOUNT", [](const JobInfo& j, WallTime) { return OrNull(j.account); }},
    {'q', "QOS", [](const JobInfo& j, WallTime) { return OrNull(j.qos); }},
    {'t', "ST", [](const JobInfo& j, WallTime) { return std::string(j.state.code); }},
    {'T', "STATE", [](const JobInfo& j, WallTime) { return std::string(j.state.word); }},
    {'M', "TIME",
     [](const JobInfo& j, WallTime now) { return TimeText(j.Elapsed(now).value_or(Duration(0))); }},
    {'l', "TIME_LIMIT", [](const JobInfo& j, WallTime) { return LimitText(j); }},
    {'L', "TIME_LEFT", [](const JobInfo& j, WallTime now) { return LeftText(j, now); }},
    {'D', "NODES", [](const JobInfo& j, WallTime) { return std::to_string(j.nodes); }},
    {'C', "CPUS", [](const JobInfo& j, WallTime) { return std::to_string(j.cpus); }},
    {'R', "NODELIST(REASON)", [](const JobInfo& j, WallTime) { return NodesOrReason(j); }},
    {'N', "NODELIST", [](const JobInfo& j, WallTime) { return NodesText(j); }},
    {'r', "REASON", [](const JobInfo& j, WallTime) { return j.reason; }},
    {'b', "TRES_PER_NODE", [](const JobInfo& j, WallTime) { return GresText(j); }},
    {'m', "MIN_MEMORY",
     [](const JobInfo& j, WallTime) {
       return j.memory_mib > 0 ? StrCat(j.memory_mib, "M") : std::string("0");
     }},
    {'S', "START_TIME",
     [](const JobInfo& j, WallTime) {
       const auto& start = j.started ? j.started : j.not_before;
       return start ? WhenText(start) : "N/A";
     }},
    {'e', "END_TIME",
     [](const JobInfo& j, WallTime) {
       if (j.ended) return WhenText(j.ended);
       if (!j.started || j.time_limit_s == 0) return std::string("N/A");
       return WhenText(*j.started + std::chrono::seconds(j.time_limit_s));
     }},
    {'V', "SUBMIT_TIME", [](const JobInfo& j, WallTime) { return WhenText(j.submitted); }},
    {'Z', "WORK_DIR", [](const JobInfo& j, WallTime) { return OrNull(j.work_dir); }},
    {'o', "COMMAND", [](const JobInfo& j, WallTime) { return OrNull(j.command); }},
    {'E', "DEPENDENCY", [](const JobInfo& j, WallTime) { return OrNull(j.dependency); }},
    {'Q', "PRIORITY", [](const JobInfo& j, WallTime) { return std::to_string(j.priority); }},
    {'p', "PRIORITY", [](const JobInfo& j, WallTime) { return std::to_string(j.priority); }},
    {'B', "EXEC_HOST",
     [](const JobInfo& j, WallTime) { return j.node_list.empty() ? "n/a" : j.node_list.front(); }},
    {'c', "MIN_CPUS",
     [](const JobInfo& j, WallTime) {
       return std::to_string(std::max<int64_t>(1, j.cpus / j.nodes));
     }},
    {'f', "FEATURES", [](const JobInfo&, WallTime) { return std::string("(null)"); }},
    {'v', "RESERVATION", [](const JobInfo&, WallTime) { return std::string("(null)"); }},
    {'k', "COMMENT", [](const JobInfo& j, WallTime) { return OrNull(j.comment); }},
};

constexpr LongName kLongNames[] = {
    {"Account", 'a'},   {"ArrayJobID", 'F'}, {"ArrayTaskID", 'K'},  {"BatchHost", 'B'},
    {"Command", 'o'},   {"Comment", 'k'},    {"Dependency", 'E'},   {"EndTime", 'e'},
    {"Feature", 'f'},   {"JobArrayID", 'i'}, {"JobID", 'A'},        {"MinCpus", 'c'},
    {"MinMemory", 'm'}, {"Name", 'j'},       {"NodeList", 'N'},     {"NumCPUs", 'C'},
    {"NumNodes", 'D'},  {"Partition", 'P'},  {"Priority", 'p'},     {"PriorityLong", 'Q'},
    {"QOS", 'q'},       {"Reason", 'r'},     {"ReasonList", 'R'},   {"Reservation", 'v'},
    {"StartTime", 'S'}, {"State", 'T'},      {"StateCompact", 't'}, {"SubmitTime", 'V'},
    {"TimeLeft", 'L'},  {"TimeLimit", 'l'},  {"TimeUsed", 'M'},     {"tres-per-node", 'b'},
    {"UserName", 'u'},  {"WorkDir", 'Z'}};

const Column& ColumnOf(char letter) {
  return *std::find_if(std::begin(kColumns), std::end(kColumns),
                       [letter](const Column& one) { return one.letter == letter; });
}

std::string Letters() {
  std::string all;
  for (const Column& one : kColumns) all += one.letter;
  return all;
}

// Numbers as numbers, and times as seconds since 1970, as Slurm's documents have them.
json::Value JsonOf(const JobInfo& job, char letter, const std::string& text) {
  const auto seconds = [](const std::optional<WallTime>& time) {
    return json::Value(time ? time->unix_ns / 1'000'000'000 : int64_t{0});
  };
  switch (letter) {
    case 'D':
      return job.nodes;
    case 'C':
      return job.cpus;
    case 'Q':
      return job.priority;
    case 'm':
      return job.memory_mib;
    case 'l':
      return job.time_limit_s / 60;
    case 'S':
      return seconds(job.started);
    case 'e':
      return seconds(job.ended);
    case 'V':
      return seconds(job.submitted);
    case 'i':
    case 'F':
    case 'K':
      if (const auto number = ParseInt(letter == 'i' ? job.id : text)) return *number;
      return letter == 'K' ? json::Value(nullptr) : json::Value(text);
    default:
      return json::Value(text);
  }
}

json::Value ToJson(const JobInfo& job, WallTime now) {
  json::Object out;
  for (const Column& one : kColumns) {
    if (one.letter == 'R' || one.letter == 'A' || one.letter == 'p') continue;
    std::string name = ToLower(one.title);
    if (one.letter == 'i') name = "job_id";
    if (one.letter == 'T') name = "job_state";
    if (one.letter == 't') name = "state_code";
    if (one.letter == 'r') name = "state_reason";
    out[name] = JsonOf(job, one.letter, one.value(job, now));
  }
  out["namespace"] = job.view.ns;
  out["job_object"] = job.view.ResourceName();
  if (!job.waits.empty()) out["state_description"] = job.waits;
  return out;
}

// Amounts and times by their values, numbers of jobs before names, the rest by the text.
std::pair<int64_t, std::string> SortKey(const JobInfo& job, char letter, WallTime now) {
  if (letter == 'M') return {job.Elapsed(now).value_or(Duration(0)).count(), ""};
  if (letter == 'l' || letter == 'L') {
    if (job.time_limit_s == 0) return {INT64_MAX, ""};
    const Duration used = letter == 'L' ? job.Elapsed(now).value_or(Duration(0)) : Duration(0);
    return {Duration(std::chrono::seconds(job.time_limit_s) - used).count(), ""};
  }
  const std::string text = ColumnOf(letter).value(job, now);
  if (letter == 'A' || letter == 'p') letter = letter == 'A' ? 'i' : 'Q';
  const json::Value value = JsonOf(job, letter, text);
  return value.is_int64() ? std::pair(value.get_int64(), std::string())
                          : std::pair(INT64_MAX, text);
}

struct SortBy {
  char letter = 0;
  bool falls = false;
};

Result<std::vector<SortBy>> ParseSort(std::string_view list) {
  std::vector<SortBy> order;
  for (const std::string& word : CommaList(list)) {
    const bool has_sign = word[0] == '-' || word[0] == '+';
    const std::string letter = has_sign ? word.substr(1) : word;
    if (letter.size() != 1 || Letters().find(letter) == std::string::npos) {
      return Misuse(StrCat("--sort ", Quote(word), ": expected letters of columns, like P,-M"));
    }
    order.push_back({letter[0], word[0] == '-'});
  }
  return order;
}

void Sort(std::vector<JobInfo>& jobs, const std::vector<SortBy>& order, WallTime now) {
  // Jobs that are alike in one column stay as the next ones have ordered them.
  for (auto by = order.rbegin(); by != order.rend(); ++by) {
    std::stable_sort(jobs.begin(), jobs.end(), [&](const JobInfo& a, const JobInfo& b) {
      const auto key_a = SortKey(a, by->letter, now), key_b = SortKey(b, by->letter, now);
      return by->falls ? key_b < key_a : key_a < key_b;
    });
  }
}

// The tasks of an array that wait for the same reason, as one: 1532_[3-99%8].
std::vector<JobInfo> MergeWaitingTasks(std::vector<JobInfo> jobs) {
  struct Group {
    size_t line = 0;
    std::set<int64_t> tasks;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  std::vector<JobInfo> lines;
  for (JobInfo& job : jobs) {
    const auto task = ParseInt(job.task_id);
    if (!job.array_id.empty() && job.state.code == kPending.code && task) {
      const auto [found, is_new] =
          groups.try_emplace({job.view.ns, job.array_id, job.reason}, Group{lines.size(), {}});
      found->second.tasks.insert(*task);
      if (!is_new) continue;
    }
    lines.push_back(std::move(job));
  }
  for (const auto& [key, group] : groups) {
    if (group.tasks.size() == 1) continue;
    JobInfo& job = lines[group.line];
    const std::string_view at_once = api::Annotation(*job.view.object, api::keys::kArrayAtOnce);
    job.task_id = StrCat("[", RangesText(group.tasks), at_once.empty() ? "" : "%", at_once, "]");
  }
  return lines;
}

class SqueueAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Which jobs");
    flags.Text("-j,--jobs", &jobs_, "JOB[,JOB]", "only these, by number or name");
    flags.Text("-u,--user", &users_.text, "NAME[,NAME]", "only jobs of these users");
    flags.Switch("--me", &me_, "only your own");
    flags.Text("-n,--name", &names_.text, "NAME[,NAME]", "only jobs with these names");
    flags.Text("-p,--partition", &partitions_.text, "POOL[,POOL]", "only in these node pools");
    flags.Text("-A,--account", &accounts_.text, "PROJECT[,PROJECT]", "only of these projects");
    flags.Text("-q,--qos", &qos_.text, "CLASS[,CLASS]", "only of these priority classes");
    flags.Text("-w,--nodelist", &nodes_, "NODES", "only jobs on these nodes");
    flags.Text("-t,--states", &states_, "STATE[,STATE]",
               "only in these states, by code or word; all for every one");
    flags.Group("Output");
    flags.Text("-o,--format", &format_, "FORMAT", "columns, such as '%.18i %.9P %j %T %R'");
    flags.Text("-O,--Format", &long_format_, "NAMES", "columns by name, such as JobID:10,Name:.30");
    flags.Switch("-l,--long", &long_, "more columns");
    flags.Switch("-h,--noheader", &no_header_, "omit the header");
    flags.Switch("-r,--array", &each_task_,
                 "a line for each task of an array, also for those that wait");
    flags.Text("-S,--sort", &sort_, "LETTERS",
               "order by the letters of --format, such as 'P,-M'; with - the other way");
    AcceptSwitches(flags, &ignored_,
                   {{"-a,--all", "nothing is hidden"},
                    {"--hide", "nothing is hidden"},
                    {"--local", "there is one cluster"},
                    {"--federation", "there is one cluster"},
                    {"--noconvert", "amounts are printed as they are"},
                    {"-v,--verbose", "nothing more is said"}});
    flags.Switch("--json", &json_, "print a JSON document");
    flags.Switch("--start", &start_, "when jobs that wait start at the earliest, if that is known");
    flags.Refuse("-s,--steps", "nothing records steps; swell logs JOB shows what they print");
    flags.Refuse("-M,--clusters", "--context NAME selects another cluster");
    flags.Refuse("-R,--reservation", "there are no reservations; a node pool is a --partition");
    flags.Refuse("-L,--licenses", "licences are not counted here");
    flags.Refuse("--yaml", "--json prints a document");
    iterate_.Declare(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    std::string unknown;
    SWELL_ASSIGN_OR_RETURN(const auto format, Format(&unknown));
    SWELL_ASSIGN_OR_RETURN(const auto order, ParseSort(sort_));
    if (!unknown.empty()) session.ErrLine(StrCat("squeue: ", UnknownColumns(unknown)));
    SWELL_RETURN_IF_ERROR(ReadFilters());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    if (me_) {
      SWELL_ASSIGN_OR_RETURN(users_.text, Me(session, *api));
    }
    if (!partitions_.text.empty()) {
      SWELL_ASSIGN_OR_RETURN(const auto partitions, ReadPartitions(*api, {}));
      SWELL_RETURN_IF_ERROR(CheckPartitions("--partition", partitions_.text, partitions));
    }
    return iterate_.Run(session, [&] { return Print(session, *api, format, order); });
  }

 private:
  Status Print(Session& session,
               Api& api,
               const std::vector<FormatPart>& format,
               const std::vector<SortBy>& order) const {
    SWELL_ASSIGN_OR_RETURN(std::vector<JobInfo> all, ListShownJobs(session, api));
    SWELL_RETURN_IF_ERROR(CheckChoices(session, api, all));
    std::erase_if(all, [this](const JobInfo& job) { return !Takes(job); });
    Sort(all, order, session.Now());
    if (json_) {
      json::Array jobs;
      for (const JobInfo& job : all) jobs.push_back(ToJson(job, session.Now()));
      session.Out(json::PrintPretty(json::Object{{"jobs", std::move(jobs)}}) + "\n");
      return Status::Ok();
    }
    if (!no_header_) {
      session.Out(FormatRow(format, [](char c) { return std::string(ColumnOf(c).title); }));
    }
    if (!each_task_) all = MergeWaitingTasks(std::move(all));
    for (const JobInfo& job : all) {
      session.Out(FormatRow(format, [&](char c) { return ColumnOf(c).value(job, session.Now()); }));
    }
    return Status::Ok();
  }

  Result<std::vector<FormatPart>> Format(std::string* unknown) const {
    if (!long_format_.empty()) return ParseLongFormat(long_format_, kLongNames, unknown);
    const std::string_view usual = start_ ? kStart : long_ ? kLong : kUsual;
    return ParseFormat("--format", format_.empty() ? usual : format_, Letters(), unknown);
  }

  // Jobs that are over are known, and have left the queue.
  Status CheckChoices(Session& session, Api& api, const std::vector<JobInfo>& all) const {
    for (const JobChoice& choice : choices_) {
      const auto takes = [&choice](const JobInfo& job) { return choice.Takes(job); };
      if (std::any_of(all.begin(), all.end(), takes)) continue;
      auto records = ListRecords(api, session.global().ns);
      if (!records.ok()) records = ListRecords(api, session.Namespace());
      if (records.ok() && std::any_of(records->begin(), records->end(), takes)) continue;
      return Status(Code::kNotFound, StrCat("Invalid job id ", choice.text,
                                            "; sacct lists jobs that are over, too"));
    }
    return Status::Ok();
  }

  Status ReadFilters() {
    SWELL_ASSIGN_OR_RETURN(choices_, ParseJobChoices(jobs_));
    for (const std::string& one : CommaList(states_)) {
      if (ToLower(one) == "all") {
        every_state_ = true;
        continue;
      }
      const JobState* state = FindState(one);
      if (state == nullptr) {
        return Misuse(StrCat("--states ", Quote(one),
                             ": expected PD, CF, R, CG, CD, F, TO, OOM, PR, CA or all"));
      }
      wanted_.insert(state->code);
    }
    SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> nodes, ExpandNames("--nodelist", nodes_));
    on_.insert(nodes.begin(), nodes.end());
    return Status::Ok();
  }

  bool Takes(const JobInfo& job) const {
    const bool state = every_state_ || (start_            ? job.state.code == kPending.code
                                        : wanted_.empty() ? job.state.active
                                                          : wanted_.contains(job.state.code));
    const bool on =
        on_.empty() || std::any_of(job.node_list.begin(), job.node_list.end(),
                                   [this](const std::string& node) { return on_.contains(node); });
    return state && slurm::Takes(choices_, job) && on && users_.Takes(job.user) &&
           names_.Takes(job.name) && partitions_.TakesOneOf(job.partition) &&
           accounts_.Takes(job.account) && qos_.Takes(job.qos);
  }

  std::string jobs_, nodes_, states_, format_, long_format_, sort_;
  NameFilter users_, names_, partitions_, accounts_, qos_;
  Iterate iterate_;
  bool me_ = false, long_ = false, start_ = false, no_header_ = false, json_ = false,
       each_task_ = false, ignored_ = false;
  std::vector<JobChoice> choices_;
  std::set<std::string_view> wanted_;
  std::set<std::string> on_;
  bool every_state_ = false;
};

}  // namespace

Command SqueueSpec() {
  Command command;
  command.name = "squeue";
  command.summary = "List jobs that wait or run.";
  command.examples = {{"Your own jobs", "squeue --me"},
                      {"Your own jobs, again every ten seconds", "squeue --me -i 10"},
                      {"Why jobs wait", "squeue -t PD -o '%.10i %.20j %R'"}};
  command.notes =
      "Jobs that were not made by sbatch have their name in place of a number. swell why JOB says "
      "the whole reason why a job waits.";
  command.make = Makes<SqueueAction>();
  return command;
}

}  // namespace swell::cli::slurm
