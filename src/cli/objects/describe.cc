// swell describe: everything about one object, in words.
#include "cli/objects/describe.h"

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/job_logs.h"
#include "cli/print/text_table.h"
#include "cli/print/view_output.h"
#include "cli/views/array_view.h"
#include "cli/views/node_faults.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/project_view.h"
#include "cli/views/view_json.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

class DescribeAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-l,--selector", &selector_, "LABELS", "objects of the kind with these labels");
    output_.Declare(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(output_.Check());
    if (words.empty()) {
      return Misuse("nothing to describe; use swell describe JOB or swell describe KIND NAME");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    api_ = api;
    session_ = &session;
    SWELL_RETURN_IF_ERROR(Describe(*kinds, words));
    if (!output_.is_document()) return 0;
    if (documents_.size() == 1) {
      output_.Print(session, documents_.front());
    } else {
      output_.Print(session, json::Object{{"items", std::move(documents_)}});
    }
    return 0;
  }

 private:
  Status Describe(Kinds& kinds, const std::vector<std::string>& words) {
    if (words[0].find('/') != std::string::npos) {
      for (const std::string& word : words) {
        size_t slash = word.find('/');
        if (slash == std::string::npos) return Misuse(StrCat(Quote(word), ": expected KIND/NAME"));
        SWELL_ASSIGN_OR_RETURN(Kind kind, kinds.Find(word.substr(0, slash)));
        SWELL_RETURN_IF_ERROR(One(kind, word.substr(slash + 1)));
      }
      return Status::Ok();
    }
    auto kind = kinds.Find(words[0]);
    if (kind.ok() && words.size() > 1) {
      for (size_t i = 1; i < words.size(); ++i) SWELL_RETURN_IF_ERROR(One(*kind, words[i]));
      return Status::Ok();
    }
    if (kind.ok() && words.size() == 1) {
      SWELL_ASSIGN_OR_RETURN(auto found, api_->List(kind->resource, session_->Namespace(),
                                                    {.label_selector = selector_}));
      if (found.empty()) session_->ErrLine("No resources found");
      for (const json::SharedValue& object : found) {
        SWELL_RETURN_IF_ERROR(One(*kind, std::string(api::Name(*object))));
      }
      return Status::Ok();
    }
    if (!kind.ok() && kind.status().code() != Code::kNotFound) return kind.status();
    for (const std::string& word : words) {
      auto job = FindJob(*api_, session_->Namespace(), word);
      if (job.status().code() == Code::kNotFound) {
        SWELL_ASSIGN_OR_RETURN(const ArrayView array,
                               FindArray(*api_, session_->Namespace(), word));
        if (!array.jobs.empty()) {
          Array(array);
          continue;
        }
      }
      if (job.status().code() == Code::kNotFound) {
        SWELL_ASSIGN_OR_RETURN(const bool any, Workloads(kinds, word));
        if (any) continue;
      }
      if (!job.ok()) return job.status();
      SWELL_RETURN_IF_ERROR(Job(std::move(*job)));
    }
    return Status::Ok();
  }

  // False: none has that name.
  Result<bool> Workloads(Kinds& kinds, const std::string& name) {
    const auto found = WorkloadsNamed(*api_, session_->Namespace(), name);
    for (const Workload& workload : found) {
      SWELL_ASSIGN_OR_RETURN(const Kind kind, kinds.Find(workload.resource->GroupResource()));
      SWELL_RETURN_IF_ERROR(One(kind, std::string(api::Name(*workload.object))));
    }
    return !found.empty();
  }

  void Array(const ArrayView& array) {
    if (output_.is_document()) {
      documents_.push_back(array.Json());
      return;
    }
    TextTable table({"NAME", "STATUS", "GPUS", "REASON"});
    for (const JobView& job : array.jobs) {
      const std::string status = job.StatusText();
      table.Add({job.name, session_->Paint(StatusColour(status), status), GpuText(job.milli_gpus),
                 job.status == "Succeeded" ? "-" : OrDash(OneLine(job.Reason()))});
    }
    Print(StrCat(array.name, " ", array.Sentence(), ".\n\n", table.ToString()));
  }

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
                           kind.resource.namespaced
                               ? ListEvents(*api_, ns, name, kind.kind, uid)
                               : ListShownEvents(*session_, *api_, name, kind.kind, uid));
    if (output_.is_document() && kind.kind != "Node") {
      documents_.push_back(ObjectJson(*object, events));
    } else if (kind.kind == "Pod") {
      Print(DescribePod(*session_, *object, events));
    } else if (kind.kind == "Node") {
      std::vector<json::SharedValue> pods;
      SWELL_RETURN_IF_ERROR(
          ListShown(*session_, *api_, "pods", pods, [this, &name](const std::string& in) {
            return api_->List(client::resources::kPods, in,
                              {.field_selector = StrCat("spec.nodeName=", name)});
          }));
      if (output_.is_document()) {
        json::Object node = ObjectJson(*object, events);
        node["health"] = HealthOfNode(*object).sentence;
        std::erase_if(pods, [](const json::SharedValue& pod) { return api::HasEnded(*pod); });
        node["pods"] = PodsJson(pods);
        documents_.push_back(std::move(node));
      } else {
        Print(DescribeNode(*session_, *object, pods, events));
      }
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
    if (!output_.is_document()) {
      Print(DescribeJob(*session_, job, places, events));
      return Status::Ok();
    }
    json::Object document = JobJson(job);
    document["failure"] = job.failure ? job.failure->ToJson() : json::Value();
    document["unhealthy"] = json::Array(places.begin(), places.end());
    document["pods"] = PodsJson(job.pods);
    document["conditions"] = ConditionsJson(*job.object);
    document["events"] = EventsJson(events);
    document["object"] = ShownObject(*job.object);
    documents_.push_back(std::move(document));
    return Status::Ok();
  }

  // The lengths of a Secret's values tell enough: they belong in no log.
  static json::Value ShownObject(const json::Value& object) {
    json::Value shown = object;
    if (json::Value* metadata = json::FindMutable(shown, {"metadata"});
        metadata != nullptr && metadata->is_object()) {
      metadata->get_object().erase("managedFields");
      // kubectl keeps a copy of the whole manifest there, the values of a Secret included.
      if (json::Value* notes = json::FindMutable(*metadata, {"annotations"});
          notes != nullptr && notes->is_object()) {
        notes->get_object().erase("kubectl.kubernetes.io/last-applied-configuration");
      }
    }
    if (api::KindOf(object) != "Secret") return shown;
    for (std::string_view field : {"data", "stringData"}) {
      json::Value* values = json::FindMutable(shown, {field});
      if (values == nullptr || !values->is_object()) continue;
      for (auto& item : values->get_object()) {
        item.value() = StrCat(json::PlainText(item.value()).size() * 3 / 4, " bytes");
      }
    }
    return shown;
  }
  static json::Object ObjectJson(const json::Value& object, const std::vector<EventView>& events) {
    return json::Object{{"name", api::Name(object)},
                        {"namespace", TextJson(api::Namespace(object))},
                        {"kind", api::KindOf(object)},
                        {"apiVersion", api::ApiVersionOf(object)},
                        {"conditions", ConditionsJson(object)},
                        {"events", EventsJson(events)},
                        {"object", ShownObject(object)}};
  }

  std::string selector_;
  ViewOutput output_;
  json::Array documents_;
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
  command.usage = "JOB | ARRAY | KIND NAME... | KIND/NAME...";
  command.examples = {
      {"A job: pods, reason for waiting, preemptions", "swell describe mnist"},
      {"A pod", "swell describe pod mnist-worker-0"},
      {"A node and what runs on it", "swell describe node node-1"},
      {"For a program: what is shown, and the object", "swell describe mnist -o json"}};
  command.completes = Completes::kKindThenName;
  command.make = Makes<DescribeAction>();
  return command;
}

}  // namespace swell::cli
