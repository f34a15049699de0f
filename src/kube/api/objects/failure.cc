#include "kube/api/objects/failure.h"

#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <tuple>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::api {
namespace {

// A container that has run for so long since its last failure has recovered.
constexpr Duration kSettled = std::chrono::seconds(60);
constexpr int64_t kCommandNotFound = 127;
constexpr int64_t kCommandNotExecutable = 126;
constexpr std::string_view kCrashLoop = "CrashLoopBackOff";

struct Place {
  const json::Value& pod;
  const json::Value& status;  // of one container
  std::string_view name, role;
};

const json::Value* SpecOf(const json::Value& pod, std::string_view container) {
  for (const json::Array* list : {&InitContainers(pod), &Containers(pod)}) {
    for (const json::Value& one : *list) {
      if (ContainerName(one) == container) return &one;
    }
  }
  return nullptr;
}

// "its memory limit of 1Gi"; empty: neither the container nor its pod has one.
std::string MemoryLimit(const json::Value& pod, std::string_view container) {
  const json::Value* spec = SpecOf(pod, container);
  if (spec == nullptr) return "";
  const std::string_view own = json::GetString(*spec, {"resources", "limits", "memory"});
  if (!own.empty()) return StrCat("its memory limit of ", own);
  const std::string_view whole = json::GetString(pod, {"spec", "resources", "limits", "memory"});
  return whole.empty() ? "" : StrCat("the memory limit of its pod, ", whole);
}

std::string ImageOf(const json::Value& pod, std::string_view container) {
  const json::Value* spec = SpecOf(pod, container);
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
constexpr std::string_view kMoreInLog = "more is in: ";

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

// What the words of a failure tell beyond its class; empty: nothing that is known.
std::string AdviceForWords(const Failure& failure, const json::Value& pod) {
  if (Says(failure.said, {"unrecognized arguments: --rdzv_", "unrecognized option '--rdzv_"})) {
    return "enableElastic puts --rdzv_backend and other options before the arguments of each "
           "container, and only torchrun and swell.launch take them: start the program with one "
           "of these";
  }
  if (Says(failure.said, {"permission denied", "permissionerror"}) && UsesPathOfNode(pod)) {
    return "root in a container has no rights of root in a directory of the machine: use a claim, "
           "or run the pod as a user that owns the directory (docs/troubleshooting.md)";
  }
  if (SpeaksOfNetwork(failure.said)) {
    return "check the name, and whether the node reaches it by the network";
  }
  return "";
}

// What to do, for the class and what is known beyond it.
std::string AdviceFor(const Failure& failure, const json::Value& pod) {
  const std::string known = AdviceForWords(failure, pod);
  switch (failure.which) {
    case FailureClass::kUserError:
      if (failure.exit_code == 0) {
        return "its restartPolicy Always starts it again after each end; use OnFailure for work "
               "that ends";
      }
      if (failure.exit_code == kCommandNotExecutable) {
        return StrCat("chmod +x the file that the command of container ", failure.container,
                      " names");
      }
      if (failure.exit_code == kCommandNotFound || failure.reason == "StartError" ||
          failure.reason == "ContainerCannotRun") {
        if (SpeaksOfVolumes(failure.said)) return "check the pod's volumes and what they name";
        if (failure.said.find(kServedByMachine) != std::string::npos) {
          return StrCat("check the command of container ", failure.container);
        }
        if (IsServedByMachine(pod, failure.container)) {
          return StrCat("check the command of container ", failure.container,
                        "; this machine's own programs serve its image, so install what is missing "
                        "here, or use the image itself: swell images pull ",
                        ImageOf(pod, failure.container), ", or swell images import");
        }
        return StrCat("check the command of container ", failure.container,
                      ", and whether its image has it");
      }
      if (Says(failure.said, {"no module named"}) && IsServedByMachine(pod, failure.container)) {
        return "this machine's own Python serves the image (docs/images.md) and sees no packages "
               "of "
               "pip install --user: install the package there, or put the module beside your code";
      }
      return StrCat(known.empty() ? "correct the program or its arguments" : known, "; ",
                    kMoreInLog, LogsCommand(failure, pod));
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
      return failure.reason.find("Image") == std::string::npos
                 ? StrCat("check what container ", failure.container, " refers to")
                 : StrCat("check the image of container ", failure.container);
    case FailureClass::kUnknown:
      return StrCat(known, known.empty() ? "" : "; ", kMoreInLog, LogsCommand(failure, pod));
  }
  return "";
}

Failure AtPlace(const Place& place) {
  Failure failure;
  failure.member = Name(place.pod);
  failure.container = place.name;
  failure.role = place.role;
  failure.restarts = json::GetInt(place.status, {"restartCount"});
  return failure;
}

Failure FromEnd(const Place& place, const json::Value& terminated) {
  Failure failure = AtPlace(place);
  failure.exit_code = json::GetInt(terminated, {"exitCode"});
  failure.reason = json::GetString(terminated, {"reason"});
  const std::string_view said = json::GetString(terminated, {"message"});
  failure.said = LastWords(said);
  failure.which = ClassifyEnd({*failure.exit_code, failure.reason, said});
  failure.time = ParseTime(json::GetString(terminated, {"finishedAt"}));
  return failure;
}

// A failed start of a container, or its failed end.
std::optional<Failure> OfContainer(const Place& place, WallTime now) {
  const json::Value* ended = json::Find(place.status, {"state", "terminated"});
  const json::Value* before = json::Find(place.status, {"lastState", "terminated"});
  const bool failed_before = before != nullptr && json::GetInt(*before, {"exitCode"}) != 0;
  if (ended != nullptr) {
    if (json::GetInt(*ended, {"exitCode"}) == 0) return std::nullopt;
    Failure failure = FromEnd(place, *ended);
    // Between its end and the decision of its node a container that restarts has ended.
    if (!HasEnded(place.pod) && failure.restarts > 0) failure.waits = kCrashLoop;
    return failure;
  }
  if (const json::Value* waiting = json::Find(place.status, {"state", "waiting"})) {
    const std::string_view reason = json::GetString(*waiting, {"reason"});
    if (failed_before) {
      Failure failure = FromEnd(place, *before);
      failure.waits = reason.empty() ? kCrashLoop : reason;
      return failure;
    }
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") {
      return std::nullopt;
    }
    // A program that is done, and is started again and again.
    if (before != nullptr && reason == kCrashLoop) {
      Failure failure = FromEnd(place, *before);
      failure.which = FailureClass::kUserError;
      failure.waits = reason;
      return failure;
    }
    Failure failure = AtPlace(place);
    failure.which = FailureClass::kCannotStart;
    failure.reason = failure.waits = reason;
    failure.said = LastWords(json::GetString(*waiting, {"message"}));
    return failure;
  }
  const auto started = ParseTime(json::GetString(place.status, {"state", "running", "startedAt"}));
  if (!failed_before || !started || now - *started >= kSettled) return std::nullopt;
  Failure failure = FromEnd(place, *before);
  failure.waits = kCrashLoop;
  failure.settles = *started + kSettled;
  return failure;
}

bool WasStopped(const json::Value& pod) { return !Annotation(pod, keys::kStopRequested).empty(); }

std::optional<Failure> PreemptionOf(const json::Value& pod) {
  const std::optional<Condition> target = FindCondition(pod, kDisruptionTarget);
  const std::string_view by = Annotation(pod, keys::kPreemptedBy);
  if (by.empty() && (!target || !target->IsTrue())) return std::nullopt;
  Failure failure;
  failure.member = Name(pod);
  failure.which = FailureClass::kPreempted;
  failure.reason = target && by.empty() ? std::string(target->reason) : "Preempted";
  failure.said = Annotation(pod, keys::kPreemptedMessage);
  if (failure.said.empty() && target) failure.said = target->message;
  if (target) failure.time = target->Since();
  return failure;
}

// A failed pod of which no container failed: its node or a deadline ended it.
std::optional<Failure> OfWholePod(const json::Value& pod) {
  const std::string_view reason = StatusReason(pod);
  if (Phase(pod) != "Failed" || reason.empty() || WasStopped(pod)) return std::nullopt;
  Failure failure;
  failure.member = Name(pod);
  failure.reason = reason;
  failure.said = LastWords(StatusMessage(pod));
  return failure;
}

// Causes before what follows from them.
int RankOf(const Failure& failure) {
  if (failure.which == FailureClass::kPreempted) return 3;
  if (failure.exit_code && SignalOf(*failure.exit_code) == SIGTERM) return 2;
  return failure.which == FailureClass::kPeerLost ? 1 : 0;
}

// Without escapes: people read it.
std::string Quoted(const std::string& words) {
  return words.find('"') == std::string::npos ? StrCat("\"", words, "\"") : words;
}

std::string RestartsText(int64_t restarts) {
  return StrCat(restarts, restarts == 1 ? " restart" : " restarts");
}

}  // namespace

