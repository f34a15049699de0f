#include "base/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"

namespace swell {

Result<std::unique_ptr<LineFile>> LineFile::Open(const std::string& path, Limits limits) {
  std::unique_ptr<LineFile> file(new LineFile(path, limits));
  SWELL_RETURN_IF_ERROR(file->Reopen());
  return file;
}

LineFile::~LineFile() { Close(); }

void LineFile::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status LineFile::Reopen() {
  Close();
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) return ErrnoStatus(errno, "open " + path_);
  struct stat facts {};
  bytes_ = ::fstat(fd_, &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
  char last = '\n';
  if (bytes_ > 0 && ::pread(fd_, &last, 1, static_cast<off_t>(bytes_) - 1) == 1 && last != '\n') {
    if (::write(fd_, "\n", 1) == 1) ++bytes_;
  }
  return Status::Ok();
}

Status LineFile::Rotate() {
  Close();
  auto name = [this](int number) { return number == 0 ? path_ : StrCat(path_, ".", number); };
  SWELL_RETURN_IF_ERROR(RemoveTree(name(limits_.backups)));
  for (int number = limits_.backups; number > 0; --number) {
    if (::rename(name(number - 1).c_str(), name(number).c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "rename " + name(number - 1));
    }
  }
  return Reopen();
}

Status LineFile::Append(std::string_view lines) {
  if (fd_ < 0) SWELL_RETURN_IF_ERROR(Reopen());
  if (bytes_ > 0 && bytes_ + lines.size() > limits_.bytes_max) SWELL_RETURN_IF_ERROR(Rotate());
  const uint64_t whole = bytes_;
  while (!lines.empty()) {
    const ssize_t n = ::write(fd_, lines.data(), lines.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Status failed = ErrnoStatus(errno, "write " + path_);
      // Half a line would end the reading of the file. If that fails too, the line is ended when
      // the file is opened again.
      if (::ftruncate(fd_, static_cast<off_t>(whole)) == 0) bytes_ = whole;
      Close();
      return failed;
    }
    bytes_ += static_cast<uint64_t>(n);
    lines.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

}  // namespace swell
