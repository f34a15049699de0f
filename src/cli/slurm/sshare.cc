// sshare: what each project may have, has and had.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/values.h"
#include "cli/views/project_view.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kUsual = "Account,RawShares,NormShares,RawUsage,Allocated,FairShare";
constexpr std::string_view kLong =
    "Account,RawShares,NormShares,Limit,Weight,RawUsage,Allocated,Requested,FairShare,Priority";

using Tree = ProjectTree;

std::string Gpus(double amount) { return ShareText(amount, ShareOf::kGpu); }

// The project's part of what it and its siblings are given; unknown where one has no bound.
std::string NormShares(const Tree& tree, const ProjectView& project) {
  double all = 0;
  for (const ProjectView& one : tree.projects) {
    if (one.parent != project.parent) continue;
    if (one.gpu().quota < 0) return "N/A";
    all += one.gpu().quota;
  }
  if (all <= 0) return "N/A";
  const auto millionths = std::llround(project.gpu().quota / all * 1'000'000);
  std::string digits = std::to_string(millionths % 1'000'000);
  digits.insert(0, 6 - digits.size(), '0');
  return StrCat(millionths / 1'000'000, ".", digits);
}

struct Column {
  std::string_view name;
  size_t width;
  bool right;
  std::string (*value)(const Tree&, const ProjectView&);
};

constexpr Column kColumns[] = {
    {"Account", 20, false, [](const Tree&, const ProjectView& p) { return p.name; }},
    {"RawShares", 10, true, [](const Tree&, const ProjectView& p) { return Gpus(p.gpu().quota); }},
    {"NormShares", 11, true, NormShares},
    {"Limit", 10, true, [](const Tree&, const ProjectView& p) { return Gpus(p.gpu().limit); }},
    {"Weight", 8, true,
     [](const Tree&, const ProjectView& p) {
       return p.gpu().weight ? Gpus(*p.gpu().weight) : std::string("N/A");
     }},
    {"RawUsage", 11, true,
     [](const Tree&, const ProjectView& p) {
       if (!p.past_gpu_hours) return std::string("N/A");
       return std::to_string(std::llround(*p.past_gpu_hours * 3600));
     }},
    {"Allocated", 10, true,
     [](const Tree&, const ProjectView& p) { return Gpus(p.gpu().allocated); }},
    {"Requested", 10, true,
     [](const Tree&, const ProjectView& p) { return Gpus(p.gpu().requested); }},
    {"FairShare", 10, true,
     [](const Tree&, const ProjectView& p) {
       return p.gpu().fair_share ? Gpus(*p.gpu().fair_share) : std::string("N/A");
     }},
    {"Priority", 10, true,
     [](const Tree&, const ProjectView& p) { return std::to_string(p.priority); }},
};

class SshareAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Which projects");
    flags.Text("-A,--accounts", &accounts_, "PROJECT[,PROJECT]", "only these projects");
    AcceptSwitches(flags, &ignored_, {{"-a,--all", "every project is shown"}});
    flags.Refuse("-u,--users", "shares are of projects; swell report has GPU-hours of users");
    flags.Group("Output");
    flags.Text("-o,--format", &format_, "NAME[,NAME]", "columns, such as Account,RawShares");
    table_.Declare(flags);
    flags.Switch("-l,--long", &long_, "more columns");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (table_.help()) {
      for (const Column& one : kColumns) session.OutLine(one.name);
      return 0;
    }
    SWELL_RETURN_IF_ERROR(ReadColumns(session));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Tree tree, ReadProjects(*api));
    const std::vector<std::string> wanted = CommaList(accounts_);
    for (const std::string& name : wanted) {
      SWELL_RETURN_IF_ERROR(FindProject(tree, name).status().WithContext("--accounts"));
    }
    if (table_.with_header()) session.Out(FormatTitles(columns_, table_.form()));
    for (const ProjectView& project : tree.projects) {
      const bool shown =
          wanted.empty() || std::find(wanted.begin(), wanted.end(), project.name) != wanted.end();
      if (!shown) continue;
      session.Out(FormatRow(columns_, table_.form(), [&](const ChosenColumn& one) {
        if (!one.known) return std::string("N/A");
        const Column& column = kColumns[*one.known];
        const bool indents = column.name == "Account" && table_.form().aligned;
        const size_t depth = indents ? static_cast<size_t>(tree.Depth(project)) : 0;
        return std::string(depth, ' ') + column.value(tree, project);
      }));
    }
    return 0;
  }

 private:
  Status ReadColumns(Session& session) {
    const std::string list = !format_.empty() ? format_ : std::string(long_ ? kLong : kUsual);
    std::string unknown;
    SWELL_ASSIGN_OR_RETURN(columns_, ParseColumns(list, Names(kColumns), &unknown));
    if (!unknown.empty()) {
      session.ErrLine(
          StrCat("sshare: ", UnknownColumns(unknown), "; sshare --helpformat lists the others"));
    }
    return Status::Ok();
  }

  std::string accounts_, format_;
  TableFlags table_;
  bool long_ = false, ignored_ = false;
  std::vector<ChosenColumn> columns_;
};

}  // namespace

Command SshareSpec() {
  Command command;
  command.name = "sshare";
  command.summary = "Show the shares of projects: what each is given, holds and held.";
  command.examples = {{"All projects", "sshare"},
                      {"One, for a script", "sshare -P -n -A vision -o Account,RawShares"}};
  command.notes =
      "RawShares is the project's quota of GPUs, NormShares its part of the quotas beside it. "
      "FairShare is the number of GPUs that the project would hold if everybody used what they "
      "request. RawUsage is in GPU-seconds, where the scheduler counts past use.";
  command.make = Makes<SshareAction>();
  return command;
}

}  // namespace swell::cli::slurm
