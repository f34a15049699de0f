#include "ui/commands/questions.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.h"
#include "cli/arena/job_curves.h"
#include "cli/arena/tensorboard.h"
#include "cli/jobs/what_if.h"
#include "cli/jobs/why.h"
#include "cli/jobs/why_cron.h"
#include "cli/jobs/why_report.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::ui {
namespace {

json::Array Lines(const std::string& text) {
  json::Array lines;
  for (std::string_view line : Split(text, '\n')) {
    if (!Trim(line).empty()) lines.push_back(json::Value(boost::json::string_view(line)));
  }
  return lines;
}

// "namespace/name" of a group, or "/namespace/name" of a pod without one.
json::Object Named(std::string_view key) {
  if (key.starts_with('/')) key.remove_prefix(1);
  const size_t slash = key.find('/');
  const bool whole = slash != std::string_view::npos;
  return json::Object{{"namespace", boost::json::string_view(whole ? key.substr(0, slash) : "")},
                      {"name", boost::json::string_view(whole ? key.substr(slash + 1) : key)}};
}

// The work that would be stopped, by group.
json::Array Displaced(const cli::Outcome& outcome) {
  struct Stopped {
    int64_t members = 0;
    std::string rule, reason;
  };
  std::map<std::string, Stopped> groups;
  for (const cli::Outcome::Victim& victim : outcome.victims) {
    Stopped& group = groups[victim.group.empty() ? "/" + victim.pod : victim.group];
    ++group.members;
    group.rule = victim.rule;
    group.reason = victim.reason;
  }
  json::Array rows;
  for (const auto& [key, stopped] : groups) {
    json::Object row = Named(key);
    row["members"] = stopped.members;
    row["rule"] = stopped.rule;
    row["reason"] = stopped.reason;
    rows.push_back(std::move(row));
  }
  return rows;
}

json::Array Placement(const cli::Outcome& outcome) {
  std::map<std::string, int64_t> nodes;
  for (const cli::Outcome::Place& place : outcome.places) ++nodes[place.node];
  json::Array rows;
  for (const auto& [node, members] : nodes) {
    rows.push_back(json::Object{{"node", node}, {"members", members}});
  }
  return rows;
}

json::Value Number(int64_t milli) { return static_cast<double>(milli) / 1000; }

}  // namespace

Result<json::Value> AskWhy(cli::Session& session,
                           cli::Api& api,
                           const std::string& ns,
                           const std::string& name,
                           const std::string& kind) {
  const std::string word = kind.empty() ? name : StrCat(ToLower(kind), "/", name);
  if (cli::NamesCron(word)) {
    SWELL_ASSIGN_OR_RETURN(cli::CronAnswer cron, cli::ExplainCron(session, api, ns, word));
    json::Value out = std::move(cron.document);
    json::Set(out, {"sentence"}, StrCat(name, " ", json::GetString(out, {"says"})));
    json::Set(out, {"lines"}, json::Value(Lines(cron.text)));
    return out;
  }
  SWELL_ASSIGN_OR_RETURN(const cli::WhyAnswer answer, cli::ExplainJob(session, api, ns, word));
  const cli::JobView& job = answer.facts.job;
  json::Value out = cli::WhyJson(answer.facts, answer.forecast);
  json::Set(out, {"sentence"}, StrCat(job.name, " ", json::GetString(out, {"says"})));
  json::Set(out, {"lines"}, json::Value(Lines(cli::WhyText(answer.facts, answer.forecast))));
  json::Set(
      out, {"needs"},
      json::Value(json::Object{
          {"members", job.replicas}, {"least", job.least}, {"gpus", Number(job.milli_gpus)}}));
  json::Set(out, {"displaces"}, json::Value(Displaced(answer.forecast.now)));
  json::Set(out, {"placement"}, json::Value(Placement(answer.forecast.now)));
  return out;
}

Result<json::Value> AskPlan(cli::Session& session, cli::Api& api, const json::Value& job) {
  SWELL_ASSIGN_OR_RETURN(const cli::Plan plan, cli::MakePlan(session, api, job));
  return json::Value(json::Object{{"text", Lines(cli::PlanText(plan))},
                                  {"starts", plan.outcome.starts(plan.least)},
                                  {"displaces", Displaced(plan.outcome)},
                                  {"placement", Placement(plan.outcome)}});
}

