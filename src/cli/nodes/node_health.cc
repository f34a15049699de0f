// swell health: which nodes have faults, and what is known of one node's health.
#include "kube/api/objects/node_health.h"

#include <algorithm>

#include "base/decimal.h"
#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/print/text_table.h"
#include "cli/print/view_output.h"
#include "cli/views/node_faults.h"
#include "cli/views/node_view.h"
#include "cli/views/view_json.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

void PrintConditions(Session& session, const json::Value& node) {
  TextTable table({"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"});
  const std::vector<api::NodeFault> faults = api::FaultsOf(node);
  for (const api::Condition& one : api::Conditions(node)) {
    const bool pressure = one.type.ends_with("Pressure") && one.IsTrue();
    const bool fault = pressure || (one.type == "Ready" && !one.IsTrue()) ||
                       std::any_of(faults.begin(), faults.end(),
                                   [&one](const auto& known) { return known.type == one.type; });
    const std::string status = OneLine(one.status);
    table.Add({OneLine(one.type), session.Paint(fault ? Colour::kRed : Colour::kNone, status),
               AgeOf(one.last_transition_time, session.Now()), OrDash(OneLine(one.reason)),
               OrDash(OneLine(one.message))});
  }
  session.Out(table.ToString());
}

struct GpuState {
  bool healthy = true;
  std::vector<std::string> pods;  // that have it, if they say which GPU they have
};

std::vector<GpuState> GpusOf(const NodeView& view) {
  std::vector<GpuState> gpus(static_cast<size_t>(std::clamp<int64_t>(view.gpus(), 0, 1024)));
  for (const int index : api::UnhealthyGpus(*view.object)) {
    if (static_cast<size_t>(index) < gpus.size()) gpus[static_cast<size_t>(index)].healthy = false;
  }
  for (const json::SharedValue& pod : view.pods) {
    for (std::string_view part : Split(api::Annotation(*pod, api::keys::kGpuDevices), ',')) {
      const auto index = ParseInt(Trim(part));
      if (!index || *index < 0 || static_cast<size_t>(*index) >= gpus.size()) continue;
      gpus[static_cast<size_t>(*index)].pods.push_back(api::KeyOf(*pod));
    }
  }
  return gpus;
}

void PrintGpus(Session& session, const NodeView& view) {
  const std::vector<GpuState> gpus = GpusOf(view);
  if (gpus.empty()) return;
  TextTable table({"GPU", "HEALTH", "PODS"});
  for (size_t i = 0; i < gpus.size(); ++i) {
    table.Add({std::to_string(i),
               gpus[i].healthy ? "healthy" : session.Paint(Colour::kRed, "unhealthy: no new pods"),
               OrDash(OneLine(Join(gpus[i].pods, ",")))});
  }
  session.OutLine("");
  session.Out(table.ToString());
}

void PrintFailures(Session& session, const json::Value& node) {
  const std::vector<api::NodeFailure> failures = api::NodeFailuresOf(node);
  session.OutLine("");
  session.OutLine(StrCat("Failures without a user's error: score ",
                         Decimal(api::NodeScore(failures, session.Now()), 2), " (suspect from ",
                         Decimal(api::kSuspectScore, 2), " on)"));
  if (failures.empty()) return;
  TextTable table({"AGE", "POD", "CLASS", "COUNTS", "MESSAGE"});
  for (const api::NodeFailure& one : failures) {
    table.Add({api::HumanDuration(std::max(session.Now() - one.time, Duration(0))),
               OrDash(OneLine(one.pod)), std::string(api::FailureClassName(one.which)),
               Decimal(one.weight, 2), OrDash(OneLine(one.said))});
  }
  session.Out(table.ToString());
}

json::Value NodeHealthJson(const NodeView& view, const NodeHealthState& state, WallTime now) {
  json::Array gpus;
  for (const GpuState& gpu : GpusOf(view)) {
    gpus.push_back(json::Object{{"index", gpus.size()},
                                {"healthy", gpu.healthy},
                                {"pods", json::Array(gpu.pods.begin(), gpu.pods.end())}});
  }
  const std::vector<api::NodeFailure> failures = api::NodeFailuresOf(*view.object);
  json::Array list;
  for (const api::NodeFailure& one : failures) {
    list.push_back(json::Object{{"time", api::FormatTime(one.time)},
                                {"pod", TextJson(one.pod)},
                                {"class", api::FailureClassName(one.which)},
                                {"weight", one.weight},
                                {"message", TextJson(one.said)}});
  }
  return json::Object{{"name", view.name},
                      {"state", state.word},
                      {"sentence", state.sentence},
                      {"faults", TextJson(state.faults)},
                      {"conditions", ConditionsJson(*view.object)},
                      {"gpus", std::move(gpus)},
                      {"failureScore", api::NodeScore(failures, now)},
                      {"suspectFrom", api::kSuspectScore},
                      {"failures", std::move(list)}};
}

}  // namespace

Result<int> PrintNodeHealth(Session& session,
                            Api& api,
                            const json::Value& node,
                            const ViewOutput& output) {
  const std::string name(api::Name(node));
  SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> views, ReadNodes(api, {name}));
  const NodeView& view = views.front();
  const NodeHealthState state = HealthOfNode(*view.object);
  if (output.is_document()) {
    output.Print(session, NodeHealthJson(view, state, session.Now()));
    return 0;
  }
  session.OutLine(StrCat("node ", name, ": ", session.Paint(state.colour, state.sentence)));
  PrintConditions(session, *view.object);
  PrintGpus(session, view);
  PrintFailures(session, *view.object);
  return 0;
}

Result<NodeFaultTable> ReadNodeFaults(Session& session, Api& api) {
  NodeFaultTable out;
  auto nodes = api.List(client::resources::kNodes, "");
  if (nodes.status().code() == Code::kForbidden) return out;
  if (!nodes.ok()) return nodes.status();
  out.nodes = nodes->size();
  TextTable table({"NODE", "STATE", "GPUS", "REASON"});
  for (const NodeView& view : ViewNodes(std::move(*nodes), {})) {
    NodeHealthState state = HealthOfNode(*view.object);
    if (state.sound && view.unhealthy_gpus > 0) {
      // Device plugins count them and do not say which.
      state = {.word = "Faulty",
               .faults = StrCat(view.unhealthy_gpus, " of its GPUs cannot be given to pods"),
               .colour = Colour::kYellow,
               .sound = false};
    }
    if (state.sound) continue;
    const std::string reason = OneLine(state.faults.empty() ? state.sentence : state.faults);
    const std::string gpus =
        view.gpus() == 0 ? "-" : StrCat(view.healthy_gpus(), "/", view.gpus(), " healthy");
    table.Add({view.name, session.Paint(state.colour, state.word), gpus, reason});
    json::Array faults;
    for (const api::NodeFault& fault : api::FaultsOf(*view.object)) {
      faults.push_back(
          json::Object{{"type", fault.type}, {"reason", fault.reason}, {"message", fault.message}});
    }
    out.list.push_back(json::Object{{"name", view.name},
                                    {"state", state.word},
                                    {"healthyGpus", view.healthy_gpus()},
                                    {"totalGpus", view.gpus()},
                                    {"reason", reason},
                                    {"faults", std::move(faults)}});
  }
  if (!out.list.empty()) out.text = table.ToString();
  return out;
}

}  // namespace swell::cli
