#include "kube/api/objects/failure_advice.h"

#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <span>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"

namespace swell::api {
namespace {

constexpr int64_t kCommandNotFound = 127;
constexpr int64_t kCommandNotExecutable = 126;

// "its memory limit of 1Gi"; empty: neither the container nor its pod has one.
std::string MemoryLimit(const json::Value& pod, std::string_view container) {
  const json::Value* spec = SpecOfContainer(pod, container);
  if (spec == nullptr) return "";
  const std::string_view own = json::GetString(*spec, {"resources", "limits", "memory"});
  if (!own.empty()) return StrCat("its memory limit of ", own);
  const std::string_view whole = json::GetString(pod, {"spec", "resources", "limits", "memory"});
  return whole.empty() ? "" : StrCat("the memory limit of its pod, ", whole);
}

std::string ImageOf(const json::Value& pod, std::string_view container) {
  const json::Value* spec = SpecOfContainer(pod, container);
  return spec == nullptr ? "" : std::string(json::GetString(*spec, {"image"}));
}

// Whether the container's image is a name of the catalogue, which has no image of its own.
bool IsServedByMachine(const json::Value& pod, std::string_view container) {
  for (std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : json::GetArray(pod, {"status", list})) {
      if (json::GetString(status, {"name"}) != container) continue;
      const bool ours = json::GetString(status, {"containerID"}).starts_with("process://");
      return ours && json::GetString(status, {"imageID"}).empty();
    }
  }
  return false;
}

// "swell logs m-worker-0 -n team-a": as people type it from anywhere.
std::string LogsCommand(const Failure& failure, const json::Value& pod) {
  const std::string_view ns = Namespace(pod);
  return StrCat("swell logs ", failure.member, failure.repeats() ? " --previous" : "",
                ns.empty() || ns == "default" ? "" : StrCat(" -n ", ns));
}

// The runtime could not mount what the pod names; the command is not to blame.
bool SpeaksOfVolumes(std::string_view said) {
  return said.starts_with("volume") || said.starts_with("subPath") ||
         said.starts_with("mount path");
}

bool Says(std::string_view said, std::initializer_list<std::string_view> texts) {
  const std::string lower = ToLower(said);
  return std::any_of(texts.begin(), texts.end(), [&lower](std::string_view text) {
    return lower.find(text) != std::string::npos;
  });
}

bool UsesPathOfNode(const json::Value& pod) {
  const json::Array& volumes = json::GetArray(pod, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), [](const json::Value& volume) {
    return json::Find(volume, {"hostPath"}) != nullptr;
  });
}

bool AsksForGpu(const json::Value& pod) {
  const auto asks = [](const json::Value& container) {
    const json::Object& limits = json::GetObject(container, {"resources", "limits"});
    return std::any_of(limits.begin(), limits.end(), [](const auto& limit) {
      const std::string_view name(limit.key().data(), limit.key().size());
      return name.starts_with("nvidia.com/") || name.ends_with("/gpu");
    });
  };
  const json::Array& containers = Containers(pod);
  return std::any_of(containers.begin(), containers.end(), asks) || HasDeviceClaims(pod) ||
         !Annotation(pod, keys::kGpuFraction).empty() || !Annotation(pod, keys::kGpuMemory).empty();
}

struct WordsRule {
  std::string_view words;  // in lower case, anywhere in what the failure said
  std::string_view advice;
};

constexpr std::string_view kLargerShm =
    "give the pod a larger /dev/shm: swell submit --share-memory, or an emptyDir of medium Memory "
    "there";
constexpr std::string_view kCredentials =
    "the other side refuses its credentials: check the token, and that the container gets it";
constexpr std::string_view kDamagedFile =
    "the file is damaged or of another format: remove it, or resume from an earlier checkpoint";
constexpr std::string_view kPickle =
    "save state_dict() instead of whole objects, and give worker processes named functions";
