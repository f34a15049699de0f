#include "manager/admission.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "jobs/crons/cron_run.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/extended_claim.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "sched/state/amount_text.h"
#include "sched/state/device_kinds.h"
#include "sched_inputs/gpu_request.h"
#include "sched_inputs/sched_convert.h"

namespace swell::manager {
namespace {

constexpr int kForbidden = 403;
// Work of a project whose priority is below this may be preempted.
constexpr int64_t kPreemptibleBelow = 100;

// "2", "0.5".
std::string Amount(double number) {
  const auto hundredths = std::llround(number * 100);
  std::string text = std::to_string(hundredths / 100);
  if (hundredths % 100 != 0)
    text += StrCat(".", hundredths % 100 < 10 ? "0" : "", hundredths % 100);
  if (text.find('.') != std::string::npos && text.back() == '0') text.pop_back();
  return text;
}

std::string Pointer(std::string_view key) {
  std::string out;
  for (char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

double GpusOf(const json::Value& pod) {
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr) return 0;
  const sched::PodInfo info = sched_inputs::ToPodInfo(pod);
  if (info.gpu_fraction > 0) return info.gpu_fraction * info.gpu_fraction_devices;
  const sched::Resources wanted = sched_inputs::PodRequests(*spec);
  auto found = wanted.extended.find(sched::kGpuResource);
  return found == wanted.extended.end() ? 0 : static_cast<double>(found->second);
}

// What the node is short of, in words; empty: the pod fits when the node is empty.
std::string Short(const sched::NodeInfo& node, const sched::Resources& wanted) {
  auto check = [](std::string_view name, int64_t wants, int64_t has) {
    return wants > has ? std::string(name) : std::string();
  };
  std::string out = check("cpu", wanted.cpu_milli, node.allocatable.cpu_milli);
  if (out.empty()) out = check("memory", wanted.memory_bytes, node.allocatable.memory_bytes);
  for (const auto& [name, amount] : wanted.extended) {
    auto has = node.allocatable.extended.find(name);
    if (out.empty()) {
      out = check(name, amount, has == node.allocatable.extended.end() ? 0 : has->second);
    }
  }
  return out;
}

int64_t AmountOf(const sched::Resources& resources, const std::string& name) {
  if (name == "cpu") return resources.cpu_milli;
  if (name == "memory") return resources.memory_bytes;
  auto found = resources.extended.find(name);
  return found == resources.extended.end() ? 0 : found->second;
}

// "4 CPUs", "31.2 GiB of memory"; of other resources the number and `unit`.
std::string AmountText(const std::string& name, int64_t amount, std::string_view unit) {
  if (name == "cpu") return sched::CoreText(sched::kCpu, amount);
  if (name == "memory") return sched::CoreText(sched::kMemory, amount);
  return StrCat(amount, unit);
}

}  // namespace

struct AdmissionReviewer::Verdict {
  const json::Value* user = nullptr;  // who asks; may be null
  std::string refusal;                // the first reason counts
  std::vector<std::string> warnings;
  json::Array patch;

