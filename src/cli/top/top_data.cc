#include "cli/top/top_data.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/views/own_namespaces.h"

namespace swell::cli {
namespace {

constexpr size_t kEventsMost = 500;

bool IsForbidden(const Status& status) { return status.code() == Code::kForbidden; }

// Lists one namespace, or all; without the right to all, each of the user's own.
template <class T, class List>
Status ListAllowed(const std::string& ns,
                   const std::set<std::string>& own,
                   std::string_view what,
                   TopData& data,
                   std::vector<T>& out,
                   const List& list) {
  auto found = list(ns);
  if (found.ok()) {
    out = std::move(*found);
    return Status::Ok();
  }
  if (!IsForbidden(found.status()) || !ns.empty()) return found.status();
  data.hidden.push_back(StrCat("You see ", what, " of your own namespaces only."));
  return ListEach(own, out, list);
}

Status ReadNodesOf(Session& session, Api& api, TopData& data) {
  auto nodes = ReadNodes(api);
  if (IsForbidden(nodes.status())) {
    nodes = ReadNodesWithPodsOf(api, {}, OwnNamespaces(session, data.tree));
    if (nodes.ok()) data.hidden.emplace_back("Nodes count the pods of your own namespaces only.");
  }
  if (IsForbidden(nodes.status())) {
    data.hidden.emplace_back("You may not list nodes.");
    return Status::Ok();
  }
  if (!nodes.ok()) return nodes.status();
  data.nodes = std::move(*nodes);
  return Status::Ok();
}

}  // namespace

int64_t TopData::MilliGpus() const {
  int64_t sum = 0;
  for (const NodeView& node : nodes) sum += node.total.milli_gpus;
  return sum;
}

int64_t TopData::HeldMilliGpus() const {
  int64_t sum = 0;
  for (const NodeView& node : nodes) sum += node.used.milli_gpus;
  return sum;
}

Result<TopData> ReadTop(Session& session, Api& api, const std::string& ns) {
  TopData data;
  data.now = session.Now();
  data.server = api.connection().url;
  auto tree = ReadProjects(api);
  if (tree.ok()) {
    data.tree = std::move(*tree);
  } else if (!IsForbidden(tree.status())) {
    return tree.status();
  }
  SWELL_RETURN_IF_ERROR(ReadNodesOf(session, api, data));
  const std::set<std::string> own = OwnNamespaces(session, data.tree);
  SWELL_RETURN_IF_ERROR(ListAllowed(ns, own, "jobs", data, data.jobs,
                                    [&](std::string_view in) { return ListJobs(api, in); }));
  SWELL_RETURN_IF_ERROR(ListAllowed(ns, own, "events", data, data.events,
                                    [&](std::string_view in) { return ListEvents(api, in, ""); }));
  std::stable_sort(data.events.begin(), data.events.end(),
                   [](const EventView& a, const EventView& b) { return b.Before(a); });
  if (data.events.size() > kEventsMost) data.events.resize(kEventsMost);
  return data;
}

}  // namespace swell::cli
