// The pod shim as a program of its own, for tests that have no `swell` to start again.
#include "kube/process/shim/pod_shim.h"

int main(int argc, char** argv) { return swell::process::PodShimMain(argc, argv); }