namespace {

constexpr int kCycles = 8;  // until what was stopped has made room, and that was used
constexpr int64_t kNodesMost = 1000;
constexpr size_t kDecisionsMost = 500;

json::Value* FindObject(json::Array& state, std::string_view kind, std::string_view name) {
  for (json::Value& object : state) {
    if (api::KindOf(object) == kind && api::Name(object) == name) return &object;
  }
  return nullptr;
}

Status SetQuota(json::Array& state, const json::Value& change) {
  const std::string_view name = json::GetString(change, {"project"});
  const std::string_view pool = json::GetString(change, {"pool"});
  const json::Value* gpu = json::Find(change, {"gpu"});
  if (gpu == nullptr || !gpu->is_number()) {
    return Status(Code::kBadRequest, "quota[].gpu: expected a number of GPUs");
  }
  json::Value* project = FindObject(state, "Project", name);
  if (project == nullptr) {
    return Status(Code::kNotFound, StrCat("quota[].project: no project is named ", Quote(name)));
  }
  if (pool.empty()) {
    json::Set(*project, {"spec", "resources", "gpu", "quota"}, *gpu);
    return Status::Ok();
  }
  json::Value* pools = json::FindMutable(*project, {"spec", "nodePools"});
  if (pools != nullptr && pools->is_array()) {
    for (json::Value& one : pools->get_array()) {
      if (json::GetString(one, {"name"}) != pool) continue;
      json::Set(one, {"resources", "gpu", "quota"}, *gpu);
      return Status::Ok();
    }
  }
  return Status(Code::kNotFound,
                StrCat("quota[].pool: project ", name, " names no node pool ", Quote(pool)));
}

Status AddNodes(json::Array& state, const json::Value& change) {
  const std::string_view like = json::GetString(change, {"like"});
  const int64_t count = json::GetInt(change, {"count"}, 1);
  if (count < 1 || count > kNodesMost) {
    return Status(Code::kBadRequest,
                  StrCat("addNodes[].count: ", count, ": expected 1 to ", kNodesMost));
  }
  const json::Value* found = FindObject(state, "Node", like);
  if (found == nullptr) {
    return Status(Code::kNotFound, StrCat("addNodes[].like: no node is named ", Quote(like)));
  }
  const json::Value model = *found;
  for (int64_t i = 1; i <= count; ++i) {
    json::Value node = model;
    const std::string name = StrCat(like, "-added-", i);
    json::Set(node, {"metadata", "name"}, name);
    json::Set(node, {"metadata", "uid"}, name);
    json::Set(node, {"metadata", "labels", "kubernetes.io/hostname"}, name);
    json::Set(node, {"spec", "unschedulable"}, json::Value(false));
    state.push_back(std::move(node));
  }
  return Status::Ok();
}

// The jobs of the pods, by the pods' keys. The scheduler also places pods that are not part of a
// workload.
std::map<std::string, std::string> JobsOfPods(const json::Array& state) {
  std::map<std::string, std::string> jobs;
  for (const json::Value& object : state) {
    if (api::KindOf(object) != "Pod") continue;
    const auto owner = api::ControllerOf(object);
    if (!owner || cli::FindJobKind(owner->api_version, owner->kind) == nullptr) continue;
    jobs[api::KeyOf(object)] = StrCat(api::Namespace(object), "/", owner->kind, "/", owner->name);
  }
  return jobs;
}

// The result of a simulation of `state` after its last cycle, with the overview's fields.
json::Object Numbers(const json::Value& simulated, const json::Array& state) {
  const json::Array& cycles = json::GetArray(simulated, {"cycles"});
  if (cycles.empty()) return {};
  const json::Value& last = cycles.back();
  const std::map<std::string, std::string> job_of = JobsOfPods(state);
  std::map<std::string, bool> runs;  // by job or group
  std::set<std::pair<std::string_view, int64_t>>
      held;  // by node and index: several pods may share a GPU
  int64_t idle = 0;
  for (const json::Value& pod : json::GetArray(last, {"settled", "pods"})) {
    const std::string_view status = json::GetString(pod, {"status"});
    const bool placed = status == "Running" || status == "Bound";
    if (!placed && status != "Pending" && status != "Nominated") continue;
    const std::string_view group = json::GetString(pod, {"podGroup"});
    for (const json::Value& gpu : json::GetArray(pod, {"gpus"})) {
      if (placed) held.emplace(json::GetString(pod, {"node"}), gpu.to_number<int64_t>());
    }
    const auto job = job_of.find(std::string(json::GetString(pod, {"name"})));
    if (job == job_of.end() && (group.empty() || group.starts_with("/"))) continue;
    bool& run = runs[job == job_of.end() ? std::string(group) : job->second];
    run = run || placed;
  }
  const auto gpus_held = static_cast<int64_t>(held.size());
  for (const json::Value& node : json::GetArray(last, {"settled", "nodes"})) {
    const json::Value* free = json::Find(node, {"idleGpus"});
    if (free != nullptr && free->is_number()) idle += free->to_number<int64_t>();
  }
  const int64_t running =
      std::count_if(runs.begin(), runs.end(), [](const auto& group) { return group.second; });
  json::Array projects;
  for (const json::Value& queue : json::GetArray(last, {"queues"})) {
    if (json::GetString(queue, {"resource"}) == "gpu") projects.push_back(queue);
  }
  return json::Object{
      {"gpus", json::Object{{"total", gpus_held + idle}, {"held", gpus_held}, {"free", idle}}},
      {"jobs", json::Object{{"running", running},
                            {"pending", static_cast<int64_t>(runs.size()) - running}}},
      {"projects", std::move(projects)}};
}

// One line per group and kind of decision of a cycle.
struct Decided {
  std::string kind, reason;
  std::map<std::string, int64_t> nodes;
  int64_t pods = 0;
};

std::string KindOf(const json::Value& decision) {
  const std::string_view type = json::GetString(decision, {"type"});
  if (type == "bind") return "Started";
  if (type != "evict") return "Promised";
  return json::GetString(decision, {"rule"}) == "reclaim" ? "Reclaimed" : "Preempted";
}

std::string TextOf(const std::string& group, const Decided& decided) {
  std::vector<std::string> nodes;
  for (const auto& [node, pods] : decided.nodes) nodes.push_back(node);
  const std::string pods = StrCat(decided.pods, decided.pods == 1 ? " pod" : " pods");
  const std::string what = decided.kind == "Started"    ? StrCat(pods, " start on ")
                           : decided.kind == "Promised" ? StrCat(pods, " are promised places on ")
                                                        : StrCat(pods, " are stopped on ");
  const std::string text = StrCat(group, ": ", what, Join(nodes, ", "));
  return decided.reason.empty() ? text : StrCat(text, ". ", decided.reason);
}

json::Array Decisions(const json::Value& simulated) {
  json::Array rows;
  for (const json::Value& cycle : json::GetArray(simulated, {"cycles"})) {
    std::map<std::string, std::string_view> group_of;
    for (const json::Value& pod : json::GetArray(cycle, {"pods"})) {
      group_of[std::string(json::GetString(pod, {"name"}))] = json::GetString(pod, {"podGroup"});
    }
    std::map<std::pair<std::string, std::string>, Decided> decided;
    for (const json::Value& decision : json::GetArray(cycle, {"decisions"})) {
      const std::string pod(json::GetString(decision, {"pod"}));
      const std::string_view group = group_of[pod];
      const std::string kind = KindOf(decision);
      Decided& one = decided[{group.empty() ? pod : std::string(group), kind}];
      one.kind = kind;
      one.reason = json::GetString(decision, {"reason"});
      ++one.nodes[std::string(json::GetString(decision, {"node"}))];
      ++one.pods;
    }
    for (const auto& [key, one] : decided) {
      if (rows.size() >= kDecisionsMost) return rows;
      rows.push_back(json::Object{{"text", TextOf(key.first, one)}, {"kind", one.kind}});
    }
  }
  return rows;
}

}  // namespace

