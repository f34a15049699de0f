#include "cli/jobs/why_cron.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "base/time_zone.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/cron_schedule.h"
#include "kube/api/objects/job.h"

namespace swell::cli {
namespace {

// What differs between the two kinds.
struct CronKind {
  Resource resource;
  std::string_view kind, name;  // "Cron", "cron.apps.kubedl.io"
  std::vector<std::string_view> words;
};

const std::vector<CronKind>& CronKinds() {
  static const std::vector<CronKind> kinds = {{client::resources::kCrons,
                                               "Cron",
                                               "cron.apps.kubedl.io",
                                               {"cron", "crons", "cron.apps.kubedl.io"}},
                                              {client::resources::kCronJobs,
                                               "CronJob",
                                               "cronjob.batch",
                                               {"cronjob", "cronjobs", "cj", "cronjob.batch"}}};
  return kinds;
}

std::string_view KindIn(std::string_view word) {
  const size_t slash = word.find('/');
  return slash == std::string_view::npos ? std::string_view() : word.substr(0, slash);
}

bool Has(const CronKind& kind, std::string_view word) {
  return std::find(kind.words.begin(), kind.words.end(), word) != kind.words.end();
}

struct CronFacts {
  const CronKind* kind = nullptr;
  json::SharedValue cron;
  std::vector<CronRun> runs;  // oldest first
  std::string failure;        // why the last of them failed
  std::string refusal;        // why no job could be created at the last time
  WallTime now;

  const json::Value& spec() const { return api::Spec(*cron); }
  std::optional<WallTime> Time(json::Path path) const {
    return api::ParseTime(json::GetString(*cron, path));
  }
};

class CronReport {
 public:
  explicit CronReport(const CronFacts& facts)
      : facts_(facts), schedule_(api::CronSchedule::Parse(Schedule())) {
    const std::string_view zone = json::GetString(facts.spec(), {"timeZone"});
    if (!zone.empty()) {
      auto loaded = TimeZone::Load(zone);
      if (loaded.ok()) {
        zone_ = std::move(*loaded);
      } else {
        wrong_ = StrCat("spec.timeZone: ", Quote(zone), ": ", loaded.status().message());
      }
    }
    if (!schedule_.ok()) {
      wrong_ = StrCat("spec.schedule: ", Quote(Schedule()), ": ", schedule_.status().message());
    }
    if (!wrong_.empty()) return;
    next_ = schedule_->Next(facts.now, zone_);
    const WallTime since =
        facts.Time({"status", "lastScheduleTime"}).value_or(api::CreationTime(*facts.cron));
    due_ = schedule_->DueAt(facts.now, since, zone_).run;
  }

  std::string Text() const {
    std::string out = StrCat(api::Name(*facts_.cron), " ", StateText(), ".\n");
    const auto add = [&out](std::string_view title, const std::string& text) {
      if (!text.empty()) out += StrCat(title, OneLine(text), "\n");
    };
    add("Why:      ", WhyText());
    add("Last:     ", LastText());
    add("Next:     ", NextText());
    return out;
  }

  json::Value Json() const {
    json::Object out{{"cron", StrCat(facts_.kind->name, "/", api::Name(*facts_.cron))},
                     {"namespace", api::Namespace(*facts_.cron)},
                     {"suspended", Suspended()},
                     {"says", StateText()},
                     {"reason", WhyText()}};
    if (StartsMore()) out["nextRun"] = api::FormatTime(*next_);
    if (const std::string next = NextText(); !next.empty()) out["next"] = next;
    json::Array active;
    for (const CronRun& run : facts_.runs) {
      if (!run.ended) active.emplace_back(run.name);
    }
    out["active"] = std::move(active);
    if (!facts_.runs.empty()) {
      const CronRun& last = facts_.runs.back();
      json::Object run{{"kind", last.kind}, {"name", last.name}, {"status", last.status}};
      if (last.began) run["began"] = api::FormatTime(*last.began);
      if (last.ended) run["ended"] = api::FormatTime(*last.ended);
      if (!facts_.failure.empty()) run["failure"] = facts_.failure;
      out["lastRun"] = std::move(run);
    }
    return json::Value(std::move(out));
  }

