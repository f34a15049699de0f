// swell apply, create, delete: objects from manifests, and objects by name.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/no_role.h"
#include "cli/print/output.h"
#include "cli/views/array_view.h"
#include "cli/views/job_view.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"

namespace swell::cli {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

enum class DryRun { kNone, kClient, kServer };

Result<DryRun> ParseDryRun(const std::string& text) {
  if (text.empty() || text == "none") return DryRun::kNone;
  if (text == "client") return DryRun::kClient;
  if (text == "server") return DryRun::kServer;
  return WrongValue("--dry-run", text, {"none", "client", "server"});
}

std::string_view DryRunNote(DryRun dry_run) {
  if (dry_run == DryRun::kClient) return " (dry run)";
  return dry_run == DryRun::kServer ? " (server dry run)" : "";
}

// The server repeats the whole patch, which nobody wrote, before it says what is wrong.
Status WithoutPatch(const Status& status) {
  const size_t at = status.message().rfind("strict decoding error: ");
  return at == std::string::npos ? status : Status(status.code(), status.message().substr(at));
}

// What apply and create share: files in, one line per object out.
class ManifestAction : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Objects");
    flags.List("-f,--filename", &files_, "PATH", "a file, a directory, or - for standard input");
    flags.Switch("-R,--recursive", &recursive_, "include subdirectories");
    flags.Group("Options");
    flags.Text("--dry-run", &dry_run_text_, "none|client|server", "show what would change")
        .implied = "client";
    flags
        .Text("--validate", &validate_, "strict|warn|ignore",
              "how to treat unknown fields (default strict)")
        .implied = "strict";
    flags.Text("-o,--output", &output_, "FORMAT",
               "output format: name, json, yaml or jsonpath=TEMPLATE");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) {
      return Misuse(StrCat("unexpected ", Quote(words[0]), "; manifests are given with -f"));
    }
    if (files_.empty()) return Misuse("no manifests named; use -f job.yaml, -f manifests/ or -f -");
    SWELL_ASSIGN_OR_RETURN(form_, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(dry_run_, ParseDryRun(dry_run_text_));
    SWELL_RETURN_IF_ERROR(ParseValidate());
    SWELL_ASSIGN_OR_RETURN(auto manifests, ReadManifests(session, files_, recursive_));
    SWELL_ASSIGN_OR_RETURN(api_, session.Server());
    session_ = &session;
    // One bad object does not keep the others from being applied.
    int failed = 0;
    bool hinted = false;
    for (Manifest& manifest : manifests) {
      std::string source = manifest.source;
      auto placed = Place(session, std::move(manifest));
      Status done = placed.ok() ? One(*placed) : placed.status();
      if (done.ok()) continue;
      if (edge_lost(done) || IsMisuse(done)) return done;
      // One way to a role is enough.
      const Status told = hinted ? done : WithRoleHint(session, done);
      hinted = hinted || told.message() != done.message();
      session.ErrLine(StrCat("swell: ", source, ": ", ErrorText(told)));
      ++failed;
    }
    return failed > 0 ? 1 : 0;
  }

 protected:
  virtual Status One(const Placed& placed) = 0;

  WriteOptions Options(std::string manager) const {
    return {.dry_run = dry_run_ == DryRun::kServer,
            .field_manager = std::move(manager),
            .field_validation = validation_};
  }
  void Say(const Placed& placed, const json::Value& object, std::string_view what) {
    std::string name = StrCat(placed.kind.SingularName(), "/", api::Name(object));
    if (form_.table()) {
      session_->OutLine(StrCat(name, " ", what, DryRunNote(dry_run_)));
    } else {
      session_->Out(FormatObject(form_, object, name));
    }
  }

  DryRun dry_run_ = DryRun::kNone;
  Session* session_ = nullptr;
  Api* api_ = nullptr;

 private:
  static bool edge_lost(const Status& status) { return status.code() == Code::kUnavailable; }

  Status ParseValidate() {
    if (validate_ == "strict" || validate_ == "true" || validate_.empty()) {
      validation_ = "Strict";
    } else if (validate_ == "warn") {
      validation_ = "Warn";
    } else if (validate_ == "ignore" || validate_ == "false") {
      validation_ = "Ignore";
    } else {
      return WrongValue("--validate", validate_, {"strict", "warn", "ignore"});
    }
    return Status::Ok();
  }

  std::vector<std::string> files_;
  bool recursive_ = false;
  std::string dry_run_text_, validate_, validation_, output_;
  OutputForm form_;
};

