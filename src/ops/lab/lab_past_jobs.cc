#include "ops/lab/lab_past_jobs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::ops {
namespace {

constexpr double kMilli = 1000;
constexpr std::string_view kUsualPriority = "train";  // of work that names none

// One job in the accounts of all days.
struct AccountJob {
  std::string project, name;
  client::UsageJobFacts facts;
  client::UsageRow row;
};

struct Accounts {
  std::map<std::string, AccountJob, std::less<>> jobs;  // by uid
  WallTime until;
};

int64_t Seconds(WallTime time) { return time.unix_ns / 1'000'000'000; }

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

double WorkOf(const client::UsageRow& row) {
  double known = 0;
  for (double seconds : row.use_gpu_s) known += seconds;
  return known > 0 ? row.Productive() : row.gpu_s - row.lost_gpu_s;
}

// Rows without facts are of services, of records before facts were kept, and of all jobs beyond a
// day's bound together.
Accounts ReadAccounts(const std::vector<client::UsageDay>& days,
                      const std::set<std::string>& names_with_objects,
                      WallTime since,
                      int64_t& unclear) {
  Accounts accounts;
  for (const client::UsageDay& day : days) {
    accounts.until = std::max(accounts.until, day.until);
    if (day.date < client::UsageDate(since)) continue;
    for (const auto& [key, row] : day.jobs) {
      if (row.gpu_s <= 0) continue;
      const auto& [project, user, name] = key;
      const auto facts = day.facts.find(key);
      if (facts == day.facts.end()) {
        if (!names_with_objects.contains(name)) ++unclear;
        continue;
      }
      if (facts->second.several) {
        ++unclear;
        continue;
      }
      AccountJob& job = accounts.jobs[facts->second.uid];
      job.project = project;
      job.name = name;
      job.facts.Add(facts->second);
      job.row.Add(row);
    }
  }
  return accounts;
}

// The member that was started most often counts.
int RestartsOf(const json::Value& job) {
  std::map<std::string_view, int> attempts;
  int most = 0;
  for (const json::Value& attempt : json::GetArray(job, {"status", "attempts"})) {
    most = std::max(most, ++attempts[json::GetString(attempt, {"member"})]);
  }
  return most;
}

// Held and productive; the job's own account comes first, since it is whole where a day's has a
// bound.
void FillWork(const cli::JobView& view, const AccountJob* account, lab::PastJob& job) {
  const json::Value* own = json::Find(*view.object, {"status", "gpuTime"});
  if (own != nullptr) {
    const int64_t training = json::GetInt(*own, {"seconds", "training"});
    const int64_t lost = json::GetInt(*own, {"lostSeconds"});
    job.held_gpu_s = static_cast<double>(json::GetInt(*own, {"heldSeconds"}));
    job.work_gpu_s = static_cast<double>(std::max<int64_t>(0, training - lost));
  } else if (account != nullptr) {
    job.held_gpu_s = account->row.gpu_s;
    job.work_gpu_s = WorkOf(account->row);
  } else {
    job.held_gpu_s = job.gpus * Seconds(*view.ended - *view.started);
    job.work_gpu_s = job.held_gpu_s;
  }
}

// The size of an elastic job follows what was free: what it requests at its end says little about
// what it had. Its work was done on the GPUs that it held on average, in whole members.
double AverageHeld(const lab::PastJob& job, double member_gpus) {
  const auto seconds = static_cast<double>(job.ended_s - job.started_s);
  if (seconds <= 0 || job.held_gpu_s <= 0) return job.gpus;
  const double members = std::round(job.held_gpu_s / seconds / member_gpus);
  return std::clamp(members * member_gpus, job.gpus_min, job.gpus_max);
}

int PriorityOf(std::string_view name, const PriorityValues& priorities) {
  const auto named = priorities.find(name);
  if (named != priorities.end()) return named->second;
  const auto usual = priorities.find(kUsualPriority);
  return usual == priorities.end() ? 0 : usual->second;
}

std::optional<lab::PastJob> OfView(const cli::JobView& view,
                                   const cli::ProjectTree& projects,
                                   const AccountJob* account) {
  if (!view.over() || !view.started || !view.ended) return std::nullopt;
  lab::PastJob job;
  job.name = StrCat(view.ns, "/", view.name);
  job.tenant = projects.ChargedProject(view);
  if (job.tenant.empty()) job.tenant = view.project.empty() ? view.ns : view.project;
  job.submitted_s = Seconds(*view.created);
  job.started_s = Seconds(*view.started);
  job.ended_s = Seconds(*view.ended);
  job.gpus = static_cast<double>(view.milli_gpus) / kMilli;
  if (job.gpus <= 0 && account != nullptr) job.gpus = account->facts.gpus;
  if (job.gpus <= 0) return std::nullopt;
  job.gpus_min = job.gpus_max = job.gpus;
  job.restarts = RestartsOf(*view.object);
  FillWork(view, account, job);
  if (view.elastic() && view.replicas > 0) {
    const double member_gpus = job.gpus / static_cast<double>(view.replicas);
    job.gpus_min = member_gpus * static_cast<double>(view.least);
    job.gpus_max = member_gpus * static_cast<double>(view.most);
    job.gpus = AverageHeld(job, member_gpus);
  }
  return job;
}

std::optional<lab::PastJob> OfAccount(const AccountJob& account, WallTime until) {
  // What still holds GPUs is charged up to the instant at which the record is complete.
  const bool runs = account.facts.last + std::chrono::seconds(1) >= until;
  if (runs || account.facts.gpus <= 0) return std::nullopt;
  lab::PastJob job;
  job.name = account.name;
  job.tenant = account.project;
  job.submitted_s = Seconds(account.facts.submitted);
  job.started_s = Seconds(account.facts.first);
  job.ended_s = Seconds(account.facts.last);
  job.gpus = job.gpus_min = job.gpus_max = account.facts.gpus;
  job.held_gpu_s = account.row.gpu_s;
  job.work_gpu_s = std::max(0.0, WorkOf(account.row));
  job.restarts = static_cast<int>(std::clamp<int64_t>(account.row.started - 1, 0, 1'000'000));
  return job;
}

// Jobs that had one name after another: the second of "vision/train" is "vision/train#2".
void MakeNamesUnique(std::vector<lab::PastJob>& jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.submitted_s, a.ended_s) < std::tie(b.name, b.submitted_s, b.ended_s);
  });
  std::map<std::string, int> seen;
  for (lab::PastJob& job : jobs) {
    const int count = ++seen[job.name];
    if (count > 1) job.name += StrCat("#", count);
  }
}

}  // namespace

