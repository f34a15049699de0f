// EmbeddedCluster: every component of a cluster in one process, wired to real plugs.
//
//   core thread   API server, controllers, scheduler, node agents: one Executor, no locks
//   I/O thread    sockets, TLS, HTTP
//   store thread  SQLite's commits
//   record thread the record of the scheduler's cycles
//   pages thread  the pages: their sockets, sessions and views
//
// - Threads: the thread that constructs it runs it and is the core thread.
// - Ownership: members are destroyed in reverse order: clients before the server that answers them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ops/access/audit_log.h"
#include "ops/cycles/cycle_recorder.h"
#include "ops/data_dir.h"
#include "ops/nodes/health_source.h"
#include "ops/nodes/plan_nodes.h"

namespace swell {

struct ClusterOptions {
  ops::DataDir data_dir;
  std::string listen = "127.0.0.1:0";
  ops::NodePlan plan;
  std::string runtime = "process";  // the value of --runtime
  std::string token_auth_file;
  Duration token_life_max = std::chrono::hours(24 * 365);  // also of users' certificates
  ops::AuditPlan audit;
  std::vector<std::string> controllers = {"*"};  // see manager::ManagerOptions
  bool default_scheduler = true;                 // pods of `default-scheduler` are Swell's to place
  sched::Settings scheduler;
  std::string autoscaling_default;            // see manager::ManagerOptions
  int64_t record_mib = ops::kRecordMibUsual;  // of the scheduler's last cycles; 0: none
  std::string ui_address;                     // of the pages; "off": none; see ops::PagesOptions
  std::string programs_address;  // of what pods serve; "off": none; see ops::PagesOptions
  std::string pod_cidr;          // empty: the runtime's own choice
  std::string external_address;  // of load balancers; empty: as `listen`
  std::string image_store;       // empty: as the last start, or in the data directory
  ops::HealthPlan health;        // checks of the nodes
  std::string sdk_path;          // PYTHONPATH of Python images; empty: beside the program
};

class EmbeddedCluster {
 public:
  struct Listeners {
    std::function<void()> ready;      // the API answers
    std::function<void()> pods_save;  // the cluster stops, and pods take their time to save
  };

  // Opens the store, binds the port and writes the kubeconfig; nothing runs yet.
  static Result<std::unique_ptr<EmbeddedCluster>> Create(const ClusterOptions& options);
  ~EmbeddedCluster();

  // Runs until SIGINT or SIGTERM; then pods have 30 s to save and end. A second signal, or SIGQUIT,
  // ends them at once.
  Status Run(const Listeners& listeners);

  const std::string& server_url() const;
  // The address of the pages; empty: the cluster has no pages.
  std::string pages_url() const;

 private:
  struct Impl;
  explicit EmbeddedCluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swell