class CreateAction final : public ManifestAction {
 protected:
  Status One(const Placed& placed) override {
    const json::Value& object = placed.manifest.object;
    if (dry_run_ == DryRun::kClient) {
      Say(placed, object, "created");
      return Status::Ok();
    }
    auto made = api_->Create(placed.kind.resource, placed.ns, object, Options("swell-create"));
    if (!made.ok()) return made.status();
    Say(placed, **made, "created");
    return Status::Ok();
  }
};

class ApplyAction final : public ManifestAction {
 protected:
  Status One(const Placed& placed) override {
    if (placed.name.empty()) {
      return Misuse(StrCat(placed.manifest.source, ": metadata.name is not set"));
    }
    json::Value wanted = placed.manifest.object;
    json::Remove(wanted, {"status"});
    json::Remove(wanted, {"metadata", "annotations", kLastApplied});
    std::string recorded = json::Print(wanted) + "\n";
    json::Set(wanted, {"metadata", "annotations", kLastApplied}, recorded);
    auto live = api_->Get(placed.kind.resource, placed.ns, placed.name);
    if (live.ok()) return Change(placed, wanted, **live);
    if (live.status().code() != Code::kNotFound) return live.status();
    if (dry_run_ == DryRun::kClient) {
      Say(placed, wanted, "created");
      return Status::Ok();
    }
    auto made = api_->Create(placed.kind.resource, placed.ns, wanted, Options("swell-apply"));
    if (!made.ok()) return made.status();
    Say(placed, **made, "created");
    return Status::Ok();
  }

 private:
  Status Change(const Placed& placed, const json::Value& wanted, const json::Value& live) {
    json::Value last = json::Object{};
    auto recorded = json::Parse(api::Annotation(live, kLastApplied));
    if (recorded.ok()) last = std::move(*recorded);
    // Custom resources know no strategic merge.
    const Resource& resource = placed.kind.resource;
    api::KindPtr built_in = scheme_->FindKind({resource.group, resource.version, placed.kind.kind});
    const api::Schema* schema =
        built_in && !built_in->custom && built_in->schema ? built_in->schema.get() : nullptr;
    json::Value patch = ThreeWayPatch(schema, last, wanted, live);
    if (patch.get_object().empty()) {
      Say(placed, live, "unchanged");
      return Status::Ok();
    }
    if (dry_run_ == DryRun::kClient) {
      Say(placed, wanted, "configured");
      return Status::Ok();
    }
    auto changed = api_->Patch(resource, placed.ns, placed.name,
                               schema ? client::PatchType::kStrategic : client::PatchType::kMerge,
                               patch, Options("swell-apply"));
    if (!changed.ok()) return WithoutPatch(changed.status());
    bool same =
        dry_run_ == DryRun::kNone && api::ResourceVersion(**changed) == api::ResourceVersion(live);
    Say(placed, **changed, same ? "unchanged" : "configured");
    if (!same) WarnOfJobThatIsOver(placed, **changed);
    return Status::Ok();
  }

  // A job that is over does not start again, whatever its manifest says now.
  void WarnOfJobThatIsOver(const Placed& placed, const json::Value& object) const {
    if (FindJobKind(placed.kind.resource.ApiVersion(), placed.kind.kind) == nullptr) return;
    for (std::string_view end : {"Succeeded", "Failed", "Complete"}) {
      if (!api::ConditionIsTrue(object, end)) continue;
      session_->ErrLine(StrCat("swell: warning: ", ToLower(placed.kind.kind), " ", placed.name,
                               " is over (", end, ") and does not start again: delete it (swell ",
                               "delete ", placed.name, " -n ", placed.ns, ") and apply again"));
      return;
    }
  }

  std::unique_ptr<api::Scheme> scheme_ = api::Scheme::BuiltIn();
};

class DeleteAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Objects");
    flags.List("-f,--filename", &files_, "PATH", "the objects of these manifests");
    flags.Switch("-R,--recursive", &recursive_, "include subdirectories");
    flags.Text("-l,--selector", &selector_, "LABELS", "objects with these labels");
    flags.Text("--field-selector", &fields_, "FIELDS", "objects with these fields");
    flags.Switch("--all", &all_, "all objects of the kind in this namespace");
    flags.Switch("--ignore-not-found", &ignore_not_found_,
                 "do not fail if an object does not exist");
    flags.Group("Options");
    flags.Switch("--wait", &wait_, "wait until the objects are gone (default true)");
    flags.Int("--grace-period", &grace_, "SECONDS", "grace period (default: that of the pod)");
    flags.Switch("--now", &now_, "grace period of one second");
    flags.Switch("--force", &force_, "delete immediately, without a grace period");
    flags.Text("--cascade", &cascade_, "background|foreground|orphan",
               "how dependents are deleted");
    flags.Text("--timeout", &timeout_, "DURATION", "how long to wait");
    flags.Text("--dry-run", &dry_run_text_, "none|client|server", "show what would change")
        .implied = "client";
    flags.Text("-o,--output", &output_, "name", "print names only");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(dry_run_, ParseDryRun(dry_run_text_));
    if (now_) grace_ = 1;
    if (force_) grace_ = 0;
    if (cascade_.empty()) cascade_ = "background";
    if (cascade_ != "background" && cascade_ != "foreground" && cascade_ != "orphan") {
      return WrongValue("--cascade", cascade_, {"background", "foreground", "orphan"});
    }
    cascade_[0] = static_cast<char>(cascade_[0] - 'a' + 'A');
    if (!timeout_.empty()) {
      SWELL_ASSIGN_OR_RETURN(timeout_span_, ParseDuration(timeout_, "--timeout"));
    }
    if (words.empty() && files_.empty() && (all_ || !selector_.empty() || !fields_.empty())) {
      return Misuse(StrCat("name a kind, for example: swell delete trainingjobs ",
                           all_                ? "--all"
                           : selector_.empty() ? "--field-selector " + fields_
                                               : "-l " + selector_));
    }
    if (words.empty() && files_.empty()) {
      return Misuse(
          "nothing to delete; use swell delete JOB, swell delete pod NAME, or -f job.yaml");
    }
    SWELL_ASSIGN_OR_RETURN(api_, session.Server());
    session_ = &session;
    SWELL_ASSIGN_OR_RETURN(std::vector<Doomed> doomed, Choose(session, words));
    int failed = missing_;
    std::vector<Doomed> going;
    for (Doomed& one : doomed) {
      auto gone = dry_run_ == DryRun::kClient
                      ? Result<json::SharedValue>(nullptr)
                      : api_->Delete(one.kind.resource, one.ns, one.name, grace_, cascade_,
                                     dry_run_ == DryRun::kServer);
      if (!gone.ok()) {
        if (ignore_not_found_ && gone.status().code() == Code::kNotFound) continue;
        if (doomed.size() == 1) return gone.status();
        session.ErrLine(StrCat("swell: ", ErrorText(gone.status())));
        ++failed;
        continue;
      }
      session.OutLine(output_ == "name" ? StrCat(one.kind.SingularName(), "/", one.name)
                                        : StrCat(one.kind.SingularName(), " ", Quote(one.name),
                                                 " deleted", DryRunNote(dry_run_)));
      if (*gone) {
        one.uid = json::GetString(**gone, {"metadata", "uid"},
                                  json::GetString(**gone, {"details", "uid"}));
      }
      going.push_back(std::move(one));
    }
    if (doomed.empty() && missing_ == 0) session.ErrLine("No resources found");
    if (wait_ && dry_run_ == DryRun::kNone) SWELL_RETURN_IF_ERROR(WaitGone(going));
    return failed > 0 ? 1 : 0;
  }

 private:
  struct Doomed {
    Kind kind;
    std::string ns, name;
    std::string uid;  // of the object that was deleted: a new one of that name is not waited for
  };

  Result<std::vector<Doomed>> Choose(Session& session, const std::vector<std::string>& words) {
    std::vector<Doomed> doomed;
    if (!files_.empty()) {
      SWELL_ASSIGN_OR_RETURN(auto manifests, ReadManifests(session, files_, recursive_));
      for (Manifest& manifest : manifests) {
        const std::string source = manifest.source;
        auto placed = Place(session, std::move(manifest));
        if (!placed.ok()) return placed.status().WithContext(source);
        doomed.push_back({placed->kind, placed->ns, placed->name, {}});
      }
      return doomed;
    }
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    bool by_selector = all_ || !selector_.empty() || !fields_.empty();
    if (words[0].find('/') != std::string::npos) {
      for (const std::string& word : words) {
        size_t slash = word.find('/');
        if (slash == std::string::npos) return Misuse(StrCat(Quote(word), ": expected KIND/NAME"));
        SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(word.substr(0, slash)));
        doomed.push_back({kind, session.Namespace(), word.substr(slash + 1), {}});
      }
      return doomed;
    }
    // One word, or words that start with no kind, are names of jobs.
    auto kind = kinds->Find(words[0]);
    if (kind.ok() && by_selector && words.size() == 1) {
      SWELL_ASSIGN_OR_RETURN(auto found,
                             api_->List(kind->resource, session.Namespace(),
                                        {.label_selector = selector_, .field_selector = fields_}));
      for (const auto& object : found) {
        doomed.push_back({*kind, session.Namespace(), std::string(api::Name(*object)), {}});
      }
      return doomed;
    }
    if (by_selector) return Misuse("with a selector, give one KIND and no names");
    if (kind.ok() && words.size() > 1) {
      for (size_t i = 1; i < words.size(); ++i) {
        doomed.push_back({*kind, session.Namespace(), words[i], {}});
      }
      return doomed;
    }
    if (!kind.ok() && kind.status().code() != Code::kNotFound) return kind.status();
    auto jobs = Jobs(session, words);
    if (kind.ok() && jobs.status().code() == Code::kNotFound) {
      return Misuse(StrCat("which ", words[0], "? Name it: swell delete ", words[0], " NAME"));
    }
    return jobs;
  }

  Result<std::vector<Doomed>> Jobs(Session& session, const std::vector<std::string>& names) {
    std::vector<Doomed> doomed;
    for (const std::string& name : names) {
      if (name.find(',') != std::string::npos) {
        return Misuse(StrCat(Quote(name), ": separate names with spaces"));
      }
      auto job = FindJob(*api_, session.Namespace(), name);
      if (job.status().code() == Code::kNotFound) {
        if (AddArray(session.Namespace(), name, doomed)) continue;
        if (AddCron(session.Namespace(), name, doomed)) continue;
        SWELL_ASSIGN_OR_RETURN(const bool workload, AddWorkload(session, name, doomed));
        if (workload) continue;
      }
      if (!job.ok() && ignore_not_found_ && job.status().code() == Code::kNotFound) continue;
      if (job.status().code() == Code::kNotFound && names.size() > 1) {
        session_->ErrLine(StrCat("swell: ", ErrorText(job.status())));
        ++missing_;
        continue;
      }
      if (!job.ok()) return job.status();
      Add(*job, doomed);
    }
    return doomed;
  }

  static void Add(const JobView& job, std::vector<Doomed>& doomed) {
    Kind kind;
    kind.resource = job.kind->resource;
    kind.kind = job.kind->kind;
    kind.singular = ToLower(job.kind->kind);
    doomed.push_back({std::move(kind), job.ns, job.name, {}});
  }

  bool AddArray(const std::string& ns, const std::string& name, std::vector<Doomed>& doomed) const {
    const auto array = FindArray(*api_, ns, name);
    if (!array.ok()) return false;
    for (const JobView& job : array->jobs) Add(job, doomed);
    return !array->jobs.empty();
  }

  // `swell why nightly` takes the name of a Cron or a CronJob, too.
  bool AddCron(const std::string& ns, const std::string& name, std::vector<Doomed>& doomed) const {
    for (const auto& [resource, word] : {std::pair(&client::resources::kCrons, "Cron"),
                                         std::pair(&client::resources::kCronJobs, "CronJob")}) {
      const auto cron = api_->Get(*resource, ns, name);
      if (!cron.ok()) continue;  // a user may not be allowed to read them
      Kind kind;
      kind.resource = *resource;
      kind.kind = word;
      kind.singular = ToLower(word);
      doomed.push_back({std::move(kind), ns, name, {}});
      return true;
    }
    return false;
  }

  // False: none has that name.
  Result<bool> AddWorkload(Session& session,
                           const std::string& name,
                           std::vector<Doomed>& doomed) const {
    const auto found = WorkloadsNamed(*api_, session.Namespace(), name);
    if (found.empty()) return false;
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    std::vector<std::string> names;
    for (const Workload& workload : found) {
      SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(workload.resource->GroupResource()));
      std::string own(api::Name(*workload.object));
      names.push_back(StrCat(kind.SingularName(), "/", own));
      doomed.push_back({std::move(kind), session.Namespace(), std::move(own), {}});
    }
    if (names.size() == 1) return true;
    return Misuse(StrCat(Quote(name), " is ", Join(names, " and "), "; say which one"));
  }

  Status WaitGone(const std::vector<Doomed>& going) {
    auto span = std::chrono::milliseconds(50);
    Duration waited{0};
    for (const Doomed& one : going) {
      for (;;) {
        auto found = api_->Get(one.kind.resource, one.ns, one.name);
        if (!found.ok()) {
          if (found.status().code() == Code::kNotFound) break;
          return found.status();
        }
        if (!one.uid.empty() && api::Uid(**found) != one.uid) break;
        if (timeout_span_ && waited >= *timeout_span_) {
          return Status(Code::kTimeout, StrCat(one.kind.SingularName(), " ", Quote(one.name),
                                               " is still there after ", timeout_));
        }
        if (!api_->Pause(span)) return Status::Ok();
        waited += span;
        span = std::min(span * 2, std::chrono::milliseconds(500));
      }
    }
    return Status::Ok();
  }

  std::vector<std::string> files_;
  bool recursive_ = false, all_ = false, ignore_not_found_ = false, now_ = false, force_ = false;
  bool wait_ = true;
  std::string selector_, fields_, cascade_, timeout_, dry_run_text_, output_;
  int64_t grace_ = -1;
  DryRun dry_run_ = DryRun::kNone;
  std::optional<Duration> timeout_span_;
  int missing_ = 0;  // names of jobs that do not exist
  Session* session_ = nullptr;
  Api* api_ = nullptr;
};

}  // namespace

