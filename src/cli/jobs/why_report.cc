#include "cli/jobs/why_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/node_faults.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/failure_outlook.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"

namespace swell::cli {
namespace {

constexpr size_t kNodesShown = 20;
constexpr size_t kFaultsShown = 4;

// Its controller found that it cannot run as written, and made no pods.
bool IsRefused(const JobView& job) {
  const std::optional<api::Condition> failed = api::FindCondition(*job.object, "Failed");
  return failed && failed->reason == "InvalidSpec";
}

class WhyReport {
 public:
  WhyReport(const WhyFacts& facts, const StartForecast& forecast)
      : facts_(facts), forecast_(forecast) {}

  std::string Text() const {
    std::string out = StrCat(facts_.job.name, " ", StateText());
    out += out.ends_with('.') ? "\n" : ".\n";  // some kinds' messages end with a full stop
    auto add = [&out](std::string_view title, const std::string& text) {
      if (!text.empty()) out += StrCat(title, OneLine(text), "\n");
    };
    const bool gated = !facts_.job.GateText().empty();
    if ((facts_.Waits() || (facts_.Podless() && !gated)) && !FailureDecides()) {
      add("Why:      ", Reason());
    }
    if (facts_.Fails()) add("Failure:  ", facts_.job.failure->Sentence());
    add("Again:    ", AgainText());
    if (facts_.job.status == "Failed") add("Next:     ", NextText());
    add("Held:     ", HoldText());
    add("Hung:     ", facts_.job.hung);
    add("Numbers:  ", facts_.job.not_finite);
    if (facts_.job.RunsUnsaved()) add("Unsaved:  ", facts_.job.unsaved);
    add("Resize:   ", ResizeText());
    add("Minimum:  ", MinimumText());
    add("Earlier:  ", EarlierText());
    add("Stopped:  ", StoppedText());
    add("Saves:    ", SavesText());
    for (const std::string& place : Places()) add("Node:     ", place);
    if (SchedulerDecides() && facts_.queue) add("Queue:    ", facts_.queue->Text());
    if (!facts_.job.over()) add("Quota:    ", QuotaText());
    add("Reclaim:  ", ReclaimText());
    if (facts_.goodput && !facts_.job.over()) {
      if (!facts_.goodput->default_of.empty()) add("Mode:     ", GoodputModeText(*facts_.goodput));
      add("Goodput:  ", GoodputSentence(*facts_.goodput));
      add("Curve:    ", GoodputCurveText(*facts_.goodput));
      add("Noise:    ", NoiseText(*facts_.goodput));
      if (!facts_.goodput->sizes.empty()) add("Model:    ", facts_.goodput->fit);
      add("Next GPU: ", NextGpuText(*facts_.goodput, facts_.others));
      add("Decided:  ", facts_.goodput->decision);
      add("GPU type: ", facts_.goodput->type_decision);
    }
    if (!SchedulerDecides()) return out;
    if (!facts_.hidden) {
      if (std::string nodes = NodesText(); !nodes.empty()) out += StrCat("Nodes:\n", nodes);
    }
    out += StartText();
    const std::vector<std::string> changes = Changes();
    if (changes.empty()) return out;
    // Not each job whose end would do is tried.
    out += StrCat("It would ", Grows() ? "grow" : "start", ", for example, with",
                  changes.size() == 1 ? "" : " any one of these", ":\n");
    for (const std::string& change : changes) out += StrCat("  ", change, "\n");
    return out;
  }