constexpr std::string_view kOtherProcessor =
    "its program is built for another processor than the node's: use an image for this one";
constexpr std::string_view kCarriageReturns =
    "a script has the line ends of Windows (CRLF): sed -i 's/\\r$//' FILE, or dos2unix FILE";
constexpr std::string_view kNetwork =
    "check the name, and whether the node reaches it by the network";
constexpr std::string_view kNoNccl =
    "nccl needs GPUs and a torch with CUDA; to train on CPUs, use init_process_group(\"gloo\")";

constexpr std::string_view kLocalRank =
    "torch.distributed.launch gives --local-rank to the script: start it with torchrun, and read "
    "the variable LOCAL_RANK";

// What a shell or the kernel says of a file that it cannot run.
constexpr WordsRule kFileRules[] = {
    // A name that ends with a carriage return. Data may have them, too: "float: '1.0\r'".
    {R"(\r': no such file)", kCarriageReturns},
    {R"(\r’: no such file)", kCarriageReturns},
    {R"(\r': [errno 2] no such file)", kCarriageReturns},
    {R"(\r': command not found)", kCarriageReturns},
    {R"(\r'')", kCarriageReturns},  // unexpected token `$'\r''
    {"^m: bad interpreter", kCarriageReturns},
    {"required file not found",
     "the first line of the script (#!) names a program that is not there, or ends with a carriage "
     "return (CRLF)"},
    {"exec format error", kOtherProcessor},
};

// The first rule that matches counts, so narrow words stand before wide ones.
constexpr WordsRule kWordsRules[] = {
    {"unrecognized arguments: --rdzv_",
     "enableElastic puts --rdzv_backend and other options before the arguments of each container, "
     "and only torchrun and swell.launch take them: start the program with one of these"},
    {"unrecognized option '--rdzv_",
     "enableElastic puts --rdzv_backend and other options before the arguments of each container, "
     "and only torchrun and swell.launch take them: start the program with one of these"},
    {"git-sync: cannot sync",
     "check the address of the code, its branch and its credentials, and whether the node reaches "
     "it"},
    {"out of shared memory", kLargerShm},
    {"killed by signal: bus error", kLargerShm},
    {"unable to allocate shared memory", kLargerShm},
    {"/dev/shm", kLargerShm},
    {"no space left on device",
     "a disk or /dev/shm is full: make room, write to a volume, or give the pod a larger /dev/shm "
     "(swell submit --share-memory)"},
    {"disk quota exceeded", "the owner of the files may use no more of that disk: make room there"},
    {"read-only file system", "write to a volume that is mounted for writing"},
    {"address already in use",
     "another process has that port: choose a free one, or port 0 for any"},
    {"too many open files", "let it keep fewer files open, or use fewer data loader workers"},
    {"illegal instruction", kOtherProcessor},
    {"cannot open shared object file", "its image lacks that library: install it there"},
    {"invalid device ordinal",
     "it uses more GPUs than its container has: count them (torch.cuda.device_count()), or ask for "
     "more"},
    {"not compiled with cuda", "the torch of its image is for processors alone: use one with CUDA"},
    {"http error 401", kCredentials},
    {"http error 403", kCredentials},
    {"401 client error", kCredentials},
    {"403 client error", kCredentials},
    {"have nccl built in", kNoNccl},
    {"processgroupnccl is only supported with gpus", kNoNccl},
    {"device-side assert",
     "an index is out of range, often a label: run it on a CPU, or with "
     "CUDA_LAUNCH_BLOCKING=1, to see which"},
    {"weights only load failed",
     "the file holds more than tensors, which torch since 2.6 refuses: torch.load(..., "
     "weights_only=False), if you trust the file"},
    {"unpicklingerror", kDamagedFile},
    {"eoferror: ran out of input", kDamagedFile},
    {"safetensorerror", kDamagedFile},
    {"badzipfile", kDamagedFile},
    {"pytorchstreamreader failed", kDamagedFile},
    {"can't pickle", kPickle},
    {"cannot pickle", kPickle},
    {"error(s) in loading state_dict",
     "the checkpoint is of another model: load one that fits, or train from the start"},
    {"could not resolve host", kNetwork},
    {"temporary failure in name resolution", kNetwork},
    {"network is unreachable", kNetwork},
    {"'get_ipython' is not defined",
     "the script comes from a notebook: delete its lines with get_ipython(), or start it with "
     "ipython"},
    {"keyerror: 'local_rank'",
     "the script expects torch's launcher: start it with torchrun, or python -m swell.launch"},
    {"unrecognized arguments: --local-rank", kLocalRank},
    {"unrecognized arguments: --local_rank", kLocalRank},
    {"unrecognized arguments: --no-python", "torchrun before torch 2.0 writes it --no_python"},
    {"unrecognized arguments: --nproc-per-node",
     "torchrun before torch 2.0 writes it --nproc_per_node; python -m swell.launch takes both"},
    {"syntaxerror",
     "correct the program; if it runs on another machine, the container's Python may be too old "
     "for its syntax (python3 --version)"},
    {"can't open file",
     "the container has no such file: put it into the image, mount it (swell submit --volume), or "
     "fetch it (--sync-source)"},
    {"no such file or directory",
     "check the path, the working directory, and whether the image or a volume has the file"},
    {"permission denied",
     "the container's user may not do that: check who owns the file, and runAsUser and fsGroup"},
};