Command ApplyCommandSpec() {
  return {
      .name = "apply",
      .group = "Change",
      .summary = "Create or update objects from manifests.",
      .usage = "-f PATH...",
      .examples = {{"Create or update the objects of a file", "swell apply -f job.yaml"},
                   {"Check a directory without changing anything",
                    "swell apply -f manifests/ --dry-run=server"},
                   {"From another program", "render | swell apply -f -"}},
      .make = Makes<ApplyAction>(),
  };
}

Command CreateCommandSpec() {
  return {
      .name = "create",
      .group = "Change",
      .summary = "Create objects from manifests. It is an error if an object exists.",
      .usage = "-f PATH...",
      .examples = {{"Create the objects of a file", "swell create -f priorityClass.yaml"},
                   {"Print the created object", "swell create -f job.yaml -o yaml"}},
      .make = Makes<CreateAction>(),
  };
}

Command DeleteCommandSpec() {
  return {
      .name = "delete",
      .group = "Change",
      .summary = "Delete jobs or objects of any kind.",
      .usage = "JOB... | ARRAY... | KIND NAME... | KIND/NAME... | -f PATH",
      .examples = {{"A job and its pods, or the jobs of an array", "swell delete mnist"},
                   {"A pod, within a second", "swell delete pod mnist-worker-1 --now"},
                   {"The objects of a file", "swell delete -f job.yaml"},
                   {"All failed pods", "swell delete pods --field-selector status.phase=Failed"}},
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
}

}  // namespace swell::cli
