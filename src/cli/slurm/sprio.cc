// sprio: what decides the order of jobs that wait.
#include <algorithm>

#include "base/strings.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/values.h"
#include "cli/views/project_view.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kUsual = "%.18i %.9r %.8u %.10o %.10Y %.12n %.12A %.12F";

struct Facts {
  const JobInfo& job;
  const ProjectView* project;  // null: of none, or not to be read
  WallTime now;
};

struct Column {
  char letter;
  std::string_view title;
  std::string (*value)(const Facts&);
};

std::string OrNull(const std::string& text) { return text.empty() ? "(null)" : text; }

// "6/4": the GPUs that the project holds, and its fair share.
std::string FairShareText(const Facts& facts) {
  if (facts.project == nullptr || !facts.project->gpu().fair_share) return "N/A";
  const Share& gpu = facts.project->gpu();
  return StrCat(ShareText(gpu.allocated, ShareOf::kGpu), "/",
                ShareText(*gpu.fair_share, ShareOf::kGpu));
}

constexpr Column kColumns[] = {
    {'i', "JOBID", [](const Facts& f) { return f.job.JobId(); }},
    {'r', "PARTITION", [](const Facts& f) { return OrNull(f.job.partition); }},
    {'u', "USER", [](const Facts& f) { return f.job.user; }},
    {'o', "ACCOUNT", [](const Facts& f) { return OrNull(f.job.account); }},
    {'Y', "PRIORITY", [](const Facts& f) { return std::to_string(f.job.priority); }},
    {'n', "QOS", [](const Facts& f) { return OrNull(f.job.qos); }},
    {'A', "AGE",
     [](const Facts& f) {
       return f.job.submitted ? TimeText(f.now - *f.job.submitted) : std::string("N/A");
     }},
    {'F', "FAIRSHARE", FairShareText},
};

const Column& ColumnOf(char letter) {
  return *std::find_if(std::begin(kColumns), std::end(kColumns),
                       [letter](const Column& one) { return one.letter == letter; });
}

class SprioAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Which jobs");
    flags.Text("-j,--jobs", &jobs_, "JOB[,JOB]", "only these, by number or name");
    flags.Text("-u,--user", &users_.text, "NAME[,NAME]", "only jobs of these users");
    flags.Text("-p,--partition", &partitions_.text, "POOL[,POOL]", "only in these node pools");
    flags.Group("Output");
    flags.Text("-o,--format", &format_, "FORMAT", "columns, such as '%.18i %Y %A'");
    flags.Switch("-h,--noheader", &no_header_, "omit the header");
    AcceptSwitches(flags, &ignored_, {{"-l,--long", "all columns are shown"}});
    flags.Refuse("-n,--norm", "no weights are summed: the columns are the facts themselves");
    flags.Refuse("-w,--weights", "no weights are summed: the columns are the facts themselves");
    flags.Refuse("-S,--sort", "jobs are in the order of their numbers; sort(1) orders lines");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    std::string letters, unknown;
    for (const Column& one : kColumns) letters += one.letter;
    SWELL_ASSIGN_OR_RETURN(
        const auto format,
        ParseFormat("--format", format_.empty() ? kUsual : format_, letters, &unknown));
    if (!unknown.empty()) session.ErrLine(StrCat("sprio: ", UnknownColumns(unknown)));
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobChoice> choices, ParseJobChoices(jobs_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    if (!partitions_.text.empty()) {
      SWELL_ASSIGN_OR_RETURN(const auto partitions, ReadPartitions(*api, {}));
      SWELL_RETURN_IF_ERROR(CheckPartitions("--partition", partitions_.text, partitions));
    }
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> all, ListShownJobs(session, *api));
    // A user who may not read projects sees the rest.
    const auto read = ReadProjects(*api);
    const ProjectTree tree = read.ok() ? *read : ProjectTree();
    if (!no_header_) {
      session.Out(FormatRow(format, [](char c) { return std::string(ColumnOf(c).title); }));
    }
    for (const JobInfo& job : all) {
      if (job.state.code != kPending.code || !Takes(choices, job)) continue;
      if (!users_.Takes(job.user) || !partitions_.TakesOneOf(job.partition)) continue;
      const Facts facts{job, tree.Find(job.account), session.Now()};
      session.Out(FormatRow(format, [&](char c) { return ColumnOf(c).value(facts); }));
    }
    return 0;
  }

 private:
  std::string jobs_, format_;
  NameFilter users_, partitions_;
  bool no_header_ = false, ignored_ = false;
};

}  // namespace

Command SprioSpec() {
  Command command;
  command.name = "sprio";
  command.summary = "Show what decides the order of jobs that wait.";
  command.examples = {{"Why one job is behind another", "sprio -j 1532,1540"}};
  command.notes =
      "PRIORITY is the value of the priority class (QOS), and counts within a project. Between "
      "projects, FAIRSHARE does: the GPUs that the job's project holds, and its fair share of "
      "them. AGE is how long the job has waited. swell why JOB says the whole reason.";
  command.make = Makes<SprioAction>();
  return command;
}

}  // namespace swell::cli::slurm
