#include "cli/slurm/batch_job.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/strings.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/jobs/training_spec.h"
#include "cli/jobs/what_if.h"
#include "cli/slurm/pod_scripts.h"
#include "cli/slurm/slurm_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::slurm {
namespace {

constexpr size_t kNameMax = 36;  // of a name that a number and a pod's role follow
constexpr int64_t kNodesMax = 1000;
constexpr int64_t kTasksMax = 100'000;
constexpr int kExecutable = 0555;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Result<int64_t> CountOf(const BatchFlags& flags, std::string_view name) {
  if (!flags.Has(name)) return 0;
  return ParseCount(StrCat("--", name), flags.Text(name), 1);
}

// "4", or "4-8", of which the least counts.
Result<int64_t> NodesOf(const BatchFlags& flags) {
  if (!flags.Has("nodes")) return 0;
  const std::string& text = flags.Text("nodes");
  const size_t dash = text.find('-');
  auto count = ParseCount("--nodes", text.substr(0, dash), 1);
  if (!count.ok() || *count > kNodesMax) {
    return Misuse(StrCat("--nodes ", Quote(text), ": expected a number from 1 to ", kNodesMax));
  }
  if (dash != std::string::npos) {
    const auto most = ParseCount("--nodes", text.substr(dash + 1), *count);
    if (!most.ok()) {
      return Misuse(StrCat("--nodes ", Quote(text), ": expected the least first, like 2-5"));
    }
  }
  return *count;
}

// What flags say of GPUs: of each node, of each task, of all.
struct GpuFlags {
  int64_t node = 0, task = 0, total = 0;
  std::string type;
};

Result<GpuFlags> ReadGpus(const BatchFlags& flags) {
  GpuFlags gpus;
  const auto take = [&gpus](int64_t& to, const GpuRequest& request) {
    to = request.count;
    if (!request.type.empty()) gpus.type = request.type;
  };
  if (flags.Has("gres")) {
    SWELL_ASSIGN_OR_RETURN(const GpuRequest request, ParseGres(flags.Text("gres")));
    take(gpus.node, request);
  }
  for (const auto& [name, to] : {std::pair("gpus-per-node", &gpus.node),
                                 {"gpus-per-task", &gpus.task},
                                 {"gpus", &gpus.total}}) {
    if (!flags.Has(name)) continue;
    SWELL_ASSIGN_OR_RETURN(const GpuRequest request,
                           ParseGpuRequest(StrCat("--", name), flags.Text(name)));
    take(*to, request);
  }
  if (flags.Has("gpus-per-node") && flags.Has("gres")) {
    SWELL_ASSIGN_OR_RETURN(const GpuRequest other, ParseGres(flags.Text("gres")));
    if (other.count != gpus.node) {
      return Misuse("--gpus-per-node and --gres say different numbers of GPUs; give one of them");
    }
  }
  return gpus;
}

// As few nodes as hold `count` pieces, of which a node has room for `most` (0: unknown).
int64_t NodesFor(int64_t count, int64_t most) {
  return count <= 0 || most <= 0 ? 1 : CeilDiv(count, most);
}

// As few nodes as hold the GPUs and the tasks.
int64_t FewestNodes(const GpuFlags& gpus,
                    int64_t tasks,
                    const Layout& layout,
                    const Capacity& capacity) {
  int64_t most = capacity.gpus_most();
  if (layout.cpus_per_gpu > 0 && capacity.cpus_most() > 0) {
    most = std::min(most, capacity.cpus_most() / layout.cpus_per_gpu);
  }
  int64_t nodes = gpus.task > 0 ? NodesFor(tasks, most / gpus.task) : NodesFor(gpus.total, most);
  if (gpus.task > 0 && tasks == 0) nodes = NodesFor(gpus.total, most / gpus.task * gpus.task);
  return std::max(
      nodes, NodesFor(tasks, capacity.cpus_most() / std::max<int64_t>(1, layout.cpus_per_task)));
}

Status FillNodes(const BatchFlags& flags,
                 const GpuFlags& gpus,
                 const Capacity& capacity,
                 Layout& layout) {
  SWELL_ASSIGN_OR_RETURN(const int64_t nodes, NodesOf(flags));
  SWELL_ASSIGN_OR_RETURN(const int64_t tasks, CountOf(flags, "ntasks"));
  SWELL_ASSIGN_OR_RETURN(const int64_t per_node, CountOf(flags, "ntasks-per-node"));
  if (nodes > 0) {
    layout.nodes = nodes;
  } else if (tasks > 0 && per_node > 0) {
    layout.nodes = CeilDiv(tasks, per_node);
  } else if (gpus.total > 0 && gpus.node > 0) {
    layout.nodes = CeilDiv(gpus.total, gpus.node);
  } else {
    layout.nodes = FewestNodes(gpus, tasks, layout, capacity);
  }
  if (layout.nodes > kNodesMax) {
    return Misuse(
        StrCat("the job needs ", layout.nodes, " nodes; at most ", kNodesMax, " are possible"));
  }
  layout.counts_tasks = tasks > 0 || per_node > 0;
  layout.tasks = tasks > 0 ? tasks : per_node > 0 ? per_node * layout.nodes : layout.nodes;
  // One task for each GPU, where only their number is said.
  if (tasks == 0 && per_node == 0 && gpus.task > 0 && gpus.total > 0) {
    layout.tasks = gpus.total / gpus.task;
  }
  if (layout.tasks < layout.nodes) {
    return Misuse(StrCat("--nodes ", layout.nodes, " is above --ntasks ", layout.tasks,
                         ": every node runs a task"));
  }
  if (layout.tasks > kTasksMax) {
    return Misuse(StrCat("--ntasks ", layout.tasks, ": expected at most ", kTasksMax));
  }
  layout.tasks_per_node = CeilDiv(layout.tasks, layout.nodes);
  if (per_node > 0 && layout.tasks_per_node > per_node) {
    return Misuse(StrCat("--ntasks ", layout.tasks, " on ", layout.nodes, " nodes is above ",
                         "--ntasks-per-node ", per_node));
  }
  return Status::Ok();
}

// Parts as equal as they can be, where all nodes but the first are alike.
Status DivideGpus(int64_t total, Layout& layout) {
  if (total < layout.nodes) {
    return Misuse(StrCat("--gpus ", total, ": each of the ", layout.nodes,
                         " nodes needs one; ask for fewer --nodes"));
  }
  const int64_t others = layout.nodes - 1;
  layout.gpus_per_node = CeilDiv(total, layout.nodes);
  if (total <= others * layout.gpus_per_node) --layout.gpus_per_node;
  layout.gpus_first = total - others * layout.gpus_per_node;
  if (layout.gpus_first == layout.gpus_per_node) layout.gpus_first = 0;
  return Status::Ok();
}

// Each node has what its tasks need; the first has one task more than the others, where one is
// left.
void GpusOfTasks(int64_t each, Layout& layout) {
  const int64_t base = layout.tasks / layout.nodes, rest = layout.tasks % layout.nodes;
  layout.gpus_per_node = each * (rest > 1 ? base + 1 : base);
  if (rest == 1) layout.gpus_first = each * (base + 1);
}

Status FillGpus(const GpuFlags& gpus, Layout& layout) {
  layout.gpu_type = gpus.type;
  layout.gpus_per_task = gpus.task;
  if (gpus.task > 0 && gpus.node == 0 &&
      (gpus.total == 0 || gpus.total == gpus.task * layout.tasks)) {
    GpusOfTasks(gpus.task, layout);
    return Status::Ok();
  }
  if (gpus.node > 0) {
    if (gpus.total > 0 && gpus.total != gpus.node * layout.nodes) {
      return Misuse(StrCat("--gpus ", gpus.total, " is not --nodes ", layout.nodes, " times ",
                           gpus.node, " GPUs of each node; leave one of them out"));
    }
    layout.gpus_per_node = gpus.node;
  } else if (gpus.total > 0) {
    SWELL_RETURN_IF_ERROR(DivideGpus(gpus.total, layout));
  }
  const int64_t least = std::min(layout.gpus_per_node, layout.gpus_of_first());
  if (gpus.task > 0 && gpus.task * layout.tasks_per_node > least) {
    return Misuse(StrCat("--gpus-per-task ", gpus.task, " for ", layout.tasks_per_node,
                         " tasks on a node is above its ", least, " GPUs"));
  }
  return Status::Ok();
}

Status FillMemory(const BatchFlags& flags, Layout& layout) {
  int said = 0;
  const auto read = [&](std::string_view name, std::string_view unit, int64_t times) {
    if (!flags.Has(name)) return Status::Ok();
    const std::string flag = StrCat("--", name);
    SWELL_ASSIGN_OR_RETURN(const int64_t mib, ParseMemoryMib(flag, flags.Text(name)));
    // What its node has left, as without the flag.
    if (mib == 0) return Status::Ok();
    if (times == 0) {
      return Misuse(StrCat(flag, " ", flags.Text(name), ": the job asks for no GPUs"));
    }
    layout.memory_mib = mib * times;
    layout.memory_unit = unit;
    layout.memory_of_unit_mib = mib;
    ++said;
    return Status::Ok();
  };
  SWELL_RETURN_IF_ERROR(read("mem", "NODE", 1));
  SWELL_RETURN_IF_ERROR(
      read("mem-per-cpu", "CPU",
           std::max(layout.tasks_per_node, layout.cpus_limit(layout.gpus_per_node))));
  SWELL_RETURN_IF_ERROR(read("mem-per-gpu", "GPU", layout.gpus_per_node));
  if (said > 1) return Misuse("--mem, --mem-per-cpu and --mem-per-gpu exclude each other");
  return Status::Ok();
}

// A name that the server takes: "My Train_1" as "my-train-1".
std::string ObjectName(std::string_view name) {
  std::string out;
  for (const char c : ToLower(name)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (good) out += c;
    if (!good && !out.empty() && out.back() != '-') out += '-';
    if (out.size() == kNameMax) break;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  // Names of services begin with a letter.
  return out.empty() || out[0] < 'a' ? StrCat("job-", out.substr(0, kNameMax - 4)) : out;
}

std::string Absolute(const std::string& path, const std::string& folder) {
  return path.empty() || path[0] == '/' ? path : StrCat(folder, "/", path);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// A directory of this machine that the pods shall have; those of the system they have anyway.
void MountHere(BatchJob& job, const std::string& folder) {
  if (folder.empty() || folder[0] != '/' || folder == "/") return;
  for (std::string_view system : {"/usr", "/etc", "/proc", "/sys", "/dev", "/bin", "/lib"}) {
    if (IsBelow(folder, system)) return;
  }
  for (const std::string& there : job.host_paths) {
    if (IsBelow(folder, there.substr(0, there.find(':')))) return;
  }
  job.host_paths.push_back(folder);
}

Status ReadMounts(const BatchFlags& flags, const Submitter& submitter, BatchJob& job) {
  const bool own_image = flags.Has("container-image");
  const bool home =
      flags.Has("container-mount-home") || (!own_image && !flags.Has("no-container-mount-home"));
  if (submitter.here) {
    // The files there are the user's.
    job.uid = submitter.uid;
    job.gid = submitter.gid;
    if (home) MountHere(job, submitter.home);
    MountHere(job, job.work_dir);
  } else if (flags.Has("container-mount-home")) {
    return Misuse(
        "--container-mount-home: homes of this machine are not on the cluster's nodes; "
        "use --container-mounts CLAIM:/home");
  }
  for (const std::string& text : CommaList(flags.Text("container-mounts"))) {
    (text[0] == '/' ? job.host_paths : job.claims).push_back(text);
  }
  return Status::Ok();
}

Status ReadFiles(const BatchFlags& flags, const Submitter& submitter, BatchJob& job) {
  job.work_dir = Absolute(flags.Text("chdir"), submitter.directory);
  if (job.work_dir.empty() && submitter.here) job.work_dir = submitter.directory;
  const std::string& mode = flags.Text("open-mode");
  if (!mode.empty() && mode != "append" && mode != "truncate") {
    return Misuse(StrCat("--open-mode ", Quote(mode), ": expected append or truncate"));
  }
  job.append = mode == "append";
  SWELL_RETURN_IF_ERROR(ReadMounts(flags, submitter, job));
  if (submitter.here && flags.Has("chdir") && !FileExists(job.work_dir)) {
    return Misuse(StrCat("--chdir ", Quote(flags.Text("chdir")), ": the directory ", job.work_dir,
                         " does not exist; make it first"));
  }
  const auto read = [&](std::string_view name, const std::string& usual, std::string& to) {
    const std::string file = flags.Has(name) ? flags.Text(name) : usual;
    if (file.empty() || file == "/dev/null") return Status::Ok();
    to = Absolute(file, job.work_dir.empty() ? "." : job.work_dir);
    const std::string folder = FolderOf(to);
    if (!submitter.here || folder.find('%') != std::string::npos) return Status::Ok();
    if (!FileExists(folder)) {
      return Misuse(StrCat("--", name, " ", Quote(file), ": the directory ", folder,
                           " does not exist; make it first"));
    }
    if (file[0] == '/') MountHere(job, folder);
    return Status::Ok();
  };
  const std::string& pattern = flags.Text("output");
  const bool own = pattern.empty() || pattern.find("%j") != std::string::npos ||
                   pattern.find("%J") != std::string::npos ||
                   pattern.find("%a") != std::string::npos;
  if (own && mode != "truncate") job.own_file_since = submitter.now;
  const bool writes = submitter.here && submitter.writes_file && job.work_dir != "/";
  const char* usual = flags.Has("array") ? "slurm-%A_%a.out" : "slurm-%j.out";
  SWELL_RETURN_IF_ERROR(read("output", writes ? usual : "", job.output));
  return read("error", "", job.error);
}

// A command that defines the function that bash has exported in this variable; empty for another
// variable. Dash starts the script, and drops variables with such names. A function that the script
// defines itself stays.
std::string FunctionOf(std::string_view variable, std::string_view value) {
  constexpr std::string_view kPrefix = "BASH_FUNC_";
  if (!variable.starts_with(kPrefix) || !value.starts_with("()")) return "";
  variable.remove_prefix(kPrefix.size());
  if (!variable.ends_with("%%") && !variable.ends_with("()")) return "";
  variable.remove_suffix(2);
  const bool plain = std::all_of(variable.begin(), variable.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!plain || variable.empty()) return "";
  return StrCat("declare -F ", variable, " >/dev/null || {\n", variable, " ", value, "\nexport -f ",
                variable, "\n}\n");
}

// What --export says the job gets of the user's environment.
void ReadExport(const BatchFlags& flags, const Submitter& submitter, BatchJob& job) {
  const std::string text = flags.Has("export") ? flags.Text("export") : "ALL";
  bool all = false;
  KeyValues named;
  for (const std::string& word : CommaList(text)) {
    const std::string upper = ToUpper(word);
    if (upper == "ALL" || upper == "NONE" || upper == "NIL") {
      all = upper == "ALL";
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (equals == std::string::npos) {
      for (const auto& [key, there] : submitter.environment) {
        if (key == name) value = there;
      }
    }
    named.emplace_back(name, std::move(value));
  }
  // Programs of this machine mean something in its pods; those of another image are its own.
  if (all && submitter.here && !flags.Has("container-image")) {
    std::string functions;
    for (const auto& [key, value] : submitter.environment) {
      if (key == "PATH") job.path = value;
      functions += FunctionOf(key, value);
      static constexpr std::string_view kOwn[] = {"PATH",     "PWD",        "OLDPWD", "SHLVL", "_",
                                                  "HOSTNAME", "KUBECONFIG", "TERM",   "TMPDIR"};
      const bool own = std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn) ||
                       key.starts_with("SLURM_") || key.starts_with("SBATCH_") ||
                       key.starts_with("SSH_") || key.starts_with("XDG_") ||
                       key.starts_with("BASH_FUNC") || key.starts_with("KUBERNETES_") ||
                       key.starts_with("SWELL_");
      if (!own) job.env.emplace_back(key, value);
    }
    if (!functions.empty()) job.env.emplace_back("SWELL_SLURM_FUNCTIONS", std::move(functions));
  }
  for (auto& [key, value] : named) {
    std::erase_if(job.env, [&key = key](const auto& one) { return one.first == key; });
    job.env.emplace_back(key, value);
  }
}

std::string JobName(const BatchFlags& flags, const std::string& command) {
  if (flags.Has("job-name")) return flags.Text("job-name");
  if (flags.Has("wrap")) return "wrap";
  const std::string name = command.substr(command.rfind('/') + 1);
  return name.empty() ? "sbatch" : name;
}

void Set(KeyValues& env, std::string_view name, std::string value) {
  env.emplace_back(std::string(name), std::move(value));
}

// "2(x3),1": how many tasks each node has.
std::string TasksPerNode(const Layout& layout) {
  const int64_t base = layout.tasks / layout.nodes, more = layout.tasks % layout.nodes;
  const auto part = [](int64_t tasks, int64_t nodes) {
    return nodes > 1 ? StrCat(tasks, "(x", nodes, ")") : std::to_string(tasks);
  };
  if (more == 0) return part(base, layout.nodes);
  return StrCat(part(base + 1, more), ",", part(base, layout.nodes - more));
}

// `gpus`: of the node whose environment it is.
KeyValues SlurmEnv(const BatchJob& job,
                   const JobNumber& number,
                   const std::string& nodes,
                   int64_t gpus) {
  const Layout& l = job.layout;
  KeyValues env;
  for (std::string_view name : {"SLURM_JOB_ID", "SLURM_JOBID"}) Set(env, name, number.id);
  Set(env, "SLURM_CLUSTER_NAME", "swell");
  Set(env, "SLURM_JOB_NAME", job.name);
  Set(env, "SLURM_JOB_USER", job.user);
  if (!job.project.empty()) Set(env, "SLURM_JOB_ACCOUNT", job.project);
  Set(env, "SLURM_JOB_PARTITION",
      job.partition.empty() ? std::string(kAllPartition) : job.partition);
  // Scripts may end at a variable that is not set.
  Set(env, "SLURM_JOB_QOS", job.qos.empty() ? "normal" : job.qos);
  if (!job.work_dir.empty()) Set(env, "SLURM_SUBMIT_DIR", job.work_dir);
  if (!job.host.empty()) Set(env, "SLURM_SUBMIT_HOST", job.host);
  if (job.uid >= 0) Set(env, "SLURM_JOB_UID", std::to_string(job.uid));
  if (job.gid >= 0) Set(env, "SLURM_JOB_GID", std::to_string(job.gid));
  for (std::string_view name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) Set(env, name, nodes);
  for (std::string_view name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
    Set(env, name, std::to_string(l.nodes));
  }
  for (std::string_view name : {"SLURM_NTASKS", "SLURM_NPROCS"}) {
    Set(env, name, std::to_string(l.tasks));
  }
  for (std::string_view name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"}) {
    Set(env, name, "0");
  }
  Set(env, "SLURM_NTASKS_PER_NODE", std::to_string(l.tasks_per_node));
  Set(env, "SLURM_TASKS_PER_NODE", TasksPerNode(l));
  if (l.cpus_per_task > 0) Set(env, "SLURM_CPUS_PER_TASK", std::to_string(l.cpus_per_task));
  if (l.cpus_per_gpu > 0) Set(env, "SLURM_CPUS_PER_GPU", std::to_string(l.cpus_per_gpu));
  if (l.cpus_requested(gpus) > 0) {
    Set(env, "SLURM_CPUS_ON_NODE", std::to_string(l.cpus_requested(gpus)));
    Set(env, "SLURM_JOB_CPUS_PER_NODE", std::to_string(l.cpus_requested(gpus)));
  }
  if (gpus > 0) {
    Set(env, "SLURM_GPUS", std::to_string(l.gpus()));
    Set(env, "SLURM_GPUS_ON_NODE", std::to_string(gpus));
    if (l.gpus_first == 0) Set(env, "SLURM_GPUS_PER_NODE", std::to_string(gpus));
  }
  if (l.gpus_per_task > 0) Set(env, "SLURM_GPUS_PER_TASK", std::to_string(l.gpus_per_task));
  if (l.memory_mib > 0) {
    Set(env, StrCat("SLURM_MEM_PER_", l.memory_unit), std::to_string(l.memory_of_unit_mib));
  }
  if (!number.array_id.empty()) {
    Set(env, "SLURM_ARRAY_JOB_ID", number.array_id);
    Set(env, "SLURM_ARRAY_TASK_ID", number.task_id);
    Set(env, "SLURM_ARRAY_TASK_COUNT", number.array_count);
    Set(env, "SLURM_ARRAY_TASK_MIN", number.array_min);
    Set(env, "SLURM_ARRAY_TASK_MAX", number.array_max);
    Set(env, "SLURM_ARRAY_TASK_STEP", number.array_step);
  }
  return env;
}

// What slurm_batch is told.
void AddBatchEnv(const BatchJob& job, const JobNumber& number, KeyValues& env) {
  if (!job.path.empty()) Set(env, "SWELL_SLURM_PATH", job.path);
  if (!job.output.empty()) Set(env, "SWELL_SLURM_OUTPUT", FillPattern(job.output, job, number));
  // One file for both where the patterns are one.
  if (!job.error.empty() && job.error != job.output) {
    Set(env, "SWELL_SLURM_ERROR", FillPattern(job.error, job, number));
  }
  if (job.append) Set(env, "SWELL_SLURM_OPEN_MODE", "append");
  if (!job.requeue) Set(env, "SWELL_SLURM_NO_REQUEUE", "1");
  if (!job.program.empty()) Set(env, "SWELL_SLURM_PROGRAM", job.program);
  if (job.reads_input) Set(env, "SWELL_SLURM_STDIN", "1");
  if (job.own_file_since && !job.output.empty()) {
    Set(env, "SWELL_SLURM_OWN_SINCE", std::to_string(job.own_file_since->unix_ns / 1'000'000'000));
  }
  if (job.time_limit_s > 0) Set(env, "SWELL_SLURM_LIMIT", std::to_string(job.time_limit_s));
  if (!job.signal) return;
  Set(env, "SWELL_SLURM_SIGNAL", job.signal->name);
  const int64_t after = std::max<int64_t>(0, job.time_limit_s - job.signal->seconds_before);
  Set(env, "SWELL_SLURM_SIGNAL_AFTER", std::to_string(after));
  if (job.signal->shell_only) Set(env, "SWELL_SLURM_SIGNAL_SHELL", "1");
}

// The server reads $(NAME) in values; these are meant as they stand.
KeyValues Escaped(KeyValues env) {
  for (auto& [name, value] : env) {
    for (size_t at = 0; (at = value.find("$(", at)) != std::string::npos; at += 3) {
      value.insert(at, "$");
    }
  }
  return env;
}

json::Object FromField(std::string_view name, std::string_view field) {
  return json::Object{{"name", name}, {"valueFrom", FieldSource(field)}};
}

// What flags of other front ends have no place for.
void FinishPod(const BatchJob& job, json::Value& pod) {
  if (job.time_limit_s > 0) json::Set(pod, {"activeDeadlineSeconds"}, job.time_limit_s);
  if (!job.service_account.empty()) {
    json::Set(pod, {"serviceAccountName"}, job.service_account);
  }
  json::Value& container = json::FindMutable(pod, {"containers"})->get_array().front();
  json::Array env = json::GetArray(container, {"env"});
  env.push_back(FromField("SLURMD_NODENAME", "spec.nodeName"));
  env.push_back(FromField("SLURM_RESTART_COUNT",
                          StrCat("metadata.annotations['", api::keys::kPreemptionsBefore, "']")));
  env.push_back(FromField("SWELL_SLURM_REQUEUES",
                          StrCat("metadata.annotations['", api::keys::kRequeues, "']")));
  json::Set(container, {"env"}, std::move(env));
  // Tasks that are counted have a CPU each, and may use what others leave idle.
  const Layout& layout = job.layout;
  if (layout.cpus_per_task == 0 && layout.cpus_per_gpu == 0 && layout.counts_tasks) {
    json::Set(container, {"resources", "requests", "cpu"}, std::to_string(layout.tasks_per_node));
  }
  if (job.reads_input) {
    json::Set(container, {"stdin"}, true);
    json::Set(container, {"stdinOnce"}, true);
  }
}

json::Object RequestOf(const BatchJob& job, const JobNumber& number) {
  json::Object request{{"name", job.name},
                       {"command", job.command},
                       {"nodes", job.layout.nodes},
                       {"tasks", job.layout.tasks},
                       {"gpusPerNode", job.layout.gpus_per_node}};
  const auto text = [&request](std::string_view name, const std::string& value) {
    if (!value.empty()) request[name] = value;
  };
  text("partition", job.partition);
  text("qos", job.qos);
  text("workDir", job.work_dir);
  text("stdOut", FillPattern(job.output, job, number));
  text("stdErr", FillPattern(job.error.empty() ? job.output : job.error, job, number));
  text("comment", job.comment);
  if (job.layout.cpus_per_task > 0) request["cpusPerTask"] = job.layout.cpus_per_task;
  if (job.layout.cpus_per_gpu > 0) {
    request["cpus"] = std::max(job.layout.tasks, job.layout.cpus_per_gpu * job.layout.gpus());
  }
  if (job.layout.memory_mib > 0) request["memoryMib"] = job.layout.memory_mib;
  if (job.time_limit_s > 0) request["timeLimitSeconds"] = job.time_limit_s;
  return request;
}

// What all nodes of a job know.
struct JobNames {
  std::string job, nodes;  // the object's name; those of its pods
  std::string map;         // with the script
};

// The pod of a node with `gpus` GPUs, as the first node runs it.
PyTorchSpec PodOf(const BatchJob& job,
                  const JobNumber& number,
                  const JobNames& names,
                  int64_t gpus) {
  PyTorchSpec pod;
  pod.name = names.job;
  pod.ns = job.ns;
  pod.image = job.image;
  pod.container = kContainer;
  pod.command = {"/bin/sh", StrCat(kPodFolder, "/", kBatchScript.name)};
  pod.args = job.arguments;
  pod.gpus = gpus;
  const int64_t cpus = job.layout.cpus_limit(gpus);
  if (cpus > 0) pod.cpu = std::to_string(cpus);
  if (job.layout.memory_mib > 0) pod.memory = StrCat(job.layout.memory_mib, "Mi");
  pod.priority = job.qos;
  pod.project = job.project;
  pod.on_preemption = job.requeue ? "Requeue" : "Fail";
  pod.env = job.env;
  KeyValues own = SlurmEnv(job, number, names.nodes, gpus);
  AddBatchEnv(job, number, own);
  pod.env.insert(pod.env.end(), own.begin(), own.end());
  pod.env = Escaped(std::move(pod.env));
  pod.labels.emplace_back(kJobId, number.id);
  if (!number.array_id.empty()) {
    pod.labels.emplace_back(kArrayJobId, number.array_id);
    pod.labels.emplace_back(kArrayTaskId, number.task_id);
  }
  pod.node_choices = job.node_choices;
  pod.excluded_nodes = job.excluded_nodes;
  pod.volumes = job.claims;
  pod.host_paths = job.host_paths;
  if (!job.host_paths.empty()) {
    // The machine's root is in no pod but one that has the machine's users.
    pod.host_users = job.uid == 0;
    if (job.uid > 0) {
      pod.run_as_user = job.uid;
      pod.run_as_group = job.gid;
    }
  }
  pod.volume_flag = pod.host_path_flag = "--container-mounts";
  pod.mounts.push_back(
      {.source = {{"configMap", json::Object{{"name", names.map}, {"defaultMode", kExecutable}}}},
       .path = std::string(kPodFolder),
       .read_only = true});
  pod.working_dir = job.work_dir;
  pod.clean_pod_policy = "Running";
  return pod;
}

}  // namespace

Result<Layout> ReadLayout(const BatchFlags& flags, const Capacity& capacity) {
  Layout layout;
  SWELL_ASSIGN_OR_RETURN(GpuFlags gpus, ReadGpus(flags));
  if (flags.WantsWholeNodes()) gpus.node = capacity.gpus_most();
  SWELL_ASSIGN_OR_RETURN(layout.cpus_per_task, CountOf(flags, "cpus-per-task"));
  SWELL_ASSIGN_OR_RETURN(layout.cpus_per_gpu, CountOf(flags, "cpus-per-gpu"));
  if (layout.cpus_per_gpu > 0 && layout.cpus_per_task > 0) {
    return Misuse("--cpus-per-gpu and --cpus-per-task exclude each other; give one of them");
  }
  SWELL_RETURN_IF_ERROR(FillNodes(flags, gpus, capacity, layout));
  SWELL_RETURN_IF_ERROR(FillGpus(gpus, layout));
  if (layout.cpus_per_gpu > 0 && layout.gpus() == 0) {
    return Misuse(StrCat("--cpus-per-gpu ", layout.cpus_per_gpu,
                         ": the job asks for no GPUs; give --gpus, or use --cpus-per-task"));
  }
  SWELL_RETURN_IF_ERROR(FillMemory(flags, layout));
  return layout;
}

Result<BatchJob> ReadBatchJob(const BatchFlags& flags,
                              const Submitter& submitter,
                              Layout layout,
                              const std::string& command) {
  BatchJob job;
  job.command = command;
  job.name = JobName(flags, command);
  if (!IsValidUtf8(job.name)) return Misuse("--job-name: expected UTF-8 text");
  job.layout = std::move(layout);
  job.user = submitter.user;
  job.host = submitter.host;
  job.program = submitter.program;
  job.command_line = submitter.command_line;
  job.comment = flags.Text("comment");
  job.qos = flags.Text("qos");
  job.partition = flags.Text("partition");
  if (flags.Has("time")) {
    SWELL_ASSIGN_OR_RETURN(job.time_limit_s, ParseTimeLimit("--time", flags.Text("time")));
  }
  if (flags.Has("signal")) {
    SWELL_ASSIGN_OR_RETURN(job.signal, ParseSignal(flags.Text("signal")));
    if (job.time_limit_s == 0) {
      return Misuse(StrCat("--signal ", flags.Text("signal"),
                           " is sent before the time limit, which the job lacks; give --time"));
    }
  }
  job.requeue = !flags.Has("no-requeue");
  job.gate.held = flags.Has("hold");
  job.image = flags.Text("container-image");
  if (job.image.empty()) {
    if (!submitter.here) {
      return Misuse(
          "--container-image IMAGE is missing: the cluster is not this machine, so its nodes do "
          "not have this machine's programs (SBATCH_CONTAINER_IMAGE sets it, too)");
    }
    job.image = "python";
  }
  SWELL_RETURN_IF_ERROR(ReadFiles(flags, submitter, job));
  ReadExport(flags, submitter, job);
  return job;
}

std::string JobNumber::Text() const {
  return array_id.empty() ? id : StrCat(array_id, "_", task_id);
}

json::Value MakeScriptMap(const BatchJob& job) {
  json::Object data{{kScriptKey, job.script}};
  for (const PodScript* one :
       {&kBatchScript, &kNodeScript, &kSrunScript, &kBashEnv, &kScontrolScript, &kScancelScript,
        &kRequestScript, &kClientScript}) {
    data[one->name] = one->text;
  }
  for (std::string_view command : kClientCommands) data[command] = kSbatchScript.text;
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", json::Object{{"generateName", "slurm-job-"}, {"namespace", job.ns}}},
      {"data", std::move(data)}};
}

Result<json::Value> MakeJob(const BatchJob& job, const JobNumber& number, const std::string& map) {
  const std::string name = StrCat(ObjectName(job.name), "-", number.id);
  // An MPIJob has one launcher, without a number.
  std::string nodes = StrCat(name, job.layout.nodes == 1 ? "-launcher-0" : "-launcher");
  for (int64_t i = 0; i + 1 < job.layout.nodes; ++i) nodes += StrCat(",", name, "-worker-", i);
  const JobNames names{name, nodes, map};
  PyTorchSpec pod = PodOf(job, number, names, job.layout.gpus_of_first());
  json::Value made;
  if (job.layout.nodes == 1) {
    TrainingSpec spec;
    spec.pod = std::move(pod);
    spec.role = "launcher";
    spec.restart_policy = "Never";
    SWELL_ASSIGN_OR_RETURN(made, MakeTrainingJob(spec));
    FinishPod(job, *json::FindMutable(made, {"spec", "roles", "launcher", "template", "spec"}));
    json::Set(made, {"spec", "cleanPodPolicy"}, "None");
  } else {
    const PyTorchSpec worker = PodOf(job, number, names, job.layout.gpus_per_node);
    SWELL_ASSIGN_OR_RETURN(
        made, MakeMpiJob(pod, worker, job.layout.nodes - 1, job.layout.tasks_per_node));
    for (std::string_view role : {"Launcher", "Worker"}) {
      json::Value& spec =
          *json::FindMutable(made, {"spec", "mpiReplicaSpecs", role, "template", "spec"});
      FinishPod(job, spec);
      if (role == "Launcher") continue;
      json::Set(json::FindMutable(spec, {"containers"})->get_array().front(), {"command"},
                json::Array{"/bin/sh", StrCat(kPodFolder, "/", kNodeScript.name), "wait"});
    }
  }
  const auto annotate = [&made](std::string_view key, const std::string& value) {
    if (!value.empty()) json::Set(made, {"metadata", "annotations", key}, value);
  };
  annotate(kRequest, json::Print(RequestOf(job, number)));
  annotate(api::keys::kUser, job.user);
  annotate(api::keys::kCommandLine, job.command_line);
  GateRequest gate = job.gate;
  if (const auto own = job.start_after_of_task.find(number.task_id);
      own != job.start_after_of_task.end()) {
    gate.start_after = own->second;
  }
  if (!number.array_id.empty()) gate.array = StrCat("slurm-", number.array_id);
  if (const JobKindInfo* kind = KindOfJob(made)) SetGate(made, *kind, gate);
  return made;
}

std::string FillPattern(const std::string& pattern, const BatchJob& job, const JobNumber& number) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    // "%4j" is the number with leading zeros.
    size_t end = i + 1;
    while (end < pattern.size() && end < i + 3 && pattern[end] >= '0' && pattern[end] <= '9') ++end;
    const auto width = ParseInt(pattern.substr(i + 1, end - i - 1)).value_or(0);
    std::string value;
    switch (end < pattern.size() ? pattern[end] : '\0') {
      case 'j':
      case 'J':
        value = number.id;
        break;
      case 'A':
        value = number.array_id.empty() ? number.id : number.array_id;
        break;
      case 'a':
        value = number.task_id.empty() ? "4294967294" : number.task_id;
        break;
      case 'x':
        value = job.name;
        break;
      case 'u':
        value = job.user;
        break;
      case 'n':
      case 's':
      case 't':
        value = "0";
        break;
      case '%':
        value = "%";
        break;
      default:
        value = pattern.substr(i, end - i + 1);
        break;
    }
    if (value.size() < static_cast<size_t>(width)) value.insert(0, width - value.size(), '0');
    out += value;
    i = end;
  }
  return out;
}

}  // namespace swell::cli::slurm
