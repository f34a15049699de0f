// OwnNamespaces: lists of users who may not list all namespaces. They get what is in their own.
// - Threads: one; each call blocks on the session's loop.
#pragma once

#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/session.h"
#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"

namespace swell::cli {

// Those of the projects that they may read, and the one that their commands use.
std::set<std::string> OwnNamespaces(Session& session, const ProjectTree& tree);
std::set<std::string> OwnNamespaces(Session& session, Api& api);

// Appends what `list` finds in each namespace that may be read.
template <class T, class List>
Status ListEach(const std::set<std::string>& namespaces, std::vector<T>& out, const List& list) {
  for (const std::string& ns : namespaces) {
    auto found = list(ns);
    if (found.status().code() == Code::kForbidden) continue;
    if (!found.ok()) return found.status();
    std::move(found->begin(), found->end(), std::back_inserter(out));
  }
  return Status::Ok();
}

// Appends what `list` finds in all namespaces. Users who may not list all get those of their own
// namespaces, and standard error says so of the `plural`.
template <class T, class List>
Status ListShown(
    Session& session, Api& api, std::string_view plural, std::vector<T>& out, const List& list) {
  auto all = list("");
  if (all.status().code() == Code::kForbidden) {
    session.ErrLine(StrCat("You see ", plural, " of your own namespaces only."));
    return ListEach(OwnNamespaces(session, api), out, list);
  }
  if (!all.ok()) return all.status();
  std::move(all->begin(), all->end(), std::back_inserter(out));
  return Status::Ok();
}

// Events about an object that has no namespace, as far as the user may see them.
Result<std::vector<EventView>> ListShownEvents(
    Session& session, Api& api, std::string_view name, std::string_view kind, std::string_view uid);

struct ShownJobs {
  std::vector<JobView> jobs;
  bool partial = false;  // those of the user's own namespaces only
};
// The jobs of a namespace. `ns` empty: of all namespaces, or of the user's own.
Result<ShownJobs> FindShownJobs(Session& session, Api& api, std::string_view ns);
// The same; standard error says when it is a part.
constexpr std::string_view kPartialJobs = "You see jobs of your own namespaces only.";
Result<std::vector<JobView>> ListShownJobs(Session& session, Api& api, std::string_view ns);

// Nodes with the pods that the user may see, of these names or all; standard error says when the
// pods are a part.
Result<std::vector<NodeView>> ReadShownNodes(Session& session,
                                             Api& api,
                                             const std::vector<std::string>& names = {});

}  // namespace swell::cli
