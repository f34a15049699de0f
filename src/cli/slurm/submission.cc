// What sbatch and srun share: looking up what flags name, creating a job, waiting for its end.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/strings.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/what_if.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_keys.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/account_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::slurm {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kGpuProduct = "nvidia.com/gpu.product";
constexpr size_t kChoicesMax = 1000;
constexpr auto kLookInterval = std::chrono::milliseconds(500);

// The labels of both; null if they contradict each other.
std::optional<KeyValues> Both(const KeyValues& one, const KeyValues& other) {
  KeyValues all = one;
  for (const auto& label : other) {
    const auto same = std::find_if(one.begin(), one.end(),
                                   [&label](const auto& has) { return has.first == label.first; });
    if (same == one.end()) all.push_back(label);
    if (same != one.end() && same->second != label.second) return std::nullopt;
  }
  return all;
}

// Every one of `choices` together with every one of `more`, as far as there can be such nodes.
Status Narrow(std::vector<KeyValues>& choices, const std::vector<KeyValues>& more) {
  if (more.empty()) return Status::Ok();
  if (choices.empty()) choices.emplace_back();
  if (choices.size() * more.size() > kChoicesMax) {
    return Misuse("--partition, --nodelist and --gres name too many nodes; name fewer of them");
  }
  std::vector<KeyValues> all;
  for (const KeyValues& one : choices) {
    for (const KeyValues& other : more) {
      auto both = Both(one, other);
      if (both && std::find(all.begin(), all.end(), *both) == all.end()) all.push_back(*both);
    }
  }
  if (all.empty()) {
    return Status(Code::kConflict,
                  "Requested node configuration is not available: no node is all of what "
                  "--partition, --nodelist, --constraint and --gres say");
  }
  choices = std::move(all);
  return Status::Ok();
}

bool Suits(const json::Value& node, const std::vector<KeyValues>& choices) {
  return choices.empty() ||
         std::any_of(choices.begin(), choices.end(), [&node](const KeyValues& labels) {
           return std::all_of(labels.begin(), labels.end(), [&node](const auto& label) {
             return api::Label(node, label.first) == label.second;
           });
         });
}

// The labels of the pools that --partition names; empty: any node. Every name must be one, also
// where another names all nodes.
Result<std::vector<KeyValues>> PoolChoices(Api& api, const std::string& partitions) {
  std::vector<KeyValues> choices;
  if (partitions.empty()) return choices;
  auto pools = api.List(client::resources::kNodePools, "");
  if (!pools.ok() && partitions == kAllPartition) return choices;
  if (!pools.ok()) return pools.status().WithContext("--partition");
  std::vector<std::string> names;
  for (const json::SharedValue& pool : *pools) names.emplace_back(api::Name(*pool));
  bool any_node = false;
  for (const std::string& name : CommaList(partitions)) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end() && name == kAllPartition) {
      any_node = true;
      continue;
    }
    if (at == names.end()) {
      names.emplace_back(kAllPartition);
      return Status(Code::kNotFound,
                    StrCat("--partition ", Quote(name),
                           ": there is no such node pool; there are: ", Join(names, ", ")));
    }
    KeyValues labels;
    const json::Value& pool = *(*pools)[static_cast<size_t>(at - names.begin())];
    for (const auto& label : json::GetObject(pool, {"spec", "nodeSelector"})) {
      if (!label.value().is_string()) continue;
      labels.emplace_back(std::string(label.key().data(), label.key().size()),
                          std::string(json::View(label.value().get_string())));
    }
    // A pool of all nodes: wherever there is room.
    any_node = any_node || labels.empty();
    choices.push_back(std::move(labels));
  }
  return any_node ? std::vector<KeyValues>{} : choices;
}

Status NoSuchNode(std::string_view flag, const std::string& name) {
  return Status(Code::kNotFound,
                StrCat(flag, " ", Quote(name), ": there is no such node; sinfo -N lists them"));
}

