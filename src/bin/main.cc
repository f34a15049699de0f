// The program: commands, an embedded cluster, and the shims of its pods.
#include <string_view>

#include "bin/commands.h"
#include "cli/cli.h"
#include "kube/process/shim/pod_shim.h"
#include "ops/commands.h"

int main(int argc, char** argv) {
  // Started for every container: nothing else may cost it time.
  if (argc > 1 && std::string_view(argv[1]) == "pod-shim") {
    return swell::edge::PodShimMain(argc - 1, argv + 1);
  }
  return swell::cli::CliMain(
      argc, argv,
      {swell::UpCommand(), swell::DownCommand(), swell::StatusCommand(), swell::UserCommand(),
       swell::ImagesCommand(), swell::BackupCommand(), swell::RestoreCommand(),
       swell::EncryptionCommand(), swell::NvidiaSmiCommand(), swell::InstallCommand(),
       swell::UninstallCommand(), swell::ControllerCommand(), swell::AgentCommand(),
       swell::JobMasterCommand(), swell::SimulateCommand(), swell::ReplayCommand(),
       swell::LabCommand()},
      swell::MakeWhatIfEngine());
}
