#include "kube/client/usage_record.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::client {
namespace {

constexpr std::string_view kPrefix = "swell-usage-";
constexpr int64_t kHourNs = 3'600'000'000'000;

// A tenth of a second is precise enough, and short.
json::Value Rounded(double seconds) {
  const double tenths = std::round(seconds * 10) / 10;
  if (tenths == std::floor(tenths)) return static_cast<int64_t>(tenths);
  return tenths;
}

constexpr std::array<std::string_view, kGpuUses> kUseNames = {
    "starting", "waitingForPeers", "loading", "training", "saving", "hung", "failing", "stopping"};

void PutFigures(const UsageRow& row, json::Object& out) {
  auto put = [&out](std::string_view field, json::Value value) {
    if (value != json::Value(int64_t{0})) out[field] = std::move(value);
  };
  put("gpuSeconds", Rounded(row.gpu_s));
  put("cpuSeconds", Rounded(row.cpu_s));
  put("started", row.started);
  put("waitSeconds", Rounded(row.wait_s));
  put("longestWaitSeconds", Rounded(row.wait_max_s));
  put("preemptedPods", row.preempted);
  put("lostGpuSeconds", Rounded(row.lost_gpu_s));
  json::Object use;
  for (size_t i = 0; i < kGpuUses; ++i) {
    json::Value seconds = Rounded(row.use_gpu_s[i]);
    if (seconds != json::Value(int64_t{0})) use[kUseNames[i]] = std::move(seconds);
  }
  if (!use.empty()) out["use"] = std::move(use);
}

UsageRow ReadFigures(const json::Value& one) {
  UsageRow row;
  row.gpu_s = json::GetDouble(one, {"gpuSeconds"});
  row.cpu_s = json::GetDouble(one, {"cpuSeconds"});
  row.started = json::GetInt(one, {"started"});
  row.wait_s = json::GetDouble(one, {"waitSeconds"});
  row.wait_max_s = json::GetDouble(one, {"longestWaitSeconds"});
  row.preempted = json::GetInt(one, {"preemptedPods"});
  row.lost_gpu_s = json::GetDouble(one, {"lostGpuSeconds"});
  const json::Value* use = json::Find(one, {"use"});
  for (size_t i = 0; use != nullptr && i < kGpuUses; ++i) {
    row.use_gpu_s[i] = json::GetDouble(*use, {kUseNames[i]});
  }
  return row;
}

void PutFacts(const UsageJobFacts& facts, json::Object& out) {
  out["uid"] = facts.uid;
  out["submitted"] = api::FormatTime(facts.submitted);
  out["gpus"] = Rounded(facts.gpus);
  out["firstHeld"] = api::FormatTime(facts.first);
  out["lastHeld"] = api::FormatTime(facts.last);
  if (facts.several) out["severalJobs"] = true;
}

// Nullopt: the record is older than these fields, or they cannot be read.
std::optional<UsageJobFacts> ReadFacts(const json::Value& one) {
  const auto submitted = api::ParseTime(json::GetString(one, {"submitted"}));
  const auto first = api::ParseTime(json::GetString(one, {"firstHeld"}));
  const auto last = api::ParseTime(json::GetString(one, {"lastHeld"}));
  UsageJobFacts facts;
  facts.uid = json::GetString(one, {"uid"});
  if (facts.uid.empty() || !submitted || !first || !last) return std::nullopt;
  facts.submitted = *submitted;
  facts.first = *first;
  facts.last = *last;
  facts.gpus = json::GetDouble(one, {"gpus"});
  facts.several = json::GetBool(one, {"severalJobs"});
  return facts;
}

}  // namespace

void UsageJobFacts::Add(const UsageJobFacts& other) {
  if (uid.empty()) {
    *this = other;
    return;
  }
  several |= other.several || uid != other.uid;
  submitted = std::min(submitted, other.submitted);
  gpus = std::max(gpus, other.gpus);
  first = std::min(first, other.first);
  last = std::max(last, other.last);
}

void UsageRow::Add(const UsageRow& other) {
  gpu_s += other.gpu_s;
  cpu_s += other.cpu_s;
  started += other.started;
  wait_s += other.wait_s;
  wait_max_s = std::max(wait_max_s, other.wait_max_s);
  preempted += other.preempted;
  lost_gpu_s += other.lost_gpu_s;
  for (size_t i = 0; i < kGpuUses; ++i) use_gpu_s[i] += other.use_gpu_s[i];
}

std::string_view GpuUseName(GpuUse use) { return kUseNames[static_cast<size_t>(use)]; }

double UsageRow::Productive() const { return std::max(0.0, Of(GpuUse::kTraining) - lost_gpu_s); }