std::string_view Matching(std::span<const WordsRule> rules, std::string_view said) {
  const std::string lower = ToLower(said);
  for (const WordsRule& rule : rules) {
    if (lower.find(rule.words) != std::string::npos) return rule.advice;
  }
  return "";
}

// What they tell of a file that cannot be run; empty: nothing.
std::string_view AdviceForFileWords(std::string_view said) {
  constexpr std::string_view kNoInterpreter = "its first line names a program that is not there: ";
  const bool returns = said.find(kNoInterpreter) != std::string_view::npos;
  return returns && said.ends_with(R"(\r')") ? kCarriageReturns : Matching(kFileRules, said);
}

// What the words of a failure tell beyond its class; empty: nothing that is known.
std::string_view AdviceForWords(const Failure& failure, const json::Value& pod) {
  if (Says(failure.said, {"permission denied", "permissionerror"}) && UsesPathOfNode(pod)) {
    return "root in a container has no rights of root in a directory of the machine: use a claim, "
           "or run the pod as a user that owns the directory (docs/troubleshooting.md)";
  }
  if (!AsksForGpu(pod) &&
      Says(failure.said,
           {"found no nvidia driver", "no cuda gpus are available", "no cuda-capable device"})) {
    return "its pod asks for no GPU: swell submit --gpus, or nvidia.com/gpu in its limits";
  }
  const std::string_view of_file = AdviceForFileWords(failure.said);
  return of_file.empty() ? Matching(kWordsRules, failure.said) : of_file;
}

// Nothing it said explains the end.
std::string AdviceForSignal(int signal, const json::Value& pod) {
  switch (signal) {
    case SIGKILL:
      return StrCat("it was killed from outside, often because memory ran out on node ",
                    NodeName(pod).empty() ? "NODE" : NodeName(pod),
                    ": give it a memory limit, or let it use less");
    case SIGTERM:
      return "something other than Swell told it to stop";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
      return "its native code crashed: PYTHONFAULTHANDLER=1 in its environment prints where";
    case SIGBUS:
      return std::string(kLargerShm);
    case SIGILL:
      return std::string(kOtherProcessor);
    default:
      return "";
  }
}

std::string AdviceForReason(std::string_view reason) {
  if (reason == "DeadlineExceeded") return "give it more time (activeDeadlineSeconds)";
  if (reason == "Evicted") return "raise the limit that the message names, or let it use less";
  return "";
}

