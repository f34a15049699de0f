#include "lab/trace/trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "lab/trace/csv.h"
#include "lab/trace/shockwave.h"

namespace swell::lab {
namespace {

constexpr int64_t kGpusMax = 1'000'000;
constexpr std::string_view kGuaranteedTenant = "guaranteed";
constexpr std::string_view kBestEffortTenant = "best-effort";
constexpr int64_t kPriorityMost = 2'000'001'000;  // of Kubernetes' own classes
constexpr double kSecondsMax = 1e10;              // three centuries

Result<int> GpusIn(const CsvTable& table, size_t row, size_t column, int64_t least = 1) {
  SWELL_ASSIGN_OR_RETURN(const int64_t gpus, table.Integer(row, column));
  if (gpus < least || gpus > kGpusMax) {
    return table.Wrong(row, column, StrCat("expected ", least, " to ", kGpusMax));
  }
  return static_cast<int>(gpus);
}

// The result is rounded up to whole seconds.
Result<int64_t> SinceBeginning(const CsvTable& table, size_t row, size_t column) {
  SWELL_ASSIGN_OR_RETURN(const double seconds, table.Number(row, column));
  if (seconds < 0 || seconds > kSecondsMax) {
    return table.Wrong(row, column, "expected seconds since the beginning");
  }
  return static_cast<int64_t>(std::ceil(seconds));
}

// The result is rounded to whole seconds, and at least 1.
Result<int64_t> DurationIn(const CsvTable& table, size_t row, size_t column) {
  SWELL_ASSIGN_OR_RETURN(const double seconds, table.Number(row, column));
  if (seconds < 0 || seconds > kSecondsMax) return table.Wrong(row, column, "expected seconds");
  return std::max<int64_t>(1, std::llround(seconds));
}

Result<Trace> ReadPollux(const CsvTable& table, Trace trace) {
  trace.format = "pollux";
  SWELL_ASSIGN_OR_RETURN(const size_t name, table.Column("name"));
  SWELL_ASSIGN_OR_RETURN(const size_t time, table.Column("time"));
  SWELL_ASSIGN_OR_RETURN(const size_t application, table.Column("application"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus, table.Column("num_replicas"));
  SWELL_ASSIGN_OR_RETURN(const size_t batch, table.Column("batch_size"));
  for (size_t row = 0; row < table.rows(); ++row) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = table.Text(row, name);
    job.application = table.Text(row, application);
    if (job.application.empty()) return table.Wrong(row, application, "expected a name");
    SWELL_ASSIGN_OR_RETURN(job.submitted_s, SinceBeginning(table, row, time));
    SWELL_ASSIGN_OR_RETURN(job.gpus, GpusIn(table, row, gpus));
    SWELL_ASSIGN_OR_RETURN(job.batch, table.Integer(row, batch));
    if (job.batch < 1 || job.batch > 100'000'000) {
      return table.Wrong(row, batch, "expected 1 to 100000000");
    }
  }
  return trace;
}

// Jobs with a guarantee and those without are two tenants, where there are both.
Result<Trace> ReadRubick(const CsvTable& table, Trace trace) {
  trace.format = "rubick";
  SWELL_ASSIGN_OR_RETURN(const size_t name, table.Column("name"));
  SWELL_ASSIGN_OR_RETURN(const size_t time, table.Column("submission_time"));
  SWELL_ASSIGN_OR_RETURN(const size_t duration, table.Column("duration"));
  SWELL_ASSIGN_OR_RETURN(const size_t application, table.Column("application"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus, table.Column("num_gpus"));
  SWELL_ASSIGN_OR_RETURN(const size_t plan, table.Column("exec_plan"));
  SWELL_ASSIGN_OR_RETURN(const size_t steps, table.Column("steps"));
  SWELL_ASSIGN_OR_RETURN(const size_t guaranteed, table.Column("is_sla"));
  bool any_guaranteed = false;
  for (size_t row = 0; row < table.rows(); ++row) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = table.Text(row, name);
    job.application = table.Text(row, application);
    if (job.application.empty()) return table.Wrong(row, application, "expected a name");
    job.plan = table.Text(row, plan);
    if (job.plan.empty()) return table.Wrong(row, plan, "expected the name of a plan");
    SWELL_ASSIGN_OR_RETURN(job.submitted_s, SinceBeginning(table, row, time));
    SWELL_ASSIGN_OR_RETURN(job.duration_s, DurationIn(table, row, duration));
    SWELL_ASSIGN_OR_RETURN(job.gpus, GpusIn(table, row, gpus));
    SWELL_ASSIGN_OR_RETURN(job.steps, table.Integer(row, steps));
    SWELL_ASSIGN_OR_RETURN(const int64_t is_guaranteed, table.Integer(row, guaranteed));
    if (job.steps < 1 || job.steps > static_cast<int64_t>(kSecondsMax)) {
      return table.Wrong(row, steps, "expected a number, at least 1");
    }
    any_guaranteed |= is_guaranteed != 0;
    job.tenant = is_guaranteed != 0 ? kGuaranteedTenant : kBestEffortTenant;
  }
  if (!any_guaranteed) {
    for (TraceJob& job : trace.jobs) job.tenant.clear();
  }
  return trace;
}

Result<Trace> ReadPhilly(const CsvTable& table, Trace trace) {
  trace.format = "philly";
  SWELL_ASSIGN_OR_RETURN(const size_t time, table.Column("timestamp"));
  SWELL_ASSIGN_OR_RETURN(const size_t duration, table.Column("duration"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus, table.Column("num_gpus"));
  SWELL_ASSIGN_OR_RETURN(const size_t tenant, table.Column("cluster"));
  for (size_t row = 0; row < table.rows(); ++row) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = StrCat("job-", row + 1);
    job.tenant = table.Text(row, tenant);
    const auto submitted = ParseInstant(table.Text(row, time));
    if (!submitted.ok()) return table.Wrong(row, time, "expected YYYY-MM-DD HH:MM:SS");
    SWELL_ASSIGN_OR_RETURN(job.duration_s, DurationIn(table, row, duration));
    SWELL_ASSIGN_OR_RETURN(job.gpus, GpusIn(table, row, gpus));
    job.submitted_s = *submitted;
  }
  return trace;
}

// Pods that had GPUs and ended; one that runs to the last instant of the file has no known end. A
// pod that shares a GPU counts as one that has it.
Result<Trace> ReadOpenb(const CsvTable& table, Trace trace) {
  trace.format = "openb";
  SWELL_ASSIGN_OR_RETURN(const size_t name, table.Column("name"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus, table.Column("num_gpu"));
  SWELL_ASSIGN_OR_RETURN(const size_t phase, table.Column("pod_phase"));
  SWELL_ASSIGN_OR_RETURN(const size_t created, table.Column("creation_time"));
  SWELL_ASSIGN_OR_RETURN(const size_t deleted, table.Column("deletion_time"));
  SWELL_ASSIGN_OR_RETURN(const size_t scheduled, table.Column("scheduled_time"));
  int64_t last = 0;
  for (size_t row = 0; row < table.rows(); ++row) {
    SWELL_ASSIGN_OR_RETURN(const int64_t end, SinceBeginning(table, row, deleted));
    last = std::max(last, end);
  }
  for (size_t row = 0; row < table.rows(); ++row) {
    SWELL_ASSIGN_OR_RETURN(const int requested, GpusIn(table, row, gpus, 0));
    SWELL_ASSIGN_OR_RETURN(const int64_t end, SinceBeginning(table, row, deleted));
    const bool runs = end == last && table.Text(row, phase) == "Running";
    if (requested == 0 || runs || table.Text(row, scheduled).empty()) {
      ++trace.left_out;
      continue;
    }
    SWELL_ASSIGN_OR_RETURN(const int64_t submitted, SinceBeginning(table, row, created));
    SWELL_ASSIGN_OR_RETURN(const int64_t began, SinceBeginning(table, row, scheduled));
    if (began < submitted || began > end) {
      return table.Wrong(row, scheduled, "expected a time between creation and deletion");
    }
    TraceJob& job = trace.jobs.emplace_back();
    job.name = table.Text(row, name);
    job.submitted_s = submitted;
    job.duration_s = std::max<int64_t>(1, end - began);
    job.gpus = requested;
  }
  return trace;
}

// "billing=8,cpu=8,gres/gpu=4,mem=64G,node=1" → 4; typed GPUs ("gres/gpu:a100=4") count where no
// untyped sum stands beside them. 0: none. Nullopt: a number cannot be read.
std::optional<int64_t> GpusOfTres(std::string_view tres) {
  int64_t typed = 0;
  for (std::string_view part : Split(tres, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = part.substr(0, equals);
    if (key != "gres/gpu" && !key.starts_with("gres/gpu:")) continue;
    const auto count = ParseInt(part.substr(equals + 1));
    if (!count || *count < 0 || *count > kGpusMax) return std::nullopt;
    if (key == "gres/gpu") return count;
    typed += *count;
  }
  return typed;
}

// Jobs that used GPUs and ended. Steps ("17.batch"), jobs that still run and jobs that never began
// are left out: they say nothing of a duration.
Result<Trace> ReadSacct(const CsvTable& table, Trace trace) {
  trace.format = "sacct";
  SWELL_ASSIGN_OR_RETURN(const size_t id, table.Column("JobID"));
  SWELL_ASSIGN_OR_RETURN(const size_t submit, table.Column("Submit"));
  SWELL_ASSIGN_OR_RETURN(const size_t start, table.Column("Start"));
  SWELL_ASSIGN_OR_RETURN(const size_t end, table.Column("End"));
  SWELL_ASSIGN_OR_RETURN(const size_t tres, table.Column("AllocTRES"));
  const bool has_account = table.Has("Account");
  size_t account = 0;
  if (has_account) {
    SWELL_ASSIGN_OR_RETURN(account, table.Column("Account"));
  }
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string_view name = table.Text(row, id);
    if (name.find('.') != std::string_view::npos) continue;
    const std::optional<int64_t> gpus = GpusOfTres(table.Text(row, tres));
    if (!gpus) return table.Wrong(row, tres, StrCat("expected gres/gpu=N, N from 0 to ", kGpusMax));
    const auto began = ParseInstant(table.Text(row, start));
    const auto ended = ParseInstant(table.Text(row, end));
    if (*gpus == 0 || !began.ok() || !ended.ok()) {
      ++trace.left_out;
      continue;
    }
    if (*ended < *began) return table.Wrong(row, end, "expected an end after the start");
    const auto submitted = ParseInstant(table.Text(row, submit));
    if (!submitted.ok()) return table.Wrong(row, submit, "expected YYYY-MM-DDTHH:MM:SS");
    TraceJob& job = trace.jobs.emplace_back();
    job.name = name;
    if (has_account) job.tenant = table.Text(row, account);
    job.submitted_s = *submitted;
    job.duration_s = std::max<int64_t>(1, *ended - *began);
    job.gpus = static_cast<int>(*gpus);
  }
  return trace;
}

// Columns that older files do not have.
Status ReadRights(const CsvTable& table, size_t row, TraceJob& job) {
  auto read = [&](std::string_view name, int64_t low, int64_t high, int& value) -> Status {
    if (!table.Has(name)) return {};
    SWELL_ASSIGN_OR_RETURN(const size_t column, table.Column(name));
    SWELL_ASSIGN_OR_RETURN(const int64_t given, table.Integer(row, column));
    if (given < low || given > high) {
      return table.Wrong(row, column, StrCat("expected ", low, " to ", high));
    }
    value = static_cast<int>(given);
    return {};
  };
  SWELL_RETURN_IF_ERROR(read("gpus_min", 0, kGpusMax, job.gpus_min));
  return read("priority", -kPriorityMost, kPriorityMost, job.priority);
}

Result<Trace> ReadOwn(const CsvTable& table, Trace trace) {
  trace.format = "swell";
  SWELL_ASSIGN_OR_RETURN(const size_t name, table.Column("job"));
  SWELL_ASSIGN_OR_RETURN(const size_t tenant, table.Column("tenant"));
  SWELL_ASSIGN_OR_RETURN(const size_t time, table.Column("submit_s"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus, table.Column("gpus"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus_max, table.Column("gpus_max"));
  SWELL_ASSIGN_OR_RETURN(const size_t duration, table.Column("duration_s"));
  for (size_t row = 0; row < table.rows(); ++row) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = table.Text(row, name);
    job.tenant = table.Text(row, tenant);
    SWELL_RETURN_IF_ERROR(ReadRights(table, row, job));
    SWELL_ASSIGN_OR_RETURN(job.submitted_s, SinceBeginning(table, row, time));
    SWELL_ASSIGN_OR_RETURN(job.gpus, GpusIn(table, row, gpus));
    SWELL_ASSIGN_OR_RETURN(const int64_t most, table.Integer(row, gpus_max));
    SWELL_ASSIGN_OR_RETURN(job.duration_s, table.Integer(row, duration));
    if (most < job.gpus || most > kGpusMax) {
      return table.Wrong(row, gpus_max,
                         StrCat("expected a number from that of gpus to ", kGpusMax));
    }
    if (job.duration_s < 1 || job.duration_s > static_cast<int64_t>(kSecondsMax)) {
      return table.Wrong(row, duration, "expected seconds, at least 1");
    }
    job.gpus_max = static_cast<int>(most);
    if (job.gpus_min > job.gpus) {
      return table.Wrong(row, *table.Column("gpus_min"), "expected at most that of gpus");
    }
  }
  return trace;
}

using Reader = Result<Trace> (*)(const CsvTable& table, Trace trace);

// By the columns; null for a format that is not known.
Reader ReaderOf(const CsvTable& columns) {
  if (columns.Has("exec_plan")) return ReadRubick;
  if (columns.Has("application")) return ReadPollux;
  if (columns.Has("timestamp")) return ReadPhilly;
  if (columns.Has("num_gpu")) return ReadOpenb;
  if (columns.Has("JobID")) return ReadSacct;
  if (columns.Has("submit_s")) return ReadOwn;
  return nullptr;
}

Status UnknownFormat(const std::string& path) {
  return Status(
      Code::kInvalid,
      StrCat(path,
             ": unknown format; the header is one of name,time,application,num_replicas,"
             "batch_size (Pollux, Sia), name,submission_time,duration,application,num_gpus,"
             "exec_plan,steps,is_sla (Rubick), timestamp,duration,num_gpus,gpu_time,cluster "
             "(Philly), name,num_gpu,pod_phase,creation_time,deletion_time,scheduled_time "
             "(openb), JobID|Submit|Start|End|AllocTRES (sacct -P), job,tenant,submit_s,gpus,"
             "gpus_max,duration_s (Swell); Shockwave's lines have 12 fields between tabs"));
}

// Instants of a calendar become seconds since the first submission, which is returned.
int64_t CountFromFirst(std::vector<TraceJob>& jobs) {
  int64_t first = jobs.front().submitted_s;
  for (const TraceJob& job : jobs) first = std::min(first, job.submitted_s);
  for (TraceJob& job : jobs) job.submitted_s -= first;
  std::stable_sort(jobs.begin(), jobs.end(), [](const TraceJob& a, const TraceJob& b) {
    return a.submitted_s < b.submitted_s;
  });
  return first;
}

Status CheckNames(const std::string& path, const std::vector<TraceJob>& jobs) {
  std::set<std::string_view> names;
  for (const TraceJob& job : jobs) {
    if (job.name.empty()) return Status(Code::kInvalid, StrCat(path, ": a job has no name"));
    if (!names.insert(job.name).second) {
      return Status(Code::kInvalid, StrCat(path, ": two jobs are named ", Quote(job.name)));
    }
  }
  return {};
}

}  // namespace

Result<int64_t> ParseInstant(std::string_view text) {
  const Status wrong(Code::kInvalid, StrCat(Quote(text), " is not a time"));
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') {
    return wrong;
  }
  auto number = [&](size_t at, size_t digits) {
    const std::string_view part = text.substr(at, digits);
    return part.find_first_not_of("0123456789") == std::string_view::npos ? *ParseInt(part) : -1;
  };
  const int64_t year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const int64_t hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (year < 1970 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60) {
    return wrong;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

std::string InstantText(int64_t unix_s) {
  const std::chrono::sys_seconds instant{std::chrono::seconds(unix_s)};
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(instant - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

Result<Trace> ParseTrace(const std::string& path, std::string text) {
  std::string header = text.substr(0, text.find('\n', text.find_first_not_of(" \t\r\n")));
  const char separator = header.find('|') != std::string::npos ? '|' : ',';
  // Other files than traces have lines with any number of fields, so the format is found first.
  SWELL_ASSIGN_OR_RETURN(const CsvTable columns,
                         CsvTable::Parse(path, std::move(header), separator));
  const Reader reader = ReaderOf(columns);
  if (reader == nullptr) return UnknownFormat(path);
  SWELL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(path, std::move(text), separator));
  Trace trace;
  trace.name = path.substr(path.rfind('/') + 1);
  Result<Trace> read = reader(table, std::move(trace));
  if (!read.ok()) return read;
  if (read->jobs.empty()) {
    return Status(Code::kInvalid, StrCat(path, ": has no job that used GPUs and ended"));
  }
  if (read->format != "pollux" && read->format != "rubick") {
    const int64_t first = CountFromFirst(read->jobs);
    // Those of openb and Swell's own count from any instant.
    if (read->format != "swell" && read->format != "openb") read->began_s = first;
  }
  SWELL_RETURN_IF_ERROR(CheckNames(path, read->jobs));
  return read;
}

std::string TraceAsCsv(const Trace& trace) {
  std::string out = "job,tenant,submit_s,gpus,gpus_max,duration_s,gpus_min,priority\n";
  for (const TraceJob& job : trace.jobs) {
    out += StrCat(job.name, ",", job.tenant, ",", job.submitted_s, ",", job.gpus, ",",
                  job.most_gpus(), ",", job.duration_s, ",", job.gpus_min, ",", job.priority, "\n");
  }
  return out;
}

Result<Trace> ReadTrace(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (IsShockwave(text)) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    const auto speeds = ReadFile(StrCat(folder, "/", kShockwaveSpeeds));
    if (!speeds.ok()) {
      return speeds.status().WithContext(
          StrCat(path, ": a trace of Shockwave needs ", kShockwaveSpeeds, " beside it"));
    }
    return ParseShockwave(path, text, *speeds);
  }
  return ParseTrace(path, std::move(text));
}

}  // namespace swell::lab
