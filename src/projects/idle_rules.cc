#include "projects/idle_rules.h"

#include <algorithm>

#include "autoscaling/resource_use.h"
#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_facts.h"

namespace swell::projects {
namespace {

constexpr double kIdlePart = 0.05;
constexpr json::ParseLimits kAnswerLimits{.depth = 16, .bytes = 8 << 20};

bool IsInteractive(const json::Value& object) {
  return api::Label(object, api::keys::kWorkload) == "interactive";
}

bool HoldsGpus(const json::Value& pod) {
  if (!api::Annotation(pod, api::keys::kGpuFraction).empty()) return true;
  if (!api::Annotation(pod, api::keys::kGpuMemory).empty()) return true;
  const api::Amounts requests = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto gpus = requests.find(api::kGpuResource);
  return gpus != requests.end() && !gpus->second.zero();
}

}  // namespace

double BusyPart(const json::Value& metrics, const json::Value& pod) {
  double cores = 0;
  for (const json::Value& container : json::GetArray(metrics, {"containers"})) {
    cores += autoscaling::AmountOf(json::Find(container, {"usage", "cpu"})).value_or(0);
  }
  const api::Amounts requests = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto cpu = requests.find("cpu");
  // A pod that requests none is compared with one processor.
  const double asked =
      cpu == requests.end() ? 1.0 : static_cast<double>(cpu->second.MilliValue()) / 1000;
  return cores / std::max(asked, 0.01);
}

IdleRules::IdleRules(controllers::Context context)
    : context_(std::move(context)),
      pods_(context_.informers.Of(client::resources::kPods)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      events_(controllers::MakeRecorder(context_, "idle-rules")),
      client_(context_.executor, context_.server, context_.user, "idle-rules") {
  for (const api::Definition& kind : api::JobDefinitions()) {
    const client::Resource resource{kind.group, kind.version, kind.plural, true};
    // Kinds that another operator runs are left to it.
    if (client::Informer* jobs = context_.informers.Find(resource)) {
      jobs_.emplace_back(jobs, kind.suspend);
    }
  }
}

void IdleRules::Start() {
  context_.informers.WhenSynced(scope_.Wrap([this] { Round(); }));
}

// The job's own word counts first; a project's holds for its interactive work alone.
std::optional<Duration> IdleRules::TimeoutOf(const json::Value& job, const json::Value& pod) const {
  std::string_view text = api::Annotation(job, api::keys::kIdleTimeout);
  if (text.empty() && (IsInteractive(job) || IsInteractive(pod))) {
    const json::SharedValue project = projects_.Get(api::Label(pod, api::keys::kProject));
    if (project) text = api::Annotation(*project, api::keys::kIdleTimeout);
  }
  const auto timeout = ParseDuration(text);
  return timeout && *timeout > Duration::zero() ? timeout : std::nullopt;
}

std::map<std::string, IdleRules::Work> IdleRules::Find() const {
  std::map<std::string, Work> found;
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::Phase(*pod) != "Running" || api::IsDeleting(*pod) || !HoldsGpus(*pod)) continue;
    const auto owner = api::ControllerOf(*pod);
    if (!owner) continue;
    const auto known = found.find(owner->uid);
    if (known != found.end()) {
      known->second.pods.push_back(pod);
      continue;
    }
    for (const auto& [jobs, suspend] : jobs_) {
      const json::SharedValue job = jobs->Get(StrCat(api::Namespace(*pod), "/", owner->name));
      if (!job || api::Uid(*job) != owner->uid) continue;
      const auto timeout = TimeoutOf(*job, *pod);
      if (timeout) found[owner->uid] = {job, jobs->resource(), suspend, *timeout, {pod}};
    }
  }
  return found;
}

void IdleRules::Round() {
  timer_.Start(kEvery, [this] { Round(); });
  const std::map<std::string, Work> all = Find();
  std::erase_if(idle_, [&all](const auto& one) { return !all.contains(one.first); });
  std::set<std::string> namespaces;
  for (const auto& [uid, work] : all) {
    if (namespaces.size() < kNamespacesMax) namespaces.emplace(api::Namespace(*work.job));
  }
  for (const std::string& ns : namespaces) Measure(ns);
}

void IdleRules::Measure(const std::string& ns) {
  api::RestRequest request;
  request.method = "GET";
  request.path = autoscaling::PodMetricsPath(ns);
  request.accept = "application/json";
  client_.Call(std::move(request), scope_.Wrap([this, ns](const Result<api::RestResponse>& answer) {
    // Without an answer nothing is known to be idle, and the next round asks again.
    if (!answer.ok()) return;
    const auto list = json::Parse(answer->BodyString(), kAnswerLimits);
    if (list.ok()) OnMeasured(ns, *list);
  }));
}

void IdleRules::OnMeasured(const std::string& ns, const json::Value& list) {
  std::map<std::string_view, const json::Value*> measured;
  for (const json::Value& one : api::Items(list)) measured[api::Name(one)] = &one;
  for (const auto& [uid, work] : Find()) {
    if (api::Namespace(*work.job) != ns) continue;
    const bool idle =
        std::all_of(work.pods.begin(), work.pods.end(), [&measured](const json::SharedValue& pod) {
          const auto row = measured.find(api::Name(*pod));
          return row != measured.end() && BusyPart(*row->second, *pod) < kIdlePart;
        });
    if (!idle) {
      idle_.erase(uid);
      continue;
    }
    idle_.try_emplace(uid, Idle{context_.clock.Now(), false});
    Decide(uid, work);
  }
}

void IdleRules::Decide(const std::string& uid, const Work& work) {
  Idle& idle = idle_.at(uid);
  const Duration span = context_.clock.Now() - idle.since;
  if (span >= work.timeout) {
    Stop(work, span);
    idle_.erase(uid);
    return;
  }
  const Duration warning = std::min(kWarning, work.timeout / 5);
  if (idle.warned || span < work.timeout - warning) return;
  idle.warned = true;
  events_.Record(*work.job, "Warning", "Idle",
                 StrCat("its GPUs have been idle for ", api::HumanDuration(span), ". In ",
                        api::HumanDuration(work.timeout - span),
                        " the job is suspended. Use them, or raise its annotation ",
                        api::keys::kIdleTimeout, "."));
}

void IdleRules::Stop(const Work& work, Duration idle) {
  json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(*work.job)}}}};
  api::SetSuspended(patch, work.suspend, true);
  client_.Patch(
      work.resource, api::Namespace(*work.job), api::Name(*work.job), client::PatchType::kMerge,
      patch, scope_.Wrap([this, job = work.job, idle](const Result<json::SharedValue>& done) {
        // It is found idle again in the next round.
        if (!done.ok()) {
          events_.Record(*job, "Warning", "IdleNotStopped",
                         StrCat("its GPUs were idle for ", api::HumanDuration(idle),
                                ", but it could not be suspended: ", done.status().message()));
          return;
        }
        events_.Record(*job, "Warning", "IdleStopped",
                       StrCat("suspended, because its GPUs were idle for ",
                              api::HumanDuration(idle), ". Start it again with: swell resume ",
                              api::Name(*job), " -n ", api::Namespace(*job)));
      }));
}

}  // namespace swell::projects
