// AdmissionReviewer: Swell's admission webhook. Work in a project's namespace gets a scheduler,
// project and priority class if it names none, and the name of its submitter, who is charged for
// its use. Work that can never run is refused, with the reason.
//
// Refused are: jobs that Swell's controllers could not read; unknown projects and priority classes;
// departments; new work of a project that is being deleted; invalid GPU fractions; more than the
// project's limit, or more than its quota for work that is never preempted; more than the largest
// node has, which is only a warning where nodes may be added (AdmissionOptions). When a job
// changes, only priority classes that it names anew are looked at.
//
// A Cron is refused if its jobs would be, unless it was already so before or another operator runs
// it. Its jobs carry the name of the user who wrote it.
//
// Objects that it does not understand pass; the scheduler decides about them later.
//
// - Threads: core executor only.
// - Ownership: the informers outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job_rules.h"
#include "kube/controllers/context.h"

namespace swell::manager {

struct AdmissionOptions {
  std::string scheduler_name = "swell";
  std::string priority_class = "train";  // of work that names none
  bool admit_oversized_pods = false;
  bool others_crons = false;  // another operator runs the Crons, and knows other kinds of jobs
};

class AdmissionReviewer {
 public:
  AdmissionReviewer(controllers::Informers& informers, AdmissionOptions options);
  ~AdmissionReviewer();

  // An AdmissionReview (admission.k8s.io/v1) with its response, for one with a request.
  json::Value Review(const json::Value& review) const;

 private:
  struct Verdict;

  void ReviewPod(const json::Value& pod, std::string_view ns, Verdict& verdict) const;
  void ReviewJob(const json::Value& job,
                 std::string_view ns,
                 const jobs::JobKind& kind,
                 Verdict& verdict) const;
  // `old` is null of a new one. Its jobs are looked at as they come, too.
  void ReviewCron(const json::Value& cron,
                  const json::Value* old,
                  std::string_view ns,
                  Verdict& verdict) const;
  // Empty: none. Refuses one that is not there, or has projects of its own.
  std::string ProjectOf(const json::Value& object,
                        std::string_view named,
                        std::string_view ns,
                        Verdict& verdict) const;
  void CheckTakesWork(const std::string& project, Verdict& verdict) const;
  void SetProject(const json::Value& object, const std::string& project, Verdict& verdict) const;
  void SetUser(const json::Value& object, Verdict& verdict) const;
  void CheckClass(std::string_view name, Verdict& verdict) const;
  // `old` is null of a new one.
  void CheckNewClasses(const json::Value& job,
                       const json::Value* old,
                       const jobs::JobKind& kind,
                       Verdict& verdict) const;
  void CheckNodes(const json::Value& pod, Verdict& verdict) const;
  std::vector<std::string> Resources() const;
  // No node has the resource, and a class of devices stands for it: the pod gets a claim.
  bool IsClaimed(const std::string& resource) const;
  void CheckLimits(const std::string& project,
                   double gpus,
                   std::string_view priority_class,
                   Verdict& verdict) const;
  std::string UsualClass(const json::Value& object) const;

  AdmissionOptions options_;
  client::Informer& projects_;
  client::Informer& nodes_;
  client::Informer& priorities_;
  client::Informer* classes_ = nullptr;  // of devices, where they are served
  jobs::JobRules rules_;
};

}  // namespace swell::manager