  CronView View() const {
    const std::string_view policy = json::GetString(facts_.spec(), {"concurrencyPolicy"});
    CronView view{.starts = facts_.kind->kind == "Cron"
                                ? std::string(json::GetString(facts_.spec(), {"template", "kind"}))
                                : "Job",
                  .schedule = std::string(Schedule()),
                  .zone = std::string(json::GetString(facts_.spec(), {"timeZone"})),
                  .policy = policy.empty() ? "Allow" : std::string(policy),
                  .state = StateWord(),
                  .reason = WhyText(),
                  .last = facts_.Time({"status", "lastScheduleTime"}),
                  .runs = facts_.runs};
    if (StartsMore() && view.state == "Active") view.next = next_;
    if (view.state != "Active") view.reason = StrCat(api::Name(*facts_.cron), " ", StateText());
    return view;
  }

 private:
  std::string StateWord() const {
    if (api::IsDeleting(*facts_.cron)) return "Deleting";
    if (!wrong_.empty()) return "Invalid";
    if (Suspended()) return "Suspended";
    return StartsMore() ? "Active" : "Ended";
  }
  std::string_view Schedule() const { return json::GetString(facts_.spec(), {"schedule"}); }
  bool Suspended() const { return json::GetBool(facts_.spec(), {"suspend"}); }
  std::optional<WallTime> Deadline() const { return facts_.Time({"spec", "deadline"}); }
  bool StartsMore() const {
    const auto deadline = Deadline();
    return wrong_.empty() && !Suspended() && next_ && !(deadline && *deadline < *next_);
  }

  // The run that keeps the next one from starting; null: there is no such run. A template with a
  // name has one job at a time, whatever the policy says.
  const CronRun* Blocking() const {
    const bool named =
        !json::GetString(facts_.spec(), {"template", "workload", "metadata", "name"}).empty();
    if (!named && json::GetString(facts_.spec(), {"concurrencyPolicy"}) != "Forbid") return nullptr;
    for (const CronRun& run : facts_.runs) {
      if (!run.ended) return &run;
    }
    return nullptr;
  }
  std::string Policy() const {
    return json::GetString(facts_.spec(), {"concurrencyPolicy"}) == "Forbid"
               ? "concurrencyPolicy is Forbid"
               : "the template names the job, so there is one at a time";
  }

  std::string StateText() const {
    if (api::IsDeleting(*facts_.cron)) return "is being deleted, and starts no jobs";
    if (!wrong_.empty()) return StrCat("starts no jobs: ", wrong_);
    if (Suspended()) return "is suspended, and starts no jobs";
    const auto deadline = Deadline();
    if (deadline && *deadline < facts_.now) {
      return StrCat("starts no more jobs: its deadline, ", api::FormatTime(*deadline),
                    ", has passed");
    }
    if (!next_) return StrCat("starts no jobs: no date matches its schedule, ", Quote(Schedule()));
    const std::string next = api::FormatTime(*next_);
    if (!StartsMore()) {
      return StrCat("starts no more jobs: its deadline, ", api::FormatTime(*deadline),
                    ", is before its next time, ", next);
    }
    const CronRun* blocking = due_ ? nullptr : Blocking();
    return StrCat("starts its next job at ", next, ", in ", api::HumanDuration(*next_ - facts_.now),
                  blocking == nullptr
                      ? ""
                      : StrCat(", unless ", blocking->name, " still runs then (", Policy(), ")"));
  }