  json::Value Json() const {
    json::Array changes;
    for (std::string& change : Changes()) changes.emplace_back(std::move(change));
    json::Array nodes;
    for (const NodeView& node : facts_.nodes) {
      nodes.push_back(json::Object{{"name", node.name},
                                   {"gpus", node.gpus()},
                                   {"free", static_cast<double>(node.FreeMilliGpus()) / 1000.0},
                                   {"unhealthy", node.unhealthy_gpus}});
    }
    json::Value out = json::Object{{"job", facts_.job.ResourceName()},
                                   {"namespace", facts_.job.ns},
                                   {"status", facts_.job.status},
                                   {"waits", facts_.Waits()},
                                   {"says", StateText()},
                                   {"reason", Reason()},
                                   {"nodes", std::move(nodes)},
                                   {"wouldStartWith", std::move(changes)}};
    if (const std::string next = NextText(); !next.empty()) json::Set(out, {"next"}, next);
    if (const std::string start = StartText(); !start.empty()) {
      json::Set(out, {"start"}, std::string(Trim(start)));
    }
    if (SchedulerDecides() && facts_.queue) json::Set(out, {"queue"}, facts_.queue->Json());
    if (const auto& at = forecast_.could_start; at && !StartText().empty()) {
      json::Set(out, {"couldStart"}, at->Json());
    }
    if (const std::string_view until = PreemptsFrom(); !until.empty()) {
      json::Set(out, {"preemptsFrom"}, until);
    }
    if (const json::Value* last = facts_.job.group
                                      ? json::Find(*facts_.job.group, {"status", "lastPreemption"})
                                      : nullptr) {
      json::Set(out, {"lastPreemption"}, *last);
    }
    const json::Value* goodput = json::Find(*facts_.job.object, {"status", "goodput"});
    if (facts_.goodput && goodput != nullptr) json::Set(out, {"goodput"}, *goodput);
    if (!facts_.job.hung.empty()) json::Set(out, {"hung"}, facts_.job.hung);
    if (!facts_.job.not_finite.empty()) json::Set(out, {"notFinite"}, facts_.job.not_finite);
    if (const std::string resize = ResizeText(); !resize.empty()) {
      json::Set(out, {"resize"}, resize);
    }
    if (facts_.job.RunsUnsaved()) json::Set(out, {"unsaved"}, facts_.job.unsaved);
    if (const std::string earlier = EarlierText(); !earlier.empty()) {
      json::Set(out, {"earlier"}, earlier);
    }
    if (const std::string saves = SavesText(); !saves.empty()) json::Set(out, {"saves"}, saves);
    if (const auto places = Places(); !places.empty()) {
      json::Set(out, {"unhealthy"}, json::Array(places.begin(), places.end()));
    }
    if (facts_.job.failure) json::Set(out, {"failure"}, facts_.job.failure->ToJson());
    if (const ProjectView* project = facts_.Project()) {
      const Share& gpu = project->gpu();
      json::Set(out, {"project"},
                json::Object{{"name", project->name},
                             {"quota", gpu.quota},
                             {"allocated", gpu.allocated},
                             {"requested", gpu.requested},
                             {"fairShare", gpu.fair_share.value_or(0)}});
    }
    return out;
  }

 private:
  // "2 GPUs in one pod", "4 GPUs in 2 pods of 2", "2 GPUs in 3 pods (2 of 1, 1 of none)".
  std::string NeedText() const {
    const JobView& job = facts_.job;
    const std::string gpus = GpusText(job.milli_gpus);
    if (facts_.IsPod()) return gpus;
    if (job.replicas == 1) return StrCat(gpus, " in one pod");
    std::map<int64_t, int64_t, std::greater<>> pods;  // by what each requests
    for (const json::SharedValue& pod : job.pods) ++pods[MilliGpus(*pod)];
    const std::string text = StrCat(gpus, " in ", job.replicas, " pods");
    // What pods that do not exist yet will request is not known here.
    if (static_cast<int64_t>(job.pods.size()) != job.replicas) return text;
    if (pods.size() == 1) return StrCat(text, " of ", GpuText(pods.begin()->first));
    std::vector<std::string> parts;
    for (const auto& [each, count] : pods) {
      parts.push_back(StrCat(count, " of ", each == 0 ? "none" : GpuText(each)));
    }
    return StrCat(text, " (", Join(parts, ", "), ")");
  }

  // ", 2 GPUs held"; nothing of a job that asks for none.
  std::string HeldGpusText() const {
    return facts_.job.milli_gpus == 0 ? ""
                                      : StrCat(", ", GpusText(facts_.job.HeldMilliGpus()), " held");
  }

