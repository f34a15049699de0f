// Session: one command line under way: the global flags, the server (connected when first needed),
// and the terminal.
// - Threads: one thread.
// - Ownership: the environment outlives the session.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/kinds.h"

namespace swell::cli {

enum class Colour { kNone, kRed, kGreen, kYellow, kBlue, kCyan, kGrey, kBold };

// The names that the program answers to.
enum class FrontEnd { kSwell, kArena, kRunai };
FrontEnd FrontEndOf(std::string_view root_command);

// Flags that every command has.
struct GlobalFlags {
  ClusterFlags cluster;
  std::string ns;
  bool help = false;
  // Arena's.
  std::string log_level = "info";
  std::string arena_namespace;
  bool pprof = false;
  bool trace = false;
  // Run:ai's.
  std::string project;
  bool ignored = false;      // --verbose, --debug and --quiet of version 2
  std::string command_line;  // as it was typed

  void Declare(Flags& flags, FrontEnd front_end);
};

// All flags of the command: its own, then the global ones. Null if the command has only children.
std::unique_ptr<Action> DeclareAll(const Command& command,
                                   FrontEnd front_end,
                                   GlobalFlags& global,
                                   Flags& flags);

class Session {
 public:
  Session(CliEnv& env, GlobalFlags global, const Command& root)
      : env_(env), global_(std::move(global)), root_(root) {}

  // The server; an error says what was tried and how to start one.
  Result<Api*> Server();
  Result<Kinds*> ServerKinds();
  // --namespace, else the kubeconfig's, else default. After Server().
  std::string Namespace();
  // From now on, whatever the flags said.
  void UseNamespace(std::string ns) { global_.ns = std::move(ns); }
  // Before Server().
  void UseKubeconfig(std::string file) { global_.cluster.kubeconfig = std::move(file); }

  CliEnv& env() { return env_; }
  const GlobalFlags& global() const { return global_; }
  const Command& root() const { return root_; }
  WallTime Now() const { return env_.clock->Now(); }

  bool Out(std::string_view text);
  bool OutLine(std::string_view text);
  // Ends the line that the last text left open, as a log may whose program wrote no newline.
  void EndLine();
  void ErrLine(std::string_view text);
  // The text in colour, on a terminal that wants it.
  std::string Paint(Colour colour, std::string_view text) const;
  bool colours() const;

 private:
  CliEnv& env_;
  GlobalFlags global_;
  const Command& root_;
  bool line_open_ = false;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Kinds> kinds_;
};

// The name of the user in the cluster; $USER if the server does not tell.
Result<std::string> UserName(Session& session, Api& api);
// $USER, or what this machine calls the user. Work that an administrator submits carries it, since
// they act for others; the server knows the name of everybody else.
std::string LocalUser(Session& session);

// An error as people read it: one line, then one line per cause.
std::string ErrorText(const Status& status);

// Age and other spans as kubectl prints them; "<unknown>" for a time that is not set.
std::string AgeOf(std::string_view rfc3339, WallTime now);

// "3m", "2h45m", "500ms", "90": for --since and the like; `flag` is for messages.
Result<Duration> ParseDuration(std::string_view text, std::string_view flag);
// The same for how long a job may run, in whole seconds; 0: `text` is empty, and it has no limit.
Result<int64_t> ParseTimeLimit(std::string_view text, std::string_view flag);

}  // namespace swell::cli