Result<json::Value> AskWhatIf(cli::Session& session, cli::Api& api, const json::Value& change) {
  const auto& simulate = session.env().what_if.simulate_cycles;
  if (!simulate) {
    return Status(Code::kNotAcceptable, "this program was built without the scheduler");
  }
  SWELL_ASSIGN_OR_RETURN(json::Array state, cli::ReadState(api));
  const WallTime now = session.Now();
  const json::Object before = Numbers(simulate(cli::StateViewOf(state), now, kCycles), state);
  for (const json::Value& one : json::GetArray(change, {"quota"})) {
    SWELL_RETURN_IF_ERROR(SetQuota(state, one));
  }
  for (const json::Value& one : json::GetArray(change, {"addNodes"})) {
    SWELL_RETURN_IF_ERROR(AddNodes(state, one));
  }
  SWELL_ASSIGN_OR_RETURN(cli::WhatIf what_if, cli::WhatIf::Make(session, std::move(state)));
  if (const json::Value* job = json::Find(change, {"addJob"}); job != nullptr && job->is_object()) {
    SWELL_ASSIGN_OR_RETURN(const json::Value made, cli::TryJob(api, *job));
    SWELL_RETURN_IF_ERROR(what_if.AddJob(made, *cli::KindOfJob(*job)));
  }
  const json::Value after = simulate(cli::StateViewOf(what_if.state()), now, kCycles);
  return json::Value(json::Object{{"decisions", Decisions(after)},
                                  {"before", before},
                                  {"after", Numbers(after, what_if.state())}});
}