  // Why a job that should have started did not.
  std::string WhyText() const {
    const auto deadline = Deadline();
    const bool starts = wrong_.empty() && !Suspended() && !api::IsDeleting(*facts_.cron) &&
                        !(deadline && *deadline < facts_.now);
    if (!starts) return "";
    if (!due_) return facts_.refusal;
    const std::string run = StrCat("the job of ", api::FormatTime(*due_));
    if (const CronRun* blocking = Blocking()) {
      return StrCat(run, " waits: ", blocking->name, " still runs, and ", Policy());
    }
    const json::Value* limit = json::Find(facts_.spec(), {"startingDeadlineSeconds"});
    if (limit != nullptr && limit->is_number()) {
      const std::chrono::seconds longest(limit->to_number<int64_t>());
      if (facts_.now - *due_ > longest) {
        return StrCat(run, " was missed: it did not start within startingDeadlineSeconds, ",
                      longest.count());
      }
    }
    return facts_.refusal.empty() ? StrCat(run, " is due, and has not started yet")
                                  : facts_.refusal;
  }

  std::string LastText() const {
    if (facts_.runs.empty()) {
      const auto last = facts_.Time({"status", "lastScheduleTime"});
      return last ? StrCat("nothing is left of the time ", api::FormatTime(*last))
                  : "it has started no job yet";
    }
    const CronRun& last = facts_.runs.back();
    std::string text = StrCat(last.name, " (", last.kind, ") ");
    const auto ago = [this](WallTime time) {
      return api::HumanDuration(std::max(facts_.now - time, Duration(0)));
    };
    if (!last.ended) {
      text += StrCat("is ", last.status,
                     last.began ? StrCat(", started ", ago(*last.began), " ago") : std::string());
      return text;
    }
    text += StrCat(last.status, " ", ago(*last.ended), " ago");
    if (last.began) text += StrCat(", after ", api::HumanDuration(*last.ended - *last.began));
    return facts_.failure.empty() ? text : StrCat(text, ". ", facts_.failure);
  }

  std::string NextText() const {
    if (!Suspended() || !wrong_.empty() || api::IsDeleting(*facts_.cron)) return "";
    const std::string named = StrCat(api::Name(*facts_.cron), " -n ", api::Namespace(*facts_.cron));
    return facts_.kind->kind == "Cron"
               ? StrCat("arena cron resume ", named, " lets it start jobs again")
               : StrCat("kubectl patch cronjob ", named, " -p '{\"spec\":{\"suspend\":false}}'",
                        " lets it start jobs again");
  }

