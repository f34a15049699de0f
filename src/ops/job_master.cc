// swell job-master: the master of one elastic job.
#include <csignal>
#include <functional>

#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "ops/commands.h"
#include "ops/flags.h"
#include "ops/master_server.h"

namespace swell::ops {
namespace {

struct MasterFlags {
  std::string listen = "127.0.0.1:0";
  std::string journal;
  std::string port_file;
  std::string log_level = "info";
};

Status Serve(const MasterFlags& flags, const std::function<void(std::string_view)>& print) {
  net::Reactor reactor;
  RealClock clock;
  if (const size_t slash = flags.journal.rfind('/'); slash != std::string::npos && slash > 0) {
    SWELL_RETURN_IF_ERROR(MakeDirs(flags.journal.substr(0, slash)));
  }
  SWELL_ASSIGN_OR_RETURN(auto master, MasterServer::Make(reactor, clock, flags.journal));
  net::HttpServer server(reactor, clock, *master, {.max_connections = 16'384});
  SWELL_ASSIGN_OR_RETURN(uint16_t port, server.Listen(flags.listen));
  if (!flags.port_file.empty()) {
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(flags.port_file, std::to_string(port)));
  }
  print(StrCat("Job master on port ", port));
  SWELL_ASSIGN_OR_RETURN(auto signals, reactor.WatchSignals({SIGINT, SIGTERM}, [&](int) {
    server.Shutdown(std::chrono::seconds(2), [&] { reactor.Stop(); });
  }));
  reactor.Run();
  return Status::Ok();
}

class JobMasterAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    flags.Text("--listen", &flags_.listen, "ADDRESS",
               "address for HTTP; port 0 is any free port (default 127.0.0.1:0)");
    flags.Text("--journal", &flags_.journal, "FILE",
               "file that keeps the state across restarts (default: none)");
    flags.Text("--port-file", &flags_.port_file, "FILE", "write the port to this file");
    AddLogLevel(flags, flags_.log_level);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SetLogSink(MakeFileLogSink(""), LogLevelOf(flags_.log_level));
    SWELL_RETURN_IF_ERROR(Serve(flags_, [&](std::string_view line) { session.OutLine(line); }));
    return 0;
  }

 private:
  MasterFlags flags_;
};

}  // namespace

cli::Command JobMasterCommand() {
  return {
      .name = "job-master",
      .group = "Kubernetes",
      .summary = "Run the master of one elastic job.",
      .examples = {{"For a job whose workers reach this machine",
                    "swell job-master --listen :50001 --journal /checkpoints/job-master.journal"},
                   {"Show the progress", "curl -s localhost:50001/v1/state"}},
      .notes =
          "The master hands out ranges of records to workers, keeps account of the records that "
          "are trained, and combines gradients into updates. docs/elastic.md has the protocol.",
      .standalone = true,
      .make = cli::Makes<JobMasterAction>()};
}

}  // namespace swell::ops
