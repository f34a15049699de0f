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

// The offset at which the last `lines` lines of the file begin, all if negative; `lines` is reduced
// by those found.
off_t TailOffset(int fd, int64_t& lines) {
  if (lines < 0) return 0;
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

std::string LogReader::NameOf(int age) const { return age == 0 ? path_ : StrCat(path_, ".", age); }

// The file that was begun just before this one (`older` 1) or just after it (-1); invalid if it
// does not exist. The writer may rename all of them at any moment, but each only to the next higher
// number: if this one still has its name when the other is open, the other is the right one.
UniqueFd LogReader::OpenBeside(const UniqueFd& file, int older) const {
  struct stat own;
  if (::fstat(file.get(), &own) != 0) return UniqueFd();
  const auto is_own = [&](int age) {
    struct stat named;
    return ::stat(NameOf(age).c_str(), &named) == 0 && named.st_ino == own.st_ino;
  };
  int oldest = 0;
  for (int age = 0; age < kRotatedMax; ++age) {
    if (FileExists(NameOf(age))) oldest = age;
    if (!is_own(age)) continue;
    if (age + older < 0) return UniqueFd();
    UniqueFd beside(::open(NameOf(age + older).c_str(), O_RDONLY | O_CLOEXEC));
    if (is_own(age)) return beside;
  }
  // It was removed, and all others are newer.
  return older > 0 ? UniqueFd() : UniqueFd(::open(NameOf(oldest).c_str(), O_RDONLY | O_CLOEXEC));
}

Status LogReader::FindStart() {
  // The writer may be between two files.
  for (int age = 0; age < 2 && !file_.valid(); ++age) {
    file_ = UniqueFd(::open(NameOf(age).c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!file_.valid()) return Status(Code::kNotFound, StrCat("no log at ", path_));
  int64_t left = options_.tail_lines;
  off_t offset = left == 0 ? ::lseek(file_.get(), 0, SEEK_END) : TailOffset(file_.get(), left);
  while (left != 0) {
    UniqueFd older = OpenBeside(file_, 1);
    if (!older.valid()) break;
    offset = TailOffset(older.get(), left);
    file_ = std::move(older);
  }
  ::lseek(file_.get(), offset, SEEK_SET);
  return Status::Ok();
}

// At the end of a file. What was written just before it was renamed is read first.
bool LogReader::NextFile() {
  if (next_.valid()) {
    file_ = std::move(next_);
    return true;
  }
  next_ = OpenBeside(file_, -1);
  return next_.valid();
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
    const ssize_t n = ::read(file_.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
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