  std::string StateText() const {
    WallTime now = facts_.now;
    if (facts_.job.over()) {
      const std::string said = facts_.job.EndText();
      return StrCat("is over: ", facts_.job.StatusText(), said.empty() ? "" : ". ", said);
    }
    if (const std::string gate = facts_.job.GateText(); !gate.empty()) return gate;
    if (facts_.job.status == "Suspended")
      return StrCat("is suspended; swell resume ", facts_.job.name, " -n ", facts_.job.ns);
    if (facts_.Podless() && !facts_.Fails()) {
      return AgainText().empty() ? "has no pods yet" : "waits for its next start";
    }
    if (facts_.Fails() && facts_.job.RunsAfterOneFailure()) {
      return StrCat("runs again after a failure: ", facts_.job.RunningPods(), " of ",
                    facts_.job.replicas, " pods", HeldGpusText());
    }
    if (facts_.Fails()) {
      return StrCat(facts_.job.failure->exit_code ? "keeps failing: " : "cannot start: ",
                    facts_.job.failure->Word(), HeldGpusText());
    }
    if (const std::string stopping = StoppingText(); !stopping.empty()) return stopping;
    if (facts_.IsPod() && !facts_.PodNode().empty()) {
      return StrCat(facts_.Waits() ? "starts on " : "runs on ", facts_.PodNode(),
                    facts_.job.milli_gpus > 0 ? ": " + GpusText(facts_.job.milli_gpus) : "");
    }
    if (!facts_.Waits()) {
      const std::string left = facts_.job.LeftText();
      return StrCat(facts_.job.hung.empty() ? "runs: " : "hangs: ", facts_.job.RunningPods(),
                    " of ", facts_.job.replicas, " pods, ", GpusText(facts_.job.HeldMilliGpus()),
                    left.empty() ? "" : "; ", left);
    }
    if (facts_.StartingPod() != nullptr) {
      return StrCat("is starting: ", facts_.job.RunningPods(), " of ", facts_.job.replicas,
                    " pods run", HeldGpusText());
    }
    std::string since =
        facts_.job.created
            ? StrCat(", submitted ", api::HumanDuration(now - *facts_.job.created), " ago")
            : "";
    return facts_.job.RunningPods() > 0
               ? StrCat("runs with ", facts_.job.RunningPods(), " of ", facts_.job.replicas,
                        " pods; the others wait")
               : StrCat("waits", facts_.job.milli_gpus > 0 ? " for " + NeedText() : "", since);
  }

  // Its pods had their notice, and none came after them; empty: it is otherwise.
  std::string StoppingText() const {
    size_t stopping = 0;
    WallTime latest;
    for (const json::SharedValue& pod : facts_.job.pods) {
      if (api::HasEnded(*pod)) continue;
      const std::optional<WallTime> until = api::DeletionTime(*pod);
      if (!until || !api::IsBound(*pod)) return "";
      latest = std::max(latest, *until);
      ++stopping;
    }
    if (stopping == 0) return "";
    return StrCat(
        "is being stopped: ", stopping == 1 ? "a pod has" : StrCat(stopping, " pods have"),
        " until ", api::FormatTime(latest), " to save and end", HeldGpusText());
  }

  // What a user does about a job that does not wait for GPUs; empty: there is nothing to do.
  std::string NextText() const {
    const JobView& job = facts_.job;
    const std::string named = StrCat(job.name, " -n ", job.ns);
    if (job.status == "Failed") {
      // Its output says nothing about that.
      if (job.EndedByPreemption()) {
        return "submit it with --on-preemption requeue, so that it waits and continues when it is "
               "preempted";
      }
      const std::string_view once =
          job.kind != nullptr && job.kind->kind == "Pod"
              ? "It does not start again: delete it and create it anew when the cause is "
              : "It does not start again: submit a new job when the cause is ";
      if (job.failure ? NeverRan(*job.failure) : IsRefused(job)) {
        return StrCat("correct what the message names: its program never ran, and has no log. ",
                      once, "removed");
      }
      if (FailedWith("DeadlineExceeded")) {
        return StrCat(
            "submit it again with more time (--time-limit, activeDeadlineSeconds)",
            job.pods.empty() ? "" : StrCat("; swell logs ", named, " shows how far it was"));
      }
      return StrCat(LogText(named), once, "removed");
    }
    if (job.over() || !job.GateText().empty()) return "";
    if (job.status == "Suspended") return StrCat("swell resume ", named, " lets it run again");
    if (facts_.Fails()) {
      return !NeverRan(*job.failure)
                 ? StrCat("swell logs ", named, " shows what it printed before it failed")
                 : StrCat("swell describe ", named, " shows what its node tried");
    }
    if (!job.hung.empty()) return StrCat("swell logs ", named, " shows what it printed last");
    return "";
  }

  bool FailedWith(std::string_view reason) const {
    const auto failed = api::FindCondition(*facts_.job.object, "Failed");
    return failed && failed->IsTrue() && failed->reason == reason;
  }

  // Where its output is; empty: the sentence about its failure has it already, or there is none.
  std::string LogText(const std::string& named) const {
    const std::optional<api::Failure>& failure = facts_.job.failure;
    if (!failure || failure->member.empty()) {
      return StrCat("swell logs ", named, " shows what it printed. ");
    }
    if (failure->TellsOfLog()) return "";
    return StrCat("swell logs ", failure->member, " -n ", facts_.job.ns,
                  " shows what it printed. ");
  }

