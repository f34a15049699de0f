// swell report: who held how many GPUs for how long, waited, was preempted; from the cluster's own
// account (kube/client/usage_record.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "base/decimal.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "kube/api/meta/meta.h"
#include "kube/client/usage_record.h"

namespace swell::cli {
namespace {

constexpr double kHourSeconds = 3600;
constexpr Duration kHour = std::chrono::hours(1);

std::string Span(double seconds) {
  return api::HumanDuration(std::chrono::seconds(static_cast<int64_t>(seconds)));
}

// A field of a CSV file; one that a spreadsheet would take for a formula is text all the same.
std::string Csv(const std::string& text) {
  std::string out = text.find_first_of("=+-@") == 0 && text.size() > 1 ? "'" + text : text;
  if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
  std::string quoted = "\"";
  for (char c : out) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// "7d", "36h", "2026-11-21" or "2026-11-21T10:00:00Z".
Result<WallTime> ParseWhen(std::string_view flag, const std::string& text, WallTime now) {
  if (auto time = api::ParseTime(text)) return *time;
  if (auto day = api::ParseTime(text + "T00:00:00Z")) return *day;
  auto span = ParseDuration(text, flag);
  if (span.ok()) return now - *span;
  return Misuse(StrCat(flag, " ", Quote(text),
                       ": expected a day (2026-11-21), a time (2026-11-21T10:00:00Z) or a span "
                       "(7d, 36h)"));
}

// What was held, of how much there was.
struct Line {
  client::UsageRow row;
  double capacity_gpu_s = 0;
};

struct Report {
  WallTime since, until;
  std::map<std::vector<std::string>, Line> lines;  // by the values of the columns
  Line total;
};

class ReportAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--since", &since_, "WHEN",
               "start: a day, a time or an age, in whole hours of UTC (default 7d)");
    flags.Text("--last", &last_, "SPAN", "start, as an age: 7d, 36h (instead of --since)");
    flags.Text("--until", &until_, "WHEN", "end, in the same forms (default now)");
    flags.List("--by", &by_, "COLUMNS",
               "columns to group by, comma-separated or repeated: project, user, job, day, hour "
               "(default project,user)");
    flags.List("--project", &projects_, "NAME", "only this one, repeatable");
    flags.List("--user", &users_, "NAME", "only this one, repeatable");
    flags.Choice("-o,--output", &output_, "FORMAT", {"table", "csv", "json"},
                 "output format: table, csv or json (default table)");
    flags.Text("--usage-namespace", &ns_, "NAME",
               "namespace of the usage records (default swell-system)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (!session.global().ns.empty()) {
      return Misuse(StrCat("--namespace ", Quote(session.global().ns),
                           ": use is recorded by project, not by namespace: --project NAME"));
    }
    SWELL_RETURN_IF_ERROR(ParseColumns());
    Report report;
    SWELL_RETURN_IF_ERROR(ParsePeriod(session.Now(), report));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    auto found = api->List(client::resources::kConfigMaps, ns_,
                           {.label_selector = StrCat(client::kUsageLabel, "=day")});
    if (found.status().code() == Code::kForbidden) {
      return Status(Code::kForbidden,
                    StrCat("the use of all projects is for administrators to read; of your own "
                           "jobs: swell describe JOB, sacct (",
                           found.status().message(), ")"));
    }
    if (!found.ok()) return found.status().WithContext("usage records");
    for (const json::SharedValue& object : *found) {
      auto day = client::UsageDay::FromConfigMap(*object);
      if (!day.ok()) {
        session.ErrLine(StrCat("swell: warning: ", day.status().message(), "; left out"));
        continue;
      }
      Count(*day, report);
    }
    ShareOut(report);
    SWELL_RETURN_IF_ERROR(CheckProjects(*api, report));
    if (found->empty() && report.lines.empty() && output_ == "table") {
      session.ErrLine(StrCat("No use of GPUs is recorded yet in the namespace ", ns_,
                             "; the scheduler writes its first record within a minute"));
      return 0;
    }
    if (found->empty()) {
      session.ErrLine(StrCat("swell: warning: there are no usage records in the namespace ", ns_,
                             "; the scheduler writes the first one within a minute"));
    }
    if (output_ == "csv") {
      PrintCsv(session, report);
    } else if (output_ == "json") {
      session.Out(json::PrintPretty(ToJson(report)) + "\n");
    } else {
      PrintTable(session, report);
    }
    return 0;
  }

