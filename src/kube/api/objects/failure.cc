#include "kube/api/objects/failure.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/end_reasons.h"
#include "kube/api/objects/failure_advice.h"
#include "kube/api/objects/pod.h"

namespace swell::api {
namespace {

// A container that has run for so long since its last failure has recovered.
constexpr Duration kSettled = std::chrono::seconds(60);
constexpr std::string_view kCrashLoop = "CrashLoopBackOff";
constexpr std::string_view kWroteNothing = "it wrote nothing";

struct Place {
  const json::Value& pod;
  const json::Value& status;  // of one container
  std::string_view name, role;
};

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
    const std::string_view message = json::GetString(*waiting, {"message"});
    const bool creating = reason == "ContainerCreating" || reason == "PodInitializing";
    if (reason.empty() || (creating && message.empty())) return std::nullopt;
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
    failure.said = LastWords(message);
    // What all its containers need cannot be made: a volume, a network.
    if (creating) failure.container = failure.role = "";
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

// Without escapes: people read it. More of the sentence follows.
std::string Quoted(std::string_view words) {
  if (words.find('"') == std::string::npos) return StrCat("\"", words, "\"");
  if (words.ends_with('.')) words.remove_suffix(1);
  return std::string(words);
}

// What a program wrote, between marks that it does not contain: nothing that it wrote passes for
// the words around it.
std::string QuotedOutput(std::string_view words) {
  for (const char mark : {'"', '\'', '`'}) {
    if (words.find(mark) == std::string::npos) return std::string(1, mark).append(words) + mark;
  }
  std::string plain(words);
  std::replace(plain.begin(), plain.end(), '"', '\'');
  return StrCat("\"", plain, "\"");
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

bool Failure::TellsOfLog() const {
  return advice.find(kMoreInLog) != std::string::npos || advice.ends_with(kWroteNothing);
}

void Failure::HasNoLog() {
  const size_t more = advice.find(kMoreInLog);
  if (more != std::string::npos) advice.replace(more, std::string::npos, kWroteNothing);
}

bool Failure::StoppedByProbe() const { return exit_code && reason.ends_with(kProbeFailedReason); }

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
  const std::string last_line = said.empty() ? "" : StrCat("; its last line: ", QuotedOutput(said));
  if (container.empty()) {
    text += repeats() ? said : StrCat(reason, quoted);
  } else if (!exit_code) {
    text += StrCat(role, " ", container, " waits with ", reason, quoted);
  } else if (reason == "StartError" || reason == "ContainerCannotRun") {
    text += StrCat(role, " ", container, " could not start: ", said);
  } else if (reason == "OOMKilled") {
    text += StrCat(role, " ", container, " was killed because it used more memory than allowed");
  } else if (StoppedByProbe()) {
    const std::string probe = ToLower(reason.substr(0, reason.find(kProbeFailedReason)));
    const std::string because = StrCat("its ", probe, kProbeFailed);
    text += StrCat(role, " ", container, " was stopped because ", because,
                   said == because ? "" : last_line);
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