  // Neither room nor nodes help while the job has to be corrected, or while the pod that waits has
  // failed.
  bool FailureDecides() const {
    if (!facts_.Fails()) return false;
    const api::Failure& failure = *facts_.job.failure;
    const json::Value* starting = facts_.StartingPod();
    return NeedsCorrection(failure) || facts_.Podless() ||
           (starting != nullptr && api::Name(*starting) == failure.member);
  }

  // When members that failed at once are made again. Empty: they exist, or are about to be made.
  std::string AgainText() const {
    const JobView& job = facts_.job;
    const auto restarting = api::FindCondition(*job.object, "Restarting");
    const auto from = api::ParseTime(api::Annotation(*job.object, api::keys::kStartsFrom));
    if (!restarting || !restarting->IsTrue() || !from || *from <= facts_.now) return "";
    if (static_cast<int64_t>(job.pods.size()) >= job.replicas) return "";
    return StrCat("it starts again in ", api::HumanDuration(*from - facts_.now), ", at ",
                  api::FormatTime(*from),
                  job.pods.empty() && job.milli_gpus > 0 ? ", and holds no GPUs until then" : "");
  }

  // When its waiting pods may preempt others; empty: they may.
  std::string_view PreemptsFrom() const {
    const json::Value* pod = facts_.WaitingPod();
    return pod == nullptr ? "" : api::Annotation(*pod, api::keys::kPreemptsFrom);
  }
  std::string HoldText() const {
    const std::string_view until = PreemptsFrom();
    if (until.empty()) return "";
    return StrCat(
        "its last pods could not be started, or failed soon after that, so it preempts nobody "
        "until ",
        until);
  }

  std::string Reason() const {
    // A reported reason may come from Swell, which also serves some names of other schedulers.
    if (!facts_.OtherScheduler().empty() && facts_.job.waits.empty()) {
      return StrCat("another scheduler is responsible for ", facts_.IsPod() ? "it" : "its pods",
                    ": ", Quote(facts_.OtherScheduler()),
                    facts_.IsPod()
                        ? " (spec.schedulerName)"
                        : " (schedulerName of its pod template); Swell places pods whose "
                          "schedulerName is swell or empty");
    }
    if (facts_.IsPod() && !facts_.PodNode().empty()) {
      const std::string of_node = NodeTrouble();
      return of_node.empty() ? facts_.trouble : of_node;
    }
    std::vector<std::string> gates;
    for (const json::Value& gate :
         json::GetArray(*facts_.job.object, {"spec", "schedulingGates"})) {
      gates.emplace_back(json::GetString(gate, {"name"}));
    }
    if (!gates.empty()) {
      return StrCat("it has scheduling gates, which must be removed first: ", Join(gates, ", "));
    }
    if (FailureDecides()) return facts_.job.failure->Sentence();
    // This event says what failed; later ones do not repeat it.
    const auto restarting = api::FindCondition(*facts_.job.object, "Restarting");
    if (facts_.Podless() && restarting && restarting->IsTrue()) {
      return std::string(restarting->message);
    }
    if (!facts_.trouble.empty()) return facts_.trouble;
    if (!forecast_.now.reason.empty()) return forecast_.now.reason;
    return facts_.job.waits.empty() ? WaitingPodReason() : facts_.job.waits;
  }

  // The status of a job that runs with a part of its pods says nothing about the others.
  std::string WaitingPodReason() const {
    for (const json::SharedValue& pod : facts_.job.pods) {
      if (api::IsBound(*pod) || api::HasEnded(*pod)) continue;
      const auto placed = api::FindCondition(*pod, "PodScheduled");
      if (placed && placed->IsFalse()) return std::string(placed->message);
    }
    return "";
  }

  bool Grows() const { return facts_.job.RunningPods() > 0; }

  // Why the node does not start its pod; empty if unknown.
  std::string NodeTrouble() const {
    if (facts_.hidden) return "";
    for (const NodeView& node : facts_.nodes) {
      if (node.name != facts_.PodNode()) continue;
      return node.ready ? "" : StrCat("the node ", node.name, " is not ready");
    }
    return StrCat("its node ", Quote(facts_.PodNode()), " does not exist any more");
  }