std::string Failure::Word() const {
  if (repeats()) return waits;
  if (which == FailureClass::kPreempted) return "Preempted";
  if (reason == "OOMKilled" || reason == "StartError") return reason;
  if (!exit_code) return reason;
  const std::string_view name = SignalName(SignalOf(*exit_code));
  return name.empty() ? StrCat("exit ", *exit_code) : std::string(name);
}

void Failure::HasNoLog() {
  const size_t more = advice.find(kMoreInLog);
  if (more != std::string::npos) advice.replace(more, std::string::npos, "it wrote nothing");
}

std::string Failure::Sentence() const {
  if (which == FailureClass::kPreempted) {
    return StrCat(member, " lost its place", said.empty() ? "" : ": ", said);
  }
  std::string text = member;
  if (!repeats()) {
    text += " failed";
  } else if (!exit_code) {
    text += " cannot start";
  } else {
    text += restarts > 1 ? " fails again and again" : " failed and starts again";
  }
  if (restarts > 0 && repeats()) text += StrCat(" (", RestartsText(restarts), ")");
  if (restarts > 0 && !repeats()) text += StrCat(" after ", RestartsText(restarts));
  text += ": ";
  const std::string quoted = said.empty() ? "" : StrCat(": ", Quoted(said));
  const std::string last_line = said.empty() ? "" : StrCat("; its last line: ", Quoted(said));
  if (container.empty()) {
    text += StrCat(reason, quoted);
  } else if (!exit_code) {
    text += StrCat(role, " ", container, " waits with ", reason, quoted);
  } else if (reason == "StartError" || reason == "ContainerCannotRun") {
    text += StrCat(role, " ", container, " could not start: ", said);
  } else if (reason == "OOMKilled") {
    text += StrCat(role, " ", container, " was killed because it used more memory than allowed");
  } else if (const int signal = SignalOf(*exit_code); !SignalName(signal).empty()) {
    text += StrCat(role, " ", container, " was ended by signal ", signal, " (", SignalName(signal),
                   ")", last_line);
  } else {
    text += StrCat(role, " ", container, " exited with ", *exit_code, last_line);
  }
  return advice.empty() ? text : StrCat(text, "; ", advice);
}

