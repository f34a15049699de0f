// ClusterOptions: what the embedded cluster of `swell up` is made of, and the flags that say it.
// - Threads: main thread; plain values.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ops/access/audit_log.h"
#include "ops/cycles/cycle_recorder.h"
#include "ops/data_dir.h"
#include "ops/nodes/health_source.h"
#include "ops/nodes/plan_nodes.h"
#include "ops/pages/cluster_pages.h"

namespace swell::ops {

struct ClusterOptions {
  DataDir data_dir;
  std::string listen = "127.0.0.1:0";
  NodePlan plan;
  std::string runtime = "process";  // the value of --runtime
  std::string token_auth_file;
  Duration token_life_max = std::chrono::hours(24 * 365);  // also of users' certificates
  AuditPlan audit;
  std::vector<std::string> controllers = {"*"};  // see manager::ManagerOptions
  bool default_scheduler = true;                 // pods of `default-scheduler` are Swell's to place
  sched::Settings scheduler;
  std::string autoscaling_default;       // see manager::ManagerOptions
  int64_t record_mib = kRecordMibUsual;  // of the scheduler's last cycles; 0: none
  std::string ui_address;                // see PagesOptions; kOff: no pages
  std::string programs_address;          // see PagesOptions
  std::string pod_cidr;                  // empty: the runtime's own choice
  std::string external_address;          // of load balancers; empty: as `listen`
  std::string image_store;               // empty: as the last start, or in the data directory
  std::string python;                    // of Python images; empty: TakePython chooses
  HealthPlan health;                     // checks of the nodes
  std::string sdk_path;                  // PYTHONPATH of Python images; empty: beside the program

  bool has_pages() const { return ui_address != kOff; }
};

// What the user typed, where that is not yet the option.
struct ClusterFlags {
  ClusterOptions options;
  std::vector<std::string> controllers;
  std::vector<std::string> settings;
  std::string token_life = "365d";
};
void AddClusterFlags(cli::Flags& flags, ClusterFlags& to);
// Completes the options. Misuse names the flag.
Status ReadClusterFlags(ClusterFlags& flags);

}  // namespace swell::ops
