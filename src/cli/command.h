// Command: one word of the command line: what it is for, how it is used, and what runs it.
//
// Help is generated from these fields, so every command teaches in the same order: one sentence,
// usage, examples, flags by group.
//
// - Threads: values; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"

namespace swell::cli {

class Session;

// What one invocation does. Declare() binds its members to flags; Run() gets the other words.
class Action {
 public:
  virtual ~Action() = default;
  virtual void Declare(Flags& flags) = 0;
  // The exit status, or an error that is printed (1, or 2 for Misuse).
  virtual Result<int> Run(Session& session, std::vector<std::string> words) = 0;
};

struct Example {
  std::string what;  // "Follow the log of the master"
  std::string line;  // "swell logs mnist -f"
};

// What the words of a command name, for completion in the shell.
enum class Completes { kNothing, kJob, kKindThenName, kNode, kChildren };

struct Command {
  std::string name;
  std::vector<std::string> aliases;
  std::string group;    // heading in the list of commands
  std::string summary;  // one sentence
  std::string usage;    // "KIND [NAME...]": what comes after the name and flags
  std::vector<Example> examples;
  std::string notes;  // after the flags
  Completes completes = Completes::kNothing;
  bool hidden = false;
  bool raw = false;  // gets its arguments unparsed, flags and all
  // Declares its own flags for the cluster, if it uses one: of the global flags it gets --help
  // only.
  bool standalone = false;
  std::function<std::unique_ptr<Action>()> make;
  std::vector<Command> children;

  const Command* Find(std::string_view word) const;
};

template <class T>
std::function<std::unique_ptr<Action>()> Makes() {
  return [] { return std::make_unique<T>(); };
}

// `path`: "swell top node".
std::string CommandHelp(const Command& command,
                        const std::string& path,
                        const Flags* flags,
                        int columns);

}  // namespace swell::cli
