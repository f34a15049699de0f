#include "kube/process/machine/usage_meter.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;
// Moments that are closer than this are one.
constexpr Duration kBetween = std::chrono::seconds(4);

// The number behind a word at a line's beginning.
std::optional<int64_t> Entry(std::string_view text, std::string_view word) {
  for (std::string_view line : Split(text, '\n')) {
    if (line.size() > word.size() && line.starts_with(word) && line[word.size()] == ' ') {
      return ParseInt(Trim(line.substr(word.size())));
    }
  }
  return {};
}

int64_t Number(const std::vector<std::string_view>& fields, size_t at) {
  return at < fields.size() ? ParseInt(fields[at]).value_or(0) : 0;
}

}  // namespace

struct UsageMeter::Process {
  int64_t ticks = 0;  // its own, and of those children that have ended
  std::vector<pid_t> children;
};

UsageMeter::UsageMeter(std::string proc)
    : proc_(std::move(proc)),
      tick_ns_(1'000'000'000 / std::max<int64_t>(1, ::sysconf(_SC_CLK_TCK))),
      page_bytes_(::sysconf(_SC_PAGESIZE)) {}

// The working set, as kubelets have it: what is used less the files' pages that nobody used lately.
std::optional<UsageMeter::Reading> UsageMeter::ReadGroup(const std::string& group) {
  const auto cpu = ReadFile(group + "/cpu.stat", kFileBytesMax);
  const auto used = ReadFile(group + "/memory.current", kFileBytesMax);
  const auto stat = ReadFile(group + "/memory.stat", kFileBytesMax);
  if (!cpu.ok() || !used.ok() || !stat.ok()) return {};
  const auto usec = Entry(*cpu, "usage_usec");
  const auto bytes = ParseInt(Trim(*used));
  if (!usec || !bytes) return {};
  const int64_t unused = Entry(*stat, "inactive_file").value_or(0);
  return Reading{std::chrono::microseconds(*usec), std::max<int64_t>(0, *bytes - unused)};
}

UsageMeter::Processes UsageMeter::ReadProcesses() const {
  Processes processes;
  const auto names = ListDir(proc_);
  if (!names.ok()) return processes;
  for (const std::string& name : *names) {
    const auto pid = ParseInt(name);
    if (!pid) continue;
    const auto stat = ReadFile(StrCat(proc_, "/", name, "/stat"), kFileBytesMax);
    const size_t end = stat.ok() ? stat->rfind(')') : std::string::npos;
    if (end == std::string::npos || end + 2 > stat->size()) continue;
    // Behind the name: state, parent, …, utime (11), stime, those of ended children.
    const auto fields = Split(std::string_view(*stat).substr(end + 2), ' ');
    Process& process = processes[static_cast<pid_t>(*pid)];
    for (size_t at = 11; at <= 14; ++at) process.ticks += Number(fields, at);
    processes[static_cast<pid_t>(Number(fields, 1))].children.push_back(static_cast<pid_t>(*pid));
  }
  return processes;
}

// Pages that processes share count once: as many as the one has that shares most.
std::optional<UsageMeter::Reading> UsageMeter::ReadTree(const Processes& processes,
                                                        pid_t first) const {
  Reading reading;
  int64_t shared_most = 0;
  bool any = false;
  std::set<pid_t> seen;  // the files were not read in one instant
  std::vector<pid_t> open = {first};
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    const auto found = processes.find(pid);
    if (found == processes.end() || !seen.insert(pid).second) continue;
    open.insert(open.end(), found->second.children.begin(), found->second.children.end());
    const auto pages = ReadFile(StrCat(proc_, "/", pid, "/statm"), kFileBytesMax);
    if (!pages.ok()) continue;
    any = true;
    const auto fields = Split(Trim(*pages), ' ');
    const int64_t shared = Number(fields, 2);
    shared_most = std::max(shared_most, shared);
    reading.memory_bytes += std::max<int64_t>(0, Number(fields, 1) - shared) * page_bytes_;
    reading.cpu += Duration(found->second.ticks * tick_ns_);
  }
  if (!any) return {};
  reading.memory_bytes += shared_most * page_bytes_;
  return reading;
}

std::vector<node::ContainerUsage> UsageMeter::Measure(const std::vector<Subject>& subjects,
                                                      WallTime now,
                                                      SteadyTime steady) {
  std::vector<node::ContainerUsage> out;
  std::optional<Processes> processes;
  std::map<node::ContainerRef, std::deque<Moment>> kept;
  for (const Subject& subject : subjects) {
    std::optional<Reading> reading;
    if (!subject.group.empty()) reading = ReadGroup(subject.group);
    if (!reading) {
      if (!processes) processes = ReadProcesses();
      reading = ReadTree(*processes, subject.first_process);
    }
    if (!reading) continue;
    std::deque<Moment>& moments = kept[subject.ref] = std::move(moments_[subject.ref]);
    const Duration age = std::max(Duration(0), now - subject.started);
    if (moments.empty()) moments.push_back({{steady.ns - age.count()}, Duration(0)});
    // A process that ended unwaited-for takes its time along.
    reading->cpu = std::max(reading->cpu, moments.back().cpu);
    while (moments.size() > 1 && steady - moments[1].at >= kWindow) moments.pop_front();
    const Moment& since = moments.front();
    out.push_back({.ref = subject.ref,
                   .started = subject.started,
                   .at = now,
                   .cpu = reading->cpu,
                   .window = std::max(Duration(1), steady - since.at),
                   .window_cpu = reading->cpu - since.cpu,
                   .memory_bytes = reading->memory_bytes});
    if (steady - moments.back().at >= kBetween && moments.size() < kMomentsMax) {
      moments.push_back({steady, reading->cpu});
    }
  }
  moments_ = std::move(kept);
  return out;
}

}  // namespace swell::process
