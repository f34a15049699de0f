// scontrol: shows jobs, nodes and partitions in full, holds, releases and changes jobs.
#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_keys.h"
#include "cli/slurm/values.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::slurm {
namespace {

std::string OrNull(const std::string& text) { return text.empty() ? "(null)" : text; }
std::string YesNo(bool yes) { return yes ? "1" : "0"; }

std::string JobText(const JobInfo& job, WallTime now) {
  const int64_t gpus = job.milli_gpus;
  std::string tres = StrCat("cpu=", job.cpus, ",node=", job.nodes);
  if (job.memory_mib > 0) tres += StrCat(",mem=", job.memory_mib * job.nodes, "M");
  if (gpus > 0) tres += StrCat(",gres/gpu=", GpuText(gpus));
  std::string array;
  if (!job.array_id.empty()) {
    array = StrCat(" ArrayJobId=", job.array_id, " ArrayTaskId=", job.task_id);
  }
  const std::string limit =
      job.time_limit_s > 0 ? LongTimeText(std::chrono::seconds(job.time_limit_s)) : "UNLIMITED";
  std::optional<WallTime> end = job.state.active ? std::nullopt : job.ended;
  if (!end && job.started && job.time_limit_s > 0) {
    end = *job.started + std::chrono::seconds(job.time_limit_s);
  }
  std::string text = StrCat(
      "JobId=", job.id, array, " JobName=", job.name, "\n   UserId=", job.user,
      " Account=", OrNull(job.account), " QOS=", OrNull(job.qos), "\n   JobState=", job.state.word,
      " Reason=", job.reason, " Dependency=", OrNull(job.dependency),
      "\n   Requeue=", YesNo(job.view.on_preemption != "Fail"), " ExitCode=", job.exit_code, ":",
      job.exit_signal, "\n   RunTime=", LongTimeText(job.Elapsed(now).value_or(Duration(0))),
      " TimeLimit=", limit, "\n   SubmitTime=", WhenText(job.submitted),
      "\n   StartTime=", WhenText(job.started), " EndTime=", WhenText(end),
      "\n   Partition=", OrNull(job.partition),
      "\n   NodeList=", OrNull(CompressNames(job.node_list)), "\n   NumNodes=", job.nodes,
      " NumCPUs=", job.cpus, " NumTasks=", job.tasks, "\n   ReqTRES=", tres,
      "\n   Command=", OrNull(job.command), "\n   WorkDir=", OrNull(job.work_dir),
      "\n   StdErr=", OrNull(job.std_err), "\n   StdOut=", OrNull(job.std_out), "\n");
  if (!job.comment.empty()) text += StrCat("   Comment=", job.comment, "\n");
  // Slurm has a word for it; the scheduler has a sentence.
  text += StrCat("   Object=", job.view.ResourceName(), " Namespace=", job.view.ns, "\n");
  std::string why = job.waits;
  if (job.view.status == "Failed" && job.view.failure) {
    why = OneLine(job.view.failure->Sentence());
  }
  if (!why.empty()) text += StrCat("   Why=", why, "\n");
  return text;
}

std::string NodeText(const NodeView& node) {
  std::string text = StrCat(
      "NodeName=", node.name, "\n   CPUAlloc=", (node.used.milli_cpu + 999) / 1000,
      " CPUTot=", node.total.milli_cpu / 1000, "\n   Gres=", GresOf(node),
      "\n   NodeAddr=", OrNull(node.address), "\n   RealMemory=", node.total.memory >> 20,
      " AllocMem=", node.used.memory >> 20, "\n   State=", ToUpper(StateOf(node).word),
      "\n   CfgTRES=cpu=", node.total.milli_cpu / 1000, ",mem=", node.total.memory >> 20, "M");
  if (node.gpus() > 0) text += StrCat(",gres/gpu=", node.gpus());
  text += StrCat("\n   AllocTRES=cpu=", (node.used.milli_cpu + 999) / 1000,
                 ",mem=", node.used.memory >> 20, "M");
  if (node.used.milli_gpus > 0) text += StrCat(",gres/gpu=", GpuText(node.used.milli_gpus));
  if (!StateOf(node).usable) text += StrCat("\n   Reason=", OneLine(ReasonOf(node)));
  return text + "\n";
}

std::string PartitionText(const Partition& partition) {
  std::vector<std::string> names;
  int64_t cpus = 0, gpus = 0;
  for (const NodeView* node : partition.nodes) {
    names.push_back(node->name);
    cpus += node->total.milli_cpu / 1000;
    gpus += node->gpus();
  }
  return StrCat("PartitionName=", partition.name, "\n   Default=", partition.usual ? "YES" : "NO",
                " MaxTime=UNLIMITED State=UP\n   Nodes=", OrNull(CompressNames(names)),
                "\n   TotalCPUs=", cpus, " TotalNodes=", names.size(), "\n   TRES=cpu=", cpus,
                ",node=", names.size(), ",gres/gpu=", gpus, "\n");
}

// The jobs that a user names; kNotFound for one that does not exist.
Result<std::vector<JobInfo>> Named(Session& session,
                                   Api& api,
                                   const std::vector<std::string>& words) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> all, ListShownJobs(session, api));
  std::vector<JobInfo> named;
  for (const std::string& list : words) {
    for (const std::string& word : CommaList(list)) {
      SWELL_ASSIGN_OR_RETURN(const JobChoice choice, ParseJobChoice(word));
      const size_t before = named.size();
      std::copy_if(all.begin(), all.end(), std::back_inserter(named),
                   [&choice](const JobInfo& job) { return choice.Takes(job); });
      if (named.size() == before) {
        return Status(Code::kNotFound,
                      StrCat("Invalid job id ", word, "; squeue lists the jobs that wait or run"));
      }
    }
  }
  return named;
}

class ShowAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-o,--oneliner", &one_line_, "a line for each object");
    flags.Switch("-d,--details", &ignored_, "accepted").hidden = true;
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) return Misuse("expected job, node, partition or hostnames");
    std::string what = ToLower(words[0]);
    words.erase(words.begin());
    // "show jobid=12" and "show job=12", too.
    if (const size_t equals = what.find('='); equals != std::string::npos) {
      words.insert(words.begin(), what.substr(equals + 1));
      what.resize(equals);
    }
    const std::string typed = what;
    if (what.ends_with('s') && what != "hostnames") what.pop_back();
    if (what == "jobid") what = "job";
    if (what == "nodename") what = "node";
    if (what == "hostnames" || what == "hostname") return ShowHostnames(session, words);
    if (what == "hostlist" || what == "hostlistsorted") return ShowHostlist(session, words);
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    if (what == "job") return ShowJobs(session, *api, words);
    if (what == "node") return ShowNodes(session, *api, words);
    if (what == "partition") return ShowPartitions(session, *api, words);
    if (what == "step") {
      return Misuse("show steps: nothing records steps; swell logs JOB shows what they print");
    }
    if (what == "reservation" || what == "license") {
      return Misuse(StrCat("show ", typed, ": there are none here; a node pool is a partition"));
    }
    if (what == "config") {
      return Misuse(
          "show config: there is no slurm.conf; swell status says what this cluster is, scontrol "
          "show partition its partitions, and swell project list its limits");
    }
    return Misuse(StrCat("show ", Quote(typed), ": expected job, node, partition or hostnames"));
  }

 private:
  void Print(Session& session, std::string text) const {
    if (one_line_) {
      std::string line;
      for (std::string_view part : Split(text, '\n')) {
        if (Trim(part).empty()) continue;
        line += StrCat(line.empty() ? "" : " ", Trim(part));
      }
      text = line;
    }
    session.Out(text + "\n");
  }

  Result<int> ShowHostnames(Session& session, const std::vector<std::string>& words) const {
    const std::string list =
        words.empty() ? session.env().getenv("SLURM_JOB_NODELIST") : Join(words, ",");
    SWELL_ASSIGN_OR_RETURN(const auto names, ExpandNames("hostnames", list));
    for (const std::string& name : names) session.OutLine(name);
    return 0;
  }

  // The other way round.
  Result<int> ShowHostlist(Session& session, const std::vector<std::string>& words) const {
    if (words.empty()) return Misuse("show hostlist: expected names of nodes: node-1,node-2");
    SWELL_ASSIGN_OR_RETURN(auto names, ExpandNames("hostlist", Join(words, ",")));
    session.OutLine(CompressNames(std::move(names)));
    return 0;
  }

  Result<int> ShowJobs(Session& session, Api& api, const std::vector<std::string>& words) const {
    std::vector<JobInfo> jobs;
    if (words.empty()) {
      SWELL_ASSIGN_OR_RETURN(jobs, ListShownJobs(session, api));
    } else {
      SWELL_ASSIGN_OR_RETURN(jobs, Named(session, api, words));
    }
    if (jobs.empty()) session.OutLine("No jobs in the system");
    for (const JobInfo& job : jobs) Print(session, JobText(job, session.Now()));
    return 0;
  }

  Result<int> ShowNodes(Session& session, Api& api, const std::vector<std::string>& words) const {
    SWELL_ASSIGN_OR_RETURN(const auto names, ExpandNames("node", Join(words, ",")));
    SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadNodesToShow(session, api, names));
    for (const NodeView& node : nodes) Print(session, NodeText(node));
    return 0;
  }

  Result<int> ShowPartitions(Session& session,
                             Api& api,
                             const std::vector<std::string>& words) const {
    SWELL_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadNodesToShow(session, api));
    SWELL_ASSIGN_OR_RETURN(const auto partitions, ReadPartitions(api, nodes));
    bool any = false;
    for (const Partition& one : partitions) {
      if (!words.empty() && std::find(words.begin(), words.end(), one.name) == words.end()) {
        continue;
      }
      any = true;
      Print(session, PartitionText(one));
    }
    if (any) return 0;
    return Status(Code::kNotFound, StrCat("Partition ", words[0], " not found"));
  }

  bool one_line_ = false, ignored_ = false;
};