// The command that a shell did not find is a path: "sh: 1: /code/run.sh: not found", but not
// "sh: 1: train: not found".
bool LacksFile(std::string_view said) {
  const size_t end = said.rfind(": ");
  if (end == std::string_view::npos) return false;
  const std::string_view before = said.substr(0, end);
  return before.substr(before.rfind(' ') + 1).find('/') != std::string_view::npos;
}

std::string AdviceForFile(const Failure& failure, const json::Value& pod) {
  const bool served = IsServedByMachine(pod, failure.container);
  return StrCat(
      "mount the file (swell submit --volume), fetch it (--sync-source), or ",
      served ? StrCat("use the image itself: swell images pull ", ImageOf(pod, failure.container))
             : "put it into the image",
      "; if it is there, its first line (#!) names a program that is not, or ends with a "
      "carriage return (CRLF)");
}

std::string AdviceForCommand(const Failure& failure, const json::Value& pod) {
  const std::string_view of_file = AdviceForFileWords(failure.said);
  if (!of_file.empty()) return std::string(of_file);
  if (failure.exit_code == kCommandNotFound && LacksFile(failure.said)) {
    return AdviceForFile(failure, pod);
  }
  if (failure.exit_code == kCommandNotExecutable ||
      failure.said.ends_with("\": permission denied")) {
    return StrCat("chmod +x the file that the command of container ", failure.container, " names");
  }
  if (SpeaksOfVolumes(failure.said)) return "check the pod's volumes and what they name";
  const std::string check = StrCat("check the command of container ", failure.container);
  if (failure.said.find(kServedByMachine) != std::string::npos) {
    if (failure.said.find("\": no such file") == std::string::npos) return check;
    return "mount the file (swell submit --volume), fetch it (--sync-source), or correct its path";
  }
  if (!IsServedByMachine(pod, failure.container)) return check + ", and whether its image has it";
  return StrCat(check,
                "; this machine's own programs serve its image, so install what is missing here, "
                "or use the image itself: swell images pull ",
                ImageOf(pod, failure.container), ", or swell images import");
}

// A batch script of Slurm's kind has the PATH with which it was submitted.
bool HasPathOfSbatch(const json::Value& pod, std::string_view container) {
  const json::Value* spec = SpecOfContainer(pod, container);
  if (spec == nullptr) return false;
  const json::Array& env = json::GetArray(*spec, {"env"});
  return std::any_of(env.begin(), env.end(), [](const json::Value& variable) {
    return json::GetString(variable, {"name"}) == "SWELL_SLURM_PATH";
  });
}

// Its pods find Swell's own package where the machine has it, unless a volume covers that place.
// Empty: another module is missing, or it has no volumes.
std::string AdviceForHiddenSdk(const Failure& failure, const json::Value& pod) {
  if (!Says(failure.said, {"no module named 'swell'", "no module named 'swell."})) return "";
  const json::Value* spec = SpecOfContainer(pod, failure.container);
  if (spec == nullptr) return "";
  std::vector<std::string> paths;
  for (const json::Value& mount : json::GetArray(*spec, {"volumeMounts"})) {
    const std::string_view path = json::GetString(mount, {"mountPath"});
    if (!path.starts_with("/var/run/secrets/")) paths.emplace_back(path);
  }
  if (paths.empty()) return "";
  return StrCat(
      "a volume of the pod covers the directory in which this machine has the package: "
      "mount it at another path than ",
      Join(paths, ", "));
}

std::string AdviceForModule(const Failure& failure, const json::Value& pod) {
  if (HasPathOfSbatch(pod, failure.container)) {
    return "the script's python3 is the first of the PATH that sbatch had: activate the "
           "environment that has the module before sbatch or in the script, or name its Python";
  }
  if (std::string hidden = AdviceForHiddenSdk(failure, pod); !hidden.empty()) return hidden;
  return "this machine's own Python serves the image (docs/images.md) and sees no packages of "
         "pip install --user: install the package there, or put the module beside your code";
}

