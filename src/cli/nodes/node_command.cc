// swell node check: tests nodes with a pod on each. swell node clear: clears their failures.
#include <algorithm>
#include <map>

#include "base/random.h"
#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/nodes/node_check.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/node_view.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

using client::resources::kPods;

constexpr Duration kPollEvery = std::chrono::milliseconds(500);
constexpr size_t kNodesMax = 1000;
constexpr size_t kTogether = 64;  // pods at once
constexpr int kExitUnknown = 3;   // a test had no result

NodeCheck Skipped(const std::string& node, std::string why) {
  NodeCheck check{.node = node, .verdict = NodeCheck::Verdict::kSkipped};
  check.message = std::move(why);
  return check;
}

std::string CellOf(const CheckPart& part, std::string_view unit) {
  if (part.state == CheckPart::State::kBad) return "bad";
  if (part.state == CheckPart::State::kSkipped) return "-";
  return part.rate > 0 ? StrCat(static_cast<int64_t>(part.rate), " ", unit) : "good";
}

class CheckAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--image", &image_, "IMAGE",
               "image with python3 for the test (default python:3.11); with torch, GPUs compute");
    flags.Text("--timeout", &timeout_, "DURATION", "time for all tests (default 3m)");
    flags.SwitchOff("--no-gpu", &gpus_,
                    "do not test GPUs; nodes without an idle GPU are then tested, too");
    flags.Text("-o,--output", &output_, "FORM", "json or yaml (default: a table)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(const OutputForm form, ParseOutputForm(output_));
    if (!form.table() && form.kind != OutputForm::Kind::kJson &&
        form.kind != OutputForm::Kind::kYaml) {
      return WrongValue("--output", output_, {"json", "yaml"});
    }
    SWELL_ASSIGN_OR_RETURN(limit_, ParseDuration(timeout_, "--timeout"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, *api, words));
    // Control-plane nodes take no work, unless they are named.
    if (words.empty()) {
      std::erase_if(nodes, [](const NodeView& node) { return node.role == "master"; });
    }
    if (nodes.size() > kNodesMax) {
      return Misuse(
          StrCat("nodes: ", nodes.size(), " are more than ", kNodesMax, "; name those to test"));
    }
    std::vector<NodeCheck> checks;
    const WallTime until = session.Now() + limit_;
    for (size_t from = 0; from < nodes.size(); from += kTogether) {
      const size_t to = std::min(nodes.size(), from + kTogether);
      const std::vector<NodeView> some(nodes.begin() + static_cast<std::ptrdiff_t>(from),
                                       nodes.begin() + static_cast<std::ptrdiff_t>(to));
      SWELL_RETURN_IF_ERROR(Test(session, *api, some, until, checks));
    }
    CompareChecks(checks);
    Print(session, form, checks);
    const auto any = [&checks](NodeCheck::Verdict verdict) {
      return std::any_of(checks.begin(), checks.end(),
                         [verdict](const NodeCheck& one) { return one.verdict == verdict; });
    };
    if (any(NodeCheck::Verdict::kBad)) return 1;
    return any(NodeCheck::Verdict::kUnknown) ? kExitUnknown : 0;
  }

 private:
  // Adds the outcomes in the nodes' order. The pods are deleted whatever comes.
  Status Test(Session& session,
              Api& api,
              const std::vector<NodeView>& nodes,
              WallTime until,
              std::vector<NodeCheck>& checks) {
    Random random(static_cast<uint64_t>(session.Now().unix_ns));
    const std::string ns = session.Namespace();
    std::map<std::string, std::string> pods;  // by node
    std::map<std::string, NodeCheck> found;
    Status failed;
    for (const NodeView& node : nodes) {
      const bool gpu = gpus_ && node.gpus() > 0;
      if (!node.ready) {
        found[node.name] = Skipped(node.name, "the node is not ready");
        continue;
      }
      if (gpu && node.FreeMilliGpus() < 1000) {
        found[node.name] = Skipped(
            node.name, "none of its GPUs is idle and healthy; test the rest of it with --no-gpu");
        continue;
      }
      const std::string pod = StrCat("node-check-", random.NameSuffix(8));
      const auto made = api.Create(kPods, ns, CheckPod(node.name, pod, image_, gpu));
      if (!made.ok()) {
        failed = made.status();
        break;
      }
      pods[node.name] = pod;
    }
    if (failed.ok()) Await(session, api, ns, pods, until, found);
    for (const auto& [node, pod] : pods) {
      // One that stays ends by itself: its time is limited.
      [[maybe_unused]] const auto gone = api.Delete(kPods, ns, pod, /*grace_seconds=*/0);
    }
    if (!failed.ok()) return failed;
    for (const NodeView& node : nodes) checks.push_back(std::move(found.at(node.name)));
    return api.interrupted() ? Status(Code::kUnavailable, "interrupted; the tests were ended")
                             : Status::Ok();
  }

  static void Await(Session& session,
                    Api& api,
                    const std::string& ns,
                    const std::map<std::string, std::string>& pods,
                    WallTime until,
                    std::map<std::string, NodeCheck>& found) {
    for (;;) {
      size_t left = 0;
      const bool over = session.Now() >= until || api.interrupted();
      for (const auto& [node, pod] : pods) {
        if (found.contains(node)) continue;
        const auto object = api.Get(kPods, ns, pod);
        if (!object.ok() && object.status().code() == Code::kNotFound) {
          found[node] = Skipped(node, "other work took the place of the test");
        } else if (auto check = object.ok() ? CheckOf(node, **object) : std::nullopt) {
          found[node] = std::move(*check);
        } else if (over) {
          found[node] = Late(node, object.ok() ? **object : json::Value(), session.Now());
        } else {
          ++left;
        }
      }
      if (left == 0 || !api.Pause(kPollEvery)) break;
    }
    for (const auto& [node, pod] : pods) {
      found.try_emplace(node, Skipped(node, "the test was interrupted"));
    }
  }

  // A pod without a place has found no room; of one that has a place nothing is known.
  static NodeCheck Late(const std::string& node, const json::Value& pod, WallTime now) {
    if (api::IsBound(pod)) {
      NodeCheck check{.node = node};
      check.message = "the test did not end in time";
      if (api::Phase(pod) != "Running") check.message = "the test did not start in time";
      const auto failure = api::FailureOf(pod, now);
      if (failure && !failure->exit_code) {
        check.message = StrCat("the test did not start: ", failure->reason,
                               failure->said.empty() ? "" : ": ", failure->said);
      }
      return check;
    }
    const auto scheduled = api::FindCondition(pod, "PodScheduled");
    return Skipped(node, scheduled && !scheduled->message.empty()
                             ? StrCat("the test did not start: ", scheduled->message)
                             : "the test did not start in time");
  }

  static void Print(Session& session,
                    const OutputForm& form,
                    const std::vector<NodeCheck>& checks) {
    if (!form.table()) {
      json::Array list;
      for (const NodeCheck& one : checks) list.push_back(one.ToJson());
      session.Out(FormatObject(form, json::Object{{"nodes", std::move(list)}}, "nodecheck"));
      return;
    }
    TextTable table(
        {"NODE", "VERDICT", "GPU", "COMPUTE", "MEMORY", "DISK", "GPU COMPUTE", "MESSAGE"});
    for (const NodeCheck& one : checks) {
      const auto verdict = one.verdict;
      const Colour colour = verdict == NodeCheck::Verdict::kGood  ? Colour::kGreen
                            : verdict == NodeCheck::Verdict::kBad ? Colour::kRed
                                                                  : Colour::kYellow;
      table.Add({one.node, session.Paint(colour, VerdictWord(verdict)), OrDash(OneLine(one.gpu)),
                 CellOf(one.parts[0], "MiB/s"), CellOf(one.parts[1], "MiB/s"),
                 CellOf(one.parts[2], "MiB/s"), CellOf(one.parts[3], "TFLOP/s"),
                 OrDash(OneLine(one.message))});
    }
    session.Out(table.ToString());
  }

  std::string image_ = "python:3.11", timeout_ = "3m", output_;
  bool gpus_ = true;
  Duration limit_{0};
};

