// `swell job-master`: the master of one elastic job: hands out its records, counts its gradients.
#include <csignal>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "bin/command_line.h"
#include "bin/commands.h"
#include "bin/master_server.h"

namespace swell {
namespace {

const cli::Command kJobMaster{
    .name = "job-master",
    .summary =
        "Serve one elastic job's master: ranges of records for its workers, exact accounts of what "
        "is trained, and which gradients make an update. docs/elastic.md has the protocol.",
    .examples = {{"For a job whose workers reach this machine",
                  "swell job-master --listen :50001 --journal /checkpoints/job-master.journal"},
                 {"How far is it?", "curl -s localhost:50001/v1/state"}}};

struct MasterFlags {
  std::string listen = "127.0.0.1:0";
  std::string journal;
  std::string port_file;
  std::string log_level = "info";
};

Status Serve(const MasterFlags& flags) {
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
  std::printf("Job master on port %u\n", port);
  std::fflush(stdout);
  SWELL_ASSIGN_OR_RETURN(auto signals, reactor.WatchSignals({SIGINT, SIGTERM}, [&](int) {
    server.Shutdown(std::chrono::seconds(2), [&] { reactor.Stop(); });
  }));
  reactor.Run();
  return Status::Ok();
}

}  // namespace

int JobMasterCommand(const std::vector<std::string>& arguments) {
  MasterFlags flags;
  cli::Flags declared;
  declared.Text("--listen", &flags.listen, "ADDRESS",
                "where it serves HTTP; port 0: a free one (default 127.0.0.1:0)");
  declared.Text("--journal", &flags.journal, "FILE",
                "keeps the state there, so that it survives its own death (default: nowhere)");
  declared.Text("--port-file", &flags.port_file, "FILE", "write the port there when it serves");
  AddLogLevel(declared, flags.log_level);
  if (auto exit = ParseCommandLine(kJobMaster, declared, arguments)) return *exit;
  SetLogSink(MakeFileLogSink(""), LogLevelOf(flags.log_level));
  const Status done = Serve(flags);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
