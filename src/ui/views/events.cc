// The views `events` and `users`.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/views/events_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/api/objects/user.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

constexpr size_t kEventsUsual = 200;
constexpr size_t kEventsMost = 5000;

bool Mentions(const cli::EventView& event, std::string_view words) {
  if (words.empty()) return true;
  const std::string text = ToLower(StrCat(event.type, " ", event.reason, " ", event.object_kind,
                                          "/", event.object, " ", event.message));
  return text.find(words) != std::string::npos;
}

}  // namespace

Result<json::Value> EventsView(const ViewInput& input) {
  const uint64_t limit = ParseUint(input.Param("limit")).value_or(kEventsUsual);
  const std::string words = ToLower(input.Param("filter"));
  struct Found {
    cli::EventView view;
    json::SharedValue event;
  };
  std::vector<Found> found;
  bool partial = false;
  for (json::SharedValue& event : input.Of(Kind::kEvent, partial)) {
    cli::EventView view = cli::ViewEvent(*event);
    if (Mentions(view, words)) found.push_back({std::move(view), std::move(event)});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return b.view.Before(a.view); });
  const size_t total = found.size();
  found.resize(std::min({total, static_cast<size_t>(limit), kEventsMost}));
  json::Array rows;
  for (const Found& one : found) {
    rows.push_back(EventRow(one.view, *one.event));
  }
  json::Object out{{"rows", std::move(rows)}, {"total", total}};
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

namespace {

json::Array ProjectsOfUser(const ViewInput& input,
                           std::string_view name,
                           const std::set<std::string, std::less<>>& groups) {
  json::Array projects;
  bool partial = false;
  for (const json::SharedValue& project : input.Of(Kind::kProject, partial)) {
    for (const json::Value& one : api::MembersOf(*project)) {
      const api::ProjectMember member(one);
      const bool is = (member.kind == "User" && member.name == name) ||
                      (member.kind == "Group" && groups.contains(member.name));
      if (!is) continue;
      projects.push_back(json::Object{{"name", boost::json::string_view(api::Name(*project))},
                                      {"role", boost::json::string_view(member.role)}});
    }
  }
  return projects;
}

}  // namespace

Result<json::Value> UsersView(const ViewInput& input) {
  if (!input.rights.May(Kind::kUser, api::kUserNamespace)) {
    return Status(Code::kForbidden, "only administrators may see the users of the cluster");
  }
  bool partial = false;
  json::Array rows;
  for (const json::SharedValue& secret : input.Of(Kind::kUser, partial)) {
    if (!api::IsUserSecret(*secret)) continue;
    const api::RegisteredUser user(*secret);
    json::Array groups;
    for (const std::string& group : user.groups) groups.push_back(json::Value(group));
    json::Array projects =
        ProjectsOfUser(input, user.name, {user.groups.begin(), user.groups.end()});
    for (const std::string& project : user.projects) {
      projects.push_back(json::Object{{"name", project}, {"role", user.role}});
    }
    rows.push_back(json::Object{{"name", user.name},
                                {"groups", std::move(groups)},
                                {"role", TextOrNull(user.role)},
                                {"runAs", TextOrNull(user.run_as)},
                                {"created", TextOrNull(user.created)},
                                {"projects", std::move(projects)}});
  }
  return json::Value(json::Object{{"rows", std::move(rows)}});
}

}  // namespace swell::ui