// Nodes by name, all of them in the partition.
Result<std::vector<KeyValues>> NodeChoices(const std::vector<json::SharedValue>& nodes,
                                           const std::vector<KeyValues>& pools,
                                           const BatchFlags& flags) {
  const std::string& list = flags.Text("nodelist");
  std::vector<KeyValues> choices;
  if (list.empty()) return choices;
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNames("--nodelist", list));
  for (const std::string& name : names) {
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&name](const auto& one) { return api::Name(*one) == name; });
    if (node == nodes.end() && !nodes.empty()) {
      return NoSuchNode("--nodelist", name);
    }
    if (node != nodes.end() && !Suits(**node, pools)) {
      std::vector<std::string> inside;
      for (const json::SharedValue& one : nodes) {
        if (Suits(*one, pools)) inside.emplace_back(api::Name(*one));
      }
      return Status(Code::kConflict,
                    StrCat("Requested node configuration is not available: --nodelist ", name,
                           " is not in the partition ", flags.Text("partition"), ", which has ",
                           inside.empty() ? "no nodes" : CompressNames(std::move(inside))));
    }
    const std::string_view host = node == nodes.end() ? name : api::Label(**node, kHostname);
    choices.push_back({{std::string(kHostname), std::string(host.empty() ? name : host)}});
  }
  return choices;
}

Result<std::vector<std::string>> ExcludedNodes(const std::vector<json::SharedValue>& nodes,
                                               const BatchFlags& flags) {
  std::vector<std::string> names;
  if (!flags.Has("exclude")) return names;
  SWELL_ASSIGN_OR_RETURN(names, ExpandNames("--exclude", flags.Text("exclude")));
  for (const std::string& name : names) {
    const bool known = std::any_of(nodes.begin(), nodes.end(),
                                   [&name](const auto& one) { return api::Name(*one) == name; });
    if (!known && !nodes.empty()) return NoSuchNode("--exclude", name);
  }
  return names;
}

// The products whose name has the type in it: "a100" is NVIDIA-A100-SXM4-80GB.
Result<std::vector<KeyValues>> GpuChoices(const std::vector<json::SharedValue>& nodes,
                                          const std::string& type) {
  std::vector<KeyValues> choices;
  if (type.empty()) return choices;
  std::set<std::string> products;
  for (const json::SharedValue& node : nodes) {
    const std::string_view product = api::Label(*node, kGpuProduct);
    if (!product.empty()) products.emplace(product);
  }
  for (const std::string& product : products) {
    if (ToLower(product).find(ToLower(type)) == std::string::npos) continue;
    choices.push_back({{std::string(kGpuProduct), product}});
  }
  if (!choices.empty()) return choices;
  return Status(Code::kNotFound,
                StrCat("--gres or --gpus names GPUs of type ", Quote(type), "; there are: ",
                       products.empty() ? StrCat("none with a label ", kGpuProduct)
                                        : Join({products.begin(), products.end()}, ", ")));
}

// A|B: one of them is enough. A word alone is a type of GPU, as Slurm's features often are.
Result<std::vector<KeyValues>> FeatureChoices(const std::vector<json::SharedValue>& nodes,
                                              const BatchFlags& flags) {
  std::vector<KeyValues> all;
  const std::string& text = flags.Text("constraint");
  if (!flags.Has("constraint")) return all;
  for (std::string_view one : Split(text, '|')) {
    const std::string word(one);
    if (word.find('=') != std::string::npos) {
      SWELL_ASSIGN_OR_RETURN(KeyValues labels, ParseLabels({word}, "--constraint"));
      all.push_back(std::move(labels));
      continue;
    }
    const auto types = GpuChoices(nodes, word);
    if (!types.ok() || types->empty()) {
      return Misuse(StrCat("--constraint ", Quote(text),
                           ": expected KEY=VALUE, or a type of GPU "
                           "that nodes have; A|B means one of two"));
    }
    for (const KeyValues& labels : *types) {
      if (std::find(all.begin(), all.end(), labels) == all.end()) all.push_back(labels);
    }
  }
  return all;
}

// Nodes that `swell up` runs on the machine that this runs on.
bool IsThisMachine(const std::vector<json::SharedValue>& nodes) {
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  if (!boot.ok() || nodes.empty()) return false;
  return std::all_of(nodes.begin(), nodes.end(), [&boot](const json::SharedValue& node) {
    return !api::Annotation(*node, api::keys::kStartedBy).empty() &&
           json::GetString(*node, {"status", "nodeInfo", "bootID"}) == Trim(*boot);
  });
}

KeyValues Environment() {
  KeyValues all;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view pair = *one;
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    all.emplace_back(std::string(pair.substr(0, equals)), std::string(pair.substr(equals + 1)));
  }
  return all;
}

