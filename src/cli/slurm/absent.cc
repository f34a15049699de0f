// Commands of Slurm that are not provided: each says what does its work here.
#include "base/strings.h"
#include "cli/slurm/slurm.h"

namespace swell::cli::slurm {
namespace {

struct NotProvided {
  std::string_view name, instead;
};

constexpr NotProvided kNotProvided[] = {
    {"sacctmgr", "accounts are projects: swell project list, create, edit; users: swell user"},
    {"sattach", "swell logs -f JOB follows what a job prints"},
    {"sbcast",
     "a job's nodes see the directories that are mounted in it; swell cp copies files to a pod"},
    {"scrontab", "arena cron starts jobs on a schedule"},
    {"sdiag", "swell events shows the scheduler's decisions"},
    {"seff", "swell report --by job shows what each job held, and how much of it trained"},
    {"sreport", "swell report shows GPU use by project, user, job and time"},
    {"sstat", "nothing measures steps; swell describe JOB shows how a job does"},
    {"strigger", "swell wait waits until a job has a given state"},
    {"sview", "swell ui opens the pages"},
};

class AbsentAction final : public Action {
 public:
  explicit AbsentAction(std::string said) : said_(std::move(said)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session&, std::vector<std::string>) override {
    return Status(Code::kNotAcceptable, said_);
  }

 private:
  std::string said_;
};

}  // namespace

void AddAbsent(std::vector<Command>& commands) {
  for (const NotProvided& one : kNotProvided) {
    Command command;
    command.name = one.name;
    command.summary = StrCat("there is no ", one.name, " here: ", one.instead);
    command.hidden = true;
    command.raw = true;  // whatever its flags are
    command.make = [said = command.summary] { return std::make_unique<AbsentAction>(said); };
    commands.push_back(std::move(command));
  }
}

}  // namespace swell::cli::slurm