UsageRow& UsageDay::Row(std::string_view project, std::string_view user, int hour) {
  const Key key(project, user, hour);
  const auto found = rows.find(key);
  if (found != rows.end()) return found->second;
  // Users beyond the bound share rows; 24 of these are always free.
  if (rows.size() >= kRowsMax) {
    return rows[Key(kUsageOthers, kUsageOthers, hour)];
  }
  return rows[key];
}

UsageRow& UsageDay::Job(std::string_view project, std::string_view user, std::string_view job) {
  const JobKey key(project, user, job);
  const auto found = jobs.find(key);
  if (found != jobs.end()) return found->second;
  const std::string name(kUsageOthers);
  const JobKey others(name, name, name);
  if (jobs.size() - jobs.count(others) >= kJobsMax) return jobs[others];
  return jobs[key];
}

void UsageDay::NoteJob(const JobKey& key, const UsageJobFacts& noted) {
  if (!noted.uid.empty() && jobs.contains(key)) facts[key].Add(noted);
}

json::Value UsageDay::ToConfigMap(std::string_view ns) const {
  json::Array list;
  for (const auto& [key, row] : rows) {
    json::Object one{
        {"project", std::get<0>(key)}, {"user", std::get<1>(key)}, {"hour", std::get<2>(key)}};
    PutFigures(row, one);
    list.push_back(std::move(one));
  }
  json::Array of_jobs;
  for (const auto& [key, row] : jobs) {
    json::Object one{
        {"project", std::get<0>(key)}, {"user", std::get<1>(key)}, {"job", std::get<2>(key)}};
    PutFigures(row, one);
    if (const auto known = facts.find(key); known != facts.end()) PutFacts(known->second, one);
    of_jobs.push_back(std::move(one));
  }
  json::Array capacity;
  for (double seconds : capacity_gpu_s) capacity.push_back(Rounded(seconds));
  const json::Value usage = json::Object{{"until", api::FormatMicroTime(until)},
                                         {"capacityGpuSeconds", std::move(capacity)},
                                         {"rows", std::move(list)},
                                         {"jobs", std::move(of_jobs)}};
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", UsageConfigMapName(date)},
                                                {"namespace", ns},
                                                {"labels", json::Object{{kUsageLabel, "day"}}}}},
                      {"data", json::Object{{"usage", json::Print(usage)}}}};
}

Result<UsageDay> UsageDay::FromConfigMap(const json::Value& object) {
  const std::string name(api::Name(object));
  auto wrong = [&name](std::string_view what) {
    return Status(Code::kInvalid, StrCat("configmap ", Quote(name), ": data.usage: ", what));
  };
  UsageDay day;
  if (!name.starts_with(kPrefix)) return wrong(StrCat("its name does not begin with ", kPrefix));
  day.date = name.substr(kPrefix.size());
  auto usage = json::Parse(json::GetString(object, {"data", "usage"}));
  if (!usage.ok()) return wrong(usage.status().message());
  const auto until = api::ParseTime(json::GetString(*usage, {"until"}));
  if (!until) return wrong("until is not a time");
  day.until = *until;
  const json::Array& capacity = json::GetArray(*usage, {"capacityGpuSeconds"});
  for (size_t hour = 0; hour < std::min(capacity.size(), day.capacity_gpu_s.size()); ++hour) {
    if (capacity[hour].is_number()) day.capacity_gpu_s[hour] = capacity[hour].to_number<double>();
  }
  for (const json::Value& one : json::GetArray(*usage, {"rows"})) {
    const int64_t hour = json::GetInt(one, {"hour"}, -1);
    if (hour < 0 || hour > 23)
      return wrong(StrCat("hour ", hour, " of a row is not between 0 and 23"));
    day.Row(json::GetString(one, {"project"}), json::GetString(one, {"user"}),
            static_cast<int>(hour))
        .Add(ReadFigures(one));
  }
  for (const json::Value& one : json::GetArray(*usage, {"jobs"})) {
    const JobKey key(json::GetString(one, {"project"}), json::GetString(one, {"user"}),
                     json::GetString(one, {"job"}));
    day.Job(std::get<0>(key), std::get<1>(key), std::get<2>(key)).Add(ReadFigures(one));
    if (const auto known = ReadFacts(one)) day.NoteJob(key, *known);
  }
  return day;
}

std::string UsageDate(WallTime time) { return api::FormatTime(time).substr(0, 10); }

int UsageHour(WallTime time) {
  constexpr int64_t kDayHours = 24;
  return static_cast<int>(time.unix_ns / kHourNs % kDayHours);
}

std::string UsageConfigMapName(std::string_view date) { return StrCat(kPrefix, date); }

}  // namespace swell::client
