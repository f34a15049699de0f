// The program: a cluster, its commands, and the shims of its pods, by the name and first argument.
#include <string_view>

#include "bin/commands.h"
#include "cli/cli.h"
#include "kube/process/shim/pod_shim.h"

int main(int argc, char** argv) {
  // Started for every container: nothing else may cost it time.
  if (argc > 1 && std::string_view(argv[1]) == "pod-shim") {
    return swell::edge::PodShimMain(argc - 1, argv + 1);
  }
  return swell::cli::CliMain(
      argc, argv,
      {{"up", "Cluster", "Start a cluster on this machine", swell::UpCommand},
       {"down", "Cluster", "Stop the cluster and its pods", swell::DownCommand},
       {"status", "Cluster", "Say whether a cluster runs here and how to reach it",
        swell::StatusCommand},
       {"user", "Cluster", "People: create, list, delete, kubeconfig", swell::UserCommand},
       {"backup", "Cluster", "Write the whole cluster into a file, while it runs",
        swell::BackupCommand},
       {"restore", "Cluster", "Bring a cluster back from such a file", swell::RestoreCommand},
       {"install", "Kubernetes", "Install what Swell needs into a Kubernetes cluster",
        swell::InstallCommand},
       {"uninstall", "Kubernetes", "Remove what install put there", swell::UninstallCommand},
       {"controller", "Kubernetes", "Run scheduler and job controllers for a Kubernetes cluster",
        swell::ControllerCommand},
       {"agent", "Kubernetes", "Run nodes of a Kubernetes cluster on this machine",
        swell::AgentCommand},
       {"job-master", "Kubernetes", "Hand out the records of one elastic job",
        swell::JobMasterCommand},
       {"simulate", "Scheduling", "Run scheduling cycles over a state in a file",
        swell::SimulateCommand},
       {"replay", "Scheduling", "Run recorded scheduling cycles again", swell::ReplayCommand}},
      swell::MakeForesight());
}
