#include "ops/access/audit_log.h"

#include "base/log.h"
#include "base/strings.h"

namespace swell::ops {
namespace {

constexpr size_t kWaitingBytesMax = size_t{16} << 20;
constexpr Duration kGather = std::chrono::milliseconds(5);  // a turn of the disk's is dear
constexpr int64_t kBackupsMax = 1000;

}  // namespace

LineFile::Limits AuditPlan::limits() const {
  return {static_cast<uint64_t>(file_mib) << 20, static_cast<int>(backups)};
}

void AddAuditFlags(cli::Flags& flags, AuditPlan& plan) {
  flags.Choice("--audit", &plan.level, "LEVEL", {"none", "writes", "all"},
               "what DIR/audit.log records. none: nothing. writes: writes, reads of Secrets and "
               "refused requests. all: every request (default writes)");
  flags.Int("--audit-log-maxsize", &plan.file_mib, "MIB",
            "size at which the audit log is rotated to audit.log.1 (default 100)");
  flags.Int("--audit-log-maxbackup", &plan.backups, "N",
            "number of rotated audit logs to keep (default 10)");
  flags.Switch("--audit-required", &plan.required,
               "while the audit log cannot be written, refuse the requests that it would record "
               "(default: serve them, and report what is missing)");
}

Status CheckAuditPlan(const AuditPlan& plan) {
  if (plan.file_mib < 1) {
    return cli::Misuse(StrCat("--audit-log-maxsize ", plan.file_mib, ": expected at least 1"));
  }
  if (plan.backups < 0 || plan.backups > kBackupsMax) {
    return cli::Misuse(
        StrCat("--audit-log-maxbackup ", plan.backups, ": expected 0 to ", kBackupsMax));
  }
  if (plan.required && !plan.on()) {
    return cli::Misuse("--audit-required: there is no audit log with --audit none");
  }
  return Status::Ok();
}

Result<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                 LineFile::Limits limits,
                                                 Metrics* metrics,
                                                 Changed changed) {
  SWELL_ASSIGN_OR_RETURN(auto file, LineFile::Open(path, limits));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(file), metrics, std::move(changed)));
}

AuditLog::AuditLog(std::unique_ptr<LineFile> file, Metrics* metrics, Changed changed)
    : file_(std::move(file)),
      changed_(std::move(changed)),
      registered_(RegisterMetrics(
          metrics,
          [this](MetricPage& page) {
            page.Add({"apiserver_audit_event_total", MetricType::kCounter,
                      "Events written to the audit log."},
                     static_cast<double>(written_.load()));
            page.Add({"apiserver_audit_dropped_total", MetricType::kCounter,
                      "Audit events dropped because the disk was full or too slow."},
                     static_cast<double>(dropped_.load()));
          })),
      queue_(kWaitingBytesMax, kGather, [this](const std::vector<std::string>& lines) {
        Write(lines);
      }) {}

void AuditLog::Append(std::string line) {
  const size_t bytes = line.size();
  if (queue_.Push(std::move(line), bytes)) return;
  ++dropped_;
  // The writing thread reports it once the disk answers.
  MutexLock lock(mutex_);
  if (problem_.empty()) problem_ = "the disk takes events more slowly than they come";
}

std::string AuditLog::Problem() const {
  MutexLock lock(mutex_);
  return problem_;
}

void AuditLog::Write(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  const Status written = file_->Append(text);
  (written.ok() ? written_ : dropped_) += lines.size();
  if (written.ok()) TellSlowness();
  SetProblem(written.ok() ? "" : written.message());
}

// Events that found no room in the queue are missing, even if later ones were written.
void AuditLog::TellSlowness() {
  const std::string problem = Problem();
  if (!problem.empty()) SetProblem(problem);
}

void AuditLog::SetProblem(const std::string& problem) {
  {
    MutexLock lock(mutex_);
    problem_ = problem;
    if (told_ == !problem.empty()) return;
    told_ = !problem.empty();
  }
  const uint64_t missing = dropped_.load();
  if (problem.empty()) {
    SWELL_LOG_WARNING("audit", "events are written again", {"missing", std::to_string(missing)});
  } else {
    SWELL_LOG_ERROR("audit", "events are not written", {"error", problem});
  }
  if (changed_) changed_(problem, missing);
}

}  // namespace swell::ops