  // The first of its pods that runs with less or more than its spec says, and why.
  std::string ResizeText() const {
    const std::vector<json::SharedValue> itself{facts_.job.object};
    for (const json::SharedValue& pod : facts_.IsPod() ? itself : facts_.job.pods) {
      const auto pending = api::FindCondition(*pod, "PodResizePending");
      if (!pending || !pending->IsTrue() || api::HasEnded(*pod)) continue;
      return StrCat(api::Name(*pod), " keeps the CPU and memory that it has; its new size ",
                    pending->reason == "Infeasible" ? "does not fit its node" : "waits for room",
                    ": ", pending->message);
    }
    return "";
  }

  // Reports a minimum that the job cannot reach.
  std::string MinimumText() const {
    const int64_t least =
        json::GetInt(*facts_.job.object, {"spec", "runPolicy", "schedulingPolicy", "minAvailable"});
    if (facts_.job.over() || least <= facts_.job.replicas) return "";
    return StrCat("minAvailable is ", least, ", but the job has ", facts_.job.replicas,
                  " members; all of them start together");
  }

  std::string StoppedText() const {
    if (!facts_.job.group) return "";
    const auto last = api::LastPreemptionOf(*facts_.job.group);
    if (!last) return "";
    return StrCat(last->time ? api::HumanDuration(facts_.now - *last->time) + " ago" : "once",
                  ", rule ", last->rule, ": ", OneLine(last->message));
  }

  // While it runs again, nothing else tells that it failed.
  std::string EarlierText() const {
    if (facts_.job.over() || facts_.Fails() || facts_.job.RunningPods() == 0) return "";
    const json::Value* last = nullptr;
    int64_t failed = 0;
    for (const json::Value& one : json::GetArray(*facts_.job.object, {"status", "attempts"})) {
      if (json::GetString(one, {"result"}) != "Failed") continue;
      last = &one;
      ++failed;
    }
    if (last == nullptr) return "";
    const auto ended = api::ParseTime(json::GetString(*last, {"ended"}));
    return StrCat(
        failed, failed == 1 ? " attempt" : " attempts", " failed",
        ended ? StrCat(", the last ", api::HumanDuration(facts_.now - *ended), " ago") : "", ": ",
        OneLine(json::GetString(*last, {"message"})));
  }

  // Said after a stop only: many jobs have nothing to save.
  std::string SavesText() const {
    if (StoppedText().empty() || !facts_.job.ReportsNoCheckpoint()) return "";
    return "it reports no checkpoint: each stop loses its work since its start, unless its script "
           "saves and resumes by itself (docs/training.md)";
  }

  std::string QuotaText() const {
    const ProjectView* project = facts_.Project();
    if (project == nullptr) return "";
    const Share& gpu = project->gpu();
    return StrCat(project->name, " holds ", HeldText(gpu, ShareOf::kGpu), " GPUs",
                  gpu.fair_share ? ", fair share " + ShareText(*gpu.fair_share, ShareOf::kGpu) : "",
                  ", requested ", ShareText(gpu.requested, ShareOf::kGpu), PastUseText(*project),
                  AtQuotaText(*project), BeyondNodesText(*project));
  }

  // A quota beyond the nodes' GPUs is never filled: no other project holds the rest.
  std::string BeyondNodesText(const ProjectView& project) const {
    if (!facts_.WaitsForScheduler() || facts_.job.milli_gpus == 0 || facts_.hidden) return "";
    std::string text;
    bool by_pool = false;
    for (const PoolUse& use : project.pool_use) {
      by_pool |= use.own_quota;
      const auto pool = std::find_if(facts_.pools.begin(), facts_.pools.end(),
                                     [&use](const PoolView& it) { return it.name == use.pool; });
      if (!use.own_quota || pool == facts_.pools.end()) continue;
      text += BeyondText(use.shares[0].quota, pool->gpus, StrCat("pool ", pool->name));
    }
    if (by_pool) return text;
    int64_t gpus = 0;
    for (const NodeView& node : facts_.nodes) gpus += node.gpus();
    return BeyondText(project.gpu().quota, gpus, "cluster");
  }

  static std::string BeyondText(double quota, int64_t gpus, std::string_view where) {
    if (quota <= static_cast<double>(gpus)) return "";
    return StrCat("; the quota is ", ShareText(quota, ShareOf::kGpu), ", but the ", where, " has ",
                  GpusText(gpus * 1000));
  }