Submitter SubmitterOf(Session& session,
                      const std::vector<json::SharedValue>& nodes,
                      const std::string& user) {
  const auto& getenv = session.env().getenv;
  Submitter submitter;
  submitter.now = session.Now();
  submitter.user = user;
  submitter.home = getenv("HOME");
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) submitter.host = host.data();
  submitter.directory = getenv("PWD");
  if (submitter.directory.empty() || submitter.directory[0] != '/') {
    std::error_code failed;
    submitter.directory = std::filesystem::current_path(failed).string();
  }
  submitter.here = IsThisMachine(nodes);
  if (submitter.here) {
    submitter.uid = ::geteuid();
    submitter.gid = ::getegid();
    std::error_code failed;
    submitter.program = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  }
  submitter.environment = Environment();
  submitter.command_line = session.global().command_line;
  return submitter;
}

// Where the project lets its members mount a directory above one that the job needs, that one is
// mounted: paths count as they are written.
void MountAllowed(const json::Value& project, BatchJob& job) {
  std::vector<std::string> paths;
  for (const std::string& path : job.host_paths) {
    std::string mounted = path;
    for (const json::Value& one : json::GetArray(project, {"spec", "allowedHostPaths"})) {
      const std::string allowed(json::GetString(one, {"path"}));
      const bool above = allowed.size() > 1 && IsBelow(path, allowed);
      if (above && path.find(':') == std::string::npos && !json::GetBool(one, {"readOnly"})) {
        mounted = allowed;
        break;
      }
    }
    if (std::find(paths.begin(), paths.end(), mounted) == paths.end()) paths.push_back(mounted);
  }
  job.host_paths = std::move(paths);
}

// The project whose quota it uses, and the namespace.
Status FillProject(Session& session, Api& api, const std::string& account, BatchJob& job) {
  job.ns = session.Namespace();
  auto tree = ReadProjects(api);
  // A user who may not read projects has no use for their names.
  if (!tree.ok()) return account.empty() ? Status::Ok() : tree.status().WithContext("--account");
  if (account.empty()) {
    const ProjectView* own = tree->OfNamespace(job.ns);
    if (own == nullptr) return Status::Ok();
    SWELL_RETURN_IF_ERROR(CheckTakesWork(*own));
    job.project = own->name;
    MountAllowed(*own->object, job);
    return Status::Ok();
  }
  auto project = FindProject(*tree, account);
  if (!project.ok()) return project.status().WithContext("--account");
  if (project->department) {
    return Misuse(StrCat("--account ", Quote(account),
                         " is a department; its jobs run in one of "
                         "its projects (swell project list)"));
  }
  SWELL_RETURN_IF_ERROR(CheckTakesWork(*project).WithContext("--account"));
  job.project = project->name;
  MountAllowed(*project->object, job);
  if (session.global().ns.empty() && !project->ns.empty()) job.ns = project->ns;
  return Status::Ok();
}

// A refusal of the directories that the job mounts says who can allow them, and how to do without.
Status ExplainRefusal(const BatchJob& job, Status status) {
  const bool of_paths = status.message().find("PodSecurity") != std::string::npos &&
                        status.message().find("hostPath") != std::string::npos;
  if (!of_paths || job.host_paths.empty()) return status;
  const std::string project = job.project.empty() ? job.ns : job.project;
  const bool root = status.message().find("hostUsers") != std::string::npos;
  return Status(
      status.code(),
      StrCat("the job uses directories of this machine, ", Join(job.host_paths, " and "),
             ", which the project ", project,
             " does not allow its members. An administrator allows them: swell project edit ",
             project, " --allow-host-path ", job.host_paths.front(), " (or a directory above it)",
             ". A job does without them with --no-container-mount-home --chdir=/; its output is "
             "in swell logs",
             root ? ". And you are root here: only administrators run jobs of the machine's root; "
                    "submit as another user of this machine"
                  : ""));
}

// The account with which the job's script asks the cluster, where the namespace has one. A user who
// may not look it up does without.
void FillAccount(Api& api, BatchJob& job) {
  const auto found = api.Get(client::resources::kServiceAccounts, job.ns, api::keys::kJobAccount);
  if (found.ok()) job.service_account = api::keys::kJobAccount;
}

// "normal" is the class that every cluster of Slurm has.
Status FillQos(Api& api, BatchJob& job) {
  if (job.qos == "normal") {
    auto there = api.Get(client::resources::kPriorityClasses, "", job.qos);
    if (there.status().code() == Code::kNotFound) job.qos.clear();
  }
  return CheckPriorityClass(api, job.qos, "--qos");
}

// Jobs that may be waited for: those that are there, and those that were cancelled.
struct KnownJobs {
  std::vector<JobInfo> there, cancelled;
};

