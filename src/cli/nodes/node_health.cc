// swell health NODE: what is known of a node's health.
#include "kube/api/objects/node_health.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/print/text_table.h"
#include "cli/views/node_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string HealthWord(Session& session, const json::Value& node) {
  const NodeWellness wellness = WellnessOf(node);
  using enum NodeWellness::Word;
  const Colour colour = wellness.word == kHealthy     ? Colour::kGreen
                        : wellness.word == kUnhealthy ? Colour::kRed
                                                      : Colour::kYellow;
  return session.Paint(colour, std::string(wellness.text));
}

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

// Which pod has which GPU, as far as the pods say it.
void PrintGpus(Session& session, const NodeView& view) {
  if (view.gpu_capacity <= 0) return;
  const std::vector<int> bad = api::UnhealthyGpus(*view.object);
  std::vector<std::vector<std::string>> users(
      static_cast<size_t>(std::min<int64_t>(view.gpu_capacity, 1024)));
  for (const json::SharedValue& pod : view.pods) {
    for (std::string_view part : Split(api::Annotation(*pod, api::keys::kGpuDevices), ',')) {
      const auto index = ParseInt(Trim(part));
      if (!index || *index < 0 || static_cast<size_t>(*index) >= users.size()) continue;
      users[static_cast<size_t>(*index)].push_back(api::KeyOf(*pod));
    }
  }
  TextTable table({"GPU", "HEALTH", "PODS"});
  for (size_t i = 0; i < users.size(); ++i) {
    const bool unhealthy = std::find(bad.begin(), bad.end(), static_cast<int>(i)) != bad.end();
    table.Add({std::to_string(i),
               unhealthy ? session.Paint(Colour::kRed, "unhealthy: no new pods") : "healthy",
               OrDash(OneLine(Join(users[i], ",")))});
  }
  session.OutLine("");
  session.Out(table.ToString());
}

void PrintFailures(Session& session, const json::Value& node) {
  const std::vector<api::NodeFailure> failures = api::NodeFailuresOf(node);
  session.OutLine("");
  session.OutLine(StrCat("Failures without a user's error: score ",
                         Number(api::NodeScore(failures, session.Now())), " (suspect from ",
                         Number(api::kSuspectScore), " on)"));
  if (failures.empty()) return;
  TextTable table({"AGE", "POD", "CLASS", "COUNTS", "MESSAGE"});
  for (const api::NodeFailure& one : failures) {
    table.Add({api::HumanDuration(std::max(session.Now() - one.time, Duration(0))),
               OrDash(OneLine(one.pod)), std::string(api::FailureClassName(one.which)),
               Number(one.weight), OrDash(OneLine(one.said))});
  }
  session.Out(table.ToString());
}

}  // namespace

Result<int> PrintNodeHealth(Session& session, Api& api, const json::Value& node) {
  const std::string name(api::Name(node));
  SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> views, ReadNodes(api, {name}));
  const NodeView& view = views.front();
  session.OutLine(StrCat("node ", name, ": ", HealthWord(session, *view.object)));
  PrintConditions(session, *view.object);
  PrintGpus(session, view);
  PrintFailures(session, *view.object);
  return 0;
}

}  // namespace swell::cli
