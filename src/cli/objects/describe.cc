// swell describe: everything about one object, in words.
#include "cli/objects/describe.h"

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/job_logs.h"
#include "cli/views/node_faults.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

class DescribeAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-l,--selector", &selector_, "LABELS", "objects of the kind with these labels");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse("nothing to describe; use swell describe JOB or swell describe KIND NAME");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    api_ = api;
    session_ = &session;
    if (words[0].find('/') != std::string::npos) {
      for (const std::string& word : words) {
        size_t slash = word.find('/');
        if (slash == std::string::npos) return Misuse(StrCat(Quote(word), ": expected KIND/NAME"));
        SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(word.substr(0, slash)));
        SWELL_RETURN_IF_ERROR(One(kind, word.substr(slash + 1)));
      }
      return 0;
    }
    auto kind = kinds->Find(words[0]);
    if (kind.ok() && words.size() > 1) {
      for (size_t i = 1; i < words.size(); ++i) SWELL_RETURN_IF_ERROR(One(*kind, words[i]));
      return 0;
    }
    if (kind.ok() && words.size() == 1) {
      SWELL_ASSIGN_OR_RETURN(auto found, api->List(kind->resource, session.Namespace(),
                                                   {.label_selector = selector_}));
      if (found.empty()) session.ErrLine("No resources found");
      for (const json::SharedValue& object : found) {
        SWELL_RETURN_IF_ERROR(One(*kind, std::string(api::Name(*object))));
      }
      return 0;
    }
    if (!kind.ok() && kind.status().code() != Code::kNotFound) return kind.status();
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(*api, session.Namespace(), word));
      SWELL_RETURN_IF_ERROR(Job(job));
    }
    return 0;
  }

 private:
  void Print(const std::string& text) {
    session_->Out(printed_ ? StrCat("\n", text) : text);
    printed_ = true;
  }

  Status One(const Kind& kind, const std::string& name) {
    if (FindJobKind(kind.resource.ApiVersion(), kind.kind) != nullptr) {
      // "job" is a job of any kind, where Kubernetes' own has none of that name.
      const std::string word = kind.resource.group == "batch" ? "job" : kind.SingularName();
      SWELL_ASSIGN_OR_RETURN(JobView job,
                             FindJob(*api_, session_->Namespace(), StrCat(word, "/", name)));
      return Job(std::move(job));
    }
    std::string ns = kind.resource.namespaced ? session_->Namespace() : "";
    SWELL_ASSIGN_OR_RETURN(json::SharedValue object, api_->Get(kind.resource, ns, name));
    std::string_view uid = kind.kind == "Node" ? "" : api::Uid(*object);
    SWELL_ASSIGN_OR_RETURN(std::vector<EventView> events,
                           ListEvents(*api_, ns, name, kind.kind, uid));
    if (kind.kind == "Pod") {
      Print(DescribePod(*session_, *object, events));
    } else if (kind.kind == "Node") {
      SWELL_ASSIGN_OR_RETURN(auto pods,
                             api_->List(client::resources::kPods, "",
                                        {.field_selector = StrCat("spec.nodeName=", name)}));
      Print(DescribeNode(*session_, *object, pods, events));
    } else {
      Print(DescribeAny(*session_, *object, events));
    }
    return Status::Ok();
  }

  // The job's own events and those of its pods, of which some may be gone already.
  Status Job(JobView job) {
    QuoteLastLine(*api_, job);
    // A user who may not read projects sees the one that the job names.
    if (const auto tree = ReadProjects(*api_); tree.ok()) job.project = tree->ChargedProject(job);
    SWELL_ASSIGN_OR_RETURN(std::vector<EventView> all, ListEvents(*api_, job.ns, ""));
    std::vector<EventView> events;
    for (EventView& event : all) {
      if (ConcernsJob(job, event)) events.push_back(std::move(event));
    }
    std::vector<std::string> places;
    if (!job.over()) {
      SWELL_ASSIGN_OR_RETURN(places, FindUnhealthyPlaces(*api_, job.pods));
    }
    Print(DescribeJob(*session_, job, places, events));
    return Status::Ok();
  }

  std::string selector_;
  Api* api_ = nullptr;
  Session* session_ = nullptr;
  bool printed_ = false;
};

}  // namespace

Command DescribeCommandSpec() {
  Command command{
      .name = "describe",
      .aliases = {"desc"},
      .group = "Inspect",
  };
  command.summary = "Describe a job or another object in detail, with its events.";
  command.usage = "JOB | KIND NAME... | KIND/NAME...";
  command.examples = {{"A job: pods, reason for waiting, preemptions", "swell describe mnist"},
                      {"A pod", "swell describe pod mnist-worker-0"},
                      {"A node and what runs on it", "swell describe node node-1"}};
  command.completes = Completes::kKindThenName;
  command.make = Makes<DescribeAction>();
  return command;
}

}  // namespace swell::cli
