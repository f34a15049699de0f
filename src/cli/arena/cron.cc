// arena cron.
#include "cli/arena/cron.h"

#include <set>

#include "base/strings.h"
#include "base/words.h"
#include "cli/print/text_table.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

// A time as Arena prints it; empty for none.
std::string TimeText(const json::Value& object, json::Path path) {
  const auto time = api::ParseTime(json::GetString(object, path));
  return time ? api::FormatTime(*time) : "";
}

// What Arena shows of a Cron.
struct CronView {
  explicit CronView(const json::Value& cron)
      : name(api::Name(cron)),
        ns(api::Namespace(cron)),
        type(json::GetString(cron, {"spec", "template", "kind"})),
        schedule(json::GetString(cron, {"spec", "schedule"})),
        policy(json::GetString(cron, {"spec", "concurrencyPolicy"}, "Allow")),
        deadline(TimeText(cron, {"spec", "deadline"})),
        created(TimeText(cron, {"metadata", "creationTimestamp"})),
        last(TimeText(cron, {"status", "lastScheduleTime"})),
        suspend(json::GetBool(cron, {"spec", "suspend"})) {}

  std::string name, ns, type, schedule, policy, deadline, created, last;
  bool suspend;

  std::string SuspendWord() const { return suspend ? "true" : "false"; }
};

json::Value Describe(const json::Value& cron) {
  const CronView view(cron);
  json::Array history;
  for (const json::Value& run : json::GetArray(cron, {"status", "history"})) {
    history.push_back(json::Object{{"name", json::GetString(run, {"object", "name"})},
                                   {"namespace", view.ns},
                                   {"group", json::GetString(run, {"object", "apiGroup"})},
                                   {"kind", json::GetString(run, {"object", "kind"})},
                                   {"status", json::GetString(run, {"status"})},
                                   {"createTime", TimeText(run, {"created"})},
                                   {"finishTime", TimeText(run, {"finished"})}});
  }
  return json::Object{{"uuid", api::Uid(cron)},
                      {"name", view.name},
                      {"namespace", view.ns},
                      {"type", view.type},
                      {"schedule", view.schedule},
                      {"concurrencyPolicy", view.policy},
                      {"suspend", view.suspend},
                      {"deadline", view.deadline},
                      {"historyLimit", json::GetInt(cron, {"spec", "historyLimit"}, 10)},
                      {"lastScheduleTime", view.last},
                      {"creationTimestamp", view.created},
                      {"cronHistory", std::move(history)}};
}

Status InArenasWords(const Status& status, Session& session, const std::string& name) {
  if (status.code() != Code::kNotFound) return status;
  return Status(Code::kNotFound,
                StrCat("The cron ", name, " doesn't exist in namespace ", session.Namespace()));
}

// Users who may not list all namespaces get what is in their own.
Result<std::vector<json::SharedValue>> ListCrons(Session& session, Api& api, bool everywhere) {
  auto crons = api.List(client::resources::kCrons, everywhere ? "" : session.Namespace());
  if (!everywhere || crons.status().code() != Code::kForbidden) return crons;
  std::vector<json::SharedValue> own;
  SWELL_RETURN_IF_ERROR(ListEach(OwnNamespaces(session, api), own, [&api](const std::string& ns) {
    return api.List(client::resources::kCrons, ns);
  }));
  return own;
}

Result<std::string> OneName(const std::vector<std::string>& words, std::string_view command) {
  if (words.size() == 1) return words[0];
  return Misuse(StrCat("expected the name of one cron: arena cron ", command, " CRON"));
}

class CronListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto crons, ListCrons(session, *api, all_));
    if (IsData(output_)) {
      json::Array all;
      for (const json::SharedValue& cron : crons) all.push_back(Describe(*cron));
      session.Out(Serialise(output_, all));
      return 0;
    }
    std::vector<std::string> header{"NAME",    "TYPE",     "SCHEDULE",
                                    "SUSPEND", "DEADLINE", "CONCURRENCYPOLICY"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header, 2);
    for (const json::SharedValue& cron : crons) {
      const CronView view(*cron);
      std::vector<std::string> row{view.name,          view.type,     view.schedule,
                                   view.SuspendWord(), view.deadline, view.policy};
      if (all_) row.insert(row.begin(), view.ns);
      table.Add(std::move(row));
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  std::string output_;
  bool all_ = false;
};

class CronGetAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    SWELL_ASSIGN_OR_RETURN(const std::string name, OneName(words, "get"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const auto cron = api->Get(client::resources::kCrons, session.Namespace(), name);
    if (!cron.ok()) return InArenasWords(cron.status(), session, name);
    if (IsData(output_)) {
      session.Out(Serialise(output_, Describe(**cron)));
      return 0;
    }
    Print(session, **cron);
    return 0;
  }

 private:
  static void Print(Session& session, const json::Value& cron) {
    const CronView view(cron);
    TextTable facts({}, 2);
    facts.Add({"Name:", view.name});
    facts.Add({"Namespace:", view.ns});
    facts.Add({"Type:", view.type});
    facts.Add({"Schedule:", view.schedule});
    facts.Add({"Suspend:", view.SuspendWord()});
    facts.Add({"ConcurrencyPolicy:", view.policy});
    facts.Add({"CreationTimestamp:", view.created});
    facts.Add({"LastScheduleTime:", view.last});
    facts.Add({"Deadline:", view.deadline});
    TextTable runs({"NAME", "STATUS", "TYPE", "CREATETIME", "FINISHTIME"}, 2);
    runs.Add({"----", "------", "----", "----------", "----------"});
    for (const json::Value& run : json::GetArray(cron, {"status", "history"})) {
      runs.Add({std::string(json::GetString(run, {"object", "name"})),
                std::string(json::GetString(run, {"status"})),
                std::string(json::GetString(run, {"object", "kind"})), TimeText(run, {"created"}),
                TimeText(run, {"finished"})});
    }
    session.Out(StrCat(facts.ToString(), "\nHistory:\n", runs.ToString()));
  }

  std::string output_;
};

class CronDeleteAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) return Misuse("expected the names of crons: arena cron delete CRON...");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    int failed = 0;
    for (const std::string& name : words) {
      const Status gone = Delete(session, *api, name);
      if (gone.ok()) continue;
      LogLine(session, "error", gone.message());
      ++failed;
    }
    return failed > 0 ? 1 : 0;
  }

 private:
  // With its jobs, which belong to it, and what was made for it.
  static Status Delete(Session& session, Api& api, const std::string& name) {
    const std::string ns = session.Namespace();
    const auto cron = api.Get(client::resources::kCrons, ns, name);
    if (!cron.ok()) return InArenasWords(cron.status(), session, name);
    // Jobs of that name, which are not the cron's, may have maps of these names.
    std::set<std::string> kept;
    SWELL_ASSIGN_OR_RETURN(const std::vector<NamedJob> jobs, JobsNamed(api, ns, name));
    for (const NamedJob& job : jobs) {
      if (job.trainer == nullptr) continue;
      kept.insert({job.trainer->ConfigMapName(name), ConfigFilesName(name)});
    }
    const std::string kind = ToLower(json::GetString(**cron, {"spec", "template", "kind"}));
    std::vector<std::string> maps{StrCat(name, "-", kind), ConfigFilesName(name)};
    std::erase_if(maps, [&kept](const std::string& map) { return kept.contains(map); });
    SWELL_ASSIGN_OR_RETURN(maps, ConfigMapsOf(api, ns, maps));
    const auto gone = api.Delete(client::resources::kCrons, ns, name);
    if (!gone.ok()) return InArenasWords(gone.status(), session, name);
    session.OutLine(StrCat("cron ", name, " has deleted"));
    return DeleteConfigMaps(session, api, ns, maps);
  }
};

template <bool suspend>
class CronSuspendAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    constexpr std::string_view kWord = suspend ? "suspend" : "resume";
    SWELL_ASSIGN_OR_RETURN(const std::string name, OneName(words, kWord));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const auto patched =
        api->Patch(client::resources::kCrons, session.Namespace(), name, client::PatchType::kMerge,
                   json::Object{{"spec", json::Object{{"suspend", suspend}}}});
    if (!patched.ok()) return InArenasWords(patched.status(), session, name);
    session.OutLine(StrCat("cron ", name, " ", kWord, " success"));
    return 0;
  }
};

// Schedules of six fields begin with the second. Arena's guide has "0 0 22 * * ?": each day at
// 22:00.
std::string WithoutSeconds(const std::string& schedule) {
  const std::vector<std::string_view> fields = SplitWords(schedule);
  if (fields.size() != 6 || fields.front().find_first_not_of('0') != std::string_view::npos) {
    return schedule;
  }
  return Join(std::vector<std::string>(fields.begin() + 1, fields.end()), " ");
}

}  // namespace