json::Value Failure::ToJson() const {
  json::Object out{{"member", member}, {"class", FailureClassName(which)}, {"message", Sentence()}};
  const auto add = [&out](std::string_view key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  add("container", container);
  add("role", role);
  add("reason", reason);
  add("lastLine", said);
  add("advice", advice);
  add("waitsWith", waits);
  if (exit_code) out["exitCode"] = *exit_code;
  if (exit_code && SignalOf(*exit_code) != 0) out["signal"] = SignalOf(*exit_code);
  if (restarts > 0) out["restarts"] = restarts;
  if (time) out["time"] = FormatTime(*time);
  return json::Value(std::move(out));
}

std::optional<Failure> Failure::FromJson(const json::Value& document) {
  const auto text = [&document](std::string_view key) {
    return std::string(json::GetString(document, {key}));
  };
  Failure failure;
  failure.member = text("member");
  if (failure.member.empty()) return std::nullopt;
  failure.container = text("container");
  failure.role = text("role");
  failure.reason = text("reason");
  failure.said = text("lastLine");
  failure.advice = text("advice");
  failure.waits = text("waitsWith");
  failure.which = FailureClassOf(text("class"));
  if (json::Find(document, {"exitCode"}) != nullptr) {
    failure.exit_code = json::GetInt(document, {"exitCode"});
  }
  failure.restarts = json::GetInt(document, {"restarts"});
  failure.time = ParseTime(text("time"));
  return failure;
}

std::optional<Failure> FailureOf(const json::Value& pod, WallTime now) {
  if (auto preempted = PreemptionOf(pod)) return preempted;
  std::optional<Failure> first;
  for (std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : json::GetArray(pod, {"status", list})) {
      const std::string_view name = json::GetString(status, {"name"});
      const std::string_view role = list == "containerStatuses" ? "container"
                                    : HasSidecar(pod, name)     ? "sidecar"
                                                                : "init container";
      auto failure = OfContainer({pod, status, name, role}, now);
      if (!failure) continue;
      const int signal = failure->exit_code ? SignalOf(*failure->exit_code) : 0;
      const bool by_signal = signal == SIGTERM || signal == SIGKILL;
      // Also by its node, which says why: a deadline, a shutdown, an eviction.
      const bool was_to_stop =
          WasStopped(pod) || IsDeleting(pod) || (HasEnded(pod) && !StatusReason(pod).empty());
      // torchrun makes an exception of the signal.
      const bool of_launcher = failure->said.find("SignalException: ") != std::string::npos &&
                               failure->said.ends_with("got signal: 15");
      const bool told = of_launcher || (by_signal && failure->which == FailureClass::kUnknown);
      if (was_to_stop && told) continue;
      // A pod that ends stops its sidecars: how they end is not a failure of the pod.
      if (role == "sidecar" && HasEnded(pod)) continue;
      if (!first ||
          std::tuple(RankOf(*failure), failure->time) < std::tuple(RankOf(*first), first->time)) {
        first = std::move(failure);
      }
    }
  }
  if (!first) first = OfWholePod(pod);
  if (first) first->advice = AdviceFor(*first, pod);
  return first;
}

std::optional<Failure> FirstFailure(const std::vector<json::SharedValue>& pods, WallTime now) {
  std::optional<Failure> first;
  for (const json::SharedValue& pod : pods) {
    auto failure = FailureOf(*pod, now);
    if (!failure) continue;
    // One that has ended explains more than one that waits for its node.
    const auto key = [](const Failure& one) {
      return std::tuple(RankOf(one), !one.exit_code, one.time);
    };
    if (!first || key(*failure) < key(*first)) first = std::move(failure);
  }
  return first;
}

std::optional<Failure> FailureOfJob(const json::Value& job) {
  const json::Value* document = json::Find(job, {"status", "failure"});
  return document == nullptr ? std::nullopt : Failure::FromJson(*document);
}

}  // namespace swell::api
