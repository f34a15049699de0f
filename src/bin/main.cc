// The program: commands, an embedded cluster, and the shims of its pods.
#include <string_view>

#include "bin/commands.h"
#include "cli/cli.h"
#include "kube/process/shim/pod_shim.h"
#include "ops/commands.h"

int main(int argc, char** argv) {
  // Started for every container: nothing else may cost it time.
  if (argc > 1 && std::string_view(argv[1]) == "pod-shim") {
    return swell::process::PodShimMain(argc - 1, argv + 1);
  }
  return swell::cli::CliMain(
      argc, argv,
      {swell::UpCommand(), swell::ops::DownCommand(), swell::ops::StatusCommand(),
       swell::ops::UserCommand(), swell::ops::ImagesCommand(), swell::ops::BackupCommand(),
       swell::ops::RestoreCommand(), swell::ops::EncryptionCommand(),
       swell::ops::NvidiaSmiCommand(), swell::ops::InstallCommand(), swell::ops::UninstallCommand(),
       swell::ControllerCommand(), swell::AgentCommand(), swell::ops::JobMasterCommand(),
       swell::ops::SimulateCommand(), swell::ops::ReplayCommand(), swell::ops::LabCommand()},
      swell::ops::MakeWhatIfEngine());
}
