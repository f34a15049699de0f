// Projects and node pools as people see them: what a project is guaranteed, has, wants and would
// get; what of a pool is taken. Read once per command, for `swell` and for `runai`.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/output.h"
#include "cli/session.h"
#include "cli/views/job_view.h"

namespace swell::cli {

inline constexpr double kUnlimitedShare = -1;
enum class ShareOf { kGpu, kCpu, kMemory };
inline constexpr std::array<std::string_view, 3> kShareNames = {"gpu", "cpu", "memory"};

// GPUs, cores or bytes; -1 is unlimited.
struct Share {
  double quota = kUnlimitedShare;
  double limit = kUnlimitedShare;
  std::optional<double> weight;
  double allocated = 0, requested = 0;
  std::optional<double> fair_share;  // unknown until the scheduler has reported it
  // What is held beyond the quota; where each pool has its own, the sum of what is beyond these.
  double over = 0;

  bool over_quota() const { return over > 0; }
  // "unlimited", "over quota", "at quota", "under quota".
  std::string_view State() const;
};

// What a project uses of one node pool.
struct PoolUse {
  std::string pool;        // empty: nodes of no pool
  bool own_quota = false;  // or else one quota counts in all pools
  std::array<Share, 3> shares;
};

struct ProjectView {
  json::SharedValue object;
  std::string name, parent, ns, description;
  int64_t priority = 100;
  bool department = false;         // has children: work hangs on those
  std::vector<std::string> pools;  // that it names
  std::array<Share, 3> shares;     // by ShareOf
  std::vector<PoolUse> pool_use;   // empty if the cluster has no node pools
  // In GPU-hours, as it counts against the project; none: the scheduler does not count it.
  std::optional<double> past_gpu_hours;

  const Share& gpu() const { return shares[0]; }
};

struct PoolView {
  json::SharedValue object;
  std::string name, selector, placement;
  std::vector<std::string> nodes;
  int64_t gpus = 0;
  std::optional<int64_t> milli_allocated;  // none: who asks may not see all pods
};

struct ProjectTree {
  std::vector<ProjectView> projects;  // parents before their children, siblings by name

  const ProjectView* Find(std::string_view name) const;
  const ProjectView* OfNamespace(std::string_view ns) const;
  // The project that a job is charged to, as the scheduler decides it: that of its namespace,
  // whatever the job names, else the one it names. Empty: none.
  std::string ChargedProject(const JobView& job) const;
  int Depth(const ProjectView& project) const;
};

// Empty on a server that does not know projects.
Result<ProjectTree> ReadProjects(Api& api);
ProjectTree ViewProjects(std::vector<json::SharedValue> objects);
// By its name, or a path that ends with it (research/vision). kNotFound with the names there are.
// `program`: the front end whose command would create it.
Result<ProjectView> FindProject(const ProjectTree& tree,
                                const std::string& name,
                                const std::string& program = "swell");
// Whether new work in `ns` can be charged to the project of this name (empty: of the namespace).
// kInvalid where the namespace is another project's. `flag` is what named it.
Status CheckChargedProject(Api& api,
                           const std::string& name,
                           std::string_view ns,
                           std::string_view flag);
// Refuses new work of a project that is being deleted, or is gone and left a namespace: it would
// keep the project from going, or wait without end.
Status CheckTakesWork(const ProjectView& project);
// Jobs in namespaces that the user may not read are left out.
Result<std::vector<JobView>> ListJobsOfProject(Api& api,
                                               const ProjectTree& tree,
                                               const ProjectView& project);
// A node that several pools select is counted in the first of them by name, where its work runs.
Result<std::vector<PoolView>> ReadPools(Api& api);
// `pods` null: who asks may not see all of them.
std::vector<PoolView> ViewPools(std::vector<json::SharedValue> pools,
                                const std::vector<json::SharedValue>& nodes,
                                const std::vector<json::SharedValue>* pods);
// A controller makes the namespace of a project that was made a moment ago. False: it is not there
// half a minute later, or somebody pressed Ctrl-C.
bool AwaitNamespace(Api& api, const std::string& ns);

// "4", "0.5", "unlimited"; memory in GiB: "64Gi".
std::string ShareText(double amount, ShareOf what);
// "12.5 GPU-hours".
std::string HoursText(double gpu_hours);
struct ProjectTableForm {
  bool wide = false;
  bool headers = true;
};
// Departments above their projects; one line each.
std::string ProjectTable(Session& session,
                         const ProjectTree& tree,
                         const std::vector<ProjectView>& shown,
                         const ProjectTableForm& form);
// Without pools, a table's place is taken by a sentence that says so, and `advice`.
void PrintPools(Session& session,
                const std::vector<PoolView>& pools,
                const OutputForm& form,
                std::string_view advice);

// One line for each project and node pool.
std::string ProjectPoolTable(Session& session,
                             const std::vector<ProjectView>& shown,
                             bool headers = true);

// "8/4", "8/unlimited": what is held, of the quota.
std::string HeldText(const Share& share, ShareOf what);

}  // namespace swell::cli
