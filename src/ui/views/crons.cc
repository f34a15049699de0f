// The views `crons` and `cron`: Crons and CronJobs, and the jobs that they started.
#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/jobs/why_cron.h"
#include "cli/views/events_view.h"
#include "kube/api/meta/meta.h"
#include "ui/views/nodes.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

constexpr size_t kEventsShown = 200;
constexpr size_t kRunsShown = 100;

using JobsByOwner = std::map<std::string, std::vector<json::SharedValue>, std::less<>>;

// The batch Jobs that the user may list, by the uid of what owns them.
JobsByOwner BatchJobs(const ViewInput& input, std::string_view ns = {}) {
  JobsByOwner by_owner;
  bool partial = false;
  for (size_t kind = kFixedKinds; kind < KindCount(); ++kind) {
    if (ResourceOf(kind) != client::resources::kJobs) continue;
    for (const json::SharedValue& job :
         ns.empty() ? input.Of(kind, partial) : input.Inside(kind, ns)) {
      if (const auto owner = api::ControllerOf(*job)) by_owner[owner->uid].push_back(job);
    }
  }
  return by_owner;
}

std::string_view WordOf(Kind kind) { return kind == Kind::kCron ? "Cron" : "CronJob"; }

json::Object RunRow(const cli::CronRun& run) {
  return json::Object{{"kind", run.kind},
                      {"name", run.name},
                      {"status", run.status},
                      {"began", TimeOrNull(run.began)},
                      {"ended", TimeOrNull(run.ended)}};
}

cli::CronView ViewOf(const json::SharedValue& cron,
                     Kind kind,
                     const JobsByOwner& jobs,
                     WallTime now) {
  static const std::vector<json::SharedValue> kNone;
  const auto own = jobs.find(api::Uid(*cron));
  return cli::ViewCron(cron, WordOf(kind), own == jobs.end() ? kNone : own->second, now);
}

json::Object CronRow(const json::Value& cron,
                     Kind kind,
                     const cli::CronView& view,
                     const NamespaceProjects& projects) {
  const auto project = projects.find(api::Namespace(cron));
  const client::Resource& resource = ResourceOf(IndexOf(kind));
  const auto active = std::count_if(view.runs.begin(), view.runs.end(),
                                    [](const cli::CronRun& run) { return !run.ended; });
  json::Object row{
      {"namespace", boost::json::string_view(api::Namespace(cron))},
      {"name", boost::json::string_view(api::Name(cron))},
      {"kind", boost::json::string_view(WordOf(kind))},
      {"apiVersion", resource.ApiVersion()},
      {"plural", resource.plural},
      {"uid", boost::json::string_view(api::Uid(cron))},
      {"project", project == projects.end() ? json::Value(nullptr) : json::Value(project->second)},
      {"starts", view.starts},
      {"schedule", view.schedule},
      {"timeZone", TextOrNull(view.zone)},
      {"policy", view.policy},
      {"state", view.state},
      {"reason", TextOrNull(view.reason)},
      {"next", TimeOrNull(view.next)},
      {"last", TimeOrNull(view.last)},
      {"active", active},
      {"lastRun", nullptr},
      {"created", TextOrNull(api::CreationTimestamp(cron))}};
  if (!view.runs.empty()) row["lastRun"] = RunRow(view.runs.back());
  return row;
}

// Its own events. An earlier object of the same name had another uid.
json::Array EventsOfCron(const json::Value& cron, const ViewInput& input) {
  struct Found {
    cli::EventView view;
    json::SharedValue event;
  };
  std::vector<Found> found;
  for (json::SharedValue& event : input.Inside(IndexOf(Kind::kEvent), api::Namespace(cron))) {
    if (json::GetString(*event, {"involvedObject", "uid"}) != api::Uid(cron)) continue;
    cli::EventView view = cli::ViewEvent(*event);
    found.push_back({std::move(view), std::move(event)});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return b.view.Before(a.view); });
  if (found.size() > kEventsShown) found.resize(kEventsShown);
  json::Array rows;
  for (const Found& one : found) rows.push_back(EventRow(one.view, *one.event));
  return rows;
}

}  // namespace

Result<json::Value> CronsView(const ViewInput& input) {
  bool partial = false;
  const NamespaceProjects projects = ProjectsOfNamespaces(input);
  const JobsByOwner jobs = BatchJobs(input);
  json::Array rows;
  for (const Kind kind : {Kind::kCron, Kind::kCronJob}) {
    for (const json::SharedValue& cron : input.Of(kind, partial)) {
      rows.push_back(CronRow(*cron, kind, ViewOf(cron, kind, jobs, input.now), projects));
    }
  }
  json::Object out{{"rows", std::move(rows)}};
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

Result<json::Value> CronPageView(const ViewInput& input) {
  const std::string ns = input.Param("namespace"), name = input.Param("name");
  const Kind kind = input.Param("kind") == "CronJob" ? Kind::kCronJob : Kind::kCron;
  for (const json::SharedValue& cron : input.Inside(IndexOf(kind), ns)) {
    if (api::Name(*cron) != name) continue;
    const cli::CronView view = ViewOf(cron, kind, BatchJobs(input, ns), input.now);
    json::Array runs;
    for (auto run = view.runs.rbegin(); run != view.runs.rend() && runs.size() < kRunsShown;
         ++run) {
      runs.push_back(RunRow(*run));
    }
    return json::Value(
        json::Object{{"summary", CronRow(*cron, kind, view, ProjectsOfNamespaces(input))},
                     {"runs", std::move(runs)},
                     {"events", EventsOfCron(*cron, input)}});
  }
  return Status(Code::kNotFound,
                StrCat(WordOf(kind), " ", Quote(name), " not found in namespace ", Quote(ns)));
}

}  // namespace swell::ui