namespace {

json::Value TextOrNull(const std::string& text) {
  return text.empty() ? json::Value(nullptr) : json::Value(text);
}

json::Value TensorboardDocument(const std::optional<cli::arena::TensorboardView>& view,
                                bool opens) {
  json::Object out{{"state", "None"}, {"url", nullptr}, {"port", nullptr}, {"message", nullptr}};
  out["opens"] = opens;
  out["closed"] = opens ? json::Value(nullptr) : json::Value(kNoPrograms);
  if (!view) return out;
  const bool failed = !view->ready && !view->wrong.empty();
  out["state"] = view->ready ? "Ready" : failed ? "Failed" : "Starting";
  out["url"] = TextOrNull(view->url);
  if (view->port > 0) out["port"] = view->port;
  if (failed) out["message"] = view->wrong;
  return out;
}

// Asked of the API server as the user, so that a refusal comes before a window opens.
Status CheckMayForward(cli::Api& api, const std::string& ns) {
  static const client::Resource kReviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                         false};
  json::Object attributes{
      {"verb", "create"}, {"resource", "pods"}, {"subresource", "portforward"}, {"namespace", ns}};
  const json::Value review =
      json::Object{{"apiVersion", "authorization.k8s.io/v1"},
                   {"kind", "SelfSubjectAccessReview"},
                   {"spec", json::Object{{"resourceAttributes", std::move(attributes)}}}};
  SWELL_ASSIGN_OR_RETURN(const json::SharedValue answer, api.Create(kReviews, "", review));
  if (json::GetBool(*answer, {"status", "allowed"})) return Status::Ok();
  return Status(Code::kForbidden, StrCat("you may not create pods/portforward in namespace ",
                                         Quote(ns), ", which it takes to reach what pods serve"));
}

}  // namespace

Result<json::Value> AskTensorboard(cli::Session& session,
                                   cli::Api& api,
                                   const std::string& ns,
                                   const std::string& name,
                                   const std::string& kind,
                                   TensorboardQuestion question) {
  auto view = cli::arena::ViewTensorboard(session, api, ns, name);
  if (!question.start) return TensorboardDocument(view, question.opens);
  const std::string word = kind.empty() ? name : StrCat(ToLower(kind), "/", name);
  SWELL_ASSIGN_OR_RETURN(const cli::JobView job, cli::FindJob(api, ns, word));
  // One that was made at submit knows its folder; it needs a look only.
  const auto curves = cli::arena::CurvesOf(job);
  if (!view && !curves.ok()) return curves.status();
  if (curves.ok()) {
    const auto reach = question.opens ? cli::arena::Reach::kCluster : cli::arena::Reach::kNodePort;
    SWELL_ASSIGN_OR_RETURN(
        view, cli::arena::EnsureTensorboard(session, api, curves->spec, curves->log_dir,
                                            *job.object, reach));
  }
  return TensorboardDocument(view, question.opens);
}

