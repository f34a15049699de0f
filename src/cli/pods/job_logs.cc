#include "cli/pods/job_logs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "cli/pods/log_parts.h"
#include "cli/pods/pod_choice.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"

namespace swell::cli {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(300);
// To quote the line that says most.
constexpr int64_t kLinesRead = 40;
constexpr size_t kLogBytesMax = 64 << 10;
constexpr Duration kLogWait = std::chrono::seconds(5);
// How often to look for the member that takes over from the one that led: for 15 s, in which the
// others find that it is lost, and report their new ranks.
constexpr int kLeadLooks = 50;

// The member of an elastic job that has rank 0: another one takes it over when the first is lost.
struct Lead {
  std::string pod;  // empty: no member reports it
  WallTime said;
};

// A launcher prints what all of them print, and a number that was found in a log belongs to the
// first pod.
bool MayLead(const JobView& job, const json::Value& pod) {
  return RoleOfPod(pod) == RoleOfPod(*job.pods[0]) &&
         (job.over() || (!api::HasEnded(pod) && !api::IsDeleting(pod)));
}

Lead LeadOf(const JobView& job) {
  Lead lead;
  if (!job.elastic()) return lead;
  for (const json::SharedValue& pod : job.pods) {
    if (!MayLead(job, *pod)) continue;
    for (const api::RankProgress& rank : api::RanksOf(*pod)) {
      if (rank.rank != 0 || rank.pid == 0 || rank.changed < lead.said) continue;
      lead = {std::string(api::Name(*pod)), rank.changed};
    }
  }
  return lead;
}

// Whether a member other than this one trains: it will report its rank.
bool OthersReport(const JobView& job, std::string_view member) {
  return job.elastic() && std::any_of(job.pods.begin(), job.pods.end(), [&](const auto& pod) {
           const auto ranks = api::RanksOf(*pod);
           return api::Name(*pod) != member && MayLead(job, *pod) && !ranks.empty() &&
                  ranks.front().pid > 0;
         });
}

class JobLogs {
 public:
  JobLogs(Session& session, Api& api, JobView job, const JobLogOptions& options)
      : session_(session), api_(api), job_(std::move(job)), options_(options) {}

  Status Print() {
    if (job_.kind->kind == "Job" && options_.member.empty() && !options_.all) TakeOneTry();
    SWELL_RETURN_IF_ERROR(ChooseMembers());
    if (options_.logs.previous) return PrintPrevious();
    if (options_.attempt > 0) return PrintAttempt();
    return options_.logs.follow ? Follow() : PrintOnce();
  }

 private:
  // Each pod of a batch Job is another try: the newest one is meant, with --previous the one
  // before, unless the newest has been restarted in place.
  void TakeOneTry() {
    std::stable_sort(job_.pods.begin(), job_.pods.end(), [](const auto& a, const auto& b) {
      return api::CreationTime(*a) > api::CreationTime(*b);
    });
    if (!options_.logs.previous || job_.pods.size() < 2 || api::RestartCount(*job_.pods[0]) > 0) {
      return;
    }
    options_.logs.previous = false;
    job_.pods = {job_.pods[1]};
  }

  const json::Array& Attempts() const {
    return json::GetArray(*job_.object, {"status", "attempts"});
  }

