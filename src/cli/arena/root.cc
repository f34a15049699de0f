// The whole of `arena`, and what it answers for the parts of Arena that are not here.
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/commands.h"

namespace swell::cli {
namespace {

// A command of Arena's that is not here, and what does its work.
struct MissingCommand {
  std::string_view name, instead;
};

constexpr MissingCommand kMissing[] = {
    {"model", "Swell has no model registry"},
    {"evaluate", "submit the evaluation as a job: arena submit pytorch"},
    {"llm", "submit the command as a job: arena submit pytorch"}};

class Missing final : public Action {
 public:
  explicit Missing(const MissingCommand& command) : command_(command) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.ErrLine(StrCat("arena ", command_.name, " is not supported: ", command_.instead));
    return 2;
  }

 private:
  const MissingCommand& command_;
};

}  // namespace

Command ArenaRoot() {
  Command root{
      .name = "arena",
      .summary = "Arena's commands for training jobs and servers, provided by Swell.",
      .examples = {{"Submit a job",
                    "arena submit pytorch --name=mnist --gpus=1 --image=pytorch:2 "
                    "\"python mnist.py\""},
                   {"Show its status", "arena get mnist"},
                   {"GPU use of the nodes", "arena top node"}},
      .children = {arena::SubmitSpec(), arena::GetSpec(), arena::ListSpec(), arena::LogsSpec(),
                   arena::DeleteSpec(), arena::PruneSpec(), arena::CronSpec(), arena::TopSpec(),
                   arena::AttachSpec(), arena::ScaleOutSpec(), arena::ScaleInSpec(),
                   arena::LogviewerSpec(), arena::ServeSpec(), arena::DataSpec(),
                   arena::WhoamiSpec(), arena::VersionSpec(), CompletionCommandSpec("arena"),
                   CompleteCommandSpec()},
  };
  for (const MissingCommand& one : kMissing) {
    Command missing;
    missing.name = one.name;
    missing.summary = "Not supported.";
    missing.hidden = true;
    missing.raw = true;
    missing.make = [&one] { return std::make_unique<Missing>(one); };
    root.children.push_back(std::move(missing));
  }
  return root;
}

}  // namespace swell::cli
