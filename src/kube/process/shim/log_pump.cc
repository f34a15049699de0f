#include "kube/process/shim/log_pump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kPieceMax = 16 << 10;
constexpr Duration kBarWait = std::chrono::seconds(1);

}  // namespace

std::string FormatNanoTime(WallTime time) {
  int64_t seconds = time.unix_ns / 1'000'000'000;
  int64_t nanos = time.unix_ns % 1'000'000'000;
  time_t whole = static_cast<time_t>(seconds);
  struct tm parts;
  ::gmtime_r(&whole, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<long long>(nanos));
  return text;
}

LogPump::LogPump(std::string path, int64_t bytes_max, int files_max)
    : path_(std::move(path)), bytes_max_(bytes_max), files_max_(files_max) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  struct stat info;
  if (fd_ >= 0 && ::fstat(fd_, &info) == 0) size_ = info.st_size;
}

LogPump::~LogPump() {
  Flush();
  if (fd_ >= 0) ::close(fd_);
}

void LogPump::Line(std::string_view stream, std::string_view text, bool full, WallTime now) {
  pending_ += FormatNanoTime(now);
  pending_ += ' ';
  pending_ += stream;
  pending_ += full ? " F " : " P ";
  pending_ += text;
  pending_ += '\n';
}

void LogPump::Feed(std::string_view stream, std::string_view bytes, WallTime now) {
  Begun& begun = BegunOf(stream);
  while (!bytes.empty()) {
    if (begun.text.empty()) begun.since = now;
    size_t end = bytes.find('\n');
    std::string_view piece = bytes.substr(0, end);
    if (begun.text.size() + piece.size() > kPieceMax) {
      size_t room = kPieceMax - begun.text.size();
      begun.text += piece.substr(0, room);
      Line(stream, begun.text, false, now);
      begun.text.clear();
      bytes.remove_prefix(room);
      continue;
    }
    begun.text += piece;
    if (end == std::string_view::npos) return;
    Line(stream, begun.text, true, now);
    begun.text.clear();
    bytes.remove_prefix(end + 1);
  }
}

std::optional<Duration> LogPump::TakeBars(WallTime now) {
  std::optional<Duration> wait;
  for (std::string_view stream : {"stdout", "stderr"}) {
    Begun& begun = BegunOf(stream);
    if (begun.text.find('\r') == std::string::npos) continue;
    const Duration left = begun.since + kBarWait - now;
    // A clock that was set back must not hold it for longer.
    if (left > Duration::zero() && left <= kBarWait) {
      wait = std::min(left, wait.value_or(left));
      continue;
    }
    Line(stream, begun.text, false, now);
    begun.text.clear();
  }
  return wait;
}

void LogPump::End(std::string_view stream, WallTime now) {
  Begun& begun = BegunOf(stream);
  if (!begun.text.empty()) Line(stream, begun.text, false, now);
  begun.text.clear();
}

void LogPump::Flush() {
  std::string_view rest = pending_;
  while (fd_ >= 0 && !rest.empty()) {
    ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    // A full disk loses log lines; it must not stop the training that prints them.
    if (n < 0) break;
    rest.remove_prefix(static_cast<size_t>(n));
    size_ += n;
  }
  pending_.clear();
  if (size_ > bytes_max_) Rotate();
}

void LogPump::Rotate() {
  for (int i = files_max_ - 2; i >= 1; --i) {
    ::rename(StrCat(path_, ".", i).c_str(), StrCat(path_, ".", i + 1).c_str());
  }
  if (files_max_ > 1) ::rename(path_.c_str(), (path_ + ".1").c_str());
  int fresh = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
  if (fresh < 0) return;
  ::close(fd_);
  fd_ = fresh;
  size_ = 0;
}

}  // namespace swell::process
