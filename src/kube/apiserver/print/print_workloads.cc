// Table cells of what runs pods: jobs, deployments and their kin.
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/print/table.h"

namespace swell::apiserver {
namespace {

std::string ContainerList(const json::Value& template_spec, const char* field) {
  std::string text;
  for (const json::Value& container : json::GetArray(template_spec, {"containers"})) {
    text += StrCat(text.empty() ? "" : ",", json::GetString(container, {field}));
  }
  return text;
}

const json::Value& PodSpec(const json::Value& object) {
  static const json::Value empty;
  const json::Value* spec = json::Find(object, {"spec", "template", "spec"});
  return spec == nullptr ? empty : *spec;
}

void AddContainers(const json::Value& object, json::Array& cells, bool selector = true) {
  cells.emplace_back(ContainerList(PodSpec(object), "name"));
  cells.emplace_back(ContainerList(PodSpec(object), "image"));
  if (selector) cells.emplace_back(SelectorCell(json::Find(object, {"spec", "selector"})));
}

void PrintDeployment(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(StrCat(json::GetInt(object, {"status", "readyReplicas"}), "/",
                            json::GetInt(object, {"spec", "replicas"})));
  cells.emplace_back(json::GetInt(object, {"status", "updatedReplicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "availableReplicas"}));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(object, cells);
}

void PrintReplicaSet(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetInt(object, {"spec", "replicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "replicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "readyReplicas"}));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(object, cells);
}

void PrintReplicationController(const json::Value& object,
                                const CellContext& context,
                                json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetInt(object, {"spec", "replicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "replicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "readyReplicas"}));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(object, cells, false);
  cells.emplace_back(LabelsCell(json::GetObject(object, {"spec", "selector"})));
}

void PrintStatefulSet(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(StrCat(json::GetInt(object, {"status", "readyReplicas"}), "/",
                            json::GetInt(object, {"spec", "replicas"})));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(object, cells, false);
}

void PrintDaemonSet(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  for (const char* field : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                            "updatedNumberScheduled", "numberAvailable"}) {
    cells.emplace_back(json::GetInt(object, {"status", field}));
  }
  cells.emplace_back(LabelsCell(json::GetObject(PodSpec(object), {"nodeSelector"})));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(object, cells);
}

std::string JobStatus(const json::Value& job) {
  if (api::ConditionIsTrue(job, "Complete")) return "Complete";
  if (api::ConditionIsTrue(job, "Failed")) return "Failed";
  if (api::IsDeleting(job)) return "Terminating";
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (api::ConditionIsTrue(job, type)) return type;
  }
  return "Running";
}

void PrintJob(const json::Value& job, const CellContext& context, json::Array& cells) {
  const int64_t succeeded = json::GetInt(job, {"status", "succeeded"});
  const int64_t parallelism = json::GetInt(job, {"spec", "parallelism"});
  std::string completions;
  if (json::Find(job, {"spec", "completions"}) != nullptr) {
    completions = StrCat(succeeded, "/", json::GetInt(job, {"spec", "completions"}));
  } else if (parallelism > 1) {
    completions = StrCat(succeeded, "/1 of ", parallelism);
  } else {
    completions = StrCat(succeeded, "/1");
  }
  std::string duration;
  const auto start = api::ParseTime(json::GetString(job, {"status", "startTime"}));
  const auto end = api::ParseTime(json::GetString(job, {"status", "completionTime"}));
  if (start) duration = api::HumanDuration(end.value_or(context.now) - *start);
  cells.emplace_back(api::Name(job));
  cells.emplace_back(JobStatus(job));
  cells.emplace_back(completions);
  cells.emplace_back(duration);
  cells.emplace_back(AgeCell(job, context.now));
  AddContainers(job, cells);
}

void PrintCronJob(const json::Value& object, const CellContext& context, json::Array& cells) {
  static const json::Value empty;
  const json::Value* job = json::Find(object, {"spec", "jobTemplate"});
  const json::Value& work = job == nullptr ? empty : *job;
  const std::string_view last = json::GetString(object, {"status", "lastScheduleTime"});
  const std::string_view zone = json::GetString(object, {"spec", "timeZone"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "schedule"}));
  cells.emplace_back(zone.empty() ? "<none>" : zone);
  cells.emplace_back(json::GetBool(object, {"spec", "suspend"}) ? "True" : "False");
  cells.emplace_back(json::GetArray(object, {"status", "active"}).size());
  cells.emplace_back(last.empty() ? "<none>" : SinceCell(last, context.now));
  cells.emplace_back(AgeCell(object, context.now));
  AddContainers(work, cells);
}

std::vector<api::PrinterColumn> WithContainers(std::vector<api::PrinterColumn> columns,
                                               bool selector = true) {
  columns.push_back(Column("Containers", "string", 1));
  columns.push_back(Column("Images", "string", 1));
  if (selector) columns.push_back(Column("Selector", "string", 1));
  return columns;
}

}  // namespace

void AddWorkloadPrinters(std::map<std::string, TablePrinter, std::less<>>& printers) {
  const api::PrinterColumn name = Column("Name", "string", 0, "name");
  const api::PrinterColumn age = Column("Age", "string");
  auto text = [](const char* title) { return Column(title, "string"); };
  auto number = [](const char* title) { return Column(title, "integer"); };
  printers["deployments.apps"] = {
      WithContainers({name, text("Ready"), text("Up-to-date"), text("Available"), age}),
      PrintDeployment};
  printers["replicasets.apps"] = {
      WithContainers({name, number("Desired"), number("Current"), number("Ready"), age}),
      PrintReplicaSet};
  printers["replicationcontrollers"] = {
      WithContainers({name, number("Desired"), number("Current"), number("Ready"), age}),
      PrintReplicationController};
  printers["statefulsets.apps"] = {WithContainers({name, text("Ready"), age}, false),
                                   PrintStatefulSet};
  printers["daemonsets.apps"] = {
      WithContainers({name, number("Desired"), number("Current"), number("Ready"),
                      number("Up-to-date"), number("Available"), text("Node Selector"), age}),
      PrintDaemonSet};
  printers["jobs.batch"] = {
      WithContainers({name, text("Status"), text("Completions"), text("Duration"), age}), PrintJob};
  printers["cronjobs.batch"] = {
      WithContainers({name, text("Schedule"), text("Timezone"), text("Suspend"), number("Active"),
                      text("Last Schedule"), age}),
      PrintCronJob};
}

}  // namespace swell::apiserver
