#include "cli/cli.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/no_role.h"
#include "cli/node_commands.h"
#include "cli/session.h"
#include "kube/edge/http/http_transport.h"

namespace swell::cli {
namespace {

Command SwellRoot(const std::vector<Command>& extra) {
  Command root;
  root.name = "swell";
  root.summary =
      "Swell shares GPUs between training jobs. It gives idle GPUs to jobs that can use them, and "
      "takes them back when the project that owns them needs them.";
  root.examples = {
      {"Start a cluster on this machine", "swell up --detach"},
      {"Train on two GPUs", "swell submit mnist --image python:3.11 --gpus 2 -- python mnist.py"},
      {"List jobs that run or wait, and why they wait", "swell list -o wide"},
  };
  root.children = extra;
  for (Command& command : std::vector<Command>{SubmitCommandSpec(),
                                               ListCommandSpec(),
                                               LogsCommandSpec(),
                                               SuspendCommandSpec(),
                                               ResumeCommandSpec(),
                                               ScaleCommandSpec(),
                                               WaitCommandSpec(),
                                               WhyCommandSpec(),
                                               HealthCommandSpec(),
                                               StacksCommandSpec(),
                                               GetCommandSpec(),
                                               DescribeCommandSpec(),
                                               EventsCommandSpec(),
                                               TopCommandSpec(),
                                               ExecCommandSpec(),
                                               AttachCommandSpec(),
                                               PortForwardCommandSpec(),
                                               CpCommandSpec(),
                                               ProjectCommandSpec("swell"),
                                               NodePoolCommandSpec("swell"),
                                               NodeCommandSpec(),
                                               ReportCommandSpec(),
                                               SnapshotCommandSpec(),
                                               ApplyCommandSpec(),
                                               CreateCommandSpec(),
                                               DeleteCommandSpec(),
                                               ExportCommandSpec(),
                                               ImportCommandSpec(),
                                               ConfigCommandSpec(),
                                               UiCommandSpec(),
                                               AuditCommandSpec(),
                                               VersionCommandSpec(),
                                               CompletionCommandSpec("swell"),
                                               CompleteCommandSpec()}) {
    root.children.push_back(std::move(command));
  }
  for (Command& front_end :
       std::vector<Command>{ArenaRoot(), RunaiRoot(), ElasticdlRoot(), SlurmRoot()}) {
    front_end.group = "Other";
    root.children.push_back(std::move(front_end));
  }
  return root;
}

// Where the command line has got to: the command its words name.
struct Route {
  const Command* command = nullptr;
  std::string path;                    // "swell top node"
  std::vector<std::string> arguments;  // flags (also those before the command) and other words
  std::string unknown;                 // a word that names no command
  std::string line;                    // as it was typed
};

bool TakesValue(const Flags& flags, const std::string& word) {
  const Flag* flag = flags.Find(word);
  return flag != nullptr && flag->TakesValue();
}

// A command that runs by itself and has children, too: the value of its flag names no child.
bool OwnFlagTakesValue(const Command& command, const Command& root, const std::string& word) {
  if (!command.make) return false;
  GlobalFlags global;
  Flags flags;
  const std::unique_ptr<Action> action = DeclareAll(command, FrontEndOf(root.name), global, flags);
  return TakesValue(flags, word);
}

// Follows words to the deepest command they name. Only global flags may stand between, and those of
// a command that has children and runs by itself.
Route FindRoute(const Command& root, const std::vector<std::string>& words) {
  Route route;
  route.command = &root;
  // No program has the name alone.
  route.path = root.name == "slurm" ? "swell slurm" : root.name;
  GlobalFlags ignored;
  Flags global;
  ignored.Declare(global, FrontEndOf(root.name));
  size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (route.command->children.empty() || route.command->raw || word == "--") break;
    if (word.size() > 1 && word[0] == '-') {
      route.arguments.push_back(word);
      const bool valued = TakesValue(global, word) || OwnFlagTakesValue(*route.command, root, word);
      if (valued && i + 1 < words.size()) route.arguments.push_back(words[++i]);
      continue;
    }
    const Command* child = route.command->Find(word);
    if (!child) {
      route.unknown = word;
      break;
    }
    route.command = child;
    route.path += " " + child->name;
  }
  route.arguments.insert(route.arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                         words.end());
  return route;
}

// Quoted where a shell would take it apart.
std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

int UnknownCommand(CliEnv& env, const Route& route) {
  std::vector<std::string> names;
  for (const Command& child : route.command->children) {
    if (child.hidden) continue;
    names.push_back(child.name);
    names.insert(names.end(), child.aliases.begin(), child.aliases.end());
  }
  std::string near = NearestWord(route.unknown, names);
  const Command slurm = SlurmRoot();
  const Command* of_slurm = route.path == "swell" ? slurm.Find(route.unknown) : nullptr;
  if (of_slurm != nullptr && of_slurm->hidden) {  // it is not provided
    env.err(StrCat("swell: ", of_slurm->summary, "\n"));
    return 2;
  }
  if (of_slurm != nullptr) near = StrCat("slurm ", of_slurm->name);
  env.err(StrCat(route.path, ": unknown command ", Quote(route.unknown), "\n",
                 near.empty() ? "" : StrCat("Did you mean: ", route.path, " ", near, "\n"),
                 "See: ", route.path, " --help\n"));
  return 2;
}

// What to do about an error in which the server's own words do not say it.
std::string_view NextStep(const Status& status) {
  if (edge::IsUnreachable(status)) {
    return "Is the cluster running? Start one on this machine with: swell up --detach";
  }
  if (status.code() == Code::kNotFound && status.details().kind == "namespaces") {
    return "swell get namespaces shows what exists; a new project brings one: swell project create";
  }
  // The words of every API server; registries, backups and credential plugins have others.
  if (status.code() == Code::kUnauthorized && status.message().ends_with("Unauthorized")) {
    return "The server does not accept the credentials of the kubeconfig. On a cluster of swell "
           "up, an administrator makes new ones: swell user kubeconfig NAME";
  }
  return "";
}

int Report(CliEnv& env, const std::string& path, const Status& status) {
  std::string program = path.substr(0, path.find(' '));
  if (IsMisuse(status)) {
    env.err(StrCat(path, ": ", status.message(), "\nSee: ", path, " --help\n"));
    return 2;
  }
  std::string text = ErrorText(status);
  if (const std::string_view next = NextStep(status); !next.empty()) text += StrCat("\n", next);
  env.err(StrCat(program, ": ", text, "\n"));
  return 1;
}

int RunRoute(const Route& route, const Command& root, CliEnv& env) {
  const Command& command = *route.command;
  if (command.raw) {
    Session session(env, {}, root);
    Result<int> result = command.make()->Run(session, route.arguments);
    return result.ok() ? *result : Report(env, route.path, result.status());
  }
  GlobalFlags global;
  global.command_line = route.line;
  Flags flags;
  std::unique_ptr<Action> action = DeclareAll(command, FrontEndOf(root.name), global, flags);
  std::vector<std::string> words;
  Status parsed = flags.Parse(route.arguments, &words);
  if (!action && !route.unknown.empty()) return UnknownCommand(env, route);
  if (global.help || (!action && parsed.ok())) {
    env.out(CommandHelp(command, route.path, &flags, env.columns));
    return global.help || words.empty() ? 0 : 2;
  }
  if (!parsed.ok()) return Report(env, route.path, parsed);
  Session session(env, global, root);
  Result<int> result = action->Run(session, std::move(words));
  if (env.loop && env.loop->interrupted()) return 130;
  return result.ok() ? *result : Report(env, route.path, WithRoleHint(session, result.status()));
}

}  // namespace

