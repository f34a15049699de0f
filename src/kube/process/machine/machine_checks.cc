#include "kube/process/machine/machine_checks.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

using node::HealthReport;
using node::Verdict;

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kDiskLeast = 512 * kMib;
constexpr uint64_t kMemoryLeast = 256 * kMib;
constexpr uint64_t kPart = 50;  // or a 50th of all, if that is less
constexpr double kStalledPercent = 60;
constexpr size_t kProcFileMax = 64 << 10;

HealthReport Good(std::string type, std::string message) {
  return {.type = std::move(type), .reason = "CheckPassed", .message = std::move(message)};
}

HealthReport Bad(std::string type, std::string reason, std::string message) {
  return {.type = std::move(type),
          .verdict = Verdict::kBad,
          .reason = std::move(reason),
          .message = std::move(message)};
}

HealthReport Unknown(std::string type, std::string message) {
  return {.type = std::move(type),
          .verdict = Verdict::kUnknown,
          .reason = "CheckUnknown",
          .message = std::move(message)};
}

// Writes a small file and removes it: empty, or what went wrong.
std::string TryToWrite(const std::string& dir) {
  const std::string path = dir + "/swell-health-check";
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return std::strerror(errno);
  constexpr char kText[] = "swell";
  const bool written = ::write(fd, kText, sizeof kText) == static_cast<ssize_t>(sizeof kText);
  const int error = errno;
  ::close(fd);
  ::unlink(path.c_str());
  return written ? "" : std::strerror(error);
}

// "MemTotal:  24684092 kB" in bytes.
std::optional<uint64_t> KibIn(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line = Trim(line.substr(key.size()));
    const auto kib = ParseUint(line.substr(0, line.find(' ')));
    if (!kib) return std::nullopt;
    return *kib * 1024;
  }
  return std::nullopt;
}

// The percentage of the last minute in which no process could run for lack of memory.
double StalledPercent(std::string_view pressure) {
  for (std::string_view line : Split(pressure, '\n')) {
    constexpr std::string_view kField = "avg60=";
    const size_t at = line.find(kField);
    if (!line.starts_with("full ") || at == std::string_view::npos) continue;
    return std::strtod(std::string(line.substr(at + kField.size(), 8)).c_str(), nullptr);
  }
  return 0;
}

}  // namespace

std::optional<HealthReport> DiskCheck::FaultOf(const Room& room, const std::string& dir) {
  if (room.read_only) {
    return Bad("DiskHealthy", "ReadOnly", StrCat(dir, " is on a file system that is read-only"));
  }
  if (room.bytes > 0 && room.bytes_free < std::min(kDiskLeast, room.bytes / kPart)) {
    return Bad("DiskHealthy", "DiskFull",
               StrCat("the file system of ", dir, " has less than ",
                      std::min(kDiskLeast, room.bytes / kPart) / kMib, " MiB left of ",
                      room.bytes / kMib, " MiB"));
  }
  if (room.files > 0 && room.files_free < room.files / kPart) {
    return Bad("DiskHealthy", "InodesFull",
               StrCat("the file system of ", dir, " has less than 2 % of its inodes left"));
  }
  return std::nullopt;
}

HealthReport DiskCheck::Run() {
  struct statvfs info;
  if (::statvfs(dir_.c_str(), &info) != 0) {
    return Bad("DiskHealthy", "NotReadable", StrCat(dir_, ": ", std::strerror(errno)));
  }
  const Room room{.read_only = (info.f_flag & ST_RDONLY) != 0,
                  .bytes = uint64_t{info.f_blocks} * info.f_frsize,
                  .bytes_free = uint64_t{info.f_bavail} * info.f_frsize,
                  .files = info.f_files,
                  .files_free = info.f_favail};
  if (auto fault = FaultOf(room, dir_)) return *fault;
  if (const std::string error = TryToWrite(dir_); !error.empty()) {
    return Bad("DiskHealthy", "NotWritable", StrCat("cannot write in ", dir_, ": ", error));
  }
  return Good("DiskHealthy", StrCat(dir_, " can be written and has room"));
}

HealthReport MemoryCheck::Run() {
  const auto text = ReadFile(proc_ + "/meminfo", kProcFileMax);
  const auto total = text.ok() ? KibIn(*text, "MemTotal:") : std::nullopt;
  const auto available = text.ok() ? KibIn(*text, "MemAvailable:") : std::nullopt;
  if (!total || !available) {
    return Unknown("MemoryHealthy", StrCat(proc_, "/meminfo does not say what is available"));
  }
  const uint64_t least = std::min(kMemoryLeast, *total / kPart);
  if (*available < least) {
    return Bad("MemoryHealthy", "OutOfMemory",
               StrCat("less than ", least / kMib, " MiB of memory are available"));
  }
  const auto pressure = ReadFile(proc_ + "/pressure/memory", kProcFileMax);
  if (pressure.ok() && StalledPercent(*pressure) > kStalledPercent) {
    return Bad("MemoryHealthy", "MemoryStalls",
               "for most of the last minute no process could run for lack of memory");
  }
  return Good("MemoryHealthy", "the machine has memory available");
}

ClockCheck::Times ClockCheck::ReadTimes() {
  const auto read = [](clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  return {WallTime{read(CLOCK_REALTIME)}, SteadyTime{read(CLOCK_BOOTTIME)}};
}

HealthReport ClockCheck::Run() {
  const Times now = read_();
  if (before_) {
    const Duration step = (now.wall - before_->wall) - (now.boot - before_->boot);
    if (step >= kStep || step <= -kStep) {
      const auto whole = std::chrono::duration_cast<std::chrono::seconds>(step).count();
      stepped_ = now.boot;
      message_ = StrCat("the clock was set ", whole < 0 ? "back" : "forward", " by ",
                        whole < 0 ? -whole : whole, " s");
    }
  }
  before_ = now;
  if (stepped_ && now.boot - *stepped_ < kTold) {
    HealthReport report = Bad("ClockHealthy", "ClockStepped", message_);
    report.certain = true;
    return report;
  }
  return Good("ClockHealthy", "the clock was not set lately");
}

}  // namespace swell::process
