// The program: a cluster, its commands, and the shims of its pods, by the name and first argument.
#include <string_view>

#include "bin/commands.h"
#include "cli/cli.h"
#include "edge/process/pod_shim.h"

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
        swell::StatusCommand}});
}
