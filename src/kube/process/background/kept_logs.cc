#include "kube/process/background/kept_logs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/process/files/volumes.h"

namespace swell::process {
namespace {

constexpr size_t kOwnerBytesMax = 1024;
// What is kept of a job's pods that are slower to go is removed when the cluster starts again.
constexpr size_t kForgottenMax = 1024;

// The bytes of all files two levels below: CONTAINER/ATTEMPT.log and those it was rotated to.
int64_t BytesIn(const std::string& logs) {
  int64_t bytes = 0;
  auto containers = ListDir(logs);
  for (const std::string& container : containers.ok() ? *containers : std::vector<std::string>()) {
    auto files = ListDir(StrCat(logs, "/", container));
    for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
      struct stat info {};
      const std::string path = StrCat(logs, "/", container, "/", file);
      if (::lstat(path.c_str(), &info) == 0) bytes += info.st_size;
    }
  }
  return bytes;
}

}  // namespace

KeptLogs::KeptLogs(std::string dir, std::string trash, Remover& remover)
    : KeptLogs(std::move(dir), std::move(trash), remover, Bounds()) {}

KeptLogs::KeptLogs(std::string dir, std::string trash, Remover& remover, Bounds bounds)
    : dir_(std::move(dir)), trash_(std::move(trash)), remover_(remover), bounds_(bounds) {}

std::string KeptLogs::DirOf(const Pod& pod) const {
  return StrCat(dir_, "/", pod.job_uid, "/", pod.uid);
}

void KeptLogs::Load(const std::string& job_uid,
                    const std::string& pod_uid,
                    std::vector<Kept>& found) const {
  Kept kept{.pod = {job_uid, pod_uid, ""}};
  const std::string dir = DirOf(kept.pod);
  auto owner = ReadFile(dir + "/owner", kOwnerBytesMax);
  if (!owner.ok()) return;
  kept.pod.owner = std::move(*owner);
  kept.bytes = BytesIn(dir + "/logs");
  struct stat info {};
  if (::lstat((dir + "/owner").c_str(), &info) == 0) {
    constexpr int64_t kSecond = 1'000'000'000;
    kept.time_ns = info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec;
  }
  found.push_back(std::move(kept));
}

Status KeptLogs::Start() {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir_, 0700));
  std::vector<Kept> found;
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, ListDir(dir_));
  for (const std::string& job : jobs) {
    auto pods = ListDir(StrCat(dir_, "/", job));
    if (!pods.ok()) continue;
    for (const std::string& pod : *pods) Load(job, pod, found);
  }
  std::sort(found.begin(), found.end(),
            [](const Kept& a, const Kept& b) { return a.time_ns < b.time_ns; });
  for (Kept& kept : found) Add(std::move(kept));
  for (const std::string& job : jobs) Trim(job);
  return Status::Ok();
}

void KeptLogs::Add(Kept kept) {
  Total& job = jobs_[kept.pod.job_uid];
  for (Total* total : {&job, &all_}) {
    ++total->pods;
    total->bytes += kept.bytes;
  }
  pods_.push_back(std::move(kept));
}

Status KeptLogs::Keep(const Pod& pod, const std::string& logs_dir) {
  for (const std::string* name : {&pod.job_uid, &pod.uid}) {
    if (!IsPlainName(*name)) {
      return Status(Code::kInvalid, StrCat("log: ", Quote(*name), " is not a usable name"));
    }
  }
  if (std::find(forgotten_.begin(), forgotten_.end(), pod.job_uid) != forgotten_.end()) {
    return Status::Ok();
  }
  // A pod can run again after a restart of the cluster, and is then removed once more.
  const auto before = std::find_if(pods_.begin(), pods_.end(),
                                   [&pod](const Kept& kept) { return kept.pod.uid == pod.uid; });
  if (before != pods_.end()) Drop(before);
  const std::string dir = DirOf(pod);
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  const std::string logs = dir + "/logs";
  if (::rename(logs_dir.c_str(), logs.c_str()) != 0) return ErrnoStatus(errno, "keep " + logs_dir);
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(dir + "/owner", pod.owner, 0600));
  Add({.pod = pod, .bytes = BytesIn(logs)});
  Trim(pod.job_uid);
  return Status::Ok();
}

void KeptLogs::Trim(const std::string& job_uid) {
  const auto oldest_of_job = [this, &job_uid] {
    return std::find_if(pods_.begin(), pods_.end(),
                        [&](const Kept& kept) { return kept.pod.job_uid == job_uid; });
  };
  for (auto job = jobs_.find(job_uid);
       job != jobs_.end() &&
       (job->second.pods > bounds_.pods_per_job || job->second.bytes > bounds_.bytes_per_job);
       job = jobs_.find(job_uid)) {
    Drop(oldest_of_job());
  }
  while (all_.pods > bounds_.pods || all_.bytes > bounds_.bytes) Drop(pods_.begin());
}

void KeptLogs::Drop(std::deque<Kept>::iterator kept) {
  const Status removed = remover_.Discard(DirOf(kept->pod), trash_);
  if (!removed.ok()) {
    SWELL_LOG_WARNING("process", "kept log not removed", {"pod", kept->pod.owner},
                      {"error", removed.ToString()});
  }
  auto job = jobs_.find(kept->pod.job_uid);
  for (Total* total : {&job->second, &all_}) {
    --total->pods;
    total->bytes -= kept->bytes;
  }
  if (job->second.pods == 0) {
    std::remove(StrCat(dir_, "/", job->first).c_str());
    jobs_.erase(job);
  }
  pods_.erase(kept);
}

Result<std::string> KeptLogs::Path(const std::string& pod_uid,
                                   const std::string& owner,
                                   const std::string& container,
                                   int attempt) const {
  const auto kept = std::find_if(pods_.begin(), pods_.end(), [&](const Kept& one) {
    return one.pod.uid == pod_uid && one.pod.owner == owner;
  });
  if (kept == pods_.end()) {
    return Status(Code::kNotFound,
                  StrCat("the log of pod ", Quote(owner), " (", pod_uid, ") is not kept any more"));
  }
  if (!IsPlainName(container)) {
    return Status(Code::kInvalid, StrCat("container: ", Quote(container), " is not a usable name"));
  }
  const std::string dir = StrCat(DirOf(kept->pod), "/logs/", container);
  if (attempt >= 0) return StrCat(dir, "/", attempt, ".log");
  int64_t newest = 0;
  auto files = ListDir(dir);
  for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
    if (!file.ends_with(".log")) continue;
    newest = std::max(newest, ParseInt(file.substr(0, file.find('.'))).value_or(0));
  }
  return StrCat(dir, "/", newest, ".log");
}

void KeptLogs::Forget(const std::string& job_uid) {
  forgotten_.push_back(job_uid);
  if (forgotten_.size() > kForgottenMax) forgotten_.pop_front();
  for (;;) {
    const auto kept = std::find_if(pods_.begin(), pods_.end(),
                                   [&](const Kept& one) { return one.pod.job_uid == job_uid; });
    if (kept == pods_.end()) return;
    Drop(kept);
  }
}

std::vector<std::string> KeptLogs::Jobs() const {
  std::vector<std::string> uids;
  for (const auto& [uid, total] : jobs_) uids.push_back(uid);
  return uids;
}

}  // namespace swell::process
