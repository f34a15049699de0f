#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/strings.h"
#include "cli/objects/describe.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/goodput_view.h"
#include "cli/views/node_faults.h"
#include "cli/views/size_chart.h"
#include "json/json_path.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr size_t kMessageWidth = 100;

// "Name:      value" lines; empty values are left out.
class Fields {
 public:
  void Add(std::string title, std::string value) {
    if (!value.empty()) rows_.emplace_back(std::move(title), std::move(value));
  }
  std::string ToString() const {
    TextTable table({}, 3);
    for (const auto& [title, value] : rows_) {
      size_t begin = 0;
      bool first = true;
      do {
        size_t end = value.find('\n', begin);
        table.Add({first ? title + ":" : "", value.substr(begin, end - begin)});
        first = false;
        begin = end == std::string::npos ? end : end + 1;
      } while (begin != std::string::npos);
    }
    return table.ToString();
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

// Annotations in which programs keep notes for themselves.
constexpr std::string_view kForPrograms[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                             "swell.dev/elastic-scaling"};

std::string MapText(const json::Object& object) {
  std::vector<std::string> lines;
  for (const auto& member : object) {
    if (std::ranges::find(kForPrograms, std::string_view(member.key())) != std::end(kForPrograms))
      continue;
    lines.push_back(
        StrCat(std::string_view(member.key()), "=", OneLine(json::PlainText(member.value()))));
  }
  std::sort(lines.begin(), lines.end());
  return Join(lines, "\n");
}

std::string WhenText(std::optional<WallTime> time, WallTime now) {
  if (!time) return "";
  return StrCat(api::FormatTime(*time), " (",
                api::HumanDuration(std::max(now - *time, Duration(0))), " ago)");
}

// Wraps long messages.
std::string WrapText(std::string_view text) {
  std::string out;
  size_t column = 0;
  for (std::string_view word : Split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > kMessageWidth) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += OneLine(word);
    column += word.size();
  }
  return out;
}

std::string Section(std::string_view title, const std::string& body) {
  return StrCat("\n", title, ":\n", body);
}

// What else a message says, where the failure's sentence stands at the top already.
std::string WithoutFailure(std::string_view message, const std::optional<api::Failure>& failure) {
  std::string rest(message);
  if (!failure) return rest;
  const std::string sentence = failure->Sentence();
  if (const size_t at = rest.find(sentence); at != std::string::npos) {
    rest.erase(at, sentence.size());
  }
  return std::string(Trim(rest));
}

std::string ConditionsText(Session& session,
                           const json::Value& object,
                           const std::optional<api::Failure>& failure = std::nullopt) {
  const std::vector<api::Condition> conditions = api::Conditions(object);
  if (conditions.empty()) return "";
  TextTable table({"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}, 2);
  for (const api::Condition& condition : conditions) {
    const std::string_view since = condition.last_transition_time;
    std::string message = WithoutFailure(condition.message, failure);
    if (message.empty() && !condition.message.empty()) message = "see Failure above";
    table.Add({OneLine(condition.type), OneLine(condition.status),
               since.empty() ? "" : AgeOf(since, session.Now()), OneLine(condition.reason),
               OneLine(message)});
  }
  return Section("Conditions", table.ToString("  "));
}

std::string EventsText(Session& session, const std::vector<EventView>& events, bool with_object) {
  if (events.empty()) return "\nEvents: none\n";
  std::vector<std::string> header{"AGE", "TYPE", "REASON"};
  if (with_object) header.emplace_back("OBJECT");
  header.emplace_back("MESSAGE");
  TextTable table(header, 2);
  for (const EventView& event : events) {
    std::vector<std::string> row{
        event.LastSeen(session.Now()),
        event.type == "Warning" ? session.Paint(Colour::kYellow, event.type) : event.type,
        event.reason};
    if (with_object) row.push_back(event.object);
    row.push_back(OneLine(event.message));
    table.Add(std::move(row));
  }
  return Section("Events", table.ToString("  "));
}

void AddMeta(Fields& fields, const json::Value& object, WallTime now) {
  fields.Add("Labels", MapText(api::Labels(object)));
  fields.Add("Annotations", MapText(api::Annotations(object)));
  fields.Add("Created", WhenText(api::CreationTime(object), now));
  if (auto time = api::DeletionTime(object)) {
    fields.Add("Deleted", api::FormatTime(*time));
  }
  if (auto owner = api::ControllerOf(object)) {
    fields.Add("Controlled by", StrCat(owner->kind, "/", owner->name));
  }
}

std::string PodsTable(Session& session, const std::vector<json::SharedValue>& pods) {
  TextTable table({"NAME", "READY", "STATUS", "RESTARTS", "NODE", "GPUS", "AGE"}, 2);
  for (const json::SharedValue& pod : pods) {
    std::string word = PodStatusWord(*pod);
    std::string_view node = api::NodeName(*pod);
    std::string_view devices = api::Annotation(*pod, api::keys::kGpuDevices);
    std::string gpus = GpuText(MilliGpus(*pod));
    table.Add({std::string(api::Name(*pod)), PodReady(*pod),
               session.Paint(StatusColour(word), word), std::to_string(api::RestartCount(*pod)),
               node.empty() ? "-" : std::string(node),
               devices.empty() ? gpus : StrCat(gpus, " (devices ", devices, ")"),
               AgeOf(api::CreationTimestamp(*pod), session.Now())});
  }
  return table.ToString("  ");
}

// What happened to a job at once, though each of its pods has an event.
struct Change {
  const EventView* event;
  int64_t others = 0;

  // "Preempted by default/x-master-0" of another pod, at the same time.
  bool Covers(const EventView& other) const {
    const auto cause = [](const EventView& one) {
      return std::string_view(one.message).substr(0, one.message.find(','));
    };
    constexpr Duration kAtOnce = std::chrono::seconds(2);
    return other.object_kind == "Pod" && event->object_kind == "Pod" &&
           other.object != event->object && other.reason == event->reason &&
           cause(other) == cause(*event) && other.last - event->last <= kAtOnce;
  }
};

// Times the job was preempted, by whom and what it cost, or changed its size, from its events.
std::string ChangesText(Session& session,
                        const JobView& job,
                        const std::vector<EventView>& events) {
  TextTable table({}, 2);
  const bool pods_told = std::any_of(events.begin(), events.end(), [](const EventView& event) {
    return event.object_kind == "Pod" &&
           (event.reason == "Preempted" || event.reason == "Reclaimed");
  });
  std::vector<Change> changes;
  for (const EventView& event : events) {
    // The job repeats what was said of its pod.
    if (pods_told && event.object == job.name && event.reason == "Preempted") continue;
    bool told = event.reason == "Preempted" || event.reason == "Reclaimed" ||
                event.reason == "Shrunk" || event.reason == "Resumed" || event.reason == "Grown";
    if (!told) continue;
    if (!changes.empty() && changes.back().Covers(event)) {
      ++changes.back().others;
    } else {
      changes.push_back({.event = &event});
    }
  }
  for (const Change& change : changes) {
    const EventView& event = *change.event;
    std::string object = event.object == job.name ? "" : event.object;
    if (change.others > 0) object += StrCat(" and ", change.others, " more");
    table.Add(
        {event.LastSeen(session.Now()) + " ago", event.reason, object, OneLine(event.message)});
  }
  return table.size() == 0 ? "" : Section("Changes", table.ToString("  "));
}

// How large an elastic job is and why, and how that went.
std::string SizeText(const JobView& job, WallTime now) {
  const auto size = api::SizeOfJob(*job.object);
  if (!size) return "";
  std::string line = StrCat(size->replicas, " of ", size->desired.value_or(0), " wanted, between ",
                            size->least, " and ", size->most);
  if (!size->message.empty()) line += StrCat("; ", size->message);
  const std::string lines = WrapText(line);
  std::string text;
  for (std::string_view part : Split(lines, '\n')) text += StrCat("  ", part, "\n");
  std::string chart = SizeChart(*size, job.ended.value_or(now));
  if (!chart.empty()) text += StrCat(chart, SizeChanges(*size, now));
  return Section("Size", text);
}

// What it makes of its members, and would make of more.
std::string GoodputText(const json::Value& job) {
  const std::optional<GoodputView> goodput = GoodputOf(job);
  if (!goodput) return "";
  return Section("Goodput", StrCat("  ", GoodputModeText(*goodput), ": ", GoodputSentence(*goodput),
                                   "\n", GoodputTable(*goodput)));
}

std::string RolesText(const JobView& job) {
  std::vector<std::string> lines;
  for (const RoleEntry& role : RolesOf(*job.object, *job.kind)) {
    const int64_t wanted = api::ReplicasOf(*role.spec);
    int64_t gpus = 0;
    if (const json::Value* pod = api::TemplateOf(*role.spec)) gpus = MilliGpus(*pod);
    std::map<std::string, int64_t> counts;  // by phase
    for (const json::SharedValue& pod : job.pods) {
      if (ToLower(RoleOfPod(*pod)) == ToLower(role.name)) ++counts[ToLower(api::Phase(*pod))];
    }
    std::string line = StrCat(role.name, ": ", wanted, ", ", GpusText(gpus), " each");
    for (const char* phase : {"running", "pending", "succeeded", "failed"}) {
      if (counts[phase] > 0) line += StrCat(", ", counts[phase], " ", phase);
    }
    lines.push_back(std::move(line));
  }
  return Join(lines, "\n");
}

// Any value, indented like YAML, for fields nobody has a better layout for.
std::string Tree(const json::Value& value, int depth) {
  if (depth > 12) return StrCat(" ", json::Print(value), "\n");
  std::string indent(static_cast<size_t>(depth) * 2, ' ');
  std::string out;
  if (value.is_object() && !value.get_object().empty()) {
    out = "\n";
    for (const auto& member : value.get_object()) {
      out += StrCat(indent, std::string_view(member.key()), ":", Tree(member.value(), depth + 1));
    }
    return out;
  }
  if (value.is_array() && !value.get_array().empty()) {
    out = "\n";
    for (const json::Value& item : value.get_array()) {
      std::string inner = Tree(item, depth + 1);
      if (item.is_structured() && inner.starts_with('\n')) {
        // The first line of a nested value stands beside its dash.
        size_t text = inner.find_first_not_of(" \n");
        out += StrCat(indent, "- ", text == std::string::npos ? "\n" : inner.substr(text));
      } else {
        out += StrCat(indent, "-", inner);
      }
    }
    return out;
  }
  return StrCat(" ", value.is_string() ? WrapText(json::PlainText(value)) : json::PlainText(value),
                "\n");
}

std::string AmountsText(const json::Object& amounts) {
  std::vector<std::string> parts;
  for (const auto& member : amounts) {
    parts.push_back(StrCat(std::string_view(member.key()), " ", json::PlainText(member.value())));
  }
  return Join(parts, ", ");
}

std::string StateText(const api::ContainerStatus& status, WallTime now) {
  const std::string more = status.message.empty() ? "" : StrCat(" (", OneLine(status.message), ")");
  if (status.Runs()) return StrCat("Running for ", AgeOf(status.started_at, now));
  if (status.Waits()) return StrCat("Waiting: ", status.reason, more);
  if (status.Ended()) {
    return StrCat("Ended: ", status.reason, ", exit code ", status.exit_code, more);
  }
  return "Not started";
}

// "8080/TCP, metrics 9090/TCP on port 9090 of the node".
std::string PortsText(const json::Value& container) {
  std::vector<std::string> texts;
  for (const api::ContainerPort& port : api::Ports(container)) {
    texts.push_back(
        StrCat(port.name, port.name.empty() ? "" : " ", port.container_port, "/", port.protocol));
    if (port.host_port != 0) texts.back() += StrCat(" on port ", port.host_port, " of the node");
  }
  return Join(texts, ", ");
}

std::string ContainerText(const json::Value& container, const json::Value& pod, WallTime now) {
  std::string_view name = api::ContainerName(container);
  Fields fields;
  fields.Add("Image", std::string(json::GetString(container, {"image"})));
  std::vector<std::string> command;
  for (std::string_view list : {"command", "args"}) {
    for (const json::Value& word : json::GetArray(container, {list})) {
      command.push_back(OneLine(json::PlainText(word)));
    }
  }
  fields.Add("Command", Join(command, " "));
  fields.Add("Ports", PortsText(container));
  fields.Add("Requests", AmountsText(json::GetObject(container, {"resources", "requests"})));
  fields.Add("Limits", AmountsText(json::GetObject(container, {"resources", "limits"})));
  for (const auto& statuses : {api::ContainerStatuses(pod), api::InitContainerStatuses(pod)}) {
    for (const api::ContainerStatus& status : statuses) {
      if (status.name != name) continue;
      fields.Add("State", StateText(status, now));
      if (status.restart_count > 0) fields.Add("Restarts", std::to_string(status.restart_count));
    }
  }
  std::vector<std::string> env;
  for (const json::Value& entry : json::GetArray(container, {"env"})) {
    const json::Value* value = json::Find(entry, {"value"});
    env.push_back(StrCat(json::GetString(entry, {"name"}), "=",
                         value ? OneLine(json::PlainText(*value)) : "(from elsewhere)"));
  }
  fields.Add("Environment", Join(env, "\n"));
  std::vector<std::string> mounts;
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    mounts.push_back(
        StrCat(json::GetString(mount, {"mountPath"}), " from ", json::GetString(mount, {"name"})));
  }
  fields.Add("Mounts", Join(mounts, "\n"));
  std::string body;
  std::string text = fields.ToString();
  for (std::string_view line : Split(text, '\n')) {
    if (!line.empty()) body += StrCat("    ", line, "\n");
  }
  return StrCat("  ", name, ":\n", body);
}

// "42% (420 of 1000 steps, epoch 2 of 3), phase step, 4m left".
std::string StepsText(const JobView& job) {
  if (!job.progress) return "";
  const api::JobProgress& progress = *job.progress;
  std::string text = progress.percentage ? StrCat(*progress.percentage, "% (") : "";
  text += progress.total > 0 ? StrCat(progress.step, " of ", progress.total, " steps")
                             : StrCat(progress.step, " steps");
  if (progress.epochs > 0) {
    text +=
        StrCat(", epoch ", std::min(progress.epoch + 1, progress.epochs), " of ", progress.epochs);
  }
  if (progress.percentage) text += ")";
  text += StrCat(", phase ", OneLine(progress.phase));
  const std::string left = EtaText(job);
  return left == "-" ? text : StrCat(text, ", ", left, " left");
}

// "5417 accepted, 402 stale (6%)".
std::string GradientsText(const json::Value& job) {
  const json::Value* found = json::Find(job, {"status", "gradients"});
  if (found == nullptr) return "";
  return StrCat(json::GetInt(*found, {"accepted"}), " accepted, ", json::GetInt(*found, {"stale"}),
                " stale (", json::GetInt(*found, {"stalePercentage"}), "%)");
}

// "1.4 GPU-hours, 93% productive; 4% starting, 2% saving, 1% lost work", and how old that is, if a
// job that holds GPUs wrote it more than 5 s ago: it is written once a minute.
std::string GpuTimeText(const json::Value& job, bool holds, WallTime now) {
  const json::Value* found = json::Find(job, {"status", "gpuTime"});
  const double held =
      found == nullptr ? 0 : static_cast<double>(json::GetInt(*found, {"heldSeconds"}));
  if (held <= 0) return "";
  const auto percent = [held](int64_t seconds) {
    const double share = static_cast<double>(seconds) / held * 100;
    return static_cast<int64_t>(std::llround(std::clamp(share, 0.0, 100.0)));
  };
  const auto tenths = static_cast<int64_t>(std::llround(held / 360));
  std::string text = StrCat(tenths / 10, ".", tenths % 10, " GPU-hours");
  if (held < 3600) {
    const Duration span = std::chrono::seconds(static_cast<int64_t>(held));
    text = StrCat(api::HumanDuration(span), " of a GPU");
  }
  text += StrCat(", ", json::GetInt(*found, {"productivePercentage"}), "% productive");
  std::vector<std::pair<int64_t, std::string>> rest;
  constexpr std::pair<std::string_view, std::string_view> kUses[] = {
      {"starting", "starting"}, {"waitingForPeers", "waiting for peers"},
      {"loading", "loading"},   {"saving", "saving"},
      {"hung", "hung"},         {"failing", "failing"},
      {"stopping", "stopping"}};
  for (const auto& [use, words] : kUses) {
    rest.emplace_back(percent(json::GetInt(*found, {"seconds", use})), words);
  }
  // A script that does not say when it saves loses all since its start: its loading, too.
  const int64_t lost = std::min(json::GetInt(*found, {"lostSeconds"}),
                                json::GetInt(*found, {"seconds", "training"}));
  rest.emplace_back(percent(lost), "lost work");
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string separator = "; ";
  for (const auto& [share, words] : rest) {
    if (share == 0) continue;
    text += StrCat(std::exchange(separator, ", "), share, "% ", words);
  }
  const auto written = api::ParseTime(json::GetString(*found, {"lastUpdateTime"}));
  if (holds && written && now - *written > std::chrono::seconds(5)) {
    text += StrCat(" (as of ", api::HumanDuration(now - *written), " ago)");
  }
  return text;
}

}  // namespace

std::string DescribeJob(Session& session,
                        const JobView& job,
                        const std::vector<std::string>& unhealthy_places,
                        const std::vector<EventView>& events) {
  WallTime now = session.Now();
  Fields fields;
  fields.Add("Name", job.name);
  fields.Add("Namespace", job.ns);
  fields.Add("Kind", StrCat(job.kind->kind, " (", job.kind->resource.ApiVersion(), ")"));
  const std::string status = job.StatusText();
  fields.Add("Status", session.Paint(StatusColour(status), status));
  const std::string gate = job.GateText();
  fields.Add("Waits because", WrapText(gate.empty() ? job.waits : gate));
  if (job.failure) fields.Add("Failure", WrapText(job.failure->Sentence()));
  const bool explained = job.message == job.waits || !gate.empty() || !job.hung.empty() ||
                         (job.failure && job.failure->repeats());
  if (!explained) fields.Add("Says", WrapText(WithoutFailure(job.message, job.failure)));
  fields.Add("Hung", WrapText(job.hung));
  fields.Add("Numbers", WrapText(job.not_finite));
  std::vector<std::string> places;
  for (const std::string& place : unhealthy_places) places.push_back(WrapText(place));
  fields.Add("Unhealthy", Join(places, "\n"));
  fields.Add("Progress", StepsText(job));
  fields.Add("Gradients", GradientsText(*job.object));
  fields.Add("Priority", job.priority.empty() ? "none" : job.priority);
  fields.Add("Project", job.project);
  fields.Add("When preempted", job.on_preemption == "Fail" || job.on_preemption == "fail"
                                   ? "ends as Failed"
                                   : "resumes by itself");
  if (job.Preemptions().total() > 0) fields.Add("Preemptions", job.Preemptions().Text());
  fields.Add("Replicas", RolesText(job));
  fields.Add("GPUs", GpuText(job.milli_gpus));
  fields.Add("GPU time", GpuTimeText(*job.object, job.HeldMilliGpus() > 0, now));
  AddMeta(fields, *job.object, now);
  fields.Add("Started", WhenText(job.started, now));
  fields.Add("Ended", WhenText(job.ended, now));
  if (const auto run = job.RunTime(now)) fields.Add("Duration", api::HumanDuration(*run));
  std::string out = fields.ToString();
  out += job.pods.empty() ? "\nPods: none\n" : Section("Pods", PodsTable(session, job.pods));
  out += SizeText(job, now);
  out += GoodputText(*job.object);
  out += ChangesText(session, job, events);
  out += ConditionsText(session, *job.object, job.failure);
  return out + EventsText(session, events, true);
}

std::string DescribePod(Session& session,
                        const json::Value& pod,
                        const std::vector<EventView>& events) {
  WallTime now = session.Now();
  Fields fields;
  std::string word = PodStatusWord(pod);
  fields.Add("Name", std::string(api::Name(pod)));
  fields.Add("Namespace", std::string(api::Namespace(pod)));
  fields.Add("Status", session.Paint(StatusColour(word), word));
  fields.Add("Reason", std::string(api::StatusReason(pod)));
  fields.Add("Message", WrapText(api::StatusMessage(pod)));
  if (const auto failure = api::FailureOf(pod, now)) {
    fields.Add("Failure", WrapText(failure->Sentence()));
  }
  const std::optional<api::Condition> placed = api::FindCondition(pod, "PodScheduled");
  if (placed && placed->IsFalse()) {
    fields.Add("Waits because", WrapText(placed->message));
  }
  std::string_view node = api::NodeName(pod);
  std::string_view host = api::HostIp(pod);
  fields.Add("Node", node.empty() ? "none yet" : StrCat(node, host.empty() ? "" : "/", host));
  fields.Add("Nominated node", std::string(api::NominatedNode(pod)));
  fields.Add("IP", std::string(api::PodIp(pod)));
  fields.Add("GPUs", GpuText(MilliGpus(pod)));
  fields.Add("GPU devices", std::string(api::Annotation(pod, api::keys::kGpuDevices)));
  fields.Add("Priority",
             StrCat(json::GetInt(pod, {"spec", "priority"}), " ", api::PriorityClassName(pod)));
  fields.Add("Preempted by", std::string(api::Annotation(pod, api::keys::kPreemptedBy)));
  fields.Add("Requests", AmountsText(json::GetObject(pod, {"spec", "resources", "requests"})));
  fields.Add("Limits", AmountsText(json::GetObject(pod, {"spec", "resources", "limits"})));
  AddMeta(fields, pod, now);
  std::string out = fields.ToString();
  std::string inits, sidecars, containers;
  for (const json::Value& container : api::InitContainers(pod)) {
    (api::IsSidecar(container) ? sidecars : inits) += ContainerText(container, pod, now);
  }
  for (const json::Value& container : api::Containers(pod)) {
    containers += ContainerText(container, pod, now);
  }
  if (!inits.empty()) out += Section("Init containers", inits);
  if (!sidecars.empty()) out += Section("Sidecars", sidecars);
  if (!containers.empty()) out += Section("Containers", containers);
  out += ConditionsText(session, pod);
  return out + EventsText(session, events, false);
}

std::string DescribeNode(Session& session,
                         const json::Value& node,
                         const std::vector<json::SharedValue>& pods,
                         const std::vector<EventView>& events) {
  WallTime now = session.Now();
  Fields fields;
  fields.Add("Name", std::string(api::Name(node)));
  bool ready = api::ConditionIsTrue(node, "Ready");
  std::string word = ready ? "Ready" : "NotReady";
  fields.Add("Status", session.Paint(StatusColour(word), word));
  if (const NodeHealthState state = HealthOfNode(node); ready && !state.faults.empty()) {
    fields.Add("Health", WrapText(StrCat(state.sentence, ". ", state.faults)));
  }
  if (api::IsUnschedulable(node)) fields.Add("Scheduling", "disabled (cordoned)");
  std::vector<std::string> lines;
  for (const api::NodeAddress& one : api::Addresses(node)) {
    lines.push_back(StrCat(one.type, " ", one.address));
  }
  fields.Add("Addresses", Join(lines, "\n"));
  lines.clear();
  for (const api::Taint& taint : api::TaintsOf(node)) {
    lines.push_back(StrCat(taint.key, "=", taint.value, ":", taint.effect));
  }
  fields.Add("Taints", Join(lines, "\n"));
  fields.Add("Capacity", AmountsText(json::GetObject(node, {"status", "capacity"})));
  fields.Add("Allocatable", AmountsText(json::GetObject(node, {"status", "allocatable"})));
  const std::string_view os = json::GetString(node, {"status", "nodeInfo", "osImage"});
  fields.Add("System", StrCat(os, os.empty() ? "" : ", ", "kubelet ",
                              json::GetString(node, {"status", "nodeInfo", "kubeletVersion"})));
  AddMeta(fields, node, now);
  std::string out = fields.ToString();
  TextTable table({"NAMESPACE", "NAME", "STATUS", "GPUS", "AGE"}, 2);
  for (const json::SharedValue& pod : pods) {
    if (api::HasEnded(*pod)) continue;
    std::string status = PodStatusWord(*pod);
    table.Add({std::string(api::Namespace(*pod)), std::string(api::Name(*pod)),
               session.Paint(StatusColour(status), status), GpuText(MilliGpus(*pod)),
               AgeOf(api::CreationTimestamp(*pod), now)});
  }
  out += table.size() == 1 ? "\nPods: none\n" : Section("Pods", table.ToString("  "));
  out += ConditionsText(session, node);
  return out + EventsText(session, events, false);
}

std::string DescribeAny(Session& session,
                        const json::Value& object,
                        const std::vector<EventView>& events) {
  Fields fields;
  fields.Add("Name", std::string(api::Name(object)));
  fields.Add("Namespace", std::string(api::Namespace(object)));
  fields.Add("Kind", StrCat(api::KindOf(object), " (", api::ApiVersionOf(object), ")"));
  AddMeta(fields, object, session.Now());
  std::string out = fields.ToString();
  bool secret = api::KindOf(object) == "Secret";
  for (const auto& member : object.get_object()) {
    std::string_view key = std::string_view(member.key());
    if (key == "apiVersion" || key == "kind" || key == "metadata") continue;
    if (secret && (key == "data" || key == "stringData") && member.value().is_object()) {
      // The lengths tell enough; values belong in no terminal's history.
      out += StrCat("\n", key, ":\n");
      for (const auto& item : member.value().get_object()) {
        out += StrCat("  ", std::string_view(item.key()), ": ",
                      json::PlainText(item.value()).size() * 3 / 4, " bytes\n");
      }
      continue;
    }
    json::Value shown = member.value();
    if (key == "status" && shown.is_object()) json::StableErase(shown.get_object(), "conditions");
    if (shown.is_structured() && Tree(shown, 1).empty()) continue;
    out += StrCat("\n", key, ":", Tree(shown, 1));
  }
  out += ConditionsText(session, object);
  return out + EventsText(session, events, false);
}

}  // namespace swell::cli
