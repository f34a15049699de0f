// swell wait: until an object is in a given state.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"
#include "cli/views/job_view.h"
#include "json/json_path.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"

namespace swell::cli {
namespace {

// What --for asks of an object.
struct WaitCondition {
  enum class Kind { kDelete, kCondition, kPath };
  Kind kind = Kind::kDelete;
  std::string condition, value;
  std::optional<json::JsonPath> path;
  bool of_phase = false;  // the path is that of the phase

  bool Holds(const json::Value& object) const {
    if (kind == Kind::kCondition) {
      const std::optional<api::Condition> found = api::FindCondition(object, condition);
      return found && ToLower(found->status) == ToLower(value);
    }
    for (const json::Value* found : path->Find(object)) {
      if (value.empty() || json::PlainText(*found) == value) return true;
    }
    return false;
  }
};

Result<WaitCondition> ParseWaitCondition(const std::string& text) {
  WaitCondition awaited;
  auto after = [&text](std::string_view prefix) { return text.substr(prefix.size()); };
  if (text == "delete") return awaited;
  if (text.starts_with("condition=")) {
    awaited.kind = WaitCondition::Kind::kCondition;
    std::string rest = after("condition=");
    size_t equals = rest.find('=');
    awaited.condition = rest.substr(0, equals);
    awaited.value = equals == std::string::npos ? "True" : rest.substr(equals + 1);
    return awaited;
  }
  awaited.kind = WaitCondition::Kind::kPath;
  std::string path;
  if (text.starts_with("phase=")) {
    path = "{.status.phase}";
    awaited.value = after("phase=");
    awaited.of_phase = true;
  } else if (text.starts_with("jsonpath=")) {
    path = after("jsonpath=");
    if (size_t end = path.rfind("}="); end != std::string::npos) {
      awaited.value = path.substr(end + 2);
      path.resize(end + 1);
    }
  } else {
    return Misuse(StrCat("--for ", Quote(text),
                         ": expected condition=NAME[=VALUE], phase=WORD, delete or "
                         "jsonpath={PATH}[=VALUE]"));
  }
  SWELL_ASSIGN_OR_RETURN(awaited.path, ParseJsonPath(path));
  return awaited;
}

// How a job or a pod ended that changes no more; empty: it has not.
std::string EndOf(const json::Value& object) {
  const bool pod = json::GetString(object, {"kind"}) == "Pod";
  const std::string_view phase = api::StatusPhase(object);
  if (pod) return phase == "Failed" || phase == "Succeeded" ? std::string(phase) : "";
  if (KindOfJob(object) == nullptr) return "";
  for (const char* type : {"Failed", "Succeeded", "Complete"}) {
    const std::optional<api::Condition> ended = api::FindCondition(object, type);
    if (!ended || !ended->IsTrue()) continue;
    const auto failure = api::FailureOfJob(object);
    const std::string why = failure ? failure->Sentence() : std::string(ended->message);
    return StrCat(type, why.empty() ? "" : ". ", why);
  }
  return "";
}

class WaitAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--for", &for_, "WHAT",
               "condition=NAME[=VALUE], phase=WORD, delete, jsonpath={PATH}=VALUE");
    flags.Text("--timeout", &timeout_, "DURATION", "how long to wait (default 30s)");
    flags.Text("-l,--selector", &selector_, "LABELS", "objects of the kind with these labels");
    flags.Switch("--all", &all_, "all objects of the kind in this namespace");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (for_.empty())
      return Misuse("--for is not set: say what to wait for, such as --for=condition=Running");
    SWELL_ASSIGN_OR_RETURN(WaitCondition awaited, ParseWaitCondition(for_));
    SWELL_ASSIGN_OR_RETURN(Duration limit, ParseDuration(timeout_, "--timeout"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<One> waited, Choose(session, *api, words));
    if (waited.empty()) return Status(Code::kNotFound, "no matching resources found");
    SteadyTime start = session.env().clock->Steady();
    for (const One& one : waited) {
      for (;;) {
        SWELL_ASSIGN_OR_RETURN(bool reached, IsReached(*api, one, awaited));
        if (reached) break;
        if (session.env().clock->Steady() - start >= limit) {
          return Status(Code::kTimeout, StrCat("timed out after ", timeout_, " waiting for ", for_,
                                               " of ", one.kind.SingularName(), "/", one.name));
        }
        if (!api->Pause(std::chrono::milliseconds(200))) return 130;
      }
      session.OutLine(
          StrCat(one.kind.SingularName(), "/", one.name,
                 awaited.kind == WaitCondition::Kind::kDelete ? " deleted" : " condition met"));
    }
    return 0;
  }