Result<KnownJobs> ReadKnownJobs(Api& api, const std::string& ns) {
  KnownJobs known;
  SWELL_ASSIGN_OR_RETURN(known.there, ListJobInfos(api, ns));
  SWELL_ASSIGN_OR_RETURN(known.cancelled, ListRecords(api, ns));
  return known;
}

// "afterok:12:13_4" as the names of these jobs' objects; of an array, all of its tasks. What a
// cancelled job fulfils already is left out; empty: nothing is left. `task`: the index of the
// waiting task; with aftercorr it waits for the task of the same index only.
Result<std::string> DependencyTerm(const KnownJobs& jobs,
                                   const std::string& ns,
                                   const std::string& term,
                                   std::optional<int64_t> task) {
  const std::vector<std::string_view> parts = Split(term, ':');
  std::string type = ToLower(parts.empty() ? "" : parts[0]);
  if (type == "afterburstbuffer") {
    return Misuse(StrCat("--dependency ", type,
                         " is not supported; name the jobs: afterok:JOB, or afterany:JOB"));
  }
  const bool paired = type == "aftercorr";
  if (paired) type = "afterok";
  if (paired && !task) {
    return Misuse(StrCat("--dependency ", Quote(term),
                         ": aftercorr pairs the tasks of two arrays, and this job has no --array; "
                         "afterok waits for all tasks of the other"));
  }
  const bool known =
      type == "after" || type == "afterok" || type == "afterany" || type == "afternotok";
  if (!known || parts.size() < 2) {
    return Misuse(StrCat("--dependency ", Quote(term),
                         ": expected singleton, or after, afterok, afterany, afternotok or "
                         "aftercorr with numbers of jobs, like afterok:12:13"));
  }
  std::string names;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string word = paired ? StrCat(parts[i], "_", *task) : std::string(parts[i]);
    if (word.find('+') != std::string::npos) {
      return Misuse(StrCat("--dependency ", Quote(term), ": a delay after ",
                           word.substr(0, word.find('+')),
                           " is not supported; --begin now+10minutes sets a time"));
    }
    SWELL_ASSIGN_OR_RETURN(const JobChoice choice, ParseJobChoice(word));
    bool any = false;
    // An array fails as a whole: what waits for that waits for all of its tasks.
    const std::string_view more = type == "afternotok" && choice.tasks.empty() ? "+" : ":";
    for (const JobInfo& job : jobs.there) {
      if (!choice.Takes(job)) continue;
      if (job.view.ns != ns) {
        return Misuse(StrCat("--dependency ", Quote(term), ": job ", word, " is in the namespace ",
                             job.view.ns, ", and this one in ", ns,
                             "; jobs wait for others of their own project"));
      }
      names += StrCat(any ? more : ":", job.view.name);
      any = true;
    }
    for (const JobInfo& job : jobs.cancelled) {
      if (!choice.Takes(job)) continue;
      any = true;
      // It has ended, and has not succeeded.
      if (type == "afterok") names += StrCat(":", job.view.name);
    }
    if (!any) {
      return Status(Code::kNotFound, StrCat("--dependency ", Quote(term), ": there is no job ",
                                            word, "; sacct lists jobs that are over, too"));
    }
  }
  return names.empty() ? names : type + names;
}

// After all jobs of the same name and user that have not ended.
std::string SingletonTerm(const KnownJobs& jobs, const BatchJob& job) {
  std::string names;
  for (const JobInfo& other : jobs.there) {
    if (other.state.active && other.name == job.name && other.user == job.user) {
      names += StrCat(":", other.view.name);
    }
  }
  return names.empty() ? names : "afterany" + names;
}

// What a job waits for, or the task of an array; empty: nothing.
Result<std::string> StartAfter(const KnownJobs& jobs,
                               const BatchJob& job,
                               const std::string& text,
                               std::optional<int64_t> task) {
  const bool any = text.find('?') != std::string::npos;
  if (any && text.find(',') != std::string::npos) {
    return Misuse(StrCat("--dependency ", Quote(text),
                         ": all terms are between commas, or all between question marks"));
  }
  std::vector<std::string> terms;
  for (std::string_view term : Split(text, any ? '?' : ',')) {
    std::string one;
    if (ToLower(term) == "singleton") {
      one = SingletonTerm(jobs, job);
    } else {
      SWELL_ASSIGN_OR_RETURN(one, DependencyTerm(jobs, job.ns, std::string(term), task));
    }
    // One that is fulfilled is enough, where any will do.
    if (one.empty() && any) return std::string();
    if (!one.empty()) terms.push_back(std::move(one));
  }
  return Join(terms, any ? "?" : ",");
}