PastJobs PastJobsOf(const std::vector<cli::JobView>& views,
                    const cli::ProjectTree& projects,
                    const PriorityValues& priorities,
                    const std::vector<client::UsageDay>& days,
                    WallTime since) {
  PastJobs past;
  std::set<std::string> names;
  for (const cli::JobView& view : views) names.insert(StrCat(view.ns, "/", view.name));
  Accounts accounts = ReadAccounts(days, names, since, past.unclear);
  auto add = [&](std::optional<lab::PastJob> job, std::string_view priority) {
    if (!job) {
      ++past.left_out;
    } else {
      job->priority = PriorityOf(priority, priorities);
      past.jobs.push_back(std::move(*job));
    }
  };
  for (const cli::JobView& view : views) {
    const auto found = accounts.jobs.find(api::Uid(*view.object));
    if (view.created && *view.created >= since) {
      add(OfView(view, projects, found == accounts.jobs.end() ? nullptr : &found->second),
          view.priority);
    }
    if (found != accounts.jobs.end()) accounts.jobs.erase(found);
  }
  for (const auto& [uid, account] : accounts.jobs) {
    if (account.facts.submitted >= since) add(OfAccount(account, accounts.until), "");
  }
  MakeNamesUnique(past.jobs);
  return past;
}

}  // namespace swell::ops