  // Empty: the system, or a master, who may say for whom they act.
  std::string Person() const {
    if (user == nullptr) return "";
    const std::string name(json::GetString(*user, {"username"}));
    const json::Array& groups = json::GetArray(*user, {"groups"});
    const bool master =
        std::find(groups.begin(), groups.end(), json::Value("system:masters")) != groups.end();
    return name.starts_with("system:") || master ? "" : name;
  }
  void Refuse(std::string why) {
    if (refusal.empty()) refusal = std::move(why);
  }
  void Put(std::string path, json::Object value) {
    patch.push_back(
        json::Object{{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}});
  }
  void Put(std::string path, const std::string& text) {
    patch.push_back(json::Object{{"op", "add"}, {"path", std::move(path)}, {"value", text}});
  }
  // Into metadata.labels or metadata.annotations of the object, which is at `at` of the whole.
  void PutMeta(const json::Value& object,
               std::string_view map,
               std::string_view key,
               const std::string& value,
               std::string_view at = {}) {
    const json::Value* metadata = json::Find(object, {"metadata"});
    const std::string path = StrCat(at, "/metadata");
    if (metadata == nullptr || !metadata->is_object()) {
      return Put(path, json::Object{{map, json::Object{{key, value}}}});
    }
    const json::Value* there = json::Find(*metadata, {map});
    if (there == nullptr || !there->is_object()) {
      return Put(StrCat(path, "/", map), json::Object{{key, value}});
    }
    Put(StrCat(path, "/", map, "/", Pointer(key)), value);
  }
  void Take(std::string path) {
    patch.push_back(json::Object{{"op", "remove"}, {"path", std::move(path)}});
  }
};

AdmissionReviewer::AdmissionReviewer(controllers::Informers& informers, AdmissionOptions options)
    : options_(std::move(options)),
      projects_(informers.Of(client::resources::kProjects)),
      nodes_(informers.Of(client::resources::kNodes)),
      priorities_(informers.Of(client::resources::kPriorityClasses)) {
  if (informers.Serves(client::resources::kDeviceClasses)) {
    classes_ = &informers.Of(client::resources::kDeviceClasses);
  }
}

AdmissionReviewer::~AdmissionReviewer() = default;

json::Value AdmissionReviewer::Review(const json::Value& review) const {
  static const json::Value kNone = json::Object{};
  const json::Value* found = json::Find(review, {"request"});
  const json::Value& request = found ? *found : kNone;
  const json::Value* object = json::Find(request, {"object"});
  const std::string_view ns = json::GetString(request, {"namespace"});
  Verdict verdict;
  verdict.user = json::Find(request, {"userInfo"});
  const std::string_view group = json::GetString(request, {"resource", "group"});
  const std::string_view resource = json::GetString(request, {"resource", "resource"});
  const bool written =
      object != nullptr && object->is_object() && json::GetString(request, {"subResource"}).empty();
  const bool fresh = written && json::GetString(request, {"operation"}) == "CREATE";
  const json::Value* old = fresh ? nullptr : json::Find(request, {"oldObject"});
  if (fresh && group.empty() && resource == "pods") ReviewPod(*object, ns, verdict);
  if (const jobs::JobKind* kind = written ? rules_.Find(group, resource) : nullptr) {
    if (fresh) ReviewJob(*object, ns, *kind, verdict);
    CheckNewClasses(*object, old, *kind, verdict);
  }
  if (written && group == client::resources::kCrons.group &&
      resource == client::resources::kCrons.plural) {
    ReviewCron(*object, old, ns, verdict);
  }
  json::Object response{{"uid", json::GetString(request, {"uid"})},
                        {"allowed", verdict.refusal.empty()}};
  if (!verdict.refusal.empty()) {
    response["status"] =
        json::Object{{"code", kForbidden}, {"reason", "Forbidden"}, {"message", verdict.refusal}};
  } else if (!verdict.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = Base64Encode(json::Print(verdict.patch));
  }
  if (!verdict.warnings.empty()) {
    json::Array warnings;
    for (const std::string& warning : verdict.warnings) warnings.emplace_back(warning);
    response["warnings"] = std::move(warnings);
  }
  return json::Object{
      {"apiVersion", json::GetString(review, {"apiVersion"}, "admission.k8s.io/v1")},
      {"kind", "AdmissionReview"},
      {"response", std::move(response)}};
}

std::string AdmissionReviewer::ProjectOf(const json::Value& object,
                                         std::string_view named,
                                         std::string_view ns,
                                         Verdict& verdict) const {
  if (named.empty()) named = api::Label(object, api::keys::kProject);
  std::set<std::string> leaves, parents;
  std::string of_namespace;
  for (const auto& [name, project] : projects_.objects()) {
    parents.emplace(api::ParentOfProject(*project));
  }
  for (const auto& [name, project] : projects_.objects()) {
    if (parents.contains(std::string(name))) continue;
    leaves.emplace(name);
    if (api::NamespaceOfProject(*project) == ns && of_namespace.empty()) of_namespace = name;
  }
  if (named.empty()) return of_namespace;
  std::string project(named);
  if (leaves.contains(project)) {
    if (of_namespace.empty() || of_namespace == project) return project;
    verdict.Refuse(StrCat("project ", Quote(project), ": namespace ", Quote(ns), " is project ",
                          of_namespace, "'s, which what runs there is charged to"));
    return "";
  }
  const std::string all =
      leaves.empty() ? "there are no projects"
                     : StrCat("those with work are ", Join({leaves.begin(), leaves.end()}, ", "));
  if (!parents.contains(project)) {
    verdict.Refuse(StrCat("project ", Quote(project), " does not exist; ", all));
  } else {
    verdict.Refuse(StrCat("project ", Quote(project),
                          " has projects below it, and work belongs to one of those; ", all));
  }
  return "";
}

void AdmissionReviewer::CheckTakesWork(const std::string& project, Verdict& verdict) const {
  const json::SharedValue found = projects_.Get(project);
  if (!found || !api::IsDeleting(*found)) return;
  verdict.Refuse(StrCat("project ", Quote(project), " is being deleted and takes no new work"));
}

void AdmissionReviewer::SetProject(const json::Value& object,
                                   const std::string& project,
                                   Verdict& verdict) const {
  if (project.empty() || !api::Label(object, api::keys::kProject).empty()) return;
  verdict.PutMeta(object, "labels", api::keys::kProject, project);
}

// People's work carries their name, whatever it says itself. What controllers make carries that of
// what they make it for; masters may say for whom they act.
void AdmissionReviewer::SetUser(const json::Value& object, Verdict& verdict) const {
  const std::string name = verdict.Person();
  if (!name.empty()) verdict.PutMeta(object, "annotations", api::keys::kUser, name);
}

// By what the work says it is; else the usual one; empty where there is no such class.
std::string AdmissionReviewer::UsualClass(const json::Value& object) const {
  std::string workload(api::Label(object, api::keys::kWorkload));
  if (!workload.empty() && priorities_.Get(workload)) return workload;
  return priorities_.Get(options_.priority_class) ? options_.priority_class : "";
}

void AdmissionReviewer::CheckClass(std::string_view name, Verdict& verdict) const {
  if (name.empty() || priorities_.Get(name)) return;
  verdict.Refuse(jobs::NoSuchClass(name));
}

// What a job named before may stay: the class may have been removed since.
void AdmissionReviewer::CheckNewClasses(const json::Value& job,
                                        const json::Value* old,
                                        const jobs::JobKind& kind,
                                        Verdict& verdict) const {
  if (old == nullptr || api::IsDeleting(job)) return;
  const std::set<std::string> before = rules_.ClassesOf(kind, *old);
  for (const std::string& name : rules_.ClassesOf(kind, job)) {
    if (!before.contains(name)) CheckClass(name, verdict);
  }
}

// Beyond Kubernetes' own, what some node has any of.
std::vector<std::string> AdmissionReviewer::Resources() const {
  std::set<std::string> names;
  for (const auto& [name, node] : nodes_.objects()) {
    const sched::NodeInfo info = sched_inputs::ToNodeInfo(*node);
    for (const auto& [resource, amount] : info.allocatable.extended) {
      if (amount > 0 && !sched::IsDeviceKind(resource)) names.insert(resource);
    }
  }
  return {names.begin(), names.end()};
}

bool AdmissionReviewer::IsClaimed(const std::string& resource) const {
  if (classes_ == nullptr) return false;
  const auto& classes = classes_->objects();
  return std::any_of(classes.begin(), classes.end(),
                     [&resource](const auto& each) {
                       return api::ServesResource(*each.second, resource);
                     }) &&
         !Contains(Resources(), resource);
}

void AdmissionReviewer::CheckNodes(const json::Value& pod, Verdict& verdict) const {
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr || nodes_.objects().empty()) return;
  sched::Resources wanted = sched_inputs::PodRequests(*spec);
  std::erase_if(wanted.extended, [this](const auto& entry) { return IsClaimed(entry.first); });
  const json::Object& selector = json::GetObject(*spec, {"nodeSelector"});
  bool selected = false;
  std::string missing;
  int64_t most = 0;
  for (const auto& [name, node] : nodes_.objects()) {
    const sched::NodeInfo info = sched_inputs::ToNodeInfo(*node);
    const bool fits = std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
      auto has = info.labels.find(std::string(label.key()));
      return label.value().is_string() && has != info.labels.end() &&
             has->second == json::View(label.value().get_string());
    });
    if (!fits) continue;
    selected = true;
    const std::string lacks = Short(info, wanted);
    if (lacks.empty()) return;
    if (missing.empty()) missing = lacks;
    most = std::max(most, AmountOf(info.allocatable, missing));
  }
  std::string why;
  if (!selected) {
    std::string labels;
    for (const auto& label : selector) {
      if (!label.value().is_string()) continue;
      labels += StrCat(labels.empty() ? "" : ", ", std::string(label.key()), "=",
                       json::View(label.value().get_string()));
    }
    why = StrCat("spec.nodeSelector: no node has the labels ", labels);
  } else {
    const std::string of = StrCat(" of ", missing);
    const std::string meant = most > 0 ? "" : NearestName(missing, Resources());
    why = StrCat("requests ", AmountText(missing, AmountOf(wanted, missing), of),
                 "; the largest node that it may run on has ", AmountText(missing, most, ""),
                 DidYouMean(meant));
  }
  if (options_.admit_oversized_pods) {
    verdict.warnings.push_back(why);
  } else {
    verdict.Refuse(std::move(why));
  }
}