// A failure that is only forgotten would be found again on its pod, so it stays and counts nothing.
class ClearAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) return Misuse("a node is missing");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    for (const std::string& name : words) SWELL_RETURN_IF_ERROR(Clear(session, *api, name));
    return 0;
  }

 private:
  static Status Clear(Session& session, Api& api, const std::string& name) {
    const auto found = api.Get(client::resources::kNodes, "", name);
    if (found.status().code() == Code::kNotFound) {
      return Status(Code::kNotFound, StrCat("node ", Quote(name), " not found"));
    }
    if (!found.ok()) return found.status();
    const json::SharedValue& node = *found;
    std::vector<api::NodeFailure> failures = api::NodeFailuresOf(*node);
    size_t counted = 0;
    for (api::NodeFailure& one : failures) counted += std::exchange(one.weight, 0) > 0 ? 1 : 0;
    if (counted == 0) {
      session.OutLine(StrCat("node ", name, ": no failure counts against it"));
      return Status::Ok();
    }
    json::Value patch = json::Object{};
    // One that is added meanwhile is not lost: the server refuses the write.
    json::Set(patch, {"metadata", "resourceVersion"}, api::ResourceVersionText(*node));
    json::Set(patch, {"metadata", "annotations", api::keys::kNodeFailures},
              api::NodeFailuresText(failures));
    auto written = api.Patch(client::resources::kNodes, "", name, client::PatchType::kMerge, patch);
    if (!written.ok()) return written.status();
    session.OutLine(
        StrCat("node ", name, ": ", counted, counted == 1 ? " failure" : " failures", " cleared"));
    return Status::Ok();
  }
};

}  // namespace

Command NodeCommandSpec() {
  Command command{.name = "node",
                  .aliases = {"nodes"},
                  .group = "Inspect",
                  .summary = "List nodes, test them, and clear their recorded failures."};
  command.children = {
      {.name = "list",
       .summary = "List nodes with their status and what pods request of them.",
       .usage = "[NODE...]",
       .examples = {{"All nodes", "swell node list"}},
       .completes = Completes::kNode,
       .make = MakeNodeTable},
      {.name = "check",
       .summary =
           "Test the processors, memory, disk and one idle GPU of nodes, with a pod on each.",
       .usage = "[NODE...]",
       .examples = {{"All nodes", "swell node check"},
                    {"Two nodes, for a script", "swell node check node-1 node-2 -o json"},
                    {"Let the GPUs compute",
                     "swell node check --image pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"}},
       .notes = "The exit code is 1 if a node is bad, 3 if a test had no result. The test can be "
                "preempted, and preempts nobody. Nodes without an idle GPU are skipped.",
       .completes = Completes::kNode,
       .make = Makes<CheckAction>()},
      {.name = "clear",
       .summary = "Reset the failure score of nodes, once they are repaired.",
       .usage = "NODE...",
       .examples = {{"A node that has a new GPU", "swell node clear node-1"}},
       .notes = "swell health NODE still lists the failures, but they no longer count. Within "
                "seconds the node "
                "gets work like any other. Conditions of its checks are not touched: the checks "
                "clear them.",
       .completes = Completes::kNode,
       .make = Makes<ClearAction>()}};
  return command;
}

}  // namespace swell::cli
