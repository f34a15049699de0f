// ScalingDefaults: how elastic jobs that do not say it themselves are scaled. The nearest project
// above a job that has a default decides (spec.autoscaling.default), else the cluster's flag.
// - Threads: core executor only.
// - Ownership: the informers outlive it; `changed` may use it.
// - Invariants: a chain of parents is followed kProjectsDeep levels at most, so a ring ends.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "kube/controllers/context.h"

namespace swell::autoscaling {

struct ScalingDefault {
  std::string mode;     // Goodput, None; empty: nobody has said
  std::string said_by;  // "project team-a", "the cluster"
  bool goodput() const { return mode == "Goodput"; }
};

class ScalingDefaults {
 public:
  // `of_cluster`: Goodput, None or empty. `changed` is called when a project's default
  // has changed.
  ScalingDefaults(controllers::Context& context,
                  std::string of_cluster,
                  std::function<void()> changed);

  ScalingDefault Of(const json::Value& job) const;

 private:
  struct Facts {
    std::string parent, ns, said;
    bool operator==(const Facts&) const = default;
  };

  void OnProject(const json::Value& project);
  void Reread();
  std::string ProjectOf(const json::Value& job) const;

  const std::string of_cluster_;
  std::function<void()> changed_;
  client::Informer& projects_;
  std::map<std::string, Facts, std::less<>> facts_;
  std::map<std::string, std::string, std::less<>> by_namespace_;
};

}  // namespace swell::autoscaling
