#include "cli/slurm/batch_flags.h"

#include <algorithm>

#include "base/strings.h"
#include "base/words.h"

namespace swell::cli::slurm {
namespace {

enum class Use { kFollowed, kWarned, kRefused };

// One flag: how it is written, and what is done about it.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of the rows below
struct Row {
  const char* group;
  const char* names;
  const char* value;     // its name in help; empty: a switch
  const char* help;      // of a flag that is refused or changes nothing: why
  const char* variable;  // that sbatch reads in its place
  Use use = Use::kFollowed;
  const char* implied = "";  // the value where it stands alone
  bool sbatch_only = false;
};

constexpr Row kRows[] = {
    {"Job", "-J,--job-name", "NAME", "name of the job (default: the script's)", "SBATCH_JOB_NAME"},
    {"Job", "-A,--account", "PROJECT", "project whose quota it uses, and in whose namespace it is",
     "SBATCH_ACCOUNT"},
    {"Job", "-p,--partition", "POOL[,POOL]", "node pools in which it may run; all: any node",
     "SBATCH_PARTITION"},
    {"Job", "-q,--qos", "CLASS", "priority class", "SBATCH_QOS"},
    {"Job", "-t,--time", "LIMIT", "time limit: minutes, HH:MM:SS, D-HH or D-HH:MM:SS",
     "SBATCH_TIMELIMIT"},
    {"Job", "--comment", "TEXT", "a comment", nullptr},
    {"Size", "-N,--nodes", "N", "number of nodes; each is one pod", nullptr},
    {"Size", "-n,--ntasks", "N", "number of tasks that srun starts; each has a CPU", nullptr},
    {"Size", "--ntasks-per-node", "N", "number of tasks on each node", nullptr},
    {"Size", "-c,--cpus-per-task", "N", "CPUs of each task", nullptr},
    {"Size", "--cpus-per-gpu", "N", "CPUs for each GPU", "SBATCH_CPUS_PER_GPU"},
    {"Size", "-G,--gpus", "[TYPE:]N", "GPUs of the whole job", "SBATCH_GPUS"},
    {"Size", "--gpus-per-node", "[TYPE:]N", "GPUs of each node", "SBATCH_GPUS_PER_NODE"},
    {"Size", "--gpus-per-task", "[TYPE:]N", "GPUs of each task", "SBATCH_GPUS_PER_TASK"},
    {"Size", "--gres", "gpu:[TYPE:]N", "GPUs of each node", "SBATCH_GRES"},
    {"Size", "--exclusive", "user|mcs",
     "all GPUs of each node, as the largest has them, where no number is said", "SBATCH_EXCLUSIVE",
     Use::kFollowed, "yes"},
    {"Size", "--mem", "AMOUNT", "memory of each node: 64G; 0: what it has left",
     "SBATCH_MEM_PER_NODE"},
    {"Size", "--mem-per-cpu", "AMOUNT", "memory for each CPU", "SBATCH_MEM_PER_CPU"},
    {"Size", "--mem-per-gpu", "AMOUNT", "memory for each GPU", "SBATCH_MEM_PER_GPU"},
    {"Placement", "-w,--nodelist", "NODES", "only these nodes", nullptr},
    {"Placement", "-x,--exclude", "NODES", "not these nodes", nullptr},
    {"Placement", "-C,--constraint", "LABEL=VALUE|TYPE",
     "only nodes with this label, or with GPUs of this type; A|B: with one of them",
     "SBATCH_CONSTRAINT"},
    {"Files", "-o,--output", "FILE",
     "file of the output: slurm-%j.out; of an array slurm-%A_%a.out", "SBATCH_OUTPUT"},
    {"Files", "-e,--error", "FILE", "file of the errors (default: that of the output)",
     "SBATCH_ERROR"},
    {"Files", "--open-mode", "append|truncate", "what becomes of the file's old content",
     "SBATCH_OPEN_MODE"},
    {"Files", "-D,--chdir", "DIR", "working directory (default: this one)", nullptr},
    {"Files", "--export", "ALL|NONE|NAME[=VALUE],…", "variables of this environment that it gets",
     "SBATCH_EXPORT"},
    {"Containers", "--container-image", "IMAGE",
     "image of the pods (default on this machine: its own programs)", "SBATCH_CONTAINER_IMAGE"},
    {"Containers", "--container-mounts", "SOURCE:PATH[:ro],…",
     "host directories, or volume claims by name", "SBATCH_CONTAINER_MOUNTS"},
    {"Containers", "--container-mount-home", "", "mount the home directory, too", nullptr},
    {"Containers", "--no-container-mount-home", "", "do not mount the home directory", nullptr},
    {"Start and end", "-a,--array", "INDICES", "one job for each index: 0-99%8 runs 8 at once",
     "SBATCH_ARRAY_INX", Use::kFollowed, "", true},
    {"Start and end", "-d,--dependency", "TYPE:JOB[:JOB],…",
     "start after other jobs: afterok, afterany, afternotok, after; aftercorr: each task of an "
     "array after the task of the same index; singleton: after those of its name",
     "SBATCH_DEPENDENCY"},
    {"Start and end", "--kill-on-invalid-dep", "yes|no",
     "what becomes of a job whose dependency can never be satisfied (default no: it waits)",
     nullptr},
    {"Start and end", "-b,--begin", "WHEN",
     "start no earlier: now+2hours, tomorrow, 2026-12-24T18:00:00", nullptr},
    {"Start and end", "-H,--hold", "", "wait for scontrol release", nullptr},
    {"Start and end", "--requeue", "", "wait and start again after preemption (default)",
     "SBATCH_REQUEUE"},
    {"Start and end", "--no-requeue", "", "end when it is preempted", "SBATCH_NO_REQUEUE"},
    {"Start and end", "--signal", "[B:]SIG[@SECONDS]", "signal before the time limit",
     "SBATCH_SIGNAL"},
    {"This command", "--wrap", "COMMAND", "run this line of the shell in place of a script",
     nullptr, Use::kFollowed, "", true},
    {"This command", "--parsable", "", "print the number alone", nullptr, Use::kFollowed, "", true},
    {"This command", "--test-only", "", "say where it would run and what it would preempt",
     nullptr},
    {"This command", "-W,--wait", "", "wait until the job ends; exit as it did", "SBATCH_WAIT",
     Use::kFollowed, "", true},
    {"This command", "-Q,--quiet", "", "print errors only", nullptr},
    {"This command", "-v,--verbose", "", "accepted", nullptr},
    // They change nothing here, or nothing that anybody could notice.
    {"", "--mail-type", "EVENTS", "no mail is sent; swell wait JOB returns when the job ends",
     nullptr, Use::kWarned},
    {"", "--mail-user", "ADDRESS", "no mail is sent; swell wait JOB returns when the job ends",
     nullptr, Use::kWarned},
    {"", "--cpu-bind", "HOW", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--mem-bind", "HOW", "tasks are not bound to memory", nullptr, Use::kWarned},
    {"", "--gpu-bind", "HOW", "tasks see their node's GPUs; --gpus-per-task divides them", nullptr,
     Use::kWarned},
    {"", "--hint", "HOW", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--ntasks-per-socket", "N", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--ntasks-per-core", "N", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--threads-per-core", "N", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--mincpus", "N", "--cpus-per-task says how many CPUs each task has", nullptr,
     Use::kWarned},
    {"", "-O,--overcommit", "", "each task has the CPUs that --cpus-per-task says", nullptr,
     Use::kWarned},
    {"", "--contiguous", "", "nodes have no order here", nullptr, Use::kWarned},
    {"", "-I,--immediate", "SECONDS", "a job waits until there is room for it", nullptr,
     Use::kWarned, "yes"},
    {"", "-m,--distribution", "HOW", "tasks fill one node after the other", nullptr, Use::kWarned},
    {"", "--mpi", "TYPE", "tasks are plain processes; mpirun of an MPIJob starts MPI's", nullptr,
     Use::kWarned},
    {"", "--nice", "N", "--qos CLASS sets the priority among a project's jobs", nullptr,
     Use::kWarned, "100"},
    {"", "--profile", "WHAT", "swell report shows what jobs used", nullptr, Use::kWarned},
    {"", "--get-user-env", "MODE", "--export says which variables the job gets", nullptr,
     Use::kWarned, "yes"},
    {"", "-k,--no-kill", "MODE", "a job whose node fails starts again elsewhere", nullptr,
     Use::kWarned, "yes"},
    {"", "-B,--extra-node-info", "SPEC", "tasks are not bound to processors", nullptr,
     Use::kWarned},
    {"", "--sockets-per-node", "N", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--cores-per-socket", "N", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "--gres-flags", "HOW", "GPUs are not bound to processors", nullptr, Use::kWarned},
    {"", "--tres-bind", "HOW", "tasks are not bound to processors", nullptr, Use::kWarned},
    {"", "-S,--core-spec", "N", "no processors are kept for the system", nullptr, Use::kWarned},
    {"", "--thread-spec", "N", "no processors are kept for the system", nullptr, Use::kWarned},
    {"", "--cpu-freq", "HOW", "frequencies are left as they are", nullptr, Use::kWarned},
    {"", "--gpu-freq", "HOW", "frequencies are left as they are", nullptr, Use::kWarned},
    {"", "--power", "HOW", "the power of nodes is not managed", nullptr, Use::kWarned},
    {"", "--reboot", "", "nodes are not restarted for a job", nullptr, Use::kWarned},
    {"", "--delay-boot", "MINUTES", "nodes are not restarted for a job", nullptr, Use::kWarned},
    {"", "--switches", "N",
     "a job has as few nodes as hold it; a TrainingJob with a topology keeps to a switch", nullptr,
     Use::kWarned},
    {"", "--time-min", "LIMIT", "a job always has the time of --time", nullptr, Use::kWarned},
    {"", "--spread-job", "", "the scheduler chooses the nodes", nullptr, Use::kWarned},
    {"", "--use-min-nodes", "", "a job has as few nodes as hold it", nullptr, Use::kWarned},
    {"", "--prefer", "FEATURES", "the scheduler chooses among the nodes of --constraint", nullptr,
     Use::kWarned},
    {"", "--wait-all-nodes", "0|1", "a job starts when all of its nodes are there", nullptr,
     Use::kWarned},
    {"", "--network", "TYPE", "all nodes of a job reach each other", nullptr, Use::kWarned},
    {"", "--propagate", "LIMITS", "limits of this shell are not passed on", nullptr, Use::kWarned,
     "ALL"},
    {"", "--acctg-freq", "SECONDS", "swell report shows what jobs used", nullptr, Use::kWarned},
    {"", "--wckey", "KEY", "swell report counts by --account and user", nullptr, Use::kWarned},
    {"", "--mcs-label", "LABEL", "a project's jobs are seen by its members", nullptr, Use::kWarned},
    {"", "--extra", "TEXT", "--comment keeps a text with the job", nullptr, Use::kWarned},
    {"", "--ignore-pbs", "", "lines of #PBS are comments here", nullptr, Use::kWarned},
    {"", "-s,--oversubscribe", "", "jobs share nodes, and no CPU or GPU that they ask for", nullptr,
     Use::kWarned},
    // They would change what runs, so that nobody may believe them to be followed.
    {"", "--priority", "N", "--qos CLASS sets the priority among a project's jobs", nullptr,
     Use::kRefused},
    {"", "--reservation", "NAME", "there are no reservations; a node pool is a --partition",
     nullptr, Use::kRefused},
    {"", "-L,--licenses", "NAMES", "licences are not counted here", nullptr, Use::kRefused},
    {"", "-M,--clusters", "NAMES", "--context NAME selects another cluster", nullptr,
     Use::kRefused},
    {"", "-i,--input", "FILE", "read the file in the script: srun COMMAND < FILE", nullptr,
     Use::kRefused},
    {"", "--gpus-per-socket", "N", "--gpus-per-node says how many each node has", nullptr,
     Use::kRefused},
    {"", "--tres-per-task", "LIST", "use --cpus-per-task and --gpus-per-task", nullptr,
     Use::kRefused},
    {"", "--segment", "N", "use a TrainingJob with a topology: docs/scheduling.md", nullptr,
     Use::kRefused},
    {"", "--bb", "SPEC", "there are no burst buffers; copy the data in the script", nullptr,
     Use::kRefused},
    {"", "--bbf", "FILE", "there are no burst buffers; copy the data in the script", nullptr,
     Use::kRefused},
    {"", "--container", "PATH", "--container-image names an image", nullptr, Use::kRefused},
    {"", "--export-file", "FILE", "use --export NAME=VALUE, or read the file in the script",
     nullptr, Use::kRefused},
    {"", "--cluster-constraint", "FEATURES", "--context NAME selects another cluster", nullptr,
     Use::kRefused},
    {"", "--ntasks-per-gpu", "N", "--gpus-per-task or --ntasks-per-node says it", nullptr,
     Use::kRefused},
    {"", "--deadline", "WHEN", "--time sets how long the job may run", nullptr, Use::kRefused},
    {"", "--tmp", "AMOUNT", "the space of local disks is not counted; leave it out", nullptr,
     Use::kRefused},
    {"", "--uid", "USER", "the kubeconfig says who submits", nullptr, Use::kRefused},
    {"", "--gid", "GROUP", "the kubeconfig says who submits", nullptr, Use::kRefused},
    {"", "--multi-prog", "", "branch by $SLURM_PROCID in the script", nullptr, Use::kRefused},
    {"", "--het-group", "N", "a job's nodes are alike here", nullptr, Use::kRefused},
};

std::string LongName(const Row& row) {
  const std::string_view names = row.names;
  return std::string(names.substr(names.find("--") + 2));
}

Result<std::vector<std::string>> WordsOf(std::string_view line, size_t number) {
  auto words = ShellWords(line);
  if (words) return *std::move(words);
  return Misuse(StrCat("line ", number, " of the script: a quotation mark is not closed"));
}

Status AnotherPart(std::string_view word) {
  return Misuse(StrCat(Quote(word),
                       " begins another part of a heterogeneous job, and the nodes of a job are "
                       "alike here; submit each part as a job"));
}

}  // namespace

void BatchFlags::Declare(Flags& flags) {
  declared_ = &flags;
  for (const Row& row : kRows) {
    if (row.sbatch_only && command_ != BatchCommand::kSbatch) continue;
    flags.Group(row.group);
    const std::string name = LongName(row);
    if (row.use == Use::kRefused) {
      flags.Refuse(row.names, row.help);
    } else if (*row.value == '\0') {
      flags.Switch(row.names, &switches_[name], row.help).hidden = row.use == Use::kWarned;
    } else {
      Flag& flag = flags.Text(row.names, &texts_[name], row.value, row.help);
      flag.implied = row.implied;
      flag.hidden = row.use == Use::kWarned;
    }
  }
  flags.Group("");
  flags.AddName("--ntasks-per-node", "--tasks-per-node");
}

Status BatchFlags::Parse(const std::vector<std::string>& words) {
  Flags flags;
  Declare(flags);
  std::vector<std::string> others;
  SWELL_RETURN_IF_ERROR(flags.Parse(words, &others));
  if (!others.empty()) {
    const bool part = others[0] == "hetjob" || others[0] == "packjob";
    return part ? AnotherPart(others[0]) : Misuse(StrCat("unexpected ", Quote(others[0])));
  }
  Take();
  declared_ = nullptr;
  return Status::Ok();
}

void BatchFlags::Take() {
  for (const Row& row : kRows) {
    const std::string name = LongName(row);
    if (!declared_->Seen(name)) continue;
    given_.insert(name);
    if (const auto on = switches_.find(name); on != switches_.end()) {
      texts_[name] = on->second ? "true" : "";
      if (!on->second) given_.erase(name);
    }
  }
}

void BatchFlags::TakeEnvironment(const std::function<std::string(const std::string&)>& getenv) {
  for (const Row& row : kRows) {
    if (row.variable == nullptr) continue;
    std::string value = getenv(row.variable);
    if (value.empty()) continue;
    const std::string name = LongName(row);
    texts_[name] = *row.value == '\0' ? "true" : std::move(value);
    given_.insert(name);
  }
}

void BatchFlags::Override(const BatchFlags& stronger) {
  for (const std::string& name : stronger.given_) {
    given_.insert(name);
    texts_[name] = stronger.Text(name);
  }
  // Each of these takes back the other.
  for (const auto& [one, other] :
       {std::pair("requeue", "no-requeue"), {"container-mount-home", "no-container-mount-home"}}) {
    if (stronger.Has(one)) given_.erase(other);
    if (stronger.Has(other)) given_.erase(one);
  }
}

const std::string& BatchFlags::Text(std::string_view name) const {
  static const std::string empty;
  const auto found = texts_.find(name);
  return found == texts_.end() ? empty : found->second;
}

bool BatchFlags::WantsWholeNodes() const {
  const std::string& how = Text("exclusive");
  // Those share their nodes with jobs of the same user, or label.
  if (!Has("exclusive") || how == "user" || how == "mcs") return false;
  return !Has("gpus") && !Has("gpus-per-node") && !Has("gpus-per-task") && !Has("gres");
}

std::vector<std::string> BatchFlags::Warnings() const {
  std::vector<std::string> all;
  if (Has("exclusive") && !WantsWholeNodes()) {
    all.emplace_back("--exclusive changes nothing: a job has the GPUs it asks for");
  }
  for (const Row& row : kRows) {
    if (row.use != Use::kWarned || !Has(LongName(row))) continue;
    all.push_back(StrCat("--", LongName(row), " changes nothing: ", row.help));
  }
  return all;
}

Status RefuseParts(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != ":") continue;
    // Elsewhere it is an argument like others, such as the shell's command of that name.
    const bool flags_follow = i + 1 < words.size() && words[i + 1].starts_with('-');
    if (i == 0 || flags_follow) return AnotherPart(words[i]);
  }
  return Status::Ok();
}

Result<std::vector<std::string>> HeaderWords(std::string_view script) {
  std::vector<std::string> words;
  size_t number = 0;
  for (std::string_view line : Split(script, '\n')) {
    ++number;
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    if (text[0] != '#') break;
    constexpr std::string_view kMark = "#SBATCH";
    if (!line.starts_with(kMark)) continue;
    line.remove_prefix(kMark.size());
    if (!line.empty() && line[0] != ' ' && line[0] != '\t') continue;
    SWELL_ASSIGN_OR_RETURN(std::vector<std::string> more, WordsOf(line, number));
    words.insert(words.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  return words;
}

}  // namespace swell::cli::slurm
