#include "cli/views/own_namespaces.h"

#include <algorithm>

namespace swell::cli {

std::set<std::string> OwnNamespaces(Session& session, const ProjectTree& tree) {
  std::set<std::string> namespaces{session.Namespace()};
  for (const ProjectView& project : tree.projects) {
    if (!project.ns.empty()) namespaces.insert(project.ns);
  }
  return namespaces;
}

std::set<std::string> OwnNamespaces(Session& session, Api& api) {
  auto tree = ReadProjects(api);
  return OwnNamespaces(session, tree.ok() ? *tree : ProjectTree());
}

Result<std::vector<EventView>> ListShownEvents(Session& session,
                                               Api& api,
                                               std::string_view name,
                                               std::string_view kind,
                                               std::string_view uid) {
  std::vector<EventView> events;
  SWELL_RETURN_IF_ERROR(ListShown(session, api, "events", events, [&](const std::string& ns) {
    return ListEvents(api, ns, name, kind, uid);
  }));
  std::stable_sort(events.begin(), events.end(),
                   [](const EventView& a, const EventView& b) { return a.Before(b); });
  return events;
}

Result<ShownJobs> FindShownJobs(Session& session, Api& api, std::string_view ns) {
  auto all = ListJobs(api, ns);
  if (all.ok()) return ShownJobs{.jobs = std::move(*all)};
  if (!ns.empty() || all.status().code() != Code::kForbidden) return all.status();
  ShownJobs own{.partial = true};
  SWELL_RETURN_IF_ERROR(ListEach(OwnNamespaces(session, api), own.jobs,
                                 [&api](const std::string& in) { return ListJobs(api, in); }));
  return own;
}

Result<std::vector<JobView>> ListShownJobs(Session& session, Api& api, std::string_view ns) {
  SWELL_ASSIGN_OR_RETURN(ShownJobs shown, FindShownJobs(session, api, ns));
  if (shown.partial) session.ErrLine(kPartialJobs);
  return std::move(shown.jobs);
}

Result<std::vector<NodeView>> ReadShownNodes(Session& session,
                                             Api& api,
                                             const std::vector<std::string>& names) {
  auto all = ReadNodes(api, names);
  if (all.ok() || all.status().code() != Code::kForbidden) return all;
  auto own = ReadNodesWithPodsOf(api, names, OwnNamespaces(session, api));
  if (own.ok()) session.ErrLine("Only pods in namespaces that you can read are counted.");
  return own;
}

}  // namespace swell::cli
