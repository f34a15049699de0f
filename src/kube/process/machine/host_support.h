// What this machine permits: namespaces, overlay, control groups, networks. Found out once, by
// trying, before any thread exists.
// - Threads: values; Detect forks and must run before other threads hold locks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

struct CgroupSupport {
  int version = 0;         // 0: none
  std::string memory_dir;  // parents of containers' groups, which exist
  std::string cpu_dir;
  std::string pids_dir;
  std::string devices_dir;  // version 1 alone
  bool devices = false;     // containers' devices can be filtered
  std::string why_not;
};

struct HostSupport {
  Isolation isolation = Isolation::kNone;
  bool network = false;  // namespaces and virtual links
  bool users = false;    // namespaces of users, and mounts that translate owners
  bool seccomp = false;  // filters of system calls
  bool scores = false;   // pods cannot lower how soon the kernel ends them
  CgroupSupport cgroups;
  // "no control groups (…); host network: …"; empty when nothing is missing.
  std::string Limits() const;
  std::vector<std::string> missing;
};

struct HostOptions {
  bool namespaces = true;  // false: plain processes, whatever is permitted
  bool network = true;
  bool cgroups = true;
  bool users = true;
};

HostSupport DetectHostSupport(const std::string& data_dir,
                              const std::string& instance,
                              const HostOptions& options);

// What the control groups do not limit, each with the reason: "WHAT: WHY".
std::vector<std::string> NotLimited(const CgroupSupport& support);

// The topmost group of version 2, from the one at `mount` down to the process's own, that this user
// may divide; empty: none. The topmost, because the next run has another group of its own, and must
// reach the groups of pods that still run. `own_groups` is the text of /proc/self/cgroup.
std::string GroupToDivide(const std::string& mount, std::string_view own_groups);

// Where and what to write for one container; nothing without support.
void FillCgroups(const CgroupSupport& support,
                 const std::string& container_id,
                 int64_t cpu_request_milli,
                 int64_t cpu_limit_milli,
                 int64_t memory_limit_bytes,
                 ShimSpec& spec);
// Puts the groups of `spec` that limit CPU and memory below groups of the pod, which limit all its
// containers together. After all else of the groups is filled in.
void PutBelowPod(const CgroupSupport& support,
                 const std::string& pod_uid,
                 const node::CpuAndMemory& whole_pod,
                 ShimSpec& spec);
// The container's group in the hierarchy at `parent`, below its pod's where that has one.
std::string CgroupOf(const std::string& parent, const std::string& container_id);
// Writes other amounts for a container that runs. An error says what was not taken.
Status ResizeCgroups(const CgroupSupport& support,
                     const std::string& container_id,
                     const node::CpuAndMemory& amounts);
// Lets a container open the usual devices and those that its specification gives it, and no others;
// it may make nodes of any. Does nothing without the kernel's device controller, or for privileged
// containers.
void FillDeviceGroup(const CgroupSupport& support, const std::string& container_id, ShimSpec& spec);
// The most processes and threads of one container, so that no pod uses up the machine's.
int64_t ProcessLimit();
// The group of the processes that look after pods; empty: none. A stop of the group in which Swell
// was started so reaches Swell alone, which then ends its pods in order.
std::string ShimGroup(const CgroupSupport& support);
// Removes the groups of containers and pods that are no longer known: a known pod's may be empty
// only because its command has not joined them yet.
void CleanCgroups(const CgroupSupport& support,
                  const std::function<bool(const std::string& pod_uid)>& known);
// Removes what holds them, once they are gone.
void RemoveCgroups(const CgroupSupport& support);

}  // namespace swell::process