Status Annotate(Api& api, const JobInfo& job, std::string_view key, json::Value value) {
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "annotations", key}, std::move(value));
  auto done = api.Patch(job.view.kind->resource, job.view.ns, job.view.name,
                        client::PatchType::kMerge, patch);
  return done.ok() ? Status::Ok() : done.status();
}

Status SetHeld(Api& api, const JobInfo& job, bool held) {
  SWELL_RETURN_IF_ERROR(
      Annotate(api, job, api::keys::kHeld, held ? json::Value("user") : json::Value(nullptr)));
  // A job that also waits for other jobs stays suspended until these have ended.
  if (api::Annotation(*job.view.object, api::keys::kGate) == "closed") return Status::Ok();
  return SetSuspended(api, job.view, held).status();
}

class HoldAction final : public Action {
 public:
  explicit HoldAction(bool hold) : hold_(hold) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) return Misuse(StrCat("no job named: scontrol ", Verb(), " JOB"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, Named(session, *api, words));
    const bool some = std::any_of(jobs.begin(), jobs.end(), [](const JobInfo& job) {
      return job.state.code == kPending.code;
    });
    for (const JobInfo& job : jobs) {
      // Those of an array that wait.
      if (hold_ && some && job.state.code != kPending.code) continue;
      if (hold_ && job.state.code != kPending.code) {
        return Status(Code::kConflict, StrCat("job ", job.JobId(), " is ", job.state.word,
                                              ", and only jobs that wait are held; swell suspend ",
                                              job.view.name, " stops one that runs"));
      }
      if (!job.state.active) continue;
      SWELL_RETURN_IF_ERROR(SetHeld(*api, job, hold_));
    }
    return 0;
  }

 private:
  std::string Verb() const { return hold_ ? "hold" : "release"; }
  bool hold_;
};