std::string AdviceForUserError(const Failure& failure, const json::Value& pod) {
  if (failure.exit_code == 0) {
    return "its restartPolicy Always starts it again after each end; use OnFailure for work that "
           "ends";
  }
  if (failure.exit_code == kCommandNotExecutable || failure.exit_code == kCommandNotFound ||
      failure.reason == "StartError" || failure.reason == "ContainerCannotRun") {
    return AdviceForCommand(failure, pod);
  }
  if (Says(failure.said, {"no module named"}) && IsServedByMachine(pod, failure.container)) {
    return AdviceForModule(failure, pod);
  }
  const std::string_view known = AdviceForWords(failure, pod);
  return StrCat(known.empty() ? "correct the program or its arguments" : known, "; ", kMoreInLog,
                LogsCommand(failure, pod));
}

std::string AdviceForUnknown(const Failure& failure, const json::Value& pod) {
  if (failure.StoppedByProbe()) {
    return StrCat(
        "check the probe's path, port and delays, and that the program answers it; its "
        "errors are in: swell events ",
        failure.member);
  }
  std::string known(AdviceForWords(failure, pod));
  if (known.empty() && failure.exit_code) {
    known = AdviceForSignal(SignalOf(*failure.exit_code), pod);
  }
  if (known.empty()) known = AdviceForReason(failure.reason);
  return StrCat(known, known.empty() ? "" : "; ", kMoreInLog, LogsCommand(failure, pod));
}

std::string AdviceForStart(const Failure& failure) {
  if (failure.reason.find("Image") != std::string::npos) {
    return StrCat("check the image of container ", failure.container);
  }
  if (Says(failure.said, {"couldn't find key"})) {
    return StrCat("add the key, or correct its name in container ", failure.container);
  }
  if (Says(failure.said, {"configmap", "secret"}) && Says(failure.said, {"not found"})) {
    return "create it, or correct its name; the node tries again by itself";
  }
  if (Says(failure.said, {"host path"}) && Says(failure.said, {"does not exist"})) {
    return "make the directory on the node, or correct the path; the node tries again by itself";
  }
  if (failure.container.empty()) return "the node tries again by itself";
  return StrCat("check what container ", failure.container, " refers to");
}

}  // namespace

const json::Value* SpecOfContainer(const json::Value& pod, std::string_view container) {
  for (const json::Array* list : {&InitContainers(pod), &Containers(pod)}) {
    for (const json::Value& one : *list) {
      if (ContainerName(one) == container) return &one;
    }
  }
  return nullptr;
}

std::string AdviceFor(const Failure& failure, const json::Value& pod) {
  switch (failure.which) {
    case FailureClass::kUserError:
      return AdviceForUserError(failure, pod);
    case FailureClass::kHostMemory: {
      const std::string limit = MemoryLimit(pod, failure.container);
      return limit.empty() ? "give it more memory, or let it use less"
                           : StrCat("raise ", limit, ", or let it use less");
    }
    case FailureClass::kGpuMemory:
      return "use a smaller batch with gradient accumulation, or a larger part of a GPU";
    case FailureClass::kNotANumber:
      return "lower the learning rate, or resume from an earlier checkpoint";
    case FailureClass::kPeerLost:
      return "another member ended or could not be reached; the log of each member may say why";
    case FailureClass::kHardware: {
      const std::string_view node = NodeName(pod);
      return StrCat("have the GPU checked; until then: kubectl cordon ",
                    node.empty() ? "NODE" : node);
    }
    case FailureClass::kPreempted:
      return "";
    case FailureClass::kCannotStart:
      return AdviceForStart(failure);
    case FailureClass::kUnknown:
      return AdviceForUnknown(failure, pod);
  }
  return "";
}

}  // namespace swell::api
