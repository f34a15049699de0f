// ControllerOptions: how `swell controller` serves a Kubernetes cluster, and the flags that say it.
// - Threads: main thread; plain values.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ops/cycles/cycle_recorder.h"
#include "ops/election_flags.h"
#include "ops/flags.h"
#include "ops/install/webhook.h"
#include "ops/pages/controller_pages.h"
#include "scheduling/grouping_rules.h"

namespace swell::ops {

inline constexpr char kControllerMetricsAddress[] = "127.0.0.1:10290";

struct ControllerOptions {
  RemoteFlags remote;
  std::string log_level = "info";
  bool host_network = false;
  std::string metrics_address;
  ControllerPagesOptions pages;
  std::string grouping_rules;  // a file; empty: those of the ConfigMap alone
  std::string kubeflow = "auto";
  WebhookOptions webhook;
  std::string record_dir;  // empty: cycles are not recorded
  int64_t record_mib = kRecordMibUsual;
  std::vector<std::string> settings;
  sched::Settings scheduler;  // what `settings` say
  std::string autoscaling_default;
  ElectionFlags election;
};
void AddControllerFlags(cli::Flags& flags, ControllerOptions& to);
// Completes the options. Misuse names the flag.
Status ReadControllerOptions(ControllerOptions& options);
// The rules of a file; none if `path` is empty. One wrong rule is an error: nobody would read an
// event about it.
Result<std::vector<scheduling::GroupingRule>> ReadGroupingRules(const std::string& path);

}  // namespace swell::ops
