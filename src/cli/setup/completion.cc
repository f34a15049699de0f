// Completion in shells: the scripts, and the hidden command that they ask for candidates.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr std::string_view kBash = R"(# bash completion for %P%
_%P%_complete() {
  local IFS=$'\n'
  COMPREPLY=($(%P% __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _%P%_complete %P%
)";

constexpr std::string_view kZsh = R"(#compdef %P%
_%P%() {
  local -a candidates
  candidates=("${(@f)$(%P% __complete -- "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
  if [[ -n "$candidates" ]]; then compadd -a candidates; else _files; fi
}
compdef _%P% %P%
)";

constexpr std::string_view kFish = R"(# fish completion for %P%
function __%P%_complete
  set -l words (commandline -opc) (commandline -ct)
  %P% __complete -- $words[2..-1] 2>/dev/null
end
complete -c %P% -f -a '(__%P%_complete)'
)";

class CompletionAction final : public Action {
 public:
  explicit CompletionAction(std::string program) : program_(std::move(program)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    std::string_view shell = words.size() == 1 ? std::string_view(words[0]) : "";
    std::string_view script = shell == "bash"   ? kBash
                              : shell == "zsh"  ? kZsh
                              : shell == "fish" ? kFish
                                                : std::string_view();
    if (script.empty()) return Misuse("expected a shell: bash, zsh or fish");
    constexpr std::string_view kProgram = "%P%";
    std::string text(script);
    for (size_t at; (at = text.find(kProgram)) != std::string::npos;) {
      text.replace(at, kProgram.size(), program_);
    }
    session.Out(text);
    return 0;
  }

 private:
  std::string program_;
};

// `__complete -- WORD...`: candidates for the last word, one per line. Never fails.
class CompleteAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    std::string last = words.empty() ? "" : words.back();
    if (!words.empty()) words.pop_back();
    const Command* command = &session.root();
    size_t i = 0;
    while (i < words.size()) {
      if (words[i].starts_with('-')) {
        ++i;
        continue;
      }
      const Command* child = command->Find(words[i]);
      if (!child) break;
      command = child;
      ++i;
    }
    std::vector<std::string> rest;
    for (; i < words.size(); ++i) {
      if (!words[i].starts_with('-')) rest.push_back(words[i]);
    }
    std::set<std::string> candidates;
    if (last.starts_with('-')) {
      AddFlags(*command, FrontEndOf(session.root().name), candidates);
    } else if (!command->children.empty()) {
      for (const Command& child : command->children) {
        if (!child.hidden) candidates.insert(child.name);
      }
    } else {
      AddNames(session, *command, rest, candidates);
    }
    for (const std::string& candidate : candidates) {
      if (candidate.starts_with(last)) session.OutLine(candidate);
    }
    return 0;
  }

 private:
  static void AddFlags(const Command& command, FrontEnd front_end, std::set<std::string>& out) {
    Flags flags;
    GlobalFlags global;
    const std::unique_ptr<Action> action = DeclareAll(command, front_end, global, flags);
    for (const Flag& flag : flags.all()) {
      if (!flag.hidden && flag.Long().size() > 1) out.insert("--" + flag.Long());
    }
  }

  static void AddObjects(Session& session, const Resource& resource, std::set<std::string>& out) {
    auto api = session.Server();
    if (!api.ok()) return;
    auto objects = (*api)->List(resource, resource.namespaced ? session.Namespace() : "");
    if (!objects.ok()) return;
    for (const json::SharedValue& object : *objects) out.insert(std::string(api::Name(*object)));
  }

  static void AddJobs(Session& session, std::set<std::string>& out) {
    auto api = session.Server();
    if (!api.ok()) return;
    auto jobs = ListJobs(**api, session.Namespace());
    if (!jobs.ok()) return;
    for (const JobView& job : *jobs) out.insert(job.name);
  }

  static void AddNames(Session& session,
                       const Command& command,
                       const std::vector<std::string>& rest,
                       std::set<std::string>& out) {
    switch (command.completes) {
      case Completes::kJob:
        AddJobs(session, out);
        return;
      case Completes::kNode:
        AddObjects(session, client::resources::kNodes, out);
        return;
      case Completes::kKindThenName: {
        auto kinds = session.ServerKinds();
        if (rest.empty()) {
          for (const Kind& kind : WellKnownKinds()) out.insert(kind.resource.plural);
          if (!kinds.ok()) return;
          auto all = (*kinds)->All();
          for (const Kind& kind : all.ok() ? *all : std::vector<Kind>{}) {
            if (kind.resource.plural.find('/') == std::string::npos)
              out.insert(kind.resource.plural);
          }
          if (command.name == "describe") AddJobs(session, out);
          return;
        }
        if (!kinds.ok()) return;
        auto kind = (*kinds)->Find(rest[0]);
        if (kind.ok()) AddObjects(session, kind->resource, out);
        return;
      }
      case Completes::kNothing:
      case Completes::kChildren:
        return;
    }
  }
};

}  // namespace

Command CompletionCommandSpec(const std::string& program) {
  return {
      .name = "completion",
      .group = "Other",
      .summary = "Print a shell completion script.",
      .usage = "bash | zsh | fish",
      .examples = {{"For this bash session", StrCat("source <(", program, " completion bash)")},
                   {"For all fish sessions",
                    StrCat(program, " completion fish > ~/.config/fish/completions/", program,
                           ".fish")}},
      .make = [program] { return std::make_unique<CompletionAction>(program); },
  };
}

Command CompleteCommandSpec() {
  return {
      .name = "__complete",
      .summary = "Candidates for the last word of a command line.",
      .hidden = true,
      .make = Makes<CompleteAction>(),
  };
}

}  // namespace swell::cli
