#include "cli/session.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/edge/http/http_transport.h"

namespace swell::cli {

FrontEnd FrontEndOf(std::string_view root_command) {
  if (root_command == "arena") return FrontEnd::kArena;
  return root_command == "runai" ? FrontEnd::kRunai : FrontEnd::kSwell;
}

void GlobalFlags::Declare(Flags& flags, FrontEnd front_end) {
  flags.Group("Global flags");
  if (front_end == FrontEnd::kRunai) {
    flags.Text("-p,--project", &project, "PROJECT",
               "project (default: the one set by runai config project)");
    flags.Text("--loglevel", &log_level, "LEVEL", "accepted for compatibility; does nothing")
        .hidden = true;
    constexpr std::pair<const char*, const char*> kSwitches[] = {
        {"--verbose", ""}, {"--debug", "-d"}, {"--quiet", "-q"}};
    for (const auto& [name, letter] : kSwitches) {
      if (flags.Find(name) != nullptr) continue;
      Flag& flag = flags.Switch(name, &ignored, "accepted for compatibility; does nothing");
      flag.hidden = true;
      if (*letter != '\0' && flags.Find(letter) == nullptr) flag.also = {letter};
    }
  }
  if (front_end == FrontEnd::kArena) {
    flags.Choice("--loglevel", &log_level, "LEVEL",
                 {"trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"},
                 "debug, info, warn or error");
    flags.Switch("--pprof", &pprof, "accepted for compatibility; does nothing");
    flags.Switch("--trace", &trace, "accepted for compatibility; does nothing");
    flags.Text("--arena-namespace", &arena_namespace, "NAMESPACE",
               "accepted for compatibility; nothing is installed there");
    flags.Text("--config", &cluster.kubeconfig, "FILE", "kubeconfig file");
  }
  // Slurm's commands have other meanings for -n and -h.
  const auto free = [&flags](std::string_view letter, std::string_view name) {
    return flags.Find(letter) == nullptr ? StrCat(letter, ",", name) : std::string(name);
  };
  flags.Text(free("-n", "--namespace"), &ns, "NAMESPACE",
             "namespace (default: that of the kubeconfig)");
  flags.Text("--kubeconfig", &cluster.kubeconfig, "FILE",
             "kubeconfig file (default: $KUBECONFIG, else the cluster of this machine)");
  flags.Text("--context", &cluster.context, "NAME", "context of the kubeconfig");
  flags.Switch(free("-h", "--help"), &help, "show this help");
}

std::unique_ptr<Action> DeclareAll(const Command& command,
                                   FrontEnd front_end,
                                   GlobalFlags& global,
                                   Flags& flags) {
  std::unique_ptr<Action> action = command.make ? command.make() : nullptr;
  if (action) action->Declare(flags);
  if (command.standalone) {
    flags.Group("");
    flags.Switch("-h,--help", &global.help, "show this help");
  } else {
    global.Declare(flags, front_end);
  }
  return action;
}

Result<Api*> Session::Server() {
  if (api_) return api_.get();
  SWELL_ASSIGN_OR_RETURN(Connection connection, env_.connect(global_.cluster));
  api_ = std::make_unique<Api>(env_, std::move(connection));
  return api_.get();
}

Result<Kinds*> Session::ServerKinds() {
  SWELL_ASSIGN_OR_RETURN(Api * api, Server());
  if (!kinds_) kinds_ = std::make_unique<Kinds>(*api);
  return kinds_.get();
}

std::string Session::Namespace() {
  if (!global_.ns.empty()) return global_.ns;
  // The kubeconfig has it. Without a server, the next request reports the error.
  static_cast<void>(Server().ok());
  return api_ && !api_->connection().ns.empty() ? api_->connection().ns : "default";
}

bool Session::Out(std::string_view text) {
  if (!text.empty()) line_open_ = text.back() != '\n';
  return env_.out(text);
}

bool Session::OutLine(std::string_view text) { return Out(StrCat(text, "\n")); }

void Session::EndLine() {
  if (line_open_) Out("\n");
}

void Session::ErrLine(std::string_view text) { env_.err(StrCat(text, "\n")); }

bool Session::colours() const {
  return env_.out_is_terminal && env_.getenv("NO_COLOR").empty() && env_.getenv("TERM") != "dumb";
}

std::string Session::Paint(Colour colour, std::string_view text) const {
  static constexpr std::string_view kCodes[] = {"", "31", "32", "33", "34", "36", "90", "1"};
  if (colour == Colour::kNone || !colours()) return std::string(text);
  return StrCat("\033[", kCodes[static_cast<int>(colour)], "m", text, "\033[0m");
}

Result<std::string> UserName(Session& session, Api& api) {
  json::Value review =
      json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}};
  auto answer =
      api.Create({"authentication.k8s.io", "v1", "selfsubjectreviews", false}, "", review);
  if (!answer.ok() && edge::IsUnreachable(answer.status())) return answer.status();
  std::string user =
      answer.ok() ? std::string(json::GetString(**answer, {"status", "userInfo", "username"}))
                  : session.env().getenv("USER");
  return user.empty() ? "unknown" : user;
}

std::string LocalUser(Session& session) {
  std::string user = session.env().getenv("USER");
  if (!user.empty()) return user;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

std::string ErrorText(const Status& status) {
  std::string message = status.message();
  const auto& causes = status.details().causes;
  bool worded = std::any_of(causes.begin(), causes.end(), [](const StatusCause& cause) {
    return cause.reason != edge::kUnreachable && !cause.message.empty();
  });
  if (IsMisuse(status) || !worded) return message;
  // The server repeats its causes behind "is invalid: "; one per line is easier to read.
  size_t at = message.find(" is invalid: ");
  if (at != std::string::npos) message.resize(at + std::string_view(" is invalid:").size());
  for (const StatusCause& cause : causes) {
    message += StrCat("\n  ", cause.field.empty() ? "" : cause.field + ": ", cause.message);
  }
  return message;
}

std::string AgeOf(std::string_view rfc3339, WallTime now) {
  auto time = api::ParseTime(rfc3339);
  if (!time) return "<unknown>";
  return api::HumanDuration(std::max(now - *time, Duration(0)));
}

Result<Duration> ParseDuration(std::string_view text, std::string_view flag) {
  if (const auto duration = swell::ParseDuration(text)) return *duration;
  return Misuse(
      StrCat(flag, " ", Quote(text), ": expected a duration like 90s, 2h45m, 3d or 500ms"));
}

Result<int64_t> ParseTimeLimit(std::string_view text, std::string_view flag) {
  if (text.empty()) return 0;
  SWELL_ASSIGN_OR_RETURN(const Duration limit, ParseDuration(text, flag));
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  if (seconds >= 1) return seconds;
  return Misuse(StrCat(flag, " ", Quote(text), ": expected 1s or more"));
}

}  // namespace swell::cli
