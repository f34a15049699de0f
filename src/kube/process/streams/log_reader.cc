#include "kube/process/streams/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::process {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr int kRotatedMax = 100;
// How much one Read skips of lines that are older than the reader asked for. A container may write
// them as fast as they are skipped, and other work waits for this thread.
constexpr int kSkippedBlocksMax = 4;

// The offset at which the last `lines` lines of the file begin; `lines` is reduced by those found.
off_t TailOffset(int fd, int64_t& lines) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return 0;
  std::string block(kPieceBytes, '\0');
  off_t end = info.st_size;
  bool first_byte = true;  // the newline that ends the file ends no earlier line
  while (end > 0) {
    size_t size = static_cast<size_t>(std::min<off_t>(end, static_cast<off_t>(block.size())));
    ssize_t n = ::pread(fd, block.data(), size, end - static_cast<off_t>(size));
    if (n != static_cast<ssize_t>(size)) return 0;
    for (size_t i = size; i > 0; --i) {
      if (block[i - 1] == '\n' && !first_byte) {
        if (--lines == 0) return end - static_cast<off_t>(size) + static_cast<off_t>(i);
      }
      first_byte = false;
    }
    end -= static_cast<off_t>(size);
  }
  if (info.st_size > 0) --lines;
  return 0;
}

}  // namespace

Result<LogReader> LogReader::Open(const std::string& path, const node::LogOptions& options) {
  LogReader reader(path, options);
  SWELL_RETURN_IF_ERROR(reader.FindStart());
  return reader;
}

LogReader::~LogReader() {
  if (fd_ >= 0) ::close(fd_);
}

LogReader::LogReader(LogReader&& other) noexcept
    : path_(std::move(other.path_)),
      options_(std::move(other.options_)),
      limit_left_(other.limit_left_),
      files_(std::move(other.files_)),
      fd_(std::exchange(other.fd_, -1)),
      last_(other.last_),
      partial_(std::move(other.partial_)),
      begun_(std::move(other.begun_)) {}

Status LogReader::FindStart() {
  if (!FileExists(path_)) return Status(Code::kNotFound, StrCat("no log at ", path_));
  std::vector<std::string> newest_first{path_};
  for (int i = 1; i < kRotatedMax && FileExists(StrCat(path_, ".", i)); ++i) {
    newest_first.push_back(StrCat(path_, ".", i));
  }
  if (options_.tail_lines < 0) {
    files_.assign(newest_first.rbegin(), newest_first.rend());
    NextFile();
    return Status::Ok();
  }
  int64_t left = options_.tail_lines;
  off_t offset = 0;
  std::vector<std::string> wanted;
  for (const std::string& file : newest_first) {
    int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) break;
    if (left == 0) {
      struct stat info;
      offset = ::fstat(fd, &info) == 0 ? info.st_size : 0;
    } else {
      offset = TailOffset(fd, left);
    }
    ::close(fd);
    wanted.push_back(file);
    if (left <= 0) break;
  }
  files_.assign(wanted.rbegin(), wanted.rend());
  if (NextFile()) ::lseek(fd_, offset, SEEK_SET);
  return Status::Ok();
}

bool LogReader::NextFile() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (files_.empty()) return false;
  last_ = files_.size() == 1;
  fd_ = ::open(files_.front().c_str(), O_RDONLY | O_CLOEXEC);
  files_.erase(files_.begin());
  return fd_ >= 0;
}

// "TIME STREAM F|P text" → what the reader asked for.
void LogReader::Format(std::string_view line, std::string& out) {
  size_t time_end = line.find(' ');
  size_t stream_end = time_end == std::string_view::npos ? time_end : line.find(' ', time_end + 1);
  size_t tag_end =
      stream_end == std::string_view::npos ? stream_end : line.find(' ', stream_end + 1);
  if (tag_end == std::string_view::npos) return;
  std::string_view time = line.substr(0, time_end);
  if (options_.since) {
    auto parsed = api::ParseTime(time);
    if (parsed && *parsed < *options_.since) return;
  }
  const std::string_view stream = line.substr(time_end + 1, stream_end - time_end - 1);
  if (!begun_.empty() && begun_ != stream) {
    out += '\n';
    begun_.clear();
  }
  if (options_.timestamps && begun_.empty()) out += StrCat(time, " ");
  out += line.substr(tag_end + 1);
  const bool ends = line.substr(stream_end + 1, 1) == "F";
  if (ends) out += '\n';
  begun_ = ends ? std::string_view() : stream;
}

std::string LogReader::Read() {
  std::string out;
  std::string block(kPieceBytes, '\0');
  skipped_ = false;
  for (int blocks = 0; out.empty() && limit_left_ != 0;) {
    if (blocks == kSkippedBlocksMax) {
      skipped_ = true;
      return out;
    }
    ssize_t n = fd_ < 0 ? 0 : ::read(fd_, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (!last_ && !files_.empty()) {
        NextFile();
        continue;
      }
      // The writer may have rotated the file away: then the name leads to another one.
      struct stat mine, named;
      bool moved = fd_ >= 0 && ::fstat(fd_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                   mine.st_ino != named.st_ino;
      if (!moved) break;
      files_ = {path_};
      if (!NextFile()) break;
      continue;
    }
    ++blocks;
    std::string_view bytes(block.data(), static_cast<size_t>(n));
    size_t end;
    while ((end = bytes.find('\n')) != std::string_view::npos) {
      if (partial_.empty()) {
        Format(bytes.substr(0, end), out);
      } else {
        partial_ += bytes.substr(0, end);
        Format(partial_, out);
        partial_.clear();
      }
      bytes.remove_prefix(end + 1);
    }
    partial_ += bytes;
  }
  if (limit_left_ > 0) {
    if (static_cast<int64_t>(out.size()) > limit_left_)
      out.resize(static_cast<size_t>(limit_left_));
    limit_left_ -= static_cast<int64_t>(out.size());
  }
  return out;
}

std::string LogTail(const std::string& path, int64_t lines, size_t bytes_max) {
  node::LogOptions options;
  options.tail_lines = lines;
  auto reader = LogReader::Open(path, options);
  if (!reader.ok()) return "";
  std::string out;
  for (std::string piece = reader->Read(); !piece.empty(); piece = reader->Read()) {
    out += piece;
    if (out.size() > (1 << 20)) break;
  }
  if (out.size() > bytes_max) out.erase(0, out.size() - bytes_max);
  return out;
}

}  // namespace swell::process
