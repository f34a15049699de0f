// sacct: what became of jobs.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_keys.h"
#include "cli/slurm/values.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kUsual = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";

struct Column {
  std::string_view name;
  size_t width;
  bool right;
  std::string (*value)(const JobInfo&, WallTime now);
};

std::string Tres(const JobInfo& job) {
  std::string text = StrCat("cpu=", job.cpus);
  if (job.memory_mib > 0) text += StrCat(",mem=", job.memory_mib * job.nodes, "M");
  text += StrCat(",node=", job.nodes);
  if (job.milli_gpus > 0) text += StrCat(",gres/gpu=", GpuText(job.milli_gpus));
  return text;
}
std::string StateText(const JobInfo& job) {
  const bool by = job.state.code == kCancelled.code && job.reason.starts_with("by ");
  return by ? StrCat(job.state.word, " ", job.reason) : std::string(job.state.word);
}
int64_t Seconds(const JobInfo& job, WallTime now) {
  return std::chrono::duration_cast<std::chrono::seconds>(job.Elapsed(now).value_or(Duration(0)))
      .count();
}
std::string LimitText(const JobInfo& job) {
  return job.time_limit_s > 0 ? LongTimeText(std::chrono::seconds(job.time_limit_s)) : "UNLIMITED";
}
std::string EndText(const JobInfo& job) {
  return job.state.active ? "Unknown" : WhenText(job.ended);
}

constexpr Column kColumns[] = {
    {"JobID", 12, false, [](const JobInfo& j, WallTime) { return j.JobId(); }},
    {"JobIDRaw", 12, false, [](const JobInfo& j, WallTime) { return j.id; }},
    {"JobName", 10, true, [](const JobInfo& j, WallTime) { return j.name; }},
    {"Partition", 10, true, [](const JobInfo& j, WallTime) { return j.partition; }},
    {"Account", 10, true, [](const JobInfo& j, WallTime) { return j.account; }},
    {"User", 9, true, [](const JobInfo& j, WallTime) { return j.user; }},
    {"QOS", 10, true, [](const JobInfo& j, WallTime) { return j.qos; }},
    {"AllocCPUS", 10, true, [](const JobInfo& j, WallTime) { return std::to_string(j.cpus); }},
    {"NCPUS", 10, true, [](const JobInfo& j, WallTime) { return std::to_string(j.cpus); }},
    {"ReqCPUS", 8, true, [](const JobInfo& j, WallTime) { return std::to_string(j.cpus); }},
    {"NNodes", 8, true, [](const JobInfo& j, WallTime) { return std::to_string(j.nodes); }},
    {"AllocNodes", 10, true, [](const JobInfo& j, WallTime) { return std::to_string(j.nodes); }},
    {"NTasks", 8, true, [](const JobInfo& j, WallTime) { return std::to_string(j.tasks); }},
    {"ReqMem", 10, true,
     [](const JobInfo& j, WallTime) {
       return j.memory_mib > 0 ? StrCat(j.memory_mib, "M") : std::string();
     }},
    {"AllocTRES", 20, true, [](const JobInfo& j, WallTime) { return Tres(j); }},
    {"ReqTRES", 20, true, [](const JobInfo& j, WallTime) { return Tres(j); }},
    {"State", 10, true, [](const JobInfo& j, WallTime) { return StateText(j); }},
    {"ExitCode", 8, true,
     [](const JobInfo& j, WallTime) { return StrCat(j.exit_code, ":", j.exit_signal); }},
    {"Reason", 20, true, [](const JobInfo& j, WallTime) { return j.reason; }},
    {"Elapsed", 10, true,
     [](const JobInfo& j, WallTime now) {
       return LongTimeText(std::chrono::seconds(Seconds(j, now)));
     }},
    {"ElapsedRaw", 10, true,
     [](const JobInfo& j, WallTime now) { return std::to_string(Seconds(j, now)); }},
    {"CPUTime", 10, true,
     [](const JobInfo& j, WallTime now) {
       return LongTimeText(std::chrono::seconds(j.cpus * Seconds(j, now)));
     }},
    {"CPUTimeRAW", 10, true,
     [](const JobInfo& j, WallTime now) { return std::to_string(j.cpus * Seconds(j, now)); }},
    {"TimelimitRaw", 12, true,
     [](const JobInfo& j, WallTime) {
       return j.time_limit_s > 0 ? std::to_string(j.time_limit_s / 60) : std::string("UNLIMITED");
     }},
    {"Timelimit", 10, true, [](const JobInfo& j, WallTime) { return LimitText(j); }},
    {"Submit", 19, true, [](const JobInfo& j, WallTime) { return WhenText(j.submitted); }},
    {"Start", 19, true, [](const JobInfo& j, WallTime) { return WhenText(j.started); }},
    {"End", 19, true, [](const JobInfo& j, WallTime) { return EndText(j); }},
    {"NodeList", 15, true,
     [](const JobInfo& j, WallTime) {
       return j.node_list.empty() ? std::string("None assigned") : CompressNames(j.node_list);
     }},
    {"WorkDir", 20, true, [](const JobInfo& j, WallTime) { return j.work_dir; }},
    {"SubmitLine", 20, true, [](const JobInfo& j, WallTime) { return j.view.command_line; }},
    {"Priority", 10, true, [](const JobInfo& j, WallTime) { return std::to_string(j.priority); }},
    {"StdOut", 20, true, [](const JobInfo& j, WallTime) { return j.std_out; }},
    {"StdErr", 20, true, [](const JobInfo& j, WallTime) { return j.std_err; }},
    {"Comment", 14, true, [](const JobInfo& j, WallTime) { return j.comment; }},
};