void AdmissionReviewer::CheckLimits(const std::string& project,
                                    double gpus,
                                    std::string_view priority_class,
                                    Verdict& verdict) const {
  if (gpus <= 0) return;
  json::SharedValue priority = priorities_.Get(priority_class);
  const bool stays = priority && json::GetInt(*priority, {"value"}) >= kPreemptibleBelow;
  std::string name = project;
  for (int depth = 0; depth < api::kProjectDepthMax && !name.empty(); ++depth) {
    json::SharedValue found = projects_.Get(name);
    if (!found) return;
    // Projects with several node pools may have as much in each: those are the scheduler's.
    const sched::QueueInfo queue = sched_inputs::ToQueueInfo(*found);
    if (queue.pools.empty() && queue.gpu.limit >= 0 && gpus > queue.gpu.limit) {
      verdict.Refuse(StrCat("needs ", Amount(gpus), " GPUs at once; the limit of project ",
                            Quote(name), " is ", Amount(queue.gpu.limit)));
    }
    if (queue.pools.empty() && stays && queue.gpu.quota >= 0 && gpus > queue.gpu.quota) {
      verdict.Refuse(StrCat("needs ", Amount(gpus), " GPUs at once; work of priority class ",
                            Quote(priority_class),
                            " is never preempted, and must fit the quota of "
                            "project ",
                            Quote(name), ", which is ", Amount(queue.gpu.quota)));
    }
    name = api::ParentOfProject(*found);
  }
}

