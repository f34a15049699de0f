#include "cli/pods/interactive.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr Duration kForEver = std::chrono::hours(24 * 365);

// No container runs, and at least one waits to be started, for the first time or again.
bool NoneRuns(const json::Value& pod) {
  bool waits = false;
  for (std::string_view list :
       {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    for (const json::Value& status : json::GetArray(pod, {"status", list})) {
      if (json::Find(status, {"state", "running"}) != nullptr) return false;
      waits = waits || json::Find(status, {"state", "waiting"}) != nullptr;
    }
  }
  return waits;
}

}  // namespace

Status CheckHasContainers(const json::Value& pod, std::string_view what) {
  const std::string_view phase = api::Phase(pod);
  if (!api::IsBound(pod)) {
    return Status(Code::kConflict,
                  StrCat("pod ", api::Name(pod), " does not run yet, because it waits for a node; ",
                         AskWhy(pod)));
  }
  if (NoneRuns(pod)) {
    return Status(Code::kConflict, StrCat("pod ", api::Name(pod), " does not run ",
                                          phase == "Pending" ? "yet" : "now", ": ",
                                          PodStatusWord(pod), "; ", AskWhy(pod)));
  }
  if (phase != "Succeeded" && phase != "Failed") return Status::Ok();
  return Status(
      Code::kConflict,
      StrCat("cannot ", what, " a container in a completed pod; current ", "phase is ", phase));
}

Result<int> RunInteractive(Session& session, InteractiveCommand interactive) {
  CliEnv& env = session.env();
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  edge::CommandOptions& options = interactive.command;
  std::unique_ptr<Console> console = env.console ? env.console() : nullptr;
  if (options.tty && (console == nullptr || !console->input_is_terminal())) {
    session.ErrLine("Unable to use a TTY - input is not a terminal or the right kind of file");
    options.tty = false;
  }
  std::optional<Result<int>> code;
  bool reader_left = false;
  edge::CommandEvents events;
  events.on_output = [&](bool error, const api::Chunk& bytes) {
    if (!error && interactive.output != nullptr) {
      std::string& kept = *interactive.output;
      kept += bytes->substr(0, kOutputKeptMax - std::min(kept.size(), kOutputKeptMax));
      return;
    }
    if (!(error ? env.err(*bytes) : env.out(*bytes))) reader_left = true;
  };
  events.on_exit = [&](Result<int> result) { code = std::move(result); };
  const Connection& connection = api->connection();
  auto command = edge::StartCommand(env.loop->executor(), connection.server, connection.user,
                                    options, std::move(events));
  const auto tell_size = [&] {
    uint16_t columns = 0, rows = 0;
    if (console->Size(&columns, &rows)) command->Resize(columns, rows);
  };
  if (options.tty) {
    SWELL_RETURN_IF_ERROR(console->SetRaw());
    tell_size();
    console->OnResize(tell_size);
  }
  if (options.input && console == nullptr) command->CloseInput();
  if (options.input && console != nullptr) {
    console->Start({.on_data =
                        [&](api::Chunk bytes) {
                          if (!command->Write(std::move(bytes))) return console->SetReading(false);
                          if (command->queued_bytes() <= api::kDuplexHighWater) return;
                          console->SetReading(false);
                          command->OnDrained([&] { console->SetReading(true); });
                        },
                    .on_end = [&](const Status&) { command->CloseInput(); }});
  }
  env.loop->RunUntil([&] { return code || reader_left; }, kForEver);
  if (console) console->SetReading(false);
  command.reset();
  console.reset();  // before anything is printed: raw terminals need other line ends
  if (!code) return reader_left ? Result<int>(0) : Result<int>(130);
  return *code;
}

}  // namespace swell::cli