  // Nobody is preempted for what is beyond the quota and the fair share.
  std::string AtQuotaText(const ProjectView& project) const {
    const Share& gpu = project.gpu();
    if (!facts_.WaitsForScheduler() || facts_.job.milli_gpus == 0 || gpu.quota < 0) return "";
    if (!forecast_.now.places.empty()) return "";  // it has its room
    if (gpu.allocated < std::max(gpu.quota, gpu.fair_share.value_or(0))) return "";
    return StrCat("; ", project.name, " is ", gpu.allocated > gpu.quota ? "over" : "at",
                  " its quota (", ShareText(gpu.allocated, ShareOf::kGpu), " of ",
                  ShareText(gpu.quota, ShareOf::kGpu),
                  " GPUs), so it cannot take GPUs from other projects");
  }

  // Why the job does not get back what others hold beyond their quotas.
  std::string ReclaimText() const {
    const ProjectView* project = facts_.Project();
    if (project == nullptr || !project->gpu().fair_share || !facts_.WaitsForScheduler()) return "";
    double beyond = 0;
    for (const ProjectView& other : facts_.tree.projects) {
      if (other.name != project->name && !other.department) beyond += other.gpu().over;
    }
    const double members = static_cast<double>(std::max<int64_t>(1, facts_.job.replicas));
    const double least = static_cast<double>(std::max<int64_t>(1, facts_.job.least));
    const double need = static_cast<double>(facts_.job.milli_gpus) / 1000.0 * least / members;
    const double share = *project->gpu().fair_share;
    if (facts_.job.RunningPods() > 0) return "";
    if (project->gpu().allocated + need <= std::max(share, project->gpu().quota)) {
      if (beyond <= 0) return OutsideText();
    }
    if (beyond <= 0 || project->gpu().allocated + need <= share) return "";
    const double missing = std::max(0.0, share - project->gpu().allocated);
    if (beyond < missing) {
      return StrCat("other projects hold ", GpusText(std::llround(beyond * 1000)),
                    " more than their quotas; the job needs ", ShareText(need, ShareOf::kGpu),
                    " at once");
    }
    return StrCat("other projects hold more than their quotas. ", project->name, " may take back ",
                  ShareText(missing, ShareOf::kGpu), " of their GPUs, up to its fair share of ",
                  ShareText(share, ShareOf::kGpu), "; the job needs ",
                  ShareText(need, ShareOf::kGpu), " at once");
  }

  // GPUs that count for no project, so that none is over its share by them.
  std::string OutsideText() const {
    if (facts_.hidden || !forecast_.now.places.empty()) return "";
    int64_t milli_gpus = 0;
    std::set<std::string_view> namespaces;
    for (const NodeView& node : facts_.nodes) {
      for (const json::SharedValue& pod : node.pods) {
        if (MilliGpus(*pod) == 0 || MayHaveProject(*pod)) continue;
        milli_gpus += MilliGpus(*pod);
        namespaces.insert(api::Namespace(*pod));
      }
    }
    if (milli_gpus == 0) return "";
    const std::string_view ns = namespaces.size() == 1 ? *namespaces.begin() : "NAMESPACE";
    return StrCat("work of no project holds ", GpusText(milli_gpus),
                  ", and no project takes them back from it, until it has one: swell project "
                  "create NAME --work-namespace ",
                  ns);
  }

  // That of its namespace, or one that it names itself, as queues are named, too.
  bool MayHaveProject(const json::Value& pod) const {
    if (facts_.tree.OfNamespace(api::Namespace(pod)) != nullptr) return true;
    if (!api::Label(pod, api::keys::kProject).empty()) return true;
    const json::Object& labels = json::GetObject(pod, {"metadata", "labels"});
    return std::any_of(labels.begin(), labels.end(), [](const auto& label) {
      const std::string_view key(label.key().data(), label.key().size());
      return key.ends_with("/queue") || key.ends_with("/queue-name");
    });
  }

  // Past use lowers the share of a project if shares are fair over time.
  std::string PastUseText(const ProjectView& project) const {
    double all = 0;  // of its siblings
    for (const ProjectView& other : facts_.tree.projects) {
      if (other.parent == project.parent) all += other.past_gpu_hours.value_or(0);
    }
    if (all <= 0) return "";
    return StrCat("; its past use counts as ", HoursText(project.past_gpu_hours.value_or(0)),
                  ", of ", HoursText(all), " at its level");
  }

  // Pods of it that run on nodes with faults.
  std::vector<std::string> Places() const {
    if (facts_.job.over()) return {};
    std::vector<json::SharedValue> nodes;
    for (const NodeView& node : facts_.nodes) nodes.push_back(node.object);
    return UnhealthyPlaces(facts_.job.pods, nodes);
  }

