// arena get, list.
#include <algorithm>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/arena/tensorboard.h"
#include "cli/print/text_table.h"
#include "cli/views/events_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::arena {
namespace {

std::string StateWord(const json::Value& pod, WallTime now) {
  const auto failure = api::FailureOf(pod, now);
  if (failure && failure->repeats()) return ToUpper(failure->Word());
  return PhaseWord(pod);
}

std::string OrNotAvailable(const std::string& text) { return text.empty() ? "N/A" : text; }

class GetAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    type_.Declare(flags);
    flags.Switch("-e,--events", &events_, "show the events of its instances");
    flags.Switch("-g,--gpus", &gpus_, "show the GPUs of its instances");
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    if (words.size() != 1) return Misuse("expected the name of one job: arena get JOB");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(JobView job, FindArenaJob(session, *api, words[0], type_));
    const auto tensorboard = ViewTensorboard(session, *api, job.ns, job.name);
    if (IsData(output_)) {
      json::Value all = DescribeJob(job, session.Now());
      if (tensorboard) json::Set(all, {"tensorboard"}, tensorboard->url);
      session.Out(Serialise(output_, all));
      return 0;
    }
    PrintJob(session, job);
    if (tensorboard) PrintTensorboard(session, *tensorboard);
    if (gpus_) PrintGpus(session, job);
    if (events_) SWELL_RETURN_IF_ERROR(PrintEvents(session, *api, job));
    return 0;
  }

 private:
  void PrintJob(Session& session, const JobView& job) const {
    WallTime now = session.Now();
    session.Out(StrCat("STATUS: ", StatusWord(job), "\nNAMESPACE: ", job.ns,
                       "\nPRIORITY: ", OneLine(OrNotAvailable(job.priority)),
                       "\nTRAINING DURATION: ", ShortDuration(TrainingDuration(job, now)), "\n\n"));
    TextTable table({"NAME", "STATUS", "TRAINER", "AGE", "INSTANCE", "NODE"}, 2);
    for (const json::SharedValue& pod : job.pods) {
      std::string status = StateWord(*pod, now);
      table.Add({job.name, session.Paint(Colour::kNone, status), TrainerWord(job), Age(job, now),
                 std::string(api::Name(*pod)), HostOf(*pod)});
    }
    session.Out(table.ToString());
    // Arena has no such line. A job that failed or waits adds one, after what Arena prints. Arena's
    // documents show the whole output for a preempted job, so there the line is for people only.
    const std::string reason = ReasonText(job);
    const bool for_people = session.env().out_is_terminal || output_ == "wide";
    if (!reason.empty() &&
        (job.failure || StatusWord(job) == "PENDING" || (job.EndedByPreemption() && for_people))) {
      session.Out(StrCat("\nREASON: ", reason, "\n"));
    }
    if (!job.not_finite.empty()) {
      session.Out(StrCat("\nNUMBERS: ", OneLine(job.not_finite), "\n"));
    }
  }

  static void PrintTensorboard(Session& session, const TensorboardView& view) {
    if (!view.wrong.empty()) {
      session.Out(StrCat("\nTENSORBOARD: ", OneLine(view.wrong), "\n"));
    } else if (!view.url.empty()) {
      session.Out(StrCat("\nYour tensorboard ", view.ready ? "is" : "will be", " available on:\n",
                         view.url, "\n"));
    }
  }

  static void PrintGpus(Session& session, const JobView& job) {
    TextTable table({"INSTANCE", "NODE", "GPU(Requested)", "GPU(Devices)"}, 2);
    for (const json::SharedValue& pod : job.pods) {
      std::string_view devices = api::Annotation(*pod, api::keys::kGpuDevices);
      table.Add({std::string(api::Name(*pod)), HostOf(*pod), GpuText(MilliGpus(*pod)),
                 devices.empty() ? "N/A" : std::string(devices)});
    }
    session.Out(StrCat("\nGPUs: \n", table.ToString()));
  }

  static Status PrintEvents(Session& session, Api& api, const JobView& job) {
    SWELL_ASSIGN_OR_RETURN(std::vector<EventView> events, ListEvents(api, job.ns, ""));
    TextTable table({"INSTANCE", "TYPE", "AGE", "MESSAGE"}, 2);
    table.Add({"--------", "----", "---", "-------"});
    bool any = false;
    for (const EventView& event : events) {
      if (event.object_kind == "PodGroup") continue;  // v0.5.0 knew none
      if (!ConcernsJob(job, event)) continue;
      any = true;
      table.Add({event.object, event.type, ShortDuration(session.Now() - event.last),
                 StrCat("[", event.reason, "] ", OneLine(event.message))});
    }
    session.Out(any ? StrCat("\nEvents: \n", table.ToString())
                    : std::string("\nEvents: \nNo events for pending pod\n"));
    return Status::Ok();
  }

  TypeFlag type_;
  std::string output_;
  bool events_ = false, gpus_ = false;
};

class ListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    type_.Declare(flags);
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto jobs, ListArenaJobs(session, *api, all_, type_));
    WallTime now = session.Now();
    if (IsData(output_)) {
      json::Array all;
      for (const JobView& job : jobs) all.push_back(DescribeJob(job, now));
      session.Out(Serialise(output_, all));
      return 0;
    }
    std::vector<std::string> header{"NAME", "STATUS", "TRAINER", "AGE", "NODE"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    if (output_ == "wide") header.emplace_back("REASON");
    TextTable table(header, 2);
    for (const JobView& job : jobs) {
      std::string node = job.pods.empty() ? "N/A" : HostOf(*job.pods[0]);
      std::vector<std::string> row{job.name, StatusWord(job), TrainerWord(job), Age(job, now),
                                   node};
      if (all_) row.insert(row.begin(), job.ns);
      if (output_ == "wide") row.push_back(OrNotAvailable(ReasonText(job)));
      table.Add(std::move(row));
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  TypeFlag type_;
  std::string output_;
  bool all_ = false;
};

}  // namespace

Command GetSpec() {
  return {
      .name = "get",
      .summary = "Show a training job and its instances.",
      .usage = "JOB",
      .examples = {{"A job", "arena get mnist"},
                   {"With the events of its instances", "arena get mnist -e"},
                   {"As JSON", "arena get mnist -o json"}},
      .completes = Completes::kJob,
      .make = Makes<GetAction>(),
  };
}

Command ListSpec() {
  return {
      .name = "list",
      .aliases = {"ls"},
      .summary = "List training jobs.",
      .examples = {{"This namespace", "arena list"}, {"All namespaces", "arena list -A"}},
      .make = Makes<ListAction>(),
  };
}

}  // namespace swell::cli::arena