class RequeueAction final : public Action {
 public:
  // `hold`: they wait until they are released.
  explicit RequeueAction(bool hold) : hold_(hold) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(StrCat("no job named: scontrol ", hold_ ? "requeuehold" : "requeue", " JOB"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, Named(session, *api, words));
    for (const JobInfo& job : jobs) {
      if (job.state.code == kPending.code) {
        if (hold_) SWELL_RETURN_IF_ERROR(SetHeld(*api, job, true));
        continue;
      }
      if (!job.state.active) {
        return Status(Code::kConflict, StrCat("job ", job.JobId(), " is over: ", job.state.word,
                                              "; submit it again with sbatch"));
      }
      if (job.ours) {
        SWELL_RETURN_IF_ERROR(Requeue(*api, job));
        if (hold_) SWELL_RETURN_IF_ERROR(SetHeld(*api, job, true));
        continue;
      }
      if (hold_) {
        SWELL_RETURN_IF_ERROR(SetHeld(*api, job, true));
        continue;
      }
      SWELL_RETURN_IF_ERROR(SetSuspended(*api, job.view, true).status());
      SWELL_ASSIGN_OR_RETURN(const bool stopped, AwaitStopped(*api, job));
      if (!stopped) return 130;
      SWELL_ASSIGN_OR_RETURN(const JobView now, FindJob(*api, job.view.ns, job.view.name));
      if (now.over()) continue;
      SWELL_RETURN_IF_ERROR(SetSuspended(*api, now, false).status());
    }
    return 0;
  }

 private:
  // Its controller stops the pods that have a lesser number, and makes them anew with this one: so
  // they continue the output file, and the script knows.
  static Status Requeue(Api& api, const JobInfo& job) {
    if (job.view.on_preemption == "Fail") {
      return Status(Code::kConflict, StrCat("Requested operation is presently disabled: job ",
                                            job.JobId(), " was submitted with --no-requeue"));
    }
    const std::string_view before = api::Annotation(*job.view.object, api::keys::kRequeues);
    return Annotate(api, job, api::keys::kRequeues,
                    json::Value(std::to_string(ParseInt(before).value_or(0) + 1)));
  }

  // Its pods have their grace period; Ctrl-C ends the wait.
  static Result<bool> AwaitStopped(Api& api, const JobInfo& job) {
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(const JobView now, FindJob(api, job.view.ns, job.view.name));
      if (now.over() || (now.status == "Suspended" && now.pods.empty())) return true;
      if (!api.Pause(std::chrono::milliseconds(200))) return false;
    }
  }

  bool hold_;
};

class UpdateAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    std::string id;
    Changes changes;
    NodeChange node;
    const bool of_nodes = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return ToLower(word).starts_with("nodename=");
    });
    for (size_t i = 0; i < words.size(); ++i) {
      // "JobId 1532", too.
      const bool apart = words[i].find('=') == std::string::npos && i + 1 < words.size();
      const std::string word = apart ? StrCat(words[i], "=", words[i + 1]) : words[i];
      if (apart) ++i;
      const size_t equals = word.find('=');
      const std::string name = ToLower(word.substr(0, equals));
      const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (name == "jobid" || name == "job") {
        id = value;
      } else if (name == "nodename") {
        node.names = value;
      } else if (name == "state") {
        node.state = ToLower(value);
      } else if (name == "reason") {
        node.reason = value;
      } else if (of_nodes) {
        return Misuse(
            StrCat("update ", Quote(word), ": only State and Reason of nodes can be changed"));
      } else {
        SWELL_RETURN_IF_ERROR(Read(name, word, value, session.Now(), changes));
      }
    }
    if (!node.names.empty()) {
      if (!id.empty()) {
        return Misuse("update: JobId= and NodeName= exclude each other");
      }
      return UpdateNodes(session, node);
    }
    if (!node.state.empty() || !node.reason.empty()) {
      return Misuse(
          "State= and Reason= are for nodes: scontrol update NodeName=node-1 State=DRAIN "
          "Reason=disk; scontrol hold keeps a job from starting");
    }
    if (id.empty() || changes.none()) {
      return Misuse(
          "expected JobId= and what to change: scontrol update JobId=1532 TimeLimit=2:00:00");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, Named(session, *api, {id}));
    for (const JobInfo& job : jobs) {
      if (changes.limit_s) SWELL_RETURN_IF_ERROR(SetLimit(*api, job, *changes.limit_s));
      if (changes.at_once) SWELL_RETURN_IF_ERROR(SetAtOnce(*api, job, *changes.at_once));
      if (changes.start) {
        SWELL_RETURN_IF_ERROR(SetStart(*api, job, *changes.start, session.Now()));
      }
    }
    return 0;
  }

 private:
  struct Changes {
    std::optional<int64_t> limit_s, at_once;
    std::optional<WallTime> start;
    bool none() const { return !limit_s && !at_once && !start; }
  };

  struct NodeChange {
    std::string names, state, reason;
  };

  // Pods that run stay; the scheduler puts no others there.
  static Result<int> UpdateNodes(Session& session, const NodeChange& change) {
    const std::string& state = change.state;
    // A reason alone is that of nodes which are drained.
    const bool drain = state == "drain" || state.empty();
    if (!drain && state != "resume" && state != "undrain" && state != "idle") {
      return WrongValue("State", ToUpper(state), {"DRAIN", "RESUME", "UNDRAIN"});
    }
    if (drain && change.reason.empty()) {
      return Misuse(StrCat(state.empty() ? "expected State= or Reason=: State=DRAIN"
                                         : StrCat("State=", ToUpper(state), " needs a reason:"),
                           " Reason='disk is replaced'"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    std::vector<std::string> names;  // none: all nodes
    if (ToLower(change.names) != "all") {
      SWELL_ASSIGN_OR_RETURN(names, ExpandNames("NodeName", change.names));
    }
    SWELL_ASSIGN_OR_RETURN(const auto nodes, ReadNodesToShow(session, *api, names));
    for (const NodeView& node : nodes) {
      if (state.empty() && StateOf(node).usable) {
        return Status(Code::kConflict, StrCat("node ", node.name,
                                              " takes jobs, and has no reason to be changed; "
                                              "State=DRAIN lets it take none"));
      }
      json::Value patch = json::Object{};
      json::Set(patch, {"metadata", "annotations", kDrainReason},
                drain ? json::Value(change.reason) : json::Value(nullptr));
      if (!state.empty()) {
        json::Set(patch, {"spec", "unschedulable"},
                  drain ? json::Value(true) : json::Value(nullptr));
      }
      SWELL_RETURN_IF_ERROR(
          api->Patch(client::resources::kNodes, "", node.name, client::PatchType::kMerge, patch)
              .status());
      if (!drain && node.unhealthy) {
        session.ErrLine(StrCat("scontrol: node ", node.name,
                               " still gets no jobs: it is unhealthy (", OneLine(ReasonOf(node)),
                               "); swell node clear ", node.name, " forgets that"));
      }
    }
    return 0;
  }

  static Status Read(const std::string& name,
                     const std::string& word,
                     const std::string& value,
                     WallTime now,
                     Changes& changes) {
    if (name == "timelimit") {
      SWELL_ASSIGN_OR_RETURN(changes.limit_s, ParseTimeLimit("TimeLimit", value));
    } else if (name == "arraytaskthrottle") {
      SWELL_ASSIGN_OR_RETURN(changes.at_once, ParseCount("ArrayTaskThrottle", value, 0));
    } else if (name == "starttime" || name == "eligibletime") {
      SWELL_ASSIGN_OR_RETURN(changes.start, ParseBegin("StartTime", value, now));
    } else {
      return Misuse(StrCat("update ", Quote(word),
                           ": only TimeLimit, ArrayTaskThrottle and StartTime can be changed; "
                           "cancel the job and submit it again"));
    }
    return Status::Ok();
  }

  // Its controller lets it run when that has come true; null: it no longer waits for that.
  static Status SetWait(Api& api, const JobInfo& job, std::string_view key, json::Value value) {
    json::Value patch = json::Object{};
    if (!value.is_null()) {
      json::Set(patch, {"metadata", "annotations", api::keys::kGate}, "closed");
      api::SetSuspended(patch, job.view.kind->suspend, true);
    }
    json::Set(patch, {"metadata", "annotations", key}, std::move(value));
    return api
        .Patch(job.view.kind->resource, job.view.ns, job.view.name, client::PatchType::kMerge,
               patch)
        .status();
  }

  // Tasks that run are not stopped. 0: as many as there is room for.
  static Status SetAtOnce(Api& api, const JobInfo& job, int64_t at_once) {
    if (job.array_id.empty()) {
      return Status(Code::kConflict, StrCat("job ", job.JobId(),
                                            " is not an array, and ArrayTaskThrottle says how "
                                            "many tasks of an array run at once"));
    }
    if (job.state.code != kPending.code) return Status::Ok();
    return SetWait(api, job, api::keys::kArrayAtOnce,
                   at_once > 0 ? json::Value(std::to_string(at_once)) : json::Value(nullptr));
  }

  static Status SetStart(Api& api, const JobInfo& job, WallTime start, WallTime now) {
    if (job.state.code != kPending.code) {
      return Status(Code::kConflict, StrCat("job ", job.JobId(), " is ", job.state.word,
                                            ", and StartTime is for jobs that wait"));
    }
    return SetWait(api, job, api::keys::kStartNotBefore,
                   start > now ? json::Value(api::FormatTime(start)) : json::Value(nullptr));
  }

  // Kubernetes lets a pod's limit become shorter, and never longer.
  static Status SetLimit(Api& api, const JobInfo& job, int64_t seconds) {
    const bool longer = job.time_limit_s > 0 && (seconds == 0 || seconds > job.time_limit_s);
    if (longer || (seconds == 0 && job.time_limit_s == 0)) {
      return Status(
          Code::kConflict,
          StrCat("job ", job.JobId(), ": its limit of ",
                 job.time_limit_s == 0 ? std::string("UNLIMITED")
                                       : LongTimeText(std::chrono::seconds(job.time_limit_s)),
                 " can be made shorter, not longer; submit it with --time for more"));
    }
    if (!job.ours || !job.state.active) {
      return Status(Code::kConflict, StrCat("job ", job.JobId(), " is ", job.state.word,
                                            ", or was not made by sbatch"));
    }
    auto request = json::Parse(api::Annotation(*job.view.object, kRequest));
    if (!request.ok() || !request->is_object()) request = json::Value(json::Object{});
    json::Set(*request, {"timeLimitSeconds"}, seconds);
    json::Value patch = json::Object{};
    json::Set(patch, {"metadata", "annotations", kRequest}, json::Print(*request));
    // Pods that are made anew after preemption have it, too.
    for (const RoleEntry& role : RolesOf(*job.view.object, *job.view.kind)) {
      json::Set(
          patch,
          {"spec", job.view.kind->roles, role.name, "template", "spec", "activeDeadlineSeconds"},
          seconds);
    }
    auto done = api.Patch(job.view.kind->resource, job.view.ns, job.view.name,
                          client::PatchType::kMerge, patch);
    if (!done.ok()) return done.status();
    json::Value of_pod = json::Object{};
    json::Set(of_pod, {"spec", "activeDeadlineSeconds"}, seconds);
    for (const json::SharedValue& pod : job.view.pods) {
      auto changed = api.Patch(client::resources::kPods, job.view.ns, api::Name(*pod),
                               client::PatchType::kMerge, of_pod);
      if (!changed.ok() && changed.status().code() != Code::kNotFound) return changed.status();
    }
    return Status::Ok();
  }
};

class WriteAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() < 2 || words.size() > 3 || ToLower(words[0]) != "batch_script") {
      return Misuse("expected: scontrol write batch_script JOB [FILE|-]");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobInfo> jobs, Named(session, *api, {words[1]}));
    // The tasks of an array have one script.
    const JobInfo& job = jobs.front();
    SWELL_ASSIGN_OR_RETURN(const std::string script, ScriptOf(*api, job));
    const std::string file = words.size() > 2 ? words[2] : StrCat("slurm-", words[1], ".sh");
    if (file == "-") {
      session.Out(script);
      return 0;
    }
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(file, script));
    session.OutLine(StrCat("batch script for job ", words[1], " written to ", file));
    return 0;
  }

 private:
  static Result<std::string> ScriptOf(Api& api, const JobInfo& job) {
    if (job.ours) {
      SWELL_ASSIGN_OR_RETURN(const auto maps,
                             api.List(client::resources::kConfigMaps, job.view.ns,
                                      {.label_selector = StrCat(kJobId, "=", job.id)}));
      for (const json::SharedValue& map : maps) {
        const std::string_view script = json::GetString(*map, {"data", kScriptKey});
        if (!script.empty()) return std::string(script);
      }
    }
    return Status(Code::kNotFound,
                  StrCat("job ", job.JobId(), " has no script; kubectl get ",
                         job.view.ResourceName(), " -n ", job.view.ns, " -o yaml shows the job"));
  }
};

