// KeptLogs: the logs of jobs' pods that are gone, until the job goes too.
//
// Below its directory: JOB_UID/POD_UID/owner ("NAMESPACE/POD") and JOB_UID/POD_UID/logs, which the
// pod had while it lived.
//
// - Threads: one, that of its owner. Blocking file operations are short and local.
// - Ownership: belongs to the PodStore. The Remover outlives it.
// - Invariants: bounded by pods and bytes, per job and in all. The oldest go first.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/process/background/remover.h"

namespace swell::process {

class KeptLogs {
 public:
  struct Bounds {
    size_t pods_per_job = 64;
    int64_t bytes_per_job = 256LL << 20;
    size_t pods = 4096;
    int64_t bytes = 2LL << 30;
  };
  struct Pod {
    std::string job_uid, uid;
    std::string owner;  // "NAMESPACE/POD"
  };

  KeptLogs(std::string dir, std::string trash, Remover& remover);
  KeptLogs(std::string dir, std::string trash, Remover& remover, Bounds bounds);

  // Finds what earlier runs kept.
  Status Start();
  // Takes over the pod's logs: moves them away from `logs_dir`.
  Status Keep(const Pod& pod, const std::string& logs_dir);
  // The log file of a container's attempt; of the newest one for a negative `attempt`. kNotFound
  // also if the pod is not `owner`.
  Result<std::string> Path(const std::string& pod_uid,
                           const std::string& owner,
                           const std::string& container,
                           int attempt) const;
  // The job is gone. Its pods may go later than it; then nothing is kept of them.
  void Forget(const std::string& job_uid);
  std::vector<std::string> Jobs() const;

 private:
  struct Kept {
    Pod pod;
    int64_t bytes = 0;
    int64_t time_ns = 0;
  };
  struct Total {
    size_t pods = 0;
    int64_t bytes = 0;
  };

  void Load(const std::string& job_uid, const std::string& pod_uid, std::vector<Kept>& found) const;
  void Add(Kept kept);
  void Drop(std::deque<Kept>::iterator kept);
  void Trim(const std::string& job_uid);
  std::string DirOf(const Pod& pod) const;

  std::string dir_, trash_;
  Remover& remover_;
  Bounds bounds_;
  std::deque<Kept> pods_;  // oldest first
  std::map<std::string, Total> jobs_;
  Total all_;
  std::deque<std::string> forgotten_;  // the latest jobs
};

}  // namespace swell::process
