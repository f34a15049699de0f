// swell exec and swell attach: talking with what runs in a pod.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/interactive.h"
#include "cli/pods/pod_choice.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

// What both have.
struct TalkFlags {
  std::string container;
  bool input = false;
  bool tty = false;
  bool quiet = false;

  void Declare(Flags& flags) {
    flags.Text("-c,--container", &container, "NAME", "container (default: the first)");
    flags.Switch("-i,--stdin", &input, "pass standard input to the container");
    flags.Switch("-t,--tty", &tty, "use a terminal");
    flags.Switch("-q,--quiet", &quiet, "print no messages");
  }
};

std::string ContainersOf(const json::Value& pod) {
  std::vector<std::string> names;
  for (const json::Value& container : api::Containers(pod)) {
    names.emplace_back(api::ContainerName(container));
  }
  return Join(names, ", ");
}

Result<InteractiveCommand> Prepare(Session& session,
                                   const std::string& words,
                                   const TalkFlags& flags,
                                   std::string_view what) {
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  SWELL_ASSIGN_OR_RETURN(const ChosenPod chosen, ChoosePod(*api, session.Namespace(), words));
  const json::Value& pod = *chosen.pod;
  SWELL_RETURN_IF_ERROR(CheckHasContainers(pod, what));
  InteractiveCommand out;
  SWELL_ASSIGN_OR_RETURN(out.command.container, ChooseContainer(pod, flags.container));
  if (flags.container.empty() && !flags.quiet && api::Containers(pod).size() > 1) {
    session.ErrLine(StrCat("Defaulted container ", Quote(out.command.container),
                           " out of: ", ContainersOf(pod)));
  }
  out.command.ns = api::Namespace(pod);
  out.command.pod = api::Name(pod);
  out.command.input = flags.input;
  out.command.tty = flags.tty;
  out.quiet = flags.quiet;
  return out;
}

class ExecAction final : public Action {
 public:
  void Declare(Flags& flags) override { flags_.Declare(flags); }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) return Misuse("expected a pod and a command: swell exec POD -- COMMAND");
    if (words.size() < 2) return Misuse("you must specify at least one command for the container");
    SWELL_ASSIGN_OR_RETURN(InteractiveCommand command,
                           Prepare(session, words[0], flags_, "exec into"));
    command.command.command.assign(words.begin() + 1, words.end());
    SWELL_ASSIGN_OR_RETURN(const int code, RunInteractive(session, std::move(command)));
    if (code != 0 && code != 130 && !flags_.quiet) {
      session.ErrLine(StrCat("command terminated with exit code ", code));
    }
    return code;
  }

 private:
  TalkFlags flags_;
};

class AttachAction final : public Action {
 public:
  explicit AttachAction(bool gives_terminal) : gives_terminal_(gives_terminal) {}

  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    if (!gives_terminal_) return;
    flags.Switch("--no-stdin", &no_input_, "do not pass standard input");
    flags.Switch("--no-tty", &no_tty_, "do not use a terminal");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return Misuse("expected a pod: swell attach POD");
    if (no_input_ && flags_.input) return Misuse("--stdin and --no-stdin exclude each other");
    if (no_tty_ && flags_.tty) return Misuse("--tty and --no-tty exclude each other");
    SWELL_ASSIGN_OR_RETURN(InteractiveCommand command,
                           Prepare(session, words[0], flags_, "attach"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(
        json::SharedValue pod,
        api->Get(client::resources::kPods, command.command.ns, command.command.pod));
    for (const json::Value& container : api::Containers(*pod)) {
      if (api::ContainerName(container) != command.command.container) continue;
      if (gives_terminal_) GiveTerminal(session, container, command.command);
      if (!command.command.tty || json::GetBool(container, {"tty"})) continue;
      session.ErrLine(StrCat("Unable to use a TTY - container ", command.command.container,
                             " did not allocate one"));
      command.command.tty = false;
    }
    if (command.command.input && !flags_.quiet) {
      session.ErrLine("If you don't see a command prompt, try pressing enter.");
    }
    return RunInteractive(session, std::move(command));
  }

 private:
  // The user's terminal goes to a program that has one and reads from it.
  void GiveTerminal(Session& session,
                    const json::Value& container,
                    edge::CommandOptions& command) const {
    const auto& open = session.env().console;
    const auto console = open ? open() : nullptr;
    const bool has_both = console != nullptr && console->input_is_terminal() &&
                          json::GetBool(container, {"stdin"}) && json::GetBool(container, {"tty"});
    command.input = !no_input_ && (flags_.input || has_both);
    command.tty = !no_tty_ && (flags_.tty || (has_both && command.input));
  }

  TalkFlags flags_;
  bool gives_terminal_;
  bool no_input_ = false, no_tty_ = false;
};

}  // namespace

Command ExecCommandSpec() {
  return {
      .name = "exec",
      .group = "Pods",
      .summary = "Run a command in a container of a pod, or of a job's master.",
      .usage = "POD | JOB -- COMMAND [ARGS...]",
      .examples = {{"A shell", "swell exec -it mnist-master-0 -- bash"},
                   {"The GPUs of a job's master", "swell exec mnist -- nvidia-smi"},
                   {"Unpack an archive in a pod", "swell exec -i mnist -- tar x < data.tar"}},
      .notes = "The exit status is the command's.",
      .completes = Completes::kJob,
      .make = Makes<ExecAction>(),
  };
}

Command AttachCommandSpec(bool gives_terminal) {
  return {
      .name = "attach",
      .group = "Pods",
      .summary = "Attach to the running process of a container.",
      .usage = "POD | JOB",
      .examples = {{"Watch the output of a job's master", "swell attach mnist"},
                   {"Attach to an interactive shell", "swell attach -it shell"}},
      .completes = Completes::kJob,
      .make = [gives_terminal] { return std::make_unique<AttachAction>(gives_terminal); },
  };
}

}  // namespace swell::cli