void CronFlags::Declare(Flags& flags) {
  flags.Group("Schedule");
  flags.Text("--schedule", &schedule_, "CRON",
             "when each job starts, in UTC: minute, hour, day of month, month, day of week");
  flags.Choice("--concurrency-policy", &concurrency_policy_, "POLICY",
               {"Allow", "Forbid", "Replace"},
               "when the last job is still active: start another (Allow, default), wait until it "
               "ends (Forbid), or end it (Replace)");
  flags.Switch("--suspend", &suspend_, "start no job until `arena cron resume`");
  flags.Text("--deadline", &deadline_, "TIME",
             "start no job after this time, such as 2027-01-31T12:00:00Z");
  flags.Int("--history-limit", &history_limit_, "N",
            "finished jobs to keep; older ones are deleted (default 10)");
}

Status CronFlags::Check() const {
  if (schedule_.empty())
    return Misuse("--schedule must be set: arena cron tfjob --schedule \"0 22 * * *\"");
  if (!deadline_.empty() && !api::ParseTime(deadline_)) {
    return Misuse(
        StrCat("--deadline ", Quote(deadline_), ": expected a time such as 2027-01-31T12:00:00Z"));
  }
  if (history_limit_ < 0) {
    return Misuse(StrCat("--history-limit ", history_limit_, ": expected 0 or more"));
  }
  return Status::Ok();
}

json::Value CronFlags::CronOf(const json::Value& job) const {
  json::Object spec{{"schedule", WithoutSeconds(schedule_)},
                    {"concurrencyPolicy", concurrency_policy_},
                    {"suspend", suspend_},
                    {"historyLimit", history_limit_}};
  if (!deadline_.empty()) spec["deadline"] = deadline_;
  // Each run has a name of its own.
  json::Value workload = job;
  json::Remove(workload, {"metadata", "name"});
  json::Remove(workload, {"metadata", "namespace"});
  spec["template"] = json::Object{{"apiVersion", api::ApiVersionOf(job)},
                                  {"kind", api::KindOf(job)},
                                  {"workload", std::move(workload)}};
  return json::Object{{"apiVersion", client::resources::kCrons.ApiVersion()},
                      {"kind", "Cron"},
                      {"metadata", json::Object{{"name", api::Name(job)},
                                                {"labels", api::Labels(job)},
                                                {"annotations", api::Annotations(job)}}},
                      {"spec", std::move(spec)}};
}

Result<bool> HasCron(Api& api, const std::string& ns, const std::string& name) {
  const auto cron = api.Get(client::resources::kCrons, ns, name);
  if (!cron.ok() && cron.status().code() != Code::kNotFound) return cron.status();
  return cron.ok();
}

Command CronSpec() {
  Command cron{
      .name = "cron",
      .summary = "Start training jobs at the times of a schedule.",
      .examples = {{"A job each night",
                    "arena cron tfjob --schedule=\"0 22 * * *\" --name=nightly --gpus=1 "
                    "--image=tensorflow/tensorflow:2 \"python mnist.py\""},
                   {"What has run", "arena cron get nightly"}},
      .children = CronJobSpecs(),
  };
  cron.children.push_back({
      .name = "list",
      .aliases = {"ls"},
      .summary = "List crons.",
      .examples = {{"This namespace", "arena cron list"}, {"All namespaces", "arena cron list -A"}},
      .make = Makes<CronListAction>(),
  });
  cron.children.push_back({
      .name = "get",
      .summary = "Show a cron and its jobs.",
      .usage = "CRON",
      .examples = {{"A cron", "arena cron get nightly"}},
      .make = Makes<CronGetAction>(),
  });
  cron.children.push_back({
      .name = "delete",
      .aliases = {"del"},
      .summary = "Delete crons and their jobs.",
      .usage = "CRON...",
      .examples = {{"A cron", "arena cron delete nightly"}},
      .make = Makes<CronDeleteAction>(),
  });
  cron.children.push_back({
      .name = "suspend",
      .summary = "Start no more jobs until it is resumed. Running jobs continue.",
      .usage = "CRON",
      .examples = {{"A cron", "arena cron suspend nightly"}},
      .make = Makes<CronSuspendAction<true>>(),
  });
  cron.children.push_back({
      .name = "resume",
      .summary = "Start jobs again; if times were missed, one starts at once.",
      .usage = "CRON",
      .examples = {{"A cron", "arena cron resume nightly"}},
      .make = Makes<CronSuspendAction<false>>(),
  });
  return cron;
}

}  // namespace swell::cli::arena
