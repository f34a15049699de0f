#include "autoscaling/scaling_defaults.h"

#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"

namespace swell::autoscaling {

ScalingDefaults::ScalingDefaults(controllers::Context& context,
                                 std::string of_cluster,
                                 std::function<void()> changed)
    : of_cluster_(std::move(of_cluster)),
      changed_(std::move(changed)),
      projects_(context.informers.Of(client::resources::kProjects)) {
  controllers::Follow(
      projects_, [this](const json::SharedValue& project) { OnProject(*project); },
      [this](const json::SharedValue& project) {
        if (facts_.erase(std::string(api::Name(*project))) > 0) Reread();
      });
}

// Projects' status changes with every cycle of the scheduler, and decides nothing here.
void ScalingDefaults::OnProject(const json::Value& project) {
  const api::ProjectSpec spec(project);
  Facts now{spec.parent, spec.ns, spec.autoscaling_default};
  Facts& known = facts_[std::string(api::Name(project))];
  if (known == now) return;
  known = std::move(now);
  Reread();
}

void ScalingDefaults::Reread() {
  std::vector<const json::Value*> all;
  for (const auto& [name, project] : projects_.objects()) all.push_back(project.get());
  by_namespace_ = api::ProjectsByNamespace(all);
  changed_();
}

// As its use is charged: work in a project's namespace is that project's, whatever it says.
std::string ScalingDefaults::ProjectOf(const json::Value& job) const {
  const auto found = by_namespace_.find(api::Namespace(job));
  if (found != by_namespace_.end()) return found->second;
  const std::string_view named = json::GetString(job, {"spec", "project"});
  return std::string(named.empty() ? api::Label(job, api::keys::kProject) : named);
}

ScalingDefault ScalingDefaults::Of(const json::Value& job) const {
  auto at = facts_.find(ProjectOf(job));
  for (int depth = 0; depth < api::kProjectDepthMax && at != facts_.end(); ++depth) {
    if (!at->second.said.empty()) return {at->second.said, StrCat("project ", at->first)};
    at = facts_.find(at->second.parent);
  }
  return of_cluster_.empty() ? ScalingDefault() : ScalingDefault{of_cluster_, "the cluster"};
}

}  // namespace swell::autoscaling
