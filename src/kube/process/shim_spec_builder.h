// MakeShimSpec: from a container's spec to what its pod shim is told.
// - Threads: the I/O thread; makes the directories that are to be mounted.
#pragma once

#include <string>

#include "kube/images/store.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/files/image_catalogue.h"
#include "kube/process/machine/host_support.h"
#include "kube/process/machine/seccomp_profiles.h"
#include "kube/process/pod_store.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// What is the same for all containers of a machine.
struct ShimDefaults {
  const HostSupport& support;
  const ImageCatalogue& catalogue;
  const images::ImageStore& images;
  const PodStore& store;
  int64_t log_bytes_max = 10 << 20;
  int log_files_max = 5;
  SeccompProfiles& seccomp;
};

// Where a pod's namespaces are.
struct PodNamespaces {
  std::string net;       // empty: the host's network
  std::string users;     // empty: the machine's user ids
  int64_t first_id = 0;  // the machine's id of the pod's root
};

// The container's oom_score_adj: the kubelet's, but never below that of the cluster's own
// processes. What asked for no memory is ended first, then what asked for a small part of the
// machine's.
int OomScoreOf(const node::ContainerSpec& spec);

// kNotFound: no such image. kForbidden: the container would run as root and must not, or asks for
// what this machine does not have.
Result<ShimSpec> MakeShimSpec(const ShimDefaults& defaults,
                              const ProcessPod& pod,
                              const node::ContainerSpec& spec,
                              const PodNamespaces& namespaces);

}  // namespace swell::process