void AdmissionReviewer::ReviewPod(const json::Value& pod,
                                  std::string_view ns,
                                  Verdict& verdict) const {
  const auto owner = api::ControllerOf(pod);
  // A DaemonSet's pods are bound to their nodes by affinity.
  if (owner && owner->kind == "DaemonSet") return;
  if (api::IsBound(pod)) return;
  const std::string_view scheduler = api::SchedulerName(pod);
  const bool usual = scheduler.empty() || scheduler == "default-scheduler";
  if (!usual && scheduler != options_.scheduler_name) return;
  const std::string project = ProjectOf(pod, {}, ns, verdict);
  if (project.empty() && usual) return;
  if (!owner) CheckTakesWork(project, verdict);
  if (usual) verdict.Put("/spec/schedulerName", options_.scheduler_name);
  SetProject(pod, project, verdict);
  SetUser(pod, verdict);
  std::string priority(api::PriorityClassName(pod));
  if (priority.empty() && !project.empty()) {
    priority = UsualClass(pod);
    if (!priority.empty()) {
      verdict.Put("/spec/priorityClassName", priority);
      // The server has put in those of no class at all, and refuses what does not fit the class.
      for (std::string_view field : {"priority", "preemptionPolicy"}) {
        if (json::Find(pod, {"spec", field}) != nullptr) verdict.Take(StrCat("/spec/", field));
      }
    }
  }
  for (const auto& [theirs, ours] : api::SharesOfKai()) {
    const std::string_view asked = api::Annotation(pod, theirs);
    if (asked.empty() || !api::Annotation(pod, ours).empty()) continue;
    verdict.PutMeta(pod, "annotations", ours, std::string(asked));
  }
  CheckClass(priority, verdict);
  if (const Status wrong = sched_inputs::ValidateGpuRequest(pod); !wrong.ok())
    verdict.Refuse(wrong.message());
  CheckNodes(pod, verdict);
  // A member of a group counts with its group.
  if (!owner) CheckLimits(project, GpusOf(pod), priority, verdict);
}