  // Whether the waiting pod's node selector takes the node; the scheduler tells of the rest.
  bool Selects(const NodeView& node) const {
    const json::Value* pod = facts_.WaitingPod();
    if (pod == nullptr) return true;
    const json::Object& wanted = json::GetObject(*pod, {"spec", "nodeSelector"});
    return std::all_of(wanted.begin(), wanted.end(), [&node](const auto& label) {
      const std::string_view key(label.key().data(), label.key().size());
      return label.value().is_string() &&
             api::Label(*node.object, key) == json::View(label.value().get_string());
    });
  }

  // Whether it waits for GPUs, and else for processors and memory.
  bool ForGpus() const {
    const json::Value* pod = facts_.WaitingPod();
    return pod == nullptr || MilliGpus(*pod) > 0;
  }

  // Nodes with the most free GPUs, or CPUs, first, if there are many.
  std::string NodesText() const {
    std::vector<const NodeView*> nodes;
    size_t excluded = 0;
    for (const NodeView& node : facts_.nodes) {
      if (node.gpus() == 0 && ForGpus()) continue;
      if (Selects(node)) {
        nodes.push_back(&node);
      } else {
        ++excluded;
      }
    }
    std::string text = TableOf(std::move(nodes));
    if (excluded > 0) {
      text += StrCat("  its node selector", SelectorText(), " excludes ", excluded,
                     text.empty() ? "" : " more", excluded == 1 ? " node" : " nodes", "\n");
    }
    return text;
  }

  // " (gpu=a100, disk=ssd)"; empty where the pod has none of its own.
  std::string SelectorText() const {
    std::vector<std::string> labels;
    const json::Value* pod = facts_.WaitingPod();
    if (pod == nullptr) return "";
    for (const auto& label : json::GetObject(*pod, {"spec", "nodeSelector"})) {
      if (!label.value().is_string()) continue;
      labels.push_back(StrCat(std::string_view(label.key().data(), label.key().size()), "=",
                              json::View(label.value().get_string())));
    }
    return labels.empty() ? "" : StrCat(" (", Join(labels, ", "), ")");
  }

  std::string TableOf(std::vector<const NodeView*> nodes) const {
    if (nodes.empty()) return "";
    if (nodes.size() > kNodesShown) {
      std::stable_sort(nodes.begin(), nodes.end(), [this](const NodeView* a, const NodeView* b) {
        return FreeOf(*a) > FreeOf(*b);
      });
    }
    const bool gpus = ForGpus();
    TextTable table(gpus ? std::vector<std::string>{"NODE", "FREE GPUS", "HELD BY"}
                         : std::vector<std::string>{"NODE", "FREE CPUS", "FREE MEMORY", "HELD BY"},
                    2);
    for (size_t i = 0; i < nodes.size() && i < kNodesShown; ++i) {
      const NodeView& node = *nodes[i];
      if (gpus) {
        table.Add({node.name,
                   StrCat(GpuText(FreeOf(node)), " of ", node.gpus(), KeptFreeText(node)),
                   HoldersText(node)});
        continue;
      }
      table.Add(
          {node.name,
           StrCat(CpuText(FreeOf(node)), " of ", CpuText(node.total.milli_cpu), KeptFreeText(node)),
           StrCat(MemoryText(std::max<int64_t>(0, node.total.memory - node.used.memory)), " of ",
                  MemoryText(node.total.memory)),
           HoldersText(node)});
    }
    std::string text = table.ToString("  ");
    if (nodes.size() > kNodesShown) {
      const int64_t most = FreeOf(*nodes[kNodesShown]);
      text += StrCat("  and ", nodes.size() - kNodesShown, " more nodes with at most ",
                     gpus ? GpuText(most) : CpuText(most), " free\n");
    }
    return text + FaultsText(nodes);
  }

  // What is wrong with the nodes of the table.
  static std::string FaultsText(const std::vector<const NodeView*>& nodes) {
    std::string text;
    size_t told = 0;
    for (const NodeView* node : nodes) {
      if (!node->unhealthy && node->unhealthy_gpus == 0) continue;
      if (++told > kFaultsShown) return text + "  more unhealthy nodes: swell health\n";
      const std::string faults = HealthOfNode(*node->object).faults;
      text += StrCat("  ", node->name, " is unhealthy", faults.empty() ? "" : ": ", OneLine(faults),
                     "; more: swell health ", node->name, "\n");
    }
    return text;
  }

  // In thousandths, of GPUs or CPUs.
  int64_t FreeOf(const NodeView& node) const {
    return ForGpus() ? node.FreeMilliGpus()
                     : std::max<int64_t>(0, node.total.milli_cpu - node.used.milli_cpu);
  }