 private:
  // A project without use may have been misspelt; one that is gone may have had some.
  Status CheckProjects(Api& api, const Report& report) const {
    if (!report.lines.empty()) return Status::Ok();
    for (const std::string& name : projects_) {
      const auto project = api.Get(client::resources::kProjects, "", name);
      if (project.status().code() != Code::kNotFound) continue;
      return Status(Code::kNotFound, StrCat("--project ", Quote(name),
                                            ": no project has this name, and no usage is recorded "
                                            "for it; swell project list shows the projects"));
    }
    return Status::Ok();
  }

  Status ParseColumns() {
    const std::string by = by_.empty() ? "project,user" : Join(by_, ",");
    for (std::string_view column : Split(by, ',')) {
      if (column != "project" && column != "user" && column != "job" && column != "day" &&
          column != "hour") {
        return Misuse(StrCat("--by ", Quote(column), ": expected project, user, job, day or hour"));
      }
      if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        return Misuse(StrCat("--by ", Quote(by), ": ", column, " is there twice"));
      }
      columns_.emplace_back(column);
    }
    if (HasColumn("job") && HasColumn("hour")) {
      return Misuse(StrCat("--by ", Quote(by), ": jobs are recorded by the day, not by the hour"));
    }
    return Status::Ok();
  }

  // Whole hours: what is kept is kept by the hour.
  Status ParsePeriod(WallTime now, Report& report) const {
    if (!since_.empty() && !last_.empty()) {
      return Misuse("--since and --last exclude each other");
    }
    if (!last_.empty()) {
      SWELL_ASSIGN_OR_RETURN(const Duration span, ParseDuration(last_, "--last"));
      report.since = now - span;
    } else {
      SWELL_ASSIGN_OR_RETURN(report.since,
                             ParseWhen("--since", since_.empty() ? "7d" : since_, now));
    }
    report.until = now;
    if (!until_.empty()) {
      SWELL_ASSIGN_OR_RETURN(WallTime until, ParseWhen("--until", until_, now));
      const int64_t beyond = until.unix_ns % kHour.count();
      if (beyond > 0) until.unix_ns += kHour.count() - beyond;
      report.until = std::min(until, now);
    }
    if (report.since >= now) {
      return Misuse(StrCat(last_.empty() ? "--since " : "--last ",
                           Quote(last_.empty() ? since_ : last_), " is not before now, ",
                           api::FormatTime(now)));
    }
    report.since.unix_ns -= report.since.unix_ns % kHour.count();
    if (report.until <= report.since) {
      return Misuse(StrCat("--until ", api::FormatTime(report.until), " is not after --since ",
                           api::FormatTime(report.since)));
    }
    return Status::Ok();
  }

  static bool Wanted(const std::vector<std::string>& wanted, const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  }

  bool HasColumn(std::string_view name) const {
    return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
  }

  void Count(const client::UsageDay& day, Report& report) const {
    const auto midnight = api::ParseTime(day.date + "T00:00:00Z");
    if (!midnight) return;
    std::array<bool, 24> within{};
    double capacity_gpu_s = 0;  // of this day, within the period
    for (int hour = 0; hour < 24; ++hour) {
      const WallTime begin = *midnight + kHour * hour;
      within[hour] = begin >= report.since && begin < report.until;
      if (within[hour]) capacity_gpu_s += day.capacity_gpu_s[hour];
    }
    report.total.capacity_gpu_s += capacity_gpu_s;
    if (HasColumn("job")) {
      if (std::find(within.begin(), within.end(), true) != within.end()) CountJobs(day, report);
      return;
    }
    for (const auto& [key, row] : day.rows) {
      const auto& [project, user, hour] = key;
      if (!within[hour] || !Wanted(projects_, project) || !Wanted(users_, user)) continue;
      std::vector<std::string> values;
      for (const std::string& column : columns_) {
        char of_day[8];
        std::snprintf(of_day, sizeof of_day, "%02d:00", hour);
        values.push_back(column == "project" ? project
                         : column == "user"  ? user
                         : column == "day"   ? day.date
                                             : StrCat(day.date, "T", of_day));
      }
      Line& line = report.lines[values];
      line.row.Add(row);
      line.capacity_gpu_s = HasColumn("hour") ? day.capacity_gpu_s[hour] : capacity_gpu_s;
      report.total.row.Add(row);
    }
  }

  // Whole days: jobs are recorded by the day.
  void CountJobs(const client::UsageDay& day, Report& report) const {
    for (const auto& [key, row] : day.jobs) {
      const auto& [project, user, job] = key;
      if (!Wanted(projects_, project) || !Wanted(users_, user)) continue;
      std::vector<std::string> values;
      for (const std::string& column : columns_) {
        values.push_back(column == "project" ? project
                         : column == "user"  ? user
                         : column == "day"   ? day.date
                                             : job);
      }
      Line& line = report.lines[values];
      line.row.Add(row);
      for (double seconds : day.capacity_gpu_s) line.capacity_gpu_s += seconds;
      report.total.row.Add(row);
    }
  }

  // A line of an hour or a day has a share of its own GPUs, the others of the whole period's.
  void ShareOut(Report& report) const {
    if (HasColumn("day") || HasColumn("hour")) return;
    for (auto& [values, line] : report.lines) line.capacity_gpu_s = report.total.capacity_gpu_s;
  }

  static double Share(const Line& line) {
    return line.capacity_gpu_s > 0 ? line.row.gpu_s / line.capacity_gpu_s : 0;
  }
  static double MeanWait(const client::UsageRow& row) {
    return row.started > 0 ? row.wait_s / static_cast<double>(row.started) : 0;
  }

  // A part of the time for which it is known what GPUs were used for. Older days have no such
  // record.
  static std::optional<double> Productive(const client::UsageRow& row) {
    double known = 0;
    for (double seconds : row.use_gpu_s) known += seconds;
    if (known <= 0) return std::nullopt;
    return row.Productive() / known;
  }
  static std::string PercentOrDash(const client::UsageRow& row) {
    const auto part = Productive(row);
    return part ? Decimal(*part * 100, 1) + "%" : "-";
  }

  void PrintTable(Session& session, const Report& report) const {
    if (report.lines.empty()) {
      session.ErrLine(StrCat("No GPUs were used between ", api::FormatTime(report.since), " and ",
                             api::FormatTime(report.until)));
      return;
    }
    std::vector<std::string> head;
    for (const std::string& column : columns_) head.push_back(ToUpper(column));
    for (const char* name : {"GPU-HOURS", "CPU-HOURS", "UTILIZATION", "STARTED", "MEAN WAIT",
                             "LONGEST WAIT", "PREEMPTED", "LOST GPU-HOURS", "PRODUCTIVE"}) {
      head.emplace_back(name);
    }
    TextTable table(head);
    // A cluster that is new has held little.
    const int digits = report.total.row.gpu_s < 10 * kHourSeconds ? 2 : 1;
    auto hours = [digits](double seconds) { return Decimal(seconds / kHourSeconds, digits); };
    auto add = [&](std::vector<std::string> cells, const Line& line) {
      const client::UsageRow& row = line.row;
      for (std::string cell :
           {hours(row.gpu_s), hours(row.cpu_s), Decimal(Share(line) * 100, 1) + "%",
            std::to_string(row.started), row.started > 0 ? Span(MeanWait(row)) : "-",
            row.started > 0 ? Span(row.wait_max_s) : "-", std::to_string(row.preempted),
            hours(row.lost_gpu_s), PercentOrDash(row)}) {
        cells.push_back(std::move(cell));
      }
      table.Add(std::move(cells));
    };
    for (const auto& [values, line] : report.lines) {
      std::vector<std::string> cells;
      for (size_t i = 0; i < values.size(); ++i) {
        const bool of_none = values[i].empty() && columns_[i] == "project";
        cells.push_back(of_none ? "(no project)" : OneLine(OrDash(values[i])));
      }
      add(std::move(cells), line);
    }
    if (report.lines.size() > 1) {
      std::vector<std::string> cells(columns_.size());
      if (!cells.empty()) cells[0] = "all";
      add(std::move(cells), report.total);
    }
    session.Out(table.ToString());
    session.OutLine(StrCat("\n", api::FormatTime(report.since), " to ",
                           api::FormatTime(report.until), ": ", hours(report.total.row.gpu_s),
                           " of ", hours(report.total.capacity_gpu_s), " GPU-hours were used"));
    if (!Productive(report.total.row)) return;
    std::vector<std::string> uses;
    for (size_t i = 0; i < client::kGpuUses; ++i) {
      if (report.total.row.use_gpu_s[i] <= 0) continue;
      uses.push_back(StrCat(client::GpuUseName(static_cast<client::GpuUse>(i)), " ",
                            hours(report.total.row.use_gpu_s[i])));
    }
    session.OutLine(StrCat("GPU-hours by use: ", Join(uses, ", "), "; lost again ",
                           hours(report.total.row.lost_gpu_s)));
  }

  void PrintCsv(Session& session, const Report& report) const {
    std::vector<std::string> head = columns_;
    for (const char* name :
         {"gpu_hours", "cpu_hours", "utilisation", "started", "mean_wait_seconds",
          "longest_wait_seconds", "preempted_pods", "lost_gpu_hours", "productive"}) {
      head.emplace_back(name);
    }
    for (size_t i = 0; i < client::kGpuUses; ++i) {
      head.push_back(StrCat("gpu_hours_", client::GpuUseName(static_cast<client::GpuUse>(i))));
    }
    session.OutLine(Join(head, ","));
    for (const auto& [values, line] : report.lines) {
      const client::UsageRow& row = line.row;
      std::vector<std::string> cells;
      for (const std::string& value : values) cells.push_back(Csv(value));
      for (std::string cell :
           {Decimal(row.gpu_s / kHourSeconds, 4), Decimal(row.cpu_s / kHourSeconds, 4),
            Decimal(Share(line), 4), std::to_string(row.started), Decimal(MeanWait(row), 1),
            Decimal(row.wait_max_s, 1), std::to_string(row.preempted),
            Decimal(row.lost_gpu_s / kHourSeconds, 4)}) {
        cells.push_back(std::move(cell));
      }
      const auto productive = Productive(row);
      cells.push_back(productive ? Decimal(*productive, 4) : "");
      for (double seconds : row.use_gpu_s) cells.push_back(Decimal(seconds / kHourSeconds, 4));
      session.OutLine(Join(cells, ","));
    }
  }

  static json::Object Figures(const Line& line) {
    const client::UsageRow& row = line.row;
    json::Object uses;
    for (size_t i = 0; i < client::kGpuUses; ++i) {
      uses[client::GpuUseName(static_cast<client::GpuUse>(i))] = row.use_gpu_s[i] / kHourSeconds;
    }
    const auto productive = Productive(row);
    return {{"gpuHours", row.gpu_s / kHourSeconds},
            {"cpuHours", row.cpu_s / kHourSeconds},
            {"utilisation", Share(line)},
            {"started", row.started},
            {"meanWaitSeconds", MeanWait(row)},
            {"longestWaitSeconds", row.wait_max_s},
            {"preemptedPods", row.preempted},
            {"lostGpuHours", row.lost_gpu_s / kHourSeconds},
            {"productive", productive ? json::Value(*productive) : json::Value()},
            {"gpuHoursByUse", std::move(uses)}};
  }

  json::Value ToJson(const Report& report) const {
    json::Array rows;
    for (const auto& [values, line] : report.lines) {
      json::Object one;
      for (size_t i = 0; i < values.size(); ++i) one[columns_[i]] = values[i];
      for (auto& [name, value] : Figures(line)) one[name] = std::move(value);
      rows.push_back(std::move(one));
    }
    return json::Object{{"since", api::FormatTime(report.since)},
                        {"until", api::FormatTime(report.until)},
                        {"capacityGpuHours", report.total.capacity_gpu_s / kHourSeconds},
                        {"total", Figures(report.total)},
                        {"rows", std::move(rows)}};
  }

  std::string since_, last_, until_, output_ = "table";
  std::string ns_{client::kUsageNamespace};
  std::vector<std::string> projects_, users_, by_, columns_;
};

}  // namespace

Command ReportCommandSpec() {
  Command command;
  command.name = "report";
  command.group = "Share";
  command.summary = "Report GPU use, waiting times and preemptions by project, user and time.";
  command.examples = {
      {"The last seven days, by project and user", "swell report"},
      {"One month by project, as CSV",
       "swell report --since 2026-10-01 --until 2026-11-01 --by project -o csv"},
      {"What each job of the last day held, and how much of it was productive",
       "swell report --last 24h --by job"},
      {"One project on one day, by hour",
       "swell report --project vision --since 2026-11-20 --until 2026-11-21 --by hour"}};
  command.notes =
      "Usage is recorded in the cluster, in one ConfigMap per day, for 400 days. The last minute "
      "may be missing. UTILIZATION is the share of all GPUs in the period of the row. PRODUCTIVE "
      "is the share of the held time in which the GPUs trained, less the work that was lost and "
      "done again. -o json and -o csv also list the other uses (starting, loading, saving, hung). "
      "At most 300 jobs of each day are recorded by name.";
  command.make = Makes<ReportAction>();
  return command;
}

}  // namespace swell::cli