void AdmissionReviewer::ReviewJob(const json::Value& job,
                                  std::string_view ns,
                                  const jobs::JobKind& kind,
                                  Verdict& verdict) const {
  if (const Status wrong = rules_.Check(kind, job); !wrong.ok()) {
    return verdict.Refuse(StrCat(kind.kind(), " can not run: ", wrong.message()));
  }
  const auto spec = kind.Parse(job);
  const std::string project = ProjectOf(job, spec->project, ns, verdict);
  if (!api::ControllerOf(job)) CheckTakesWork(project, verdict);
  if (spec->project.empty()) SetProject(job, project, verdict);
  SetUser(job, verdict);
  std::string priority = spec->priority_class;
  if (priority.empty() && !project.empty() && !spec->tiered() && kind.kind() == "TrainingJob") {
    priority = UsualClass(job);
    if (!priority.empty()) verdict.Put("/spec/priorityClassName", priority);
  }
  CheckClass(priority, verdict);
  for (const std::string& name : rules_.ClassesOf(kind, job)) CheckClass(name, verdict);
  double gpus = 0;
  for (const jobs::ReplicaSpec& replica : spec->replicas) {
    if (!spec->grouped) break;
    json::Value pod = replica.pod_template;
    gpus += GpusOf(pod) * static_cast<double>(replica.min_member.value_or(replica.replicas));
  }
  for (const jobs::ReplicaSpec& replica : spec->replicas) {
    CheckNodes(replica.pod_template, verdict);
  }
  const auto gang = spec->GangClass();
  CheckLimits(project, gpus, gang.ok() && !gang->empty() ? *gang : priority, verdict);
}

void AdmissionReviewer::ReviewCron(const json::Value& cron,
                                   const json::Value* old,
                                   std::string_view ns,
                                   Verdict& verdict) const {
  // Nothing more starts. Its finalizers must come off, whatever is wrong with it.
  if (api::IsDeleting(cron)) return;
  const Status wrong = options_.others_crons ? Status::Ok() : rules_.CheckCron(cron);
  // One that was wrong before may stay so: it can be suspended, too.
  if (!wrong.ok() && (old == nullptr || rules_.CheckCron(*old).message() != wrong.message())) {
    return verdict.Refuse(StrCat("Cron can not run: ", wrong.message()));
  }
  constexpr std::string_view kAt = "/spec/template/workload";
  const json::Value* now = json::Find(cron, {"spec", "template"});
  const json::Value* before = old != nullptr ? json::Find(*old, {"spec", "template"}) : nullptr;
  // A user who suspends it, or sets another time, changes nothing of what runs.
  if (before != nullptr && now != nullptr && json::Equal(*now, *before)) return;
  const json::Value* workload = now != nullptr ? json::Find(*now, {"workload"}) : nullptr;
  if (workload == nullptr || !workload->is_object()) return;
  if (const std::string person = verdict.Person(); !person.empty()) {
    verdict.PutMeta(*workload, "annotations", api::keys::kUser, person, kAt);
  }
  if (!wrong.ok() || options_.others_crons) return;
  const auto run = jobs::MakeCronRun(cron, {});
  const jobs::JobKind* kind =
      run.ok() ? rules_.Find(run->resource.group, run->resource.plural) : nullptr;
  if (kind == nullptr) return;
  Verdict of_job;
  ReviewJob(run->job, ns, *kind, of_job);
  verdict.Refuse(std::move(of_job.refusal));
  for (std::string& warning : of_job.warnings) verdict.warnings.push_back(std::move(warning));
}

}  // namespace swell::manager
