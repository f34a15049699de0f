#include "ui/views/views.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/views/events_view.h"
#include "kube/api/meta/meta.h"
#include "ui/views/servers.h"

namespace swell::ui {
namespace {

// Reasons of the scheduler's decisions. That a pod was placed is left out: jobs start in numbers.
constexpr std::array<std::string_view, 7> kDecisions = {
    "Preempted", "Reclaimed", "Shrunk", "Grown", "Resumed", "Suspended", "FailedScheduling"};

const std::vector<View>& AllViews() {
  const KindSet jobs =
      AllJobKinds() | ServerKinds() | Bit(Kind::kPod) | Bit(Kind::kPodGroup) | Bit(Kind::kProject);
  const KindSet nodes = Bit(Kind::kNode) | Bit(Kind::kNodePool) | Bit(Kind::kPod);
  const KindSet measured = nodes | kMeasured;
  const KindSet crons =
      Bit(Kind::kCron) | Bit(Kind::kCronJob) | AllJobKinds() | Bit(Kind::kProject);
  static const std::vector<View> views = {
      {"overview", jobs | measured | Bit(Kind::kEvent) | Bit(Kind::kUsage), OverviewView},
      {"projects", jobs | nodes | Bit(Kind::kUser), ProjectsView},
      {"nodepools", nodes | Bit(Kind::kProject), NodePoolsView},
      {"nodes", measured, NodesView},
      {"workloads", jobs | nodes, WorkloadsView},
      {"job", jobs | measured | Bit(Kind::kEvent) | Bit(Kind::kService), JobPageView},
      {"events", Bit(Kind::kEvent), EventsView},
      {"users", Bit(Kind::kUser) | Bit(Kind::kProject), UsersView},
      {"crons", crons, CronsView},
      {"cron", crons | Bit(Kind::kEvent), CronPageView},
  };
  return views;
}

}  // namespace

const View* FindView(std::string_view name) {
  for (const View& view : AllViews()) {
    if (view.name == name) return &view;
  }
  return nullptr;
}

std::vector<json::SharedValue> ViewInput::Of(size_t kind, bool& partial) const {
  std::vector<json::SharedValue> seen;
  for (const auto& [key, object] : state.Of(kind)) {
    if (rights.May(kind, api::Namespace(*object))) {
      seen.push_back(object);
    } else {
      partial = true;
    }
  }
  return seen;
}

std::vector<json::SharedValue> ViewInput::Inside(size_t kind, std::string_view ns) const {
  std::vector<json::SharedValue> seen;
  if (!rights.May(kind, ns)) return seen;
  const std::string prefix = StrCat(ns, "/");
  const ObjectMap& all = state.Of(kind);
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    seen.push_back(it->second);
  }
  return seen;
}

std::string ViewInput::Param(std::string_view name) const {
  const auto found = params.find(name);
  return found == params.end() ? "" : found->second;
}

JobList ViewInput::Jobs(bool& partial, std::string_view ns) const {
  const KindSet kinds =
      AllJobKinds() | ServerKinds() | Bit(Kind::kPod) | Bit(Kind::kPodGroup) | Bit(Kind::kNode);
  const uint64_t version = state.Version(kinds);
  const bool shared = memo != nullptr && ns.empty();
  if (shared && memo->jobs && memo->version == version && memo->rights == rights.Key()) {
    partial = partial || memo->partial;
    return memo->jobs;
  }
  bool hidden = false;
  std::vector<cli::JobView> all = cli::ViewJobs(JobParts(hidden, ns));
  for (cli::JobView& server : ServersOf(*this, hidden, ns)) all.push_back(std::move(server));
  JobList jobs = std::make_shared<const std::vector<cli::JobView>>(std::move(all));
  if (shared) *memo = {version, rights.Key(), jobs, hidden};
  partial = partial || hidden;
  return jobs;
}

cli::JobObjects ViewInput::JobParts(bool& partial, std::string_view ns) const {
  auto all = [&](size_t kind) { return ns.empty() ? Of(kind, partial) : Inside(kind, ns); };
  cli::JobObjects objects;
  for (size_t i = 0; i < cli::JobKinds().size(); ++i) objects.jobs.push_back(all(kFixedKinds + i));
  objects.pods = all(IndexOf(Kind::kPod));
  objects.groups = all(IndexOf(Kind::kPodGroup));
  objects.smallest_gpu_mib = [this] {
    bool ignored = false;
    return cli::SmallestGpuMib(Of(Kind::kNode, ignored));
  };
  return objects;
}