// What Slurm's scontrol can do, and what does its work here.
struct MissingCommand {
  std::string_view name, instead;
};

constexpr MissingCommand kMissing[] = {
    {"suspend", "scontrol requeuehold JOB stops a job and frees its GPUs until scontrol release"},
    {"resume", "scontrol release JOB lets a job start that is held"},
    {"top", "--qos CLASS sets the priority among a project's jobs"},
    {"notify", "a job hears signals: scancel -s USR1 JOB"},
    {"cancel", "scancel JOB ends it"},
    {"create", "swell nodepool create makes a partition; there are no reservations"},
    {"delete", "swell nodepool delete removes a partition, and scancel JOB ends a job"},
    {"reconfigure", "there is no slurm.conf; swell status says what this cluster is"},
    {"listpids", "swell exec JOB -- ps ax lists the processes of a job"},
    {"version", "scontrol --version prints it"}};

class MissingAction final : public Action {
 public:
  explicit MissingAction(const MissingCommand& command) : command_(command) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.ErrLine(StrCat("scontrol ", command_.name, " is not supported: ", command_.instead));
    return 2;
  }

 private:
  const MissingCommand& command_;
};

class PingAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_RETURN_IF_ERROR(api->Call({.method = "GET", .path = "/readyz"}).status());
    session.OutLine(StrCat("The cluster at ", api->connection().url, " is UP"));
    return 0;
  }
};

