#include "cli/pods/exec_in.h"

#include "base/strings.h"
#include "cli/commands.h"

namespace swell::cli {

Result<int> Exec(Session& session, const ExecIn& what) {
  std::unique_ptr<Action> exec = ExecCommandSpec().make();
  Flags flags;
  exec->Declare(flags);
  std::vector<std::string> arguments, rest;
  if (what.interactive) arguments.emplace_back("--stdin");
  if (what.interactive && session.env().out_is_terminal) arguments.emplace_back("--tty");
  if (what.quiet) arguments.emplace_back("--quiet");
  if (!what.container.empty()) arguments.push_back("--container=" + what.container);
  SWELL_RETURN_IF_ERROR(flags.Parse(arguments, &rest));
  std::vector<std::string> words{"pod/" + what.pod};
  words.insert(words.end(), what.command.begin(), what.command.end());
  session.UseNamespace(what.ns);
  return exec->Run(session, std::move(words));
}

}  // namespace swell::cli