json::Value GpuNumber(int64_t milli) {
  if (milli % 1000 == 0) return milli / 1000;
  return static_cast<double>(milli) / 1000;
}

json::Value TimeOrNull(std::optional<WallTime> time) {
  return time ? json::Value(api::FormatTime(*time)) : json::Value(nullptr);
}

json::Object EventRow(const cli::EventView& view, const json::Value& event) {
  return json::Object{
      {"time", api::FormatTime(view.last)}, {"type", view.type},       {"reason", view.reason},
      {"object", ObjectOfEvent(event)},     {"message", view.message}, {"count", view.count}};
}

json::Value TextOrNull(std::string_view text) {
  return text.empty() ? json::Value(nullptr) : json::Value(boost::json::string_view(text));
}

json::Array ConditionRows(const json::Value& object) {
  json::Array rows;
  for (const api::Condition& one : api::Conditions(object)) {
    rows.push_back(json::Object{{"type", boost::json::string_view(one.type)},
                                {"status", boost::json::string_view(one.status)},
                                {"reason", boost::json::string_view(one.reason)},
                                {"message", boost::json::string_view(one.message)},
                                {"lastTransitionTime", TextOrNull(one.last_transition_time)}});
  }
  return rows;
}

json::Object ObjectOfEvent(const json::Value& event) {
  json::Object object;
  for (std::string_view field : {"kind", "namespace", "name"}) {
    object[field] = TextOrNull(json::GetString(event, {"involvedObject", field}));
  }
  return object;
}

namespace {

struct Decision {
  cli::EventView view;
  const json::Value* event;
};

// A decision about a workload stands for the decisions about its pods at that time.
class ToldByWorkload {
 public:
  explicit ToldByWorkload(const std::vector<Decision>& decisions) {
    for (const Decision& one : decisions) {
      const std::string& reason = one.view.reason;
      const bool stops = reason == "Preempted" || reason == "Reclaimed" || reason == "Shrunk";
      if (!stops || one.view.object_kind == "Pod") continue;
      spans_.emplace(StrCat(one.view.ns, "/", one.view.object),
                     std::pair(one.view.first - kApart, one.view.last + kApart));
    }
  }

  bool operator()(const Decision& pod) const {
    if (pod.view.object_kind != "Pod") return false;
    const std::string_view name = pod.view.object;
    for (size_t dash = name.find('-'); dash != std::string_view::npos;
         dash = name.find('-', dash + 1)) {
      const auto [from, to] = spans_.equal_range(StrCat(pod.view.ns, "/", name.substr(0, dash)));
      for (auto span = from; span != to; ++span) {
        if (span->second.first <= pod.view.last && pod.view.last <= span->second.second)
          return true;
      }
    }
    return false;
  }

 private:
  // Both are written at once; their times are whole seconds.
  static constexpr Duration kApart = std::chrono::seconds(1);
  std::multimap<std::string, std::pair<WallTime, WallTime>, std::less<>> spans_;
};

}  // namespace

json::Array DecisionsOf(const ViewInput& input, size_t most) {
  bool partial = false;
  const auto events = input.Of(Kind::kEvent, partial);
  std::vector<Decision> found;
  for (const json::SharedValue& event : events) {
    const std::string_view reason = json::GetString(*event, {"reason"});
    if (std::find(kDecisions.begin(), kDecisions.end(), reason) == kDecisions.end()) continue;
    const std::string_view kind = json::GetString(*event, {"involvedObject", "kind"});
    if (kind == "Pod" && reason != "Preempted" && reason != "Reclaimed") continue;
    found.push_back({cli::ViewEvent(*event), event.get()});
  }
  std::erase_if(found, ToldByWorkload(found));
  std::sort(found.begin(), found.end(),
            [](const Decision& a, const Decision& b) { return b.view.Before(a.view); });
  if (found.size() > most) found.resize(most);
  json::Array rows;
  for (const Decision& one : found) {
    rows.push_back(json::Object{{"time", api::FormatTime(one.view.last)},
                                {"reason", one.view.reason},
                                {"object", ObjectOfEvent(*one.event)},
                                {"message", one.view.message}});
  }
  return rows;
}

}  // namespace swell::ui
