#include "jobs/decisions/job_gates.h"

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kClosed = "closed";
constexpr std::string_view kNever = "DependencyNeverSatisfied: ";

bool IsClosed(const json::Value& job) { return api::Annotation(job, api::keys::kGate) == kClosed; }

bool HasSucceeded(const json::Value& job) {
  return api::ConditionIsTrue(job, "Succeeded") || api::ConditionIsTrue(job, "Complete") ||
         api::StatusPhase(job) == "Succeeded";
}
bool HasFailed(const json::Value& job) {
  return api::ConditionIsTrue(job, "Failed") || api::StatusPhase(job) == "Failed";
}
bool HasStarted(const json::Value& job) {
  return HasSucceeded(job) || HasFailed(job) || api::ConditionIsTrue(job, "Running") ||
         json::GetInt(job, {"status", "active"}) > 0;
}

}  // namespace

std::string_view NeverOpens(const json::Value& job) {
  if (!IsClosed(job) || api::Annotation(job, api::keys::kIfNever) != "Fail") return "";
  std::string_view reason = api::Annotation(job, api::keys::kGateReason);
  if (!reason.starts_with(kNever)) return "";
  reason.remove_prefix(kNever.size());
  return reason;
}

JobGates::JobGates(controllers::Context context)
    : context_(std::move(context)),
      client_(context_.executor, context_.server, context_.user, "job-gates") {
  const auto add = [this](const client::Resource& resource, std::string suspend) {
    // Kinds that another operator runs are left to it.
    client::Informer* jobs = context_.informers.Find(resource);
    if (jobs == nullptr || suspend.empty()) return;
    const size_t kind = kinds_.size();
    kinds_.push_back({jobs, std::move(suspend)});
    controllers::Follow(
        *jobs, [this, kind](const json::SharedValue& job) { OnJob(kind, job); },
        [this, kind](const json::SharedValue& job) { OnGone(kind, job); });
  };
  for (const api::Definition& kind : api::JobDefinitions()) {
    add({kind.group, kind.version, kind.plural, true}, kind.suspend);
  }
  add(client::resources::kJobs, "suspend");
}

void JobGates::Start() {
  context_.informers.WhenSynced(scope_.Wrap([this] {
    started_ = true;
    ScheduleRound();
  }));
}

void JobGates::OnJob(size_t kind, const json::SharedValue& job) {
  const JobKey key{kind, api::KeyOf(*job)};
  if (IsClosed(*job) && !api::IsDeleting(*job) && !HasFailed(*job)) {
    closed_.insert(key);
  } else {
    closed_.erase(key);
    opening_.erase(std::string(api::Uid(*job)));
  }
  ScheduleRound();
}

void JobGates::OnGone(size_t kind, const json::SharedValue& job) {
  closed_.erase({kind, api::KeyOf(*job)});
  opening_.erase(std::string(api::Uid(*job)));
  NoteGone(api::KeyOf(*job));
  ScheduleRound();
}

void JobGates::NoteGone(const std::string& key) {
  const WallTime now = context_.clock.Now();
  std::erase_if(gone_, [now](const auto& one) { return one.second + kUnknownGrace < now; });
  if (gone_.size() < kGoneMax) gone_[key] = now;
}

// Times of creation are whole seconds: one that has gone within the same second may have been an
// earlier job of that name.
bool JobGates::HasGoneSince(const json::Value& other, std::string_view name) const {
  const auto gone = gone_.find(StrCat(api::Namespace(other), "/", name));
  return gone != gone_.end() && gone->second >= api::CreationTime(other) + std::chrono::seconds(1);
}

void JobGates::ScheduleRound() {
  if (!started_ || closed_.empty() || settle_.pending()) return;
  settle_.Start(kSettle, [this] { Round(); });
}

void JobGates::WakeAt(WallTime time) {
  if (!wake_ || time < *wake_) wake_ = time;
}

// Older ones first, and of an array the first.
std::vector<std::pair<JobGates::JobKey, json::SharedValue>> JobGates::ClosedInOrder() const {
  std::vector<std::pair<JobKey, json::SharedValue>> all;
  for (const JobKey& key : closed_) {
    if (json::SharedValue job = kinds_[key.first].jobs->Get(key.second)) all.emplace_back(key, job);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto order = [](const auto& one) {
      return std::tuple(api::CreationTime(*one.second), one.first.second.size(), one.first);
    };
    return order(a) < order(b);
  });
  return all;
}