  const CronFacts& facts_;
  Result<api::CronSchedule> schedule_;
  TimeZone zone_;
  std::string wrong_;  // what keeps it from ever starting a job
  std::optional<WallTime> next_;
  std::optional<WallTime> due_;  // a time that has come, and whose job has not started
};

Result<json::SharedValue> FindOne(Api& api,
                                  const CronKind& kind,
                                  std::string_view ns,
                                  std::string_view name) {
  if (!ns.empty()) return api.Get(kind.resource, ns, name);
  SWELL_ASSIGN_OR_RETURN(auto all, api.List(kind.resource, ""));
  std::erase_if(all, [name](const json::SharedValue& one) { return api::Name(*one) != name; });
  if (all.size() == 1) return all.front();
  if (all.empty()) {
    return Status(Code::kNotFound, StrCat(kind.name, " ", Quote(name), " not found"));
  }
  std::vector<std::string> namespaces;
  for (const json::SharedValue& one : all) namespaces.emplace_back(api::Namespace(*one));
  return Status(Code::kAlreadyExists, StrCat(kind.name, " ", Quote(name), " exists in ",
                                             Join(namespaces, ", "), ": choose one with -n"));
}

std::vector<CronRun> RunsInHistory(const json::Value& cron) {
  std::vector<CronRun> runs;
  for (const json::Value& row : json::GetArray(cron, {"status", "history"})) {
    runs.push_back({.kind = std::string(json::GetString(row, {"object", "kind"})),
                    .name = std::string(json::GetString(row, {"object", "name"})),
                    .status = std::string(json::GetString(row, {"status"})),
                    .began = api::ParseTime(json::GetString(row, {"created"})),
                    .ended = api::ParseTime(json::GetString(row, {"finished"}))});
  }
  return runs;
}

std::vector<CronRun> RunsOfCronJob(const std::vector<json::SharedValue>& jobs,
                                   const json::Value& cron) {
  std::vector<CronRun> runs;
  for (const json::SharedValue& job : jobs) {
    const auto owner = api::ControllerOf(*job);
    if (!owner || owner->uid != api::Uid(cron)) continue;
    CronRun run{.kind = "Job",
                .name = std::string(api::Name(*job)),
                .status = std::string(api::JobStatusWord(*job)),
                .began = api::CreationTime(*job)};
    if (run.status == "Succeeded") {
      run.ended = api::ParseTime(json::GetString(*job, {"status", "completionTime"}));
    } else if (const auto failed = api::FindCondition(*job, "Failed"); failed && failed->IsTrue()) {
      run.ended = failed->Since();
    } else if (json::GetInt(*job, {"status", "active"}) > 0) {
      run.status = "Running";
    }
    runs.push_back(std::move(run));
  }
  std::sort(runs.begin(), runs.end(), [](const CronRun& a, const CronRun& b) {
    return std::tie(a.began, a.name) < std::tie(b.began, b.name);
  });
  return runs;
}

Result<CronAnswer> Explain(Session& session,
                           Api& api,
                           const CronKind& kind,
                           json::SharedValue cron) {
  CronFacts facts{.kind = &kind, .cron = std::move(cron), .now = session.Now()};
  const std::string_view ns = api::Namespace(*facts.cron);
  if (kind.kind == "Cron") {
    facts.runs = RunsInHistory(*facts.cron);
  } else {
    SWELL_ASSIGN_OR_RETURN(const auto jobs, api.List(client::resources::kJobs, ns));
    facts.runs = RunsOfCronJob(jobs, *facts.cron);
  }
  if (!facts.runs.empty() && facts.runs.back().status == "Failed") {
    const CronRun& last = facts.runs.back();
    // It may be deleted by now.
    const auto job = FindJob(api, ns, StrCat(ToLower(last.kind), "/", last.name));
    if (job.ok()) facts.failure = job->EndText();
  }
  SWELL_ASSIGN_OR_RETURN(const auto events, ListEvents(api, ns, api::Name(*facts.cron), kind.kind,
                                                       api::Uid(*facts.cron)));
  for (const EventView& event : events) {
    if (event.reason == "FailedCreate") facts.refusal = event.message;
    if (event.reason == "SuccessfulCreate") facts.refusal.clear();
  }
  const CronReport report(facts);
  return CronAnswer{.text = report.Text(),
                    .document = report.Json(),
                    .resource_name = StrCat(kind.name, "/", api::Name(*facts.cron))};
}

}  // namespace

bool NamesCron(std::string_view word) {
  const std::string_view said = KindIn(word);
  return std::any_of(CronKinds().begin(), CronKinds().end(),
                     [said](const CronKind& kind) { return Has(kind, said); });
}

Result<CronAnswer> ExplainCron(Session& session,
                               Api& api,
                               std::string_view ns,
                               std::string_view word) {
  const std::string_view said = KindIn(word);
  const std::string_view name = said.empty() ? word : word.substr(said.size() + 1);
  Status missing(Code::kNotFound, StrCat("cron ", Quote(name), " not found"));
  for (const CronKind& kind : CronKinds()) {
    if (!said.empty() && !Has(kind, said)) continue;
    auto cron = FindOne(api, kind, ns, name);
    if (cron.ok()) return Explain(session, api, kind, std::move(*cron));
    if (!said.empty() || cron.status().code() != Code::kNotFound) missing = cron.status();
  }
  return missing;
}

CronView ViewCron(const json::SharedValue& cron,
                  std::string_view kind,
                  const std::vector<json::SharedValue>& jobs,
                  WallTime now) {
  const auto& kinds = CronKinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [kind](const CronKind& one) { return one.kind == kind; });
  SWELL_CHECK(found != kinds.end());
  CronFacts facts{.kind = &*found, .cron = cron, .now = now};
  facts.runs = kind == "Cron" ? RunsInHistory(*cron) : RunsOfCronJob(jobs, *cron);
  return CronReport(facts).View();
}

}  // namespace swell::cli