int RunCli(const std::vector<std::string>& argv, CliEnv& env, const std::vector<Command>& extra) {
  std::string program = argv.empty() ? "swell" : argv[0];
  program = program.substr(program.rfind('/') + 1);
  std::vector<std::string> words(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
  // `swell arena …` is `arena …`.
  auto is_front_end = [](std::string_view name) {
    return name == "arena" || name == "runai" || name == "elasticdl" || name == "slurm";
  };
  // Each of Slurm's commands is a program of its own.
  const Command slurm = SlurmRoot();
  const Command* of_slurm = program == "links" ? nullptr : slurm.Find(program);
  if (!is_front_end(program) && !words.empty() && is_front_end(words[0])) {
    program = words[0];
    words.erase(words.begin());
  }
  Command root = of_slurm != nullptr      ? *of_slurm
                 : program == "arena"     ? ArenaRoot()
                 : program == "runai"     ? RunaiRoot()
                 : program == "elasticdl" ? ElasticdlRoot()
                 : program == "slurm"     ? slurm
                                          : SwellRoot(extra);
  // Programs that call Slurm's commands ask for it first.
  if (of_slurm != nullptr && words.size() == 1 && (words[0] == "--version" || words[0] == "-V")) {
    env.out(StrCat("slurm 23.11 (Swell ", Version(), ")\n"));
    return 0;
  }
  std::string line = root.name;
  for (const std::string& word : words) line += " " + ShellWord(word);
  if (!words.empty() && words[0] == "help" && of_slurm == nullptr) {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (!words.empty() && words[0] == "--version" && of_slurm == nullptr) words[0] = "version";
  Route route = FindRoute(root, words);
  route.line = std::move(line);
  return RunRoute(route, root, env);
}

std::string_view Version() { return "0.1.0"; }

}  // namespace swell::cli