Status FillGate(Session& session, Api& api, const BatchFlags& flags, BatchJob& job) {
  if (flags.Has("begin")) {
    SWELL_ASSIGN_OR_RETURN(const WallTime begin,
                           ParseBegin("--begin", flags.Text("begin"), session.Now()));
    if (begin > session.Now()) job.gate.not_before = begin;
  }
  const std::string& kill = flags.Text("kill-on-invalid-dep");
  if (!kill.empty() && kill != "yes" && kill != "no") {
    return Misuse(StrCat("--kill-on-invalid-dep ", Quote(kill), ": expected yes or no"));
  }
  job.gate.fail_if_never = kill == "yes";
  const std::string& text = flags.Text("dependency");
  if (text.empty()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const KnownJobs jobs, ReadKnownJobs(api, job.ns));
  const bool differs = flags.Has("array") && ToLower(text).find("aftercorr") != std::string::npos;
  if (!differs) {
    SWELL_ASSIGN_OR_RETURN(job.gate.start_after, StartAfter(jobs, job, text, std::nullopt));
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(const ArrayRange range, ParseArrayRange("--array", flags.Text("array")));
  for (const int64_t task : range.ids) {
    SWELL_ASSIGN_OR_RETURN(job.start_after_of_task[std::to_string(task)],
                           StartAfter(jobs, job, text, task));
  }
  return Status::Ok();
}

// Empty where the user may not see them. Within a job that is the end: its account may do no more.
Result<std::vector<json::SharedValue>> SeenNodes(Session& session, Api& api, bool own_image) {
  auto nodes = api.List(client::resources::kNodes, "");
  if (nodes.ok() && nodes->empty() && !own_image) {
    return Status(Code::kUnavailable,
                  "the cluster has no nodes yet; sinfo shows them when they are there");
  }
  if (nodes.ok() || nodes.status().code() != Code::kForbidden) return nodes;
  if (session.env().getenv("SLURM_JOB_ID").empty()) return std::vector<json::SharedValue>{};
  return ExplainInJob(session, nodes.status());
}

}  // namespace

Result<Submission> PrepareSubmission(Session& session,
                                     const BatchFlags& flags,
                                     const std::string& command,
                                     bool writes_file) {
  Submission submission;
  SWELL_ASSIGN_OR_RETURN(submission.api, session.Server());
  Api& api = *submission.api;
  SWELL_ASSIGN_OR_RETURN(const std::vector<json::SharedValue> nodes,
                         SeenNodes(session, api, flags.Has("container-image")));
  SWELL_ASSIGN_OR_RETURN(std::vector<KeyValues> pools, PoolChoices(api, flags.Text("partition")));
  SWELL_ASSIGN_OR_RETURN(const std::vector<KeyValues> named, NodeChoices(nodes, pools, flags));
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> excluded, ExcludedNodes(nodes, flags));
  std::vector<NodeView> suited = ViewNodes(nodes, {});
  std::erase_if(suited, [&](const NodeView& node) {
    return !Suits(*node.object, pools) || !Suits(*node.object, named) ||
           std::find(excluded.begin(), excluded.end(), node.name) != excluded.end();
  });
  if (suited.empty() && !nodes.empty() && !excluded.empty()) {
    return Status(Code::kConflict,
                  "Requested node configuration is not available: --exclude leaves no node of "
                  "--partition and --nodelist");
  }
  const Capacity capacity = CapacityOf(suited);
  SWELL_ASSIGN_OR_RETURN(Layout layout, ReadLayout(flags, capacity));
  SWELL_ASSIGN_OR_RETURN(const std::string me, Me(session, api));
  Submitter submitter = SubmitterOf(session, nodes, me);
  const std::string_view program = writes_file ? "sbatch" : "srun";
  if (const Status fits = CheckFits(layout, capacity); !fits.ok()) {
    // Elsewhere nodes may yet come.
    if (submitter.here) return fits;
    session.ErrLine(StrCat(program, ": warning: ", fits.message()));
  }
  submitter.writes_file = writes_file;
  SWELL_ASSIGN_OR_RETURN(submission.job,
                         ReadBatchJob(flags, submitter, std::move(layout), command));
  BatchJob& job = submission.job;
  SWELL_RETURN_IF_ERROR(FillProject(session, api, flags.Text("account"), job));
  FillAccount(api, job);
  SWELL_RETURN_IF_ERROR(FillQos(api, job));
  job.excluded_nodes = excluded;
  SWELL_RETURN_IF_ERROR(Narrow(job.node_choices, pools));
  SWELL_RETURN_IF_ERROR(Narrow(job.node_choices, named));
  SWELL_ASSIGN_OR_RETURN(const std::vector<KeyValues> feature, FeatureChoices(nodes, flags));
  SWELL_RETURN_IF_ERROR(Narrow(job.node_choices, feature));
  SWELL_ASSIGN_OR_RETURN(const std::vector<KeyValues> gpus, GpuChoices(nodes, job.layout.gpu_type));
  SWELL_RETURN_IF_ERROR(Narrow(job.node_choices, gpus));
  SWELL_RETURN_IF_ERROR(FillGate(session, api, flags, job));
  if (!flags.Has("quiet")) {
    for (const std::string& text : flags.Warnings()) {
      session.ErrLine(StrCat(program, ": warning: ", text));
    }
  }
  return submission;
}