  // Why pods may not be placed there: ", not ready", ", cordoned", ", tainted dedicated=x".
  static std::string KeptFreeText(const NodeView& node) {
    std::string text = node.ready ? "" : ", not ready";
    if (node.unhealthy_gpus > 0) text += StrCat(", ", node.unhealthy_gpus, " unhealthy");
    if (node.unschedulable) text += ", cordoned";
    if (node.unhealthy) text += ", the node is unhealthy";
    for (const api::Taint& taint : api::TaintsOf(*node.object)) {
      if (taint.key.starts_with("node.kubernetes.io/") || !taint.Repels()) continue;
      if (taint.key == api::keys::kUnhealthyTaint) continue;
      text += StrCat(", tainted ", taint.key, taint.value.empty() ? "" : "=", taint.value);
    }
    return text;
  }

  std::string HoldersText(const NodeView& node) const {
    const bool gpus = ForGpus();
    std::map<std::string, int64_t> held;
    for (const json::SharedValue& pod : node.pods) {
      Amounts asked;
      asked.AddPod(*pod);
      const int64_t amount = gpus ? asked.milli_gpus : asked.milli_cpu;
      if (amount == 0) continue;
      std::string_view name = api::Label(*pod, api::keys::kPodGroup);
      held[StrCat(api::Namespace(*pod), "/", name.empty() ? api::Name(*pod) : name)] += amount;
    }
    std::vector<std::string> holders;
    for (const auto& [name, amount] : held) {
      holders.push_back(StrCat(name, " ", gpus ? GpuText(amount) : CpuText(amount)));
    }
    return holders.empty() ? "-" : Join(holders, ", ");
  }

  bool SchedulerDecides() const { return facts_.WaitsForScheduler() && !FailureDecides(); }

  // Changes each of which alone would start the job. Empty if nothing has to change, or if the user
  // may not see what would.
  std::vector<std::string> Changes() const {
    if (!SchedulerDecides() || facts_.hidden || !forecast_.now.places.empty()) return {};
    return forecast_.changes;
  }

  // When it starts as things are, or why that is not told.
  std::string StartText() const {
    if (!SchedulerDecides()) return "";
    if (facts_.hidden) {
      return StrCat(
          "Only users who can read the whole cluster see what uses the nodes and what would ",
          Grows() ? "let the job grow" : "start the job", ".\n");
    }
    if (!forecast_.now.places.empty()) return PlacedText();
    return forecast_.could_start ? StrCat(forecast_.could_start->Text(facts_.now, Grows()), "\n")
                                 : "";
  }

  std::string PlacedText() const {
    if (!facts_.awaited_volume.empty()) {
      return StrCat("It has a place, and waits for ", facts_.awaited_volume, ".\n");
    }
    if (!forecast_.now.promised()) return "The scheduler is about to place it.\n";
    std::string pods;
    for (const Outcome::Victim& victim : forecast_.now.victims) {
      pods += StrCat("  ", victim.pod, " on ", victim.node, "\n");
    }
    if (pods.empty()) pods = LeavingText();
    if (pods.empty()) {  // they give way to others of its project just as well
      return "It will start when the pods that it preempts have stopped.\n";
    }
    return StrCat("It will start when these pods have stopped:\n", pods);
  }

  // Pods that are about to leave the nodes on which it has room.
  std::string LeavingText() const {
    std::set<std::string_view> promised;
    for (const Outcome::Place& place : forecast_.now.places) {
      if (!place.now) promised.insert(place.node);
    }
    std::string out;
    for (const NodeView& node : facts_.nodes) {
      if (!promised.contains(node.name)) continue;
      for (const json::SharedValue& pod : node.pods) {
        const std::optional<WallTime> until = api::DeletionTime(*pod);
        if (!until || (ForGpus() && MilliGpus(*pod) == 0)) continue;
        out += StrCat("  ", api::KeyOf(*pod), " on ", node.name, ", until ",
                      api::FormatTime(*until), " at the latest\n");
      }
    }
    return out;
  }

  const WhyFacts& facts_;
  const StartForecast& forecast_;
};

}  // namespace

std::string WhyText(const WhyFacts& facts, const StartForecast& forecast) {
  return WhyReport(facts, forecast).Text();
}

json::Value WhyJson(const WhyFacts& facts, const StartForecast& forecast) {
  return WhyReport(facts, forecast).Json();
}

}  // namespace swell::cli