void JobGates::Round() {
  wake_.reset();
  int writes = 0;
  std::map<std::string, int64_t> running;  // of arrays, counted once for a round
  for (const auto& [key, job] : ClosedInOrder()) {
    if (opening_.contains(std::string(api::Uid(*job)))) continue;
    if (writes >= kWritesMax) {
      ScheduleRound();
      break;
    }
    Verdict verdict = Judge(*job);
    if (verdict.answer == Answer::kYes && !TakesTurn(*job, running)) {
      verdict = {Answer::kNotYet, StrCat("JobArrayTaskLimit: waits for its turn; ",
                                         api::Annotation(*job, api::keys::kArrayAtOnce),
                                         " of the array run at once")};
    }
    if (verdict.answer == Answer::kYes) {
      Open(key, *job);
      ++writes;
    } else if (Report(key, *job, verdict)) {
      ++writes;
    }
  }
  if (!wake_) return;
  const Duration wait = std::max<Duration>(*wake_ - context_.clock.Now(), kSettle);
  wake_timer_.Start(wait, [this] { ScheduleRound(); });
}

JobGates::Verdict JobGates::Judge(const json::Value& job) {
  if (!api::Annotation(job, api::keys::kHeld).empty()) {
    return {Answer::kNotYet, "JobHeldUser: is held until somebody releases it"};
  }
  const std::string_view text = api::Annotation(job, api::keys::kStartAfter);
  if (!text.empty()) {
    const bool any = text.find('?') != std::string_view::npos;
    Verdict first;  // that is in the way
    bool opens = !any, hopeless = any;
    for (std::string_view term : Split(text, any ? '?' : ',')) {
      const Verdict verdict = JudgeTerm(job, term);
      const bool yes = verdict.answer == Answer::kYes;
      opens = any ? opens || yes : opens && yes;
      hopeless = any ? hopeless && verdict.answer == Answer::kNever
                     : hopeless || verdict.answer == Answer::kNever;
      // Where all terms must hold, one that never will is in the way; else one that yet may.
      const bool tells =
          first.answer != verdict.answer && (verdict.answer == Answer::kNever) != any;
      if (!yes && (first.reason.empty() || tells)) first = verdict;
    }
    if (!opens) {
      first.answer = hopeless ? Answer::kNever : Answer::kNotYet;
      return first;
    }
  }
  const auto begin = api::ParseTime(api::Annotation(job, api::keys::kStartNotBefore));
  if (begin && context_.clock.Now() < *begin) {
    WakeAt(*begin);
    return {Answer::kNotYet,
            StrCat("BeginTime: starts at ", api::FormatTime(*begin), " at the earliest")};
  }
  return {};
}

// "afterok:a:b": true of all the jobs it names.
JobGates::Verdict JobGates::JudgeTerm(const json::Value& job, std::string_view term) {
  Verdict worst;
  Tally tally;
  std::vector<std::string_view> parts = Split(term, ':');
  if (parts.size() < 2) {
    return {Answer::kNever, StrCat(kNever, "its annotation ", api::keys::kStartAfter, " has ",
                                   Quote(term), ", where TYPE:JOB is expected")};
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    Verdict verdict = JudgeArray(job, parts[0], Split(parts[i], '+'), tally);
    if (verdict.answer > worst.answer) worst = std::move(verdict);
  }
  if (worst.answer == Answer::kNotYet && tally.all > 1) {
    worst.reason += TallyText(job, Split(parts[1], '+')[0], tally);
  }
  return worst;
}

std::string JobGates::TallyText(const json::Value& job,
                                std::string_view one_of_them,
                                Tally tally) const {
  const json::SharedValue first = FindJob(api::Namespace(job), one_of_them);
  const std::string_view array = first ? api::Label(*first, api::keys::kArray) : "";
  return StrCat("; ", tally.met == 0 ? "none" : std::to_string(tally.met), " of the ", tally.all,
                " jobs", array.empty() ? "" : " of array ", array,
                tally.met == 1 ? " has" : " have");
}

JobGates::Verdict JobGates::JudgeArray(const json::Value& job,
                                       std::string_view type,
                                       const std::vector<std::string_view>& names,
                                       Tally& tally) {
  const bool one_failure = type == "afternotok" && names.size() > 1;
  Verdict worst;
  bool failed = false;
  for (const std::string_view name : names) {
    Verdict verdict = JudgeOther(job, one_failure ? "afterany" : type, name);
    if (one_failure) failed |= JudgeOther(job, type, name).answer == Answer::kYes;
    ++tally.all;
    if (verdict.answer == Answer::kYes) ++tally.met;
    if (verdict.answer > worst.answer) worst = std::move(verdict);
  }
  if (!one_failure || failed || worst.answer != Answer::kYes) return worst;
  return {Answer::kNever, StrCat(kNever, "all ", names.size(), " tasks of the array succeeded")};
}

