// The program: a cluster, its commands, and the shims of its pods, by the name and first argument.
#include <cstring>
#include <string>
#include <vector>

#include "bin/commands.h"
#include "edge/process/pod_shim.h"

int main(int argc, char** argv) {
  std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "pod-shim") return swell::edge::PodShimMain(argc - 1, argv + 1);
  std::vector<std::string> rest(argv + std::min(argc, 2), argv + argc);
  if (command == "up") return swell::UpCommand(rest);
  if (command == "down") return swell::DownCommand(rest);
  if (command == "status") return swell::StatusCommand(rest);
  return 2;
}
