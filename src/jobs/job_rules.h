// JobRules: checks jobs, Crons, pod groups, shares of projects and GPU requests of pods when they
// are written. They refuse what the controllers, the scheduler or the autoscalers could not use
// later.
// - Threads: immutable.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/kinds/job_kinds.h"
#include "kube/api/schema/scheme.h"

namespace swell::jobs {

// What jobs and pods are refused for whose priority class does not exist, in Kubernetes' words.
std::string NoSuchClass(std::string_view name);

class JobRules {
 public:
  JobRules();

  // Null for objects that are not jobs of Swell's.
  const JobKind* Find(std::string_view group, std::string_view plural) const;
  // kInvalid with the first field that is wrong.
  Status Check(const JobKind& kind, const json::Value& job) const;
  // The same of a Cron and of the jobs that it would make.
  Status CheckCron(const json::Value& cron) const;
  // What a write makes wrong. An object that was so before (`old`, null of a new one) may stay.
  std::vector<api::FieldError> CheckWrite(const api::KindInfo& kind,
                                          const json::Value& object,
                                          const json::Value* old) const;
  // The priority classes that the job names for itself or for members. Empty of a job that cannot
  // be read.
  std::set<std::string> ClassesOf(const JobKind& kind, const json::Value& job) const;
  // What a job or a Cron names of priority classes that do not exist. Those that it named before
  // may stay, so a class can be removed while jobs have it.
  std::vector<api::FieldError> CheckClasses(
      const api::KindInfo& kind,
      const json::Value& object,
      const json::Value* old,
      const std::function<bool(const std::string&)>& exists) const;

 private:
  Status CheckObject(const api::KindInfo& kind, const json::Value& object) const;
  std::set<std::string> ClassesIn(const api::KindInfo& kind, const json::Value& object) const;

  const JobKindList kinds_;
};

}  // namespace swell::jobs