JobGates::Verdict JobGates::JudgeOther(const json::Value& job,
                                       std::string_view type,
                                       std::string_view name) {
  const auto not_yet = [name](std::string_view what) {
    return Verdict{Answer::kNotYet, StrCat("Dependency: waits for job ", name, " to ", what)};
  };
  const auto never = [](const auto&... why) {
    return Verdict{Answer::kNever, StrCat(kNever, why...)};
  };
  const json::SharedValue other = FindJob(api::Namespace(job), name);
  if (!other) {
    const WallTime known = api::CreationTime(job) + kUnknownGrace;
    if (context_.clock.Now() < known && !HasGoneSince(job, name)) {
      WakeAt(known);
      return not_yet("be known");
    }
    if (type == "afterok") return never("job ", name, " was deleted before it had succeeded");
    return {};
  }
  const bool ok = HasSucceeded(*other), failed = HasFailed(*other);
  if (type == "afterok") {
    if (ok) return {};
    return failed ? never("job ", name, " failed") : not_yet("succeed");
  }
  if (type == "afternotok") {
    if (failed) return {};
    return ok ? never("job ", name, " succeeded") : not_yet("fail");
  }
  if (type == "afterany") return ok || failed ? Verdict{} : not_yet("end");
  if (type == "after") return HasStarted(*other) ? Verdict{} : not_yet("start");
  return never("its annotation ", api::keys::kStartAfter, " has ", Quote(type),
               ", where after, afterok, afterany or afternotok is expected");
}

json::SharedValue JobGates::FindJob(std::string_view ns, std::string_view name) const {
  const std::string key = StrCat(ns, "/", name);
  for (const Kind& kind : kinds_) {
    if (json::SharedValue job = kind.jobs->Get(key)) return job;
  }
  return nullptr;
}

bool JobGates::TakesTurn(const json::Value& job, std::map<std::string, int64_t>& running) {
  const auto at_once = ParseInt(api::Annotation(job, api::keys::kArrayAtOnce));
  const std::string_view array = api::Label(job, api::keys::kArray);
  if (!at_once || *at_once < 1 || array.empty()) return true;
  const std::string key = StrCat(api::Namespace(job), "/", array);
  const auto [at, is_new] = running.try_emplace(key, 0);
  if (is_new) at->second = RunningOf(api::Namespace(job), array);
  if (at->second >= *at_once) return false;
  ++at->second;
  return true;
}

// Those that have been let run and are not over.
int64_t JobGates::RunningOf(std::string_view ns, std::string_view array) const {
  int64_t count = 0;
  for (const Kind& kind : kinds_) {
    for (const auto& [key, job] : kind.jobs->objects()) {
      if (api::Label(*job, api::keys::kArray) != array || api::Namespace(*job) != ns) continue;
      const bool waits = IsClosed(*job) && !opening_.contains(std::string(api::Uid(*job)));
      if (!waits && !HasSucceeded(*job) && !HasFailed(*job)) ++count;
    }
  }
  return count;
}

void JobGates::Open(const JobKey& key, const json::Value& job) {
  const Kind& kind = kinds_[key.first];
  json::Value patch = json::Object{};
  const std::string uid(api::Uid(job));
  json::Set(patch, {"metadata", "uid"}, uid);
  json::Set(patch, {"metadata", "annotations", api::keys::kGate}, nullptr);
  json::Set(patch, {"metadata", "annotations", api::keys::kGateReason}, nullptr);
  api::SetSuspended(patch, kind.suspend, false);
  opening_.insert(uid);
  client_.Patch(kind.jobs->resource(), api::Namespace(job), api::Name(job),
                client::PatchType::kMerge, patch,
                scope_.Wrap([this, uid](const Result<json::SharedValue>& done) {
                  // What the watch shows next takes it off the list.
                  if (done.ok()) return;
                  opening_.erase(uid);
                  wake_timer_.Start(std::chrono::seconds(1), [this] { ScheduleRound(); });
                }));
}

// False: nothing to write.
bool JobGates::Report(const JobKey& key, const json::Value& job, const Verdict& verdict) {
  const client::Resource& resource = kinds_[key.first].jobs->resource();
  if (verdict.answer == Answer::kNever && api::Annotation(job, api::keys::kIfNever) == "Delete") {
    client_.Delete(resource, api::Namespace(job), api::Name(job), {},
                   scope_.Wrap([](const Result<json::SharedValue>&) {}));
    return true;
  }
  if (api::Annotation(job, api::keys::kGateReason) == verdict.reason) return false;
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "uid"}, api::Uid(job));
  json::Set(patch, {"metadata", "annotations", api::keys::kGateReason}, verdict.reason);
  // A write that fails is made by a later round.
  client_.Patch(resource, api::Namespace(job), api::Name(job), client::PatchType::kMerge, patch,
                scope_.Wrap([](const Result<json::SharedValue>&) {}));
  return true;
}

}  // namespace swell::jobs