Result<SubmittedJob> SubmitOne(const Submission& submission, JobNumber number) {
  Api& api = *submission.api;
  const BatchJob& job = submission.job;
  auto map = api.Create(client::resources::kConfigMaps, job.ns, MakeScriptMap(job));
  if (!map.ok()) return map.status();
  SubmittedJob submitted{
      .id = std::string(api::ResourceVersionText(**map)), .name = {}, .ns = job.ns};
  const std::string map_name(api::Name(**map));
  number.id = submitted.id;
  // The first of an array gives it its number.
  if (!number.task_id.empty() && number.array_id.empty()) number.array_id = number.id;
  const auto create = [&]() -> Result<json::SharedValue> {
    SWELL_ASSIGN_OR_RETURN(const json::Value document, MakeJob(job, number, map_name));
    const JobKindInfo* kind = KindOfJob(document);
    if (kind == nullptr) {
      return Status(Code::kInternal, StrCat("no kind of job is called ", api::KindOf(document)));
    }
    return CreateJob(api, kind->resource, job.ns, document, {.field_validation = "Strict"},
                     submitted.restricted, "");
  };
  auto made = create();
  if (!made.ok()) {
    // What the server says of the job matters more than what it says of the clean-up.
    std::ignore = api.Delete(client::resources::kConfigMaps, job.ns, map_name);
    return ExplainRefusal(job, made.status());
  }
  submitted.name = api::Name(**made);
  json::Value owned;
  json::Set(owned, {"metadata", "labels", kJobId}, number.id);
  json::Set(owned, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(**made)});
  auto patched =
      api.Patch(client::resources::kConfigMaps, job.ns, map_name, client::PatchType::kMerge, owned);
  if (!patched.ok()) return patched.status();
  return submitted;
}

Result<int> ShowPlan(Session& session, Submission& submission) {
  submission.job.gate = {};
  SWELL_ASSIGN_OR_RETURN(const json::Value job,
                         MakeJob(submission.job, {.id = "0"}, "slurm-job-0"));
  SWELL_RETURN_IF_ERROR(ExplainRefusal(submission.job, PrintPlan(session, *submission.api, job)));
  return 0;
}

Result<int> WaitForEnd(Session& session, Api& api, const SubmittedJob& job) {
  for (;;) {
    auto found = FindJob(api, job.ns, job.name);
    if (found.status().code() == Code::kNotFound) {
      session.ErrLine(StrCat("job ", job.id, " was cancelled"));
      return 1;
    }
    if (!found.ok()) return found.status();
    if (found->over()) {
      if (found->status == "Succeeded") return 0;
      const JobInfo info = InfoOf(std::move(*found));
      // The exit status says what the script said.
      if (info.state.code != kFailed.code || info.exit_code == 0) {
        session.ErrLine(StrCat("job ", job.id, " ", info.state.word,
                               info.view.message.empty() ? "" : StrCat(": ", info.view.message)));
      }
      const int64_t signal = info.exit_signal > 0 ? 128 + info.exit_signal : 0;
      return static_cast<int>(info.exit_code > 0 ? info.exit_code : signal > 0 ? signal : 1);
    }
    if (!api.Pause(kLookInterval)) return 130;
  }
}

void AcceptSwitches(Flags& flags,
                    bool* ignored,
                    std::initializer_list<std::pair<const char*, const char*>> switches) {
  for (const auto& [name, why] : switches) {
    flags.Switch(name, ignored, StrCat("accepted; ", why)).hidden = true;
  }
}

}  // namespace swell::cli::slurm
