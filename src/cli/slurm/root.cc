// The whole of `swell slurm`: Slurm's commands, and links that give them their own names.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/slurm/slurm.h"

namespace swell::cli {
namespace slurm {
namespace {

// Links to this program: a machine that has Slurm keeps its own commands until its user puts the
// folder first in PATH.
class LinksAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return Misuse("expected a folder: swell slurm links ~/.swell/slurm");
    SWELL_RETURN_IF_ERROR(MakeDirs(words[0]));
    std::error_code failed;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed) return Status(Code::kInternal, StrCat("/proc/self/exe: ", failed.message()));
    const auto folder = std::filesystem::absolute(words[0], failed);
    for (const Command& one : SlurmRoot().children) {
      if (one.name == "links") continue;
      SWELL_RETURN_IF_ERROR(Link(program, folder / one.name));
    }
    session.OutLine(StrCat("export PATH=", folder.string(), ":$PATH"));
    return 0;
  }

 private:
  static Status Link(const std::filesystem::path& program, const std::filesystem::path& link) {
    std::error_code failed;
    if (std::filesystem::is_symlink(link, failed)) {
      std::filesystem::remove(link, failed);
    } else if (std::filesystem::exists(link, failed)) {
      return Status(Code::kAlreadyExists,
                    StrCat(link.string(), " is there, and is not a link; choose another folder"));
    }
    if (::symlink(program.c_str(), link.c_str()) == 0) return Status::Ok();
    return ErrnoStatus(errno, StrCat("link ", link.string()));
  }
};

}  // namespace

Command LinksSpec() {
  Command command;
  command.name = "links";
  command.summary = "Give the commands their own names: links to this program in a folder.";
  command.usage = "FOLDER";
  command.examples = {{"For this shell", "eval \"$(swell slurm links ~/.swell/slurm)\""}};
  command.standalone = true;
  command.make = Makes<LinksAction>();
  return command;
}

}  // namespace slurm

Command SlurmRoot() {
  Command root{
      .name = "slurm",
      .summary = "Slurm's commands for jobs, provided by Swell.",
      .examples = {{"Type sbatch, squeue and the others as they are",
                    "eval \"$(swell slurm links ~/.swell/slurm)\""},
                   {"Submit a script", "sbatch --gpus=4 train.sh"},
                   {"See it", "squeue --me"}},
      .children = {slurm::SbatchSpec(), slurm::SrunSpec(), slurm::SallocSpec(), slurm::SqueueSpec(),
                   slurm::SinfoSpec(), slurm::ScancelSpec(), slurm::ScontrolSpec(),
                   slurm::SacctSpec(), slurm::SprioSpec(), slurm::SshareSpec(), slurm::LinksSpec()},
  };
  slurm::AddAbsent(root.children);
  return root;
}

}  // namespace swell::cli