Command Child(std::string name, std::string summary, std::string usage) {
  Command command;
  command.name = std::move(name);
  command.summary = std::move(summary);
  command.usage = std::move(usage);
  return command;
}

}  // namespace

Command ScontrolSpec() {
  Command command;
  command.name = "scontrol";
  command.summary = "Show jobs, nodes and partitions in full; hold, release and change jobs.";
  command.examples = {{"All about a job", "scontrol show job 1532"},
                      {"Let it wait, then start", "scontrol hold 1532; scontrol release 1532"}};
  Command show = Child("show", "Show jobs, nodes, partitions, or the names in a list of nodes.",
                       "job|node|partition|hostnames [NAME...]");
  show.make = Makes<ShowAction>();
  Command hold = Child("hold", "Keep jobs that wait from starting.", "JOB...");
  hold.make = [] { return std::make_unique<HoldAction>(true); };
  Command release = Child("release", "Let held jobs start.", "JOB...");
  release.make = [] { return std::make_unique<HoldAction>(false); };
  hold.aliases = {"uhold"};
  Command requeue =
      Child("requeue", "Stop jobs that run, and let them wait and start again.", "JOB...");
  requeue.make = [] { return std::make_unique<RequeueAction>(false); };
  Command requeue_hold =
      Child("requeuehold", "Stop jobs that run, and hold them until they are released.", "JOB...");
  requeue_hold.make = [] { return std::make_unique<RequeueAction>(true); };
  Command update =
      Child("update",
            "Make a job's time limit shorter, or change how many tasks of an array run at once, or "
            "when a job that waits starts at the earliest. Or let nodes take no more jobs, or take "
            "them again.",
            "JobId=JOB TimeLimit=LIMIT|ArrayTaskThrottle=N|StartTime=WHEN... | "
            "NodeName=NODES State=DRAIN Reason=WHY|State=RESUME");
  update.make = Makes<UpdateAction>();
  Command write = Child("write", "Write a job's script to slurm-JOB.sh, a file, or the output (-).",
                        "batch_script JOB [FILE|-]");
  write.make = Makes<WriteAction>();
  Command ping = Child("ping", "Say whether the cluster answers.", "");
  ping.make = Makes<PingAction>();
  command.children = {std::move(show),    std::move(hold),         std::move(release),
                      std::move(requeue), std::move(requeue_hold), std::move(update),
                      std::move(write),   std::move(ping)};
  for (const MissingCommand& one : kMissing) {
    Command missing = Child(std::string(one.name), "Not supported.", "");
    missing.hidden = true;
    missing.raw = true;
    missing.make = [&one] { return std::make_unique<MissingAction>(one); };
    command.children.push_back(std::move(missing));
  }
  return command;
}

}  // namespace swell::cli::slurm
