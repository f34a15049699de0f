// ProgressMetrics: how far the jobs of one kind are, for Prometheus, as their statuses say it.
// - Threads: core executor only.
// - Ownership: the context's informers outlive it.
// - Invariants: a page has at most kJobsMax jobs of the kind, the same ones at every scrape.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "kube/controllers/context.h"

namespace swell::jobs {

class ProgressMetrics {
 public:
  ProgressMetrics(const controllers::Context& context, const client::Resource& resource);

  static constexpr size_t kJobsMax = 1000;

 private:
  void Collect(MetricPage& page) const;

  const std::string resource_;  // "pytorchjobs.kubeflow.org"
  const client::Informer& jobs_;
  std::unique_ptr<Metrics::Registration> registered_;
};

}  // namespace swell::jobs