// "11/21", "11/21/26" and "11/21-10:00", as the server writes a time.
std::string FromSlashes(std::string_view text, WallTime now) {
  const size_t dash = text.find('-');
  const auto parts = Split(text.substr(0, dash), '/');
  if (parts.size() < 2 || parts.size() > 3) return "";
  std::string year = api::FormatTime(now).substr(0, 4);
  if (parts.size() == 3) year = parts[2].size() == 2 ? StrCat("20", parts[2]) : parts[2];
  std::string hours(dash == std::string_view::npos ? "00:00:00" : text.substr(dash + 1));
  if (hours.size() == 5) hours += ":00";
  return StrCat(year, "-", parts[0], "-", parts[1], "T", hours, "Z");
}

class SacctAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Which jobs");
    flags.List("-j,--jobs", &jobs_, "JOB[,JOB]", "only these, by number or name, of any day");
    flags.Text("-u,--user", &users_.text, "NAME[,NAME]", "only jobs of these users");
    flags.Text("-A,--accounts", &accounts_.text, "PROJECT[,PROJECT]", "only of these projects");
    flags.Text("-r,--partition", &partitions_.text, "POOL[,POOL]", "only in these node pools");
    flags.Text("-N,--nodelist", &nodes_, "NODES", "only jobs that ran on these nodes");
    flags.Text("--name", &names_.text, "NAME[,NAME]", "only jobs with these names");
    flags.Text("-q,--qos", &qos_.text, "CLASS[,CLASS]", "only of these priority classes");
    flags.Text("-s,--state", &states_, "STATE[,STATE]", "only in these states, by code or word");
    flags.Text("-S,--starttime", &since_, "WHEN",
               "only jobs that did not end before: 2026-11-21, 2026-11-21T10:00, now-2hours "
               "(default: today)");
    flags.Text("-E,--endtime", &until_, "WHEN", "only jobs that were submitted before");
    AcceptSwitches(flags, &ignored_,
                   {{"-X,--allocations", "steps have no lines"},
                    {"-a,--allusers", "everybody's jobs are shown"},
                    {"-D,--duplicates", "numbers are given once"},
                    {"-T,--truncate", "times are printed as they are"},
                    {"-L,--allclusters", "there is one cluster"},
                    {"--local", "there is one cluster"},
                    {"--federation", "there is one cluster"},
                    {"--noconvert", "amounts are printed as they are"},
                    {"-v,--verbose", "nothing more is said"}});
    flags.Text("--units", &ignored_text_, "UNIT", "accepted; amounts have their own").hidden = true;
    flags.Refuse("-M,--clusters", "--context NAME selects another cluster");
    flags.Refuse("-B,--batch-script", "scontrol write batch_script JOB - prints it");
    flags.Refuse("--env-vars", "kubectl get pod NAME -o yaml has the variables");
    flags.Refuse("--yaml", "--json prints a document");
    flags.Group("Output");
    flags.List("-o,--format", &format_, "NAME[%WIDTH],…", "columns, such as JobID,State,Elapsed");
    table_.Declare(flags);
    flags.Switch("-l,--long", &long_, "more columns");
    flags.Switch("-b,--brief", &brief_, "number, state and exit code");
    flags.Switch("--json", &json_, "print a JSON document");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (table_.help()) {
      for (const Column& one : kColumns) session.OutLine(one.name);
      return 0;
    }
    SWELL_RETURN_IF_ERROR(ReadColumns(session));
    SWELL_RETURN_IF_ERROR(ReadFilters(session.Now()));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<JobInfo> all, ListShownJobs(session, *api));
    SWELL_RETURN_IF_ERROR(AddCancelled(session, *api, all));
    if (json_) {
      json::Array jobs;
      for (const JobInfo& job : all) {
        if (Takes(job)) jobs.push_back(ToJson(job, session.Now()));
      }
      session.Out(json::PrintPretty(json::Object{{"jobs", std::move(jobs)}}) + "\n");
      return 0;
    }
    if (table_.with_header()) session.Out(FormatTitles(columns_, table_.form()));
    for (const JobInfo& job : all) {
      if (Takes(job)) PrintJob(session, job);
    }
    return 0;
  }

 private:
  // Every column by its name; what is a number is one.
  static json::Value ToJson(const JobInfo& job, WallTime now) {
    json::Object out;
    for (const Column& one : kColumns) {
      const std::string text = one.value(job, now);
      const auto number = ParseUint(text);
      const bool words = one.name == "JobName" || one.name == "Comment" || one.name == "User";
      if (number && !words) {
        out[std::string(one.name)] = static_cast<int64_t>(*number);
      } else {
        out[std::string(one.name)] = text;
      }
    }
    return out;
  }

  Status ReadColumns(Session& session) {
    std::string unknown;
    std::string list = format_.empty() ? std::string(kUsual) : Join(format_, ",");
    if (format_.empty() && long_) {
      list =
          "JobID,JobName,User,Account,Partition,QOS,NNodes,AllocTRES,Submit,Start,End,Elapsed,"
          "Timelimit,State,ExitCode,NodeList";
    }
    if (format_.empty() && brief_) list = "JobID,State,ExitCode";
    SWELL_ASSIGN_OR_RETURN(columns_, ParseColumns(list, Names(kColumns), &unknown));
    if (!unknown.empty()) {
      session.ErrLine(
          StrCat("sacct: ", UnknownColumns(unknown), "; sacct --helpformat lists the others"));
    }
    return Status::Ok();
  }

  Status ReadFilters(WallTime now) {
    SWELL_ASSIGN_OR_RETURN(choices_, ParseJobChoices(Join(jobs_, ",")));
    for (const std::string& one : CommaList(states_)) {
      const JobState* state = FindState(one);
      if (state == nullptr) {
        return Misuse(
            StrCat("--state ", Quote(one), ": expected PD, R, CG, CD, F, TO, OOM, PR or CA"));
      }
      wanted_.insert(state->code);
    }
    if (!since_.empty()) {
      SWELL_ASSIGN_OR_RETURN(since_time_, ReadTime("--starttime", since_, now));
    } else if (choices_.empty()) {
      SWELL_ASSIGN_OR_RETURN(since_time_,
                             ReadTime("--starttime", api::FormatTime(now).substr(0, 10), now));
    }
    if (!until_.empty()) {
      SWELL_ASSIGN_OR_RETURN(until_time_, ReadTime("--endtime", until_, now));
    }
    SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> nodes, ExpandNames("--nodelist", nodes_));
    on_.insert(nodes.begin(), nodes.end());
    return Status::Ok();
  }

  static Result<std::optional<WallTime>> ReadTime(std::string_view flag,
                                                  const std::string& text,
                                                  WallTime now) {
    if (auto time = ParseWord(text, now)) return time;
    if (text.find('/') != std::string::npos) {
      if (auto time = api::ParseTime(FromSlashes(text, now))) return time;
    }
    for (std::string_view rest : {"", "Z", ":00Z", "T00:00:00Z"}) {
      if (auto time = api::ParseTime(StrCat(text, rest))) return time;
    }
    return Misuse(StrCat(flag, " ", Quote(text),
                         ": expected a day (2026-11-21) or a time (2026-11-21T10:00) of UTC, or "
                         "now-2hours"));
  }

  // Those whose records scancel has kept; the others are there as objects.
  static Status AddCancelled(Session& session, Api& api, std::vector<JobInfo>& all) {
    auto records = ListRecords(api, session.global().ns);
    if (records.status().code() == Code::kForbidden) {
      records = ListRecords(api, session.Namespace());
    }
    if (!records.ok()) return records.status();
    for (JobInfo& record : *records) {
      const bool there = std::any_of(all.begin(), all.end(), [&record](const JobInfo& job) {
        return job.ours && job.id == record.id;
      });
      if (!there) all.push_back(std::move(record));
    }
    std::stable_sort(all.begin(), all.end(), [](const JobInfo& a, const JobInfo& b) {
      const auto number = [](const JobInfo& job) {
        const auto id = ParseInt(job.id);
        return std::tuple(!id.has_value(), id.value_or(0));
      };
      return number(a) < number(b);
    });
    return Status::Ok();
  }

  bool Takes(const JobInfo& job) const {
    const bool late = !since_time_ || job.state.active || !job.ended || *job.ended >= *since_time_;
    const bool early = !until_time_ || !job.submitted || *job.submitted <= *until_time_;
    const bool on =
        on_.empty() || std::any_of(job.node_list.begin(), job.node_list.end(),
                                   [this](const std::string& node) { return on_.contains(node); });
    return slurm::Takes(choices_, job) && on && late && early &&
           (wanted_.empty() || wanted_.contains(job.state.code)) && users_.Takes(job.user) &&
           accounts_.Takes(job.account) && qos_.Takes(job.qos) && names_.Takes(job.name) &&
           partitions_.Takes(job.partition);
  }

  void PrintJob(Session& session, const JobInfo& job) const {
    session.Out(FormatRow(columns_, table_.form(), [&](const ChosenColumn& one) {
      return one.known ? kColumns[*one.known].value(job, session.Now()) : std::string("N/A");
    }));
  }

  std::vector<std::string> jobs_, format_;
  std::string states_, since_, until_, nodes_, ignored_text_;
  NameFilter users_, accounts_, partitions_, names_, qos_;
  TableFlags table_;
  bool long_ = false, ignored_ = false, brief_ = false, json_ = false;
  std::vector<ChosenColumn> columns_;
  std::vector<JobChoice> choices_;
  std::set<std::string_view> wanted_;
  std::optional<WallTime> since_time_, until_time_;
  std::set<std::string> on_;
};

}  // namespace

Command SacctSpec() {
  Command command;
  command.name = "sacct";
  command.summary = "Show what became of jobs.";
  command.examples = {{"One job", "sacct -j 1532 --format JobID,State,ExitCode,Elapsed"},
                      {"Everything since Monday, for a script",
                       "sacct -P -n -S 2026-11-23 -o JobID,State,ElapsedRaw"}};
  command.notes =
      "Jobs are known for as long as their objects are there, cancelled ones for seven days. swell "
      "report has GPU-hours by project and user, also of jobs that were deleted.";
  command.make = Makes<SacctAction>();
  return command;
}

}  // namespace swell::cli::slurm