 private:
  struct One {
    Kind kind;
    std::string ns, name, uid;
  };

  Result<std::vector<One>> Choose(Session& session,
                                  Api& api,
                                  const std::vector<std::string>& words) {
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    std::vector<One> chosen;
    if (words.empty()) return Misuse("say what to wait for: swell wait pytorchjob/mnist --for=…");
    std::string ns = session.Namespace();
    if (words[0].find('/') != std::string::npos) {
      for (const std::string& word : words) {
        size_t slash = word.find('/');
        if (slash == std::string::npos) return Misuse(StrCat(Quote(word), ": expected KIND/NAME"));
        SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(word.substr(0, slash)));
        chosen.push_back({std::move(kind), ns, word.substr(slash + 1), {}});
      }
    } else {
      auto found_kind = kinds->Find(words[0]);
      if (!found_kind.ok() && words.size() == 1) {
        auto job = FindJob(api, ns, words[0]);
        if (!job.ok()) return NeitherJobNorKind(found_kind.status(), words[0], ns);
        SWELL_ASSIGN_OR_RETURN(Kind of_job, kinds->Find(job->kind->resource.GroupResource()));
        chosen.push_back({std::move(of_job), ns, job->name, {}});
        return chosen;
      }
      if (!found_kind.ok()) return found_kind.status();
      const Kind kind = std::move(found_kind).value();
      for (size_t i = 1; i < words.size(); ++i) chosen.push_back({kind, ns, words[i], {}});
      if (words.size() == 1 && (all_ || !selector_.empty())) {
        SWELL_ASSIGN_OR_RETURN(auto found,
                               api.List(kind.resource, ns, {.label_selector = selector_}));
        for (const json::SharedValue& object : found) {
          chosen.push_back({kind, ns, std::string(api::Name(*object)), {}});
        }
      }
    }
    return chosen;
  }

  static Result<bool> IsReached(Api& api, const One& one, const WaitCondition& awaited) {
    auto object = api.Get(one.kind.resource, one.ns, one.name);
    if (awaited.kind == WaitCondition::Kind::kDelete) {
      if (object.ok()) return false;
      if (object.status().code() == Code::kNotFound) return true;
    }
    if (!object.ok()) return object.status();
    if (awaited.Holds(**object)) return true;
    // Nobody waits hours for what has become impossible.
    const bool of_state = awaited.kind != WaitCondition::Kind::kPath || awaited.of_phase;
    const std::string end = of_state ? EndOf(**object) : "";
    if (end.empty()) return false;
    return Status(Code::kConflict,
                  StrCat(one.kind.SingularName(), "/", one.name, " is over: ", end));
  }

  std::string for_, selector_, timeout_ = "30s";
  bool all_ = false;
};

}  // namespace

Command WaitCommandSpec() {
  return {
      .name = "wait",
      .group = "Jobs",
      .summary = "Wait until an object has a given state.",
      .usage = "KIND/NAME... | KIND NAME... --for=WHAT",
      .examples = {{"Until a job has succeeded",
                    "swell wait pytorchjob/mnist --for=condition=Succeeded --timeout=2h"},
                   {"Until a pod runs", "swell wait pod/mnist-master-0 --for=phase=Running"},
                   {"Until it is deleted", "swell wait pytorchjob/mnist --for=delete"}},
      .completes = Completes::kKindThenName,
      .make = Makes<WaitAction>(),
  };
}

}  // namespace swell::cli