  Status ChooseMembers() {
    std::vector<std::string> known;
    for (const json::SharedValue& pod : job_.pods) known.emplace_back(api::Name(*pod));
    for (const json::Value& one : Attempts()) {
      const std::string name(json::GetString(one, {"member"}));
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
    if (known.empty()) {
      const std::string why = job_.waits.empty() ? job_.message : job_.waits;
      return Status(Code::kNotFound, StrCat("job ", Quote(job_.name), " has no pods; it is ",
                                            ToLower(job_.status), why.empty() ? "" : ": ", why));
    }
    if (options_.all) {
      members_ = std::move(known);
      return Status::Ok();
    }
    if (options_.member.empty()) {
      // Without pods: the first by name, which leads unless there is a master.
      if (job_.pods.empty()) std::sort(known.begin(), known.end());
      const Lead lead = LeadOf(job_);
      members_ = {lead.pod.empty() ? known[0] : lead.pod};
      return Status::Ok();
    }
    if (std::find(known.begin(), known.end(), options_.member) == known.end()) {
      return Status(Code::kNotFound,
                    StrCat("the job ", job_.name, " has no instance ", Quote(options_.member),
                           "; there are: ", Join(known, ", ")));
    }
    members_ = {options_.member};
    return Status::Ok();
  }

  bool IsChosen(std::string_view member) const {
    return std::find(members_.begin(), members_.end(), member) != members_.end();
  }

  std::vector<LogPart> Parts() const {
    return LogPartsOf(
        job_, [this](std::string_view member) { return IsChosen(member); }, options_.logs);
  }

  // Not of a part that is the only one: then the log is printed as it is.
  void PrintTitle(const LogPart& part) {
    session_.EndLine();
    session_.OutLine(session_.Paint(Colour::kCyan, StrCat("==> ", part.Title(), " <==")));
  }

  Status PrintEarlier(const LogPart& part) {
    Api::StreamRequest stream;
    stream.request = LogRequest({.ns = job_.ns, .pod = part.member, .container = part.container},
                                WithoutFollow());
    stream.request.path += StrCat("/", part.uid);
    stream.request.query +=
        StrCat("&node=", api::EscapeQuery(part.node), "&restart=", part.restart);
    stream.on_data = [this](std::string_view bytes) { return session_.Out(bytes); };
    std::vector<Api::StreamRequest> streams;
    streams.push_back(std::move(stream));
    const Status read = api_.Follow(std::move(streams));
    if (read.code() != Code::kNotFound && read.code() != Code::kBadRequest) return read;
    session_.ErrLine(StrCat("There is no log of container ", part.container, " of ", part.Title(),
                            ": its program never ran, or this cluster keeps no logs of earlier "
                            "attempts (clusters started by swell up do)."));
    return Status::Ok();
  }

  LogOptions WithoutFollow() const {
    LogOptions options = options_.logs;
    options.follow = options.previous = false;
    return options;
  }

  Status PrintOnce() {
    const std::vector<LogPart> parts = Parts();
    const std::set<std::string> members = MembersOf(parts);
    std::vector<json::SharedValue> live;
    for (const LogPart& part : parts) {
      if (part.pod) {
        live.push_back(part.pod);
        // Several pods mark each line with their names.
        if (parts.size() > members.size() && members.size() == 1) PrintTitle(part);
        continue;
      }
      PrintTitle(part);
      SWELL_RETURN_IF_ERROR(PrintEarlier(part));
    }
    if (live.empty()) return Status::Ok();
    return PrintLogs(session_, api_, live, WithoutFollow());
  }

  static std::set<std::string> MembersOf(const std::vector<LogPart>& parts) {
    std::set<std::string> members;
    for (const LogPart& part : parts) members.insert(part.member);
    return members;
  }

  Status PrintPrevious() {
    std::vector<LogPart> parts = Parts();
    for (const std::string& member : members_) {
      std::vector<LogPart> own;
      for (const LogPart& part : parts) {
        if (part.member == member) own.push_back(part);
      }
      // The newest one is what runs now, or has not been started yet.
      if (!own.empty() && own.back().pod) own.pop_back();
      if (own.empty()) {
        return Status(Code::kNotFound, StrCat(member, " has no earlier log: it was started once"));
      }
      if (members_.size() > 1) PrintTitle(own.back());
      SWELL_RETURN_IF_ERROR(PrintEarlier(own.back()));
    }
    return Status::Ok();
  }

  Status PrintAttempt() {
    const std::vector<LogPart> parts = Parts();
    int64_t last = 0;
    bool found = false;
    for (const LogPart& part : parts) {
      last = std::max(last, part.attempt);
      if (part.attempt != options_.attempt) continue;
      found = true;
      if (part.pod) {
        SWELL_RETURN_IF_ERROR(PrintLogs(session_, api_, {part.pod}, options_.logs));
        continue;
      }
      if (part.restart > 0 || members_.size() > 1) PrintTitle(part);
      SWELL_RETURN_IF_ERROR(PrintEarlier(part));
    }
    if (found) return Status::Ok();
    return Status(Code::kNotFound,
                  StrCat("attempt ", options_.attempt, " of ", Join(members_, ", "),
                         " is not known; the last one is ", last));
  }

  // The starts that can be followed now and have not been shown.
  Status PrintNew(const std::vector<LogPart>& parts, bool& any) {
    std::vector<json::SharedValue> live;
    for (const LogPart& part : parts) {
      if (shown_.contains(part.Key())) continue;
      if (part.pod && !HasStarted(*part.pod)) continue;
      any = true;
      const bool first = shown_.empty();
      shown_.insert(part.Key());
      if (!part.pod || !first) PrintTitle(part);
      if (part.pod) {
        live.push_back(part.pod);
      } else {
        SWELL_RETURN_IF_ERROR(PrintEarlier(part));
      }
    }
    if (options_.on_live) {
      for (const json::SharedValue& pod : live) options_.on_live(*pod);
    }
    return live.empty() ? Status::Ok() : PrintLogs(session_, api_, live, options_.logs);
  }

  // The process that led has ended: follows the member that has its rank now. False if no member
  // has reported that rank yet.
  bool FollowLead() {
    const bool chosen = !options_.member.empty() || options_.all;
    if (chosen || !ended_ || job_.over() || !OthersReport(job_, members_[0])) return true;
    const Lead lead = LeadOf(job_);
    // Its output before its end has been shown.
    if (lead.pod.empty() || lead.said <= *ended_) return ++lead_looks_ > kLeadLooks;
    lead_looks_ = 0;
    if (IsChosen(lead.pod)) return true;
    members_ = {lead.pod};
    // Earlier runs of it were not asked for.
    for (const LogPart& part : Parts()) {
      if (!part.pod) shown_.insert(part.Key());
    }
    return true;
  }

  // A stream ends with its container. The next pod of the member is followed when it runs.
  Status Follow() {
    std::string said;
    for (;;) {
      bool any = false;
      if (FollowLead()) SWELL_RETURN_IF_ERROR(PrintNew(Parts(), any));
      if (any) ended_ = session_.Now();
      if (!any && job_.over()) return Status::Ok();
      const std::string why = any ? "" : job_.Hindrance();
      if (!why.empty() && job_.HindranceReason() != said) {
        said = job_.HindranceReason();
        session_.ErrLine(StrCat("Waiting: ", why));
      }
      if (!any && job_.CanNeverStart()) {
        return Status(Code::kConflict, StrCat("job ", Quote(job_.name), " can never start"));
      }
      if (!any && !api_.Pause(kLookInterval)) return Status::Ok();
      auto now = FindJob(api_, job_.ns, job_.ResourceName());
      if (now.status().code() == Code::kNotFound) return Status::Ok();
      if (!now.ok()) return now.status();
      job_ = std::move(*now);
    }
  }

  Session& session_;
  Api& api_;
  JobView job_;
  JobLogOptions options_;
  std::vector<std::string> members_;
  std::set<std::string> shown_;
  std::optional<WallTime> ended_;  // when the last stream did
  int lead_looks_ = 0;
};

}  // namespace

void JobLogOptions::Declare(Flags& flags, std::string_view previous) {
  logs.Declare(flags);
  flags.Int("--attempt", &attempt, "N",
            "only the log of the member's Nth pod; a preemption or restart of the job makes a new "
            "one");
  flags.Switch(
      std::string(previous), &logs.previous,
      "what ran before: the container before its last restart, or the pod before this one");
}

Status JobLogOptions::Check() const {
  SWELL_RETURN_IF_ERROR(logs.Check());
  if (attempt < 0) return Misuse(StrCat("--attempt ", attempt, ": attempts are counted from 1"));
  if (attempt > 0 && logs.previous) {
    return Misuse("--attempt and --previous cannot be used together");
  }
  if (logs.previous && logs.follow) {
    return Misuse("--previous and --follow cannot be used together: what ran before has ended");
  }
  return Status::Ok();
}

void QuoteLastLine(Api& api, JobView& job) {
  if (!job.failure || !job.failure->said.empty() || !job.failure->exit_code) return;
  if (job.failure->reason == "OOMKilled" || job.failure->container.empty()) return;
  const LogSource source{job.ns, job.failure->member, job.failure->container};
  const LogOptions options{.previous = job.failure->settles.has_value(), .tail = kLinesRead};
  std::string log;
  const auto on_data = [&log](std::string_view bytes) {
    log.append(bytes.substr(0, kLogBytesMax - log.size()));
    return log.size() < kLogBytesMax;
  };
  if (!api.Follow({{LogRequest(source, options), on_data, [](const Status&) {}}}, kLogWait).ok()) {
    return;
  }
  const std::string before = job.failure->Sentence();
  job.failure->said = api::LastWords(log);
  if (log.empty()) job.failure->HasNoLog();
  const size_t at = job.message.find(before);
  if (at != std::string::npos) job.message.replace(at, before.size(), job.failure->Sentence());
}

Status PrintJobLogs(Session& session, Api& api, JobView job, const JobLogOptions& options) {
  return JobLogs(session, api, std::move(job), options).Print();
}

}  // namespace swell::cli
