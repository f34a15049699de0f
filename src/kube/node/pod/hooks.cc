#include "kube/node/pod/hooks.h"

#include <utility>

#include "base/strings.h"
#include "kube/node/pod/probes.h"

namespace swell::node {
namespace {

// The server has answered, if only to refuse: a hook asks for no more.
constexpr std::string_view kAnswered = "HTTP probe failed with statuscode";

Status Outcome(const Result<ExecResult>& result) {
  if (!result.ok()) return result.status();
  if (result->timed_out) return Status(Code::kTimeout, "command timed out");
  if (result->code == 0) return Status::Ok();
  return Status(Code::kInvalid, StrCat("command exited with ", result->code, ": ",
                                       Quote(std::string(Trim(result->output)))));
}

}  // namespace

void RunHook(Runtime& runtime,
             const json::Value& container,
             const json::Value& hook,
             const ContainerRef& ref,
             Duration limit,
             std::function<void(Status)> done) {
  if (const json::Value* exec = json::Find(hook, {"exec"})) {
    ExecSpec spec{.timeout = limit};
    for (const json::Value& word : json::GetArray(*exec, {"command"})) {
      if (word.is_string()) spec.argv.emplace_back(json::View(word.get_string()));
    }
    return runtime.Exec(ref, spec, [done = std::move(done)](const Result<ExecResult>& result) {
      done(Outcome(result));
    });
  }
  // As the kubelet, which takes tcpSocket and has never run it.
  if (json::Find(hook, {"httpGet"}) == nullptr) {
    return done(Status(Code::kInvalid, "invalid handler: it is none of exec, httpGet and sleep"));
  }
  if (Status usable = ProbeRunner::Check(container, hook); !usable.ok()) return done(usable);
  runtime.Probe(ref.pod_uid, ReadNetAction(container, hook, limit),
                [done = std::move(done)](const ProbeResult& result) {
                  if (result.ok || result.message.starts_with(kAnswered)) return done(Status::Ok());
                  done(Status(Code::kUnavailable, result.message));
                });
}

}  // namespace swell::node
