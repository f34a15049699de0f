// The whole of `arena`, and what it answers for the parts of Arena that are not here.
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/commands.h"

namespace swell::cli {
namespace {

class Missing final : public Action {
 public:
  explicit Missing(std::string name) : name_(std::move(name)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session&, std::vector<std::string>) override {
    if (name_.starts_with("scale")) {
      return Misuse(StrCat(name_, " is not supported; swell scale changes the size of a job"));
    }
    return Misuse(StrCat(name_,
                         " is not supported; there are submit pytorch and tf, get, list, "
                         "logs, attach, delete, prune, top, data and whoami"));
  }

 private:
  std::string name_;
};

}  // namespace

Command ArenaRoot() {
  Command root{
      .name = "arena",
      .summary = "Arena's commands for training jobs, provided by Swell.",
      .examples = {{"Submit a job",
                    "arena submit pytorch --name=mnist --gpus=1 --image=pytorch:2 "
                    "\"python mnist.py\""},
                   {"See how it does", "arena get mnist"},
                   {"Who has the GPUs", "arena top node"}},
      .children = {arena::SubmitSpec(), arena::GetSpec(), arena::ListSpec(), arena::LogsSpec(),
                   arena::DeleteSpec(), arena::PruneSpec(), arena::TopSpec(), arena::AttachSpec(),
                   arena::LogviewerSpec(), arena::DataSpec(), arena::WhoamiSpec(),
                   arena::VersionSpec(), CompletionCommandSpec("arena"), CompleteCommandSpec()},
  };
  for (const char* name : {"scaleout", "scalein", "cron", "serve", "model", "evaluate", "llm"}) {
    Command missing;
    missing.name = name;
    missing.summary = "Not supported.";
    missing.hidden = true;
    missing.raw = true;
    missing.make = [name] { return std::make_unique<Missing>(name); };
    root.children.push_back(std::move(missing));
  }
  return root;
}

}  // namespace swell::cli
