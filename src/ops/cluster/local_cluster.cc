// swell down, status: the embedded cluster of this machine.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/session.h"
#include "json/value.h"
#include "kube/net/reactor/reactor.h"
#include "kube/process/pod_store.h"
#include "ops/cluster/cluster_record.h"
#include "ops/cluster/stop_wait.h"
#include "ops/commands.h"
#include "ops/data_dir.h"
#include "ops/flags.h"
#include "ops/nodes/machine_limits.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/nodes/python_choice.h"

namespace swell::ops {
namespace {

constexpr int kQuietMs = 2'000;
constexpr int kLookMs = 1'000;
constexpr int kExitNotRunning = 3;

// The value of --runtime at the last start.
std::string RuntimeOf(const DataDir& dir) {
  const auto record = ReadClusterRecord(dir);
  if (!record.ok() || !*record) return "process";
  const auto runtime = (*record)->flags.find("runtime");
  return runtime == (*record)->flags.end() ? "process" : runtime->second;
}

// A process that waits for a device or a file server ends when that answers, and not before.
std::string StillRunning(const DataDir& dir) {
  const std::vector<std::string> pods = process::RunningPods(dir.path);
  return pods.empty() ? "" : StrCat("; processes still run of ", Join(pods, ", "));
}

class DownAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_);
    flags.Switch(
        "--now", &now_,
        "do not wait for the pods to save: kill them, also while another swell down waits");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    const DataDir dir = ChooseDataDir(data_dir_);
    const auto running = FindRunning(dir);
    if (!running) return EndLeftPods(session, dir);
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, running->pid, 0));
    if (process < 0) return ErrnoStatus(errno, StrCat("find process ", running->pid));
    if (::kill(running->pid, now_ ? SIGQUIT : SIGTERM) != 0) {
      return ErrnoStatus(errno, StrCat("stop process ", running->pid));
    }
    if (!Ends(process, kQuietMs)) {
      if (!now_) {
        session.ErrLine("Pods have up to 30 s to save and end. Without waiting: swell down --now");
      }
      const bool ended = WaitFor(session, dir, [process](int ms) { return Ends(process, ms); });
      if (!ended) {
        return Status(Code::kTimeout,
                      StrCat("process ", running->pid, " does not stop: nothing has moved for 60 s",
                             StillRunning(dir), "; see ", dir.LogFile()));
      }
    }
    session.OutLine(StrCat("The cluster in ", dir.path, " is stopped"));
    return 0;
  }

 private:
  // A swell that was killed leaves its pods, for the next one to take over.
  Result<int> EndLeftPods(cli::Session& session, const DataDir& dir) const {
    const size_t left = process::RunningPods(dir.path).size();
    if (left == 0) {
      session.OutLine(StrCat("No cluster runs in ", dir.path));
      return 0;
    }
    const std::string pods = StrCat(left, left == 1 ? " pod" : " pods");
    if (!now_) {
      return Status(Code::kConflict,
                    StrCat("no cluster runs in ", dir.path, ", but ", pods,
                           left == 1 ? " of it still runs" : " of it still run",
                           ", since it ended without swell down. To continue: swell up --detach. "
                           "To kill what runs: swell down --now"));
    }
    SWELL_RETURN_IF_ERROR(LockDataDir(dir));
    RealClock clock;
    net::Reactor core;
    SWELL_ASSIGN_OR_RETURN(auto runtime, PodRuntime::Make("process", core, clock,
                                                          {.data_dir = dir.path,
                                                           .image_store = ImageStoreOf(dir, ""),
                                                           .keep_logs = true}));
    bool ended = false;
    runtime->Shutdown([&ended] { ended = true; });
    WaitFor(session, dir, [&core, &ended](int ms) {
      return core.RunUntil([&ended] { return ended; }, std::chrono::milliseconds(ms));
    });
    if (!ended) {
      return Status(Code::kTimeout,
                    StrCat(pods, " in ", dir.path, left == 1 ? " does" : " do",
                           " not end: nothing has moved for 60 s", StillRunning(dir)));
    }
    session.OutLine(StrCat(pods, " that an earlier cluster had left in ", dir.path,
                           left == 1 ? " is ended" : " are ended"));
    return 0;
  }

  // `ends` waits at most for the milliseconds it is given. False: nothing has moved for a minute.
  static bool WaitFor(cli::Session& session,
                      const DataDir& dir,
                      const std::function<bool(int)>& ends) {
    RealClock clock;
    StopWait wait(clock, dir.path);
    while (!ends(kLookMs)) {
      if (const std::string news = wait.Look(); !news.empty()) session.ErrLine(news);
      if (wait.over()) return false;
    }
    return true;
  }

  static bool Ends(int process, int limit_ms) {
    pollfd wait{process, POLLIN, 0};
    return ::poll(&wait, 1, limit_ms) > 0;
  }

  std::string data_dir_;
  bool now_ = false;
};

class StatusAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, data_dir_);
    flags.Choice("-o,--output", &output_, "FORMAT", {"json"}, "output format: json");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    const DataDir dir = FindDataDir(data_dir_);
    const auto running = FindRunning(dir);
    const std::vector<std::string> limits = MachineLimits(dir);
    const std::string python = PythonIfNotDefault(dir, RuntimeOf(dir));
    const std::string url = ServerUrl(dir);
    const std::string pages = running ? PagesUrl(dir) : "";
    if (output_ == "json") {
      json::Value answer = json::Object{{"running", running.has_value()},
                                        {"dataDir", dir.path},
                                        {"kubeconfig", dir.Kubeconfig()},
                                        {"server", url}};
      if (running) json::Set(answer, {"pid"}, running->pid);
      if (!pages.empty()) json::Set(answer, {"pages"}, pages);
      if (running && !limits.empty()) {
        json::Set(answer, {"limits"}, json::Array(limits.begin(), limits.end()));
      }
      if (running && !python.empty()) json::Set(answer, {"python"}, python);
      session.OutLine(json::PrintPretty(answer));
    } else if (running) {
      session.Out(StrCat("Running     process ", running->pid, "\nAPI         ", url,
                         pages.empty() ? "" : "\nPages       ", pages, "\nData        ", dir.path,
                         "\nKubeconfig  ", dir.Kubeconfig(), "\n"));
      if (!python.empty()) {
        session.OutLine(StrCat("Python      ", python, " (for the catalogue's images)"));
      }
      if (!limits.empty()) session.Out("\n" + FormatMachineLimits(limits));
      PrintFaults(session, dir);
    } else {
      session.Out(StrCat("No cluster runs in ", dir.path, "\nStart one with: swell up --detach\n"));
      if (const size_t left = process::RunningPods(dir.path).size(); left > 0) {
        session.Out(StrCat("Pods        ", left, left == 1 ? " still runs" : " still run",
                           ", left by a cluster that ended without swell down. The next swell up "
                           "takes over; swell down --now kills what runs.\n"));
      }
    }
    return running ? 0 : kExitNotRunning;
  }

 private:
  // Last, since a server that does not answer is not a reason to be silent about the rest.
  static void PrintFaults(cli::Session& session, const DataDir& dir) {
    session.UseKubeconfig(dir.Kubeconfig());
    const auto api = session.Server();
    if (!api.ok()) return;
    TellAudit(session, **api);
    const auto faults = cli::ReadNodeFaults(session, **api);
    if (!faults.ok() || faults->list.empty()) return;
    session.OutLine(StrCat("Nodes       ", faults->list.size(), " of ", faults->nodes,
                           faults->list.size() == 1 ? " has faults" : " have faults",
                           "; which: swell health"));
  }

  // A cluster without an audit log has no such component.
  static void TellAudit(cli::Session& session, cli::Api& api) {
    const auto component =
        api.CallObject({.method = "GET", .path = "/api/v1/componentstatuses/audit-log"});
    if (!component.ok()) {
      if (component.status().code() != Code::kUnavailable) return;
      session.OutLine(StrCat("Audit log   ", component.status().message()));
      return;
    }
    const json::Array& conditions = json::GetArray(**component, {"conditions"});
    if (conditions.empty() || json::GetString(conditions[0], {"status"}) != "False") return;
    session.OutLine(StrCat("Audit log   misses what happens now: ",
                           json::GetString(conditions[0], {"message"})));
  }

  std::string data_dir_;
  std::string output_;
};

}  // namespace

cli::Command DownCommand() {
  return {
      .name = "down",
      .group = "Cluster",
      .summary = "Stop the cluster of this machine and its pods. Its data is kept.",
      .examples = {{"The cluster in the default directory", "swell down"},
                   {"Another one", "swell down --data-dir /srv/swell"},
                   {"Kill its pods at once", "swell down --now"}},
      .notes =
          "Pods get the notice of a preemption and SIGTERM, and are killed after 30 s. Jobs "
          "resume after the next swell up from what they saved. It waits until what pods left in "
          "memory is on disk.",
      .standalone = true,
      .make = cli::Makes<DownAction>()};
}

cli::Command StatusCommand() {
  return {
      .name = "status",
      .group = "Cluster",
      .summary = "Show whether a cluster runs on this machine and how to reach it.",
      .examples = {{"As text", "swell status"}, {"As JSON, for scripts", "swell status -o json"}},
      .notes = "The exit status is 3 if no cluster runs.",
      .standalone = true,
      .make = cli::Makes<StatusAction>()};
}

}  // namespace swell::ops