Result<json::Value> AskOpening(cli::Session& session,
                               cli::Api& api,
                               const std::string& ns,
                               const std::string& name) {
  SWELL_RETURN_IF_ERROR(CheckMayForward(api, ns));
  const auto view = cli::arena::ViewTensorboard(session, api, ns, name);
  if (!view) return Status(Code::kNotFound, StrCat("job ", ns, "/", name, " has no TensorBoard"));
  if (!view->ready) {
    return Status(Code::kConflict, StrCat("the TensorBoard of ", ns, "/", name, " is not ready",
                                          view->wrong.empty() ? "" : ": ", view->wrong));
  }
  return json::Value(json::Object{{"namespace", ns}, {"service", view->service}});
}

namespace {

constexpr int64_t kDaysUsual = 365;

// How long the credentials shall be valid. The server knows the longest time.
Result<cli::CredentialsRequest> CredentialsOf(const json::Value& user) {
  const json::Value* given = json::Find(user, {"days"});
  if (given == nullptr)
    return cli::CredentialsRequest{.valid = std::chrono::hours(24 * kDaysUsual)};
  const int64_t days = json::GetInt(user, {"days"});
  if (days >= 1 && days <= kDaysUsual * 10) {
    return cli::CredentialsRequest{.valid = std::chrono::hours(24 * days)};
  }
  const std::string message = "expected a whole number of days from 1 on";
  return Status(Code::kInvalid, StrCat("days: ", message),
                {.causes = {{"FieldValueInvalid", "days", message}}});
}

Result<json::Value> Kubeconfig(cli::Api& api,
                               const cli::ClusterAddress& address,
                               const api::RegisteredUser& user,
                               const cli::CredentialsRequest& request) {
  auto text = cli::MakeUserKubeconfig(api, address, user, request);
  if (!text.ok() && text.status().code() == Code::kBadRequest) {
    return Status(Code::kInvalid, text.status().message(),
                  {.causes = {{"FieldValueInvalid", "days", text.status().message()}}});
  }
  if (!text.ok()) return text.status();
  return json::Value(json::Object{{"name", user.name}, {"kubeconfig", *text}});
}

}  // namespace

Result<json::Value> AskCreateUser(cli::Api& api,
                                  const cli::ClusterAddress& address,
                                  const json::Value& wanted) {
  api::RegisteredUser user;
  user.name = json::GetString(wanted, {"name"});
  user.role = json::GetString(wanted, {"role"});
  user.projects = json::Texts(json::GetArray(wanted, {"projects"}));
  user.groups = json::Texts(json::GetArray(wanted, {"groups"}));
  user.run_as = json::GetString(wanted, {"runAs"});
  SWELL_ASSIGN_OR_RETURN(const cli::CredentialsRequest request, CredentialsOf(wanted));
  SWELL_ASSIGN_OR_RETURN(const api::RegisteredUser made, cli::CreateUser(api, user));
  auto answer = Kubeconfig(api, address, made, request);
  if (!answer.ok()) (void)cli::DeleteUser(api, made.name);  // all or nothing
  return answer;
}

Result<json::Value> AskUserKubeconfig(cli::Api& api,
                                      const cli::ClusterAddress& address,
                                      const json::Value& wanted) {
  SWELL_ASSIGN_OR_RETURN(const cli::CredentialsRequest request, CredentialsOf(wanted));
  SWELL_ASSIGN_OR_RETURN(const api::RegisteredUser user,
                         cli::FindUser(api, std::string(json::GetString(wanted, {"name"}))));
  return Kubeconfig(api, address, user, request);
}

Result<json::Value> AskDeleteUser(cli::Api& api, const std::string& name) {
  SWELL_RETURN_IF_ERROR(cli::DeleteUser(api, name));
  return json::Value(json::Object{{"name", name}});
}

}  // namespace swell::ui
