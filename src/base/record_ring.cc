#include "base/record_ring.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell {
namespace {

constexpr size_t kNameDigits = 12;
constexpr size_t kHeadBytes = 12;
constexpr size_t kSegmentBytesMax = size_t{1} << 30;

std::string SegmentName(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%0*llu", static_cast<int>(kNameDigits),
                static_cast<unsigned long long>(number));
  return name;
}

bool IsSegmentName(std::string_view name) {
  return name.size() >= kNameDigits && ParseUint(name).has_value();
}

void PutLittle(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

uint64_t GetLittle(std::string_view in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(in[i])) << (8 * i);
  }
  return value;
}

}  // namespace

RecordRing::RecordRing(std::string dir, uint64_t bytes_max)
    : dir_(std::move(dir)), bytes_max_(bytes_max) {}

RecordRing::~RecordRing() { Close(); }

void RecordRing::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::vector<std::string>> RecordRing::Segments(const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(dir));
  std::erase_if(names, [](const std::string& name) { return !IsSegmentName(name); });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return *ParseUint(a) < *ParseUint(b);
  });
  for (std::string& name : names) name = StrCat(dir, "/", name);
  return names;
}

Result<std::unique_ptr<RecordRing>> RecordRing::Open(const std::string& dir, uint64_t bytes_max) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> segments, Segments(dir));
  std::unique_ptr<RecordRing> ring(new RecordRing(dir, bytes_max));
  if (!segments.empty()) {
    const std::string& last = segments.back();
    ring->next_ = *ParseUint(std::string_view(last).substr(last.rfind('/') + 1)) + 1;
  }
  return ring;
}

Status RecordRing::MakeRoom() {
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> segments, Segments(dir_));
  uint64_t kept = 0;
  for (auto it = segments.rbegin(); it != segments.rend(); ++it) {
    struct stat facts {};
    if (::stat(it->c_str(), &facts) == 0) kept += static_cast<uint64_t>(facts.st_size);
    // The newest whole one stays: without it there would be nothing to look at for a while.
    if (it != segments.rbegin() && kept > bytes_max_) SWELL_RETURN_IF_ERROR(RemoveTree(*it));
  }
  return Status::Ok();
}

Status RecordRing::Begin() {
  Close();
  SWELL_RETURN_IF_ERROR(MakeRoom());
  const std::string path = StrCat(dir_, "/", SegmentName(next_++));
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  return fd_ < 0 ? ErrnoStatus(errno, "create " + path) : Status::Ok();
}

Status RecordRing::Append(std::string_view record) {
  if (fd_ < 0) return Status(Code::kConflict, StrCat(dir_, ": no segment is begun"));
  std::string bytes;
  bytes.reserve(kHeadBytes + record.size());
  PutLittle(bytes, record.size(), 4);
  PutLittle(bytes, StableHash(record), 8);
  bytes += record;
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Status failed = ErrnoStatus(errno, "write a record in " + dir_);
      Close();
      return failed;
    }
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Result<RecordRing::Segment> RecordRing::Read(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, kSegmentBytesMax));
  Segment segment;
  std::string_view rest = bytes;
  while (rest.size() >= kHeadBytes) {
    const size_t length = GetLittle(rest, 4);
    if (length > rest.size() - kHeadBytes) break;
    const std::string_view record = rest.substr(kHeadBytes, length);
    if (GetLittle(rest.substr(4), 8) != StableHash(record)) break;
    segment.records.emplace_back(record);
    rest.remove_prefix(kHeadBytes + length);
  }
  segment.torn = !rest.empty();
  return segment;
}

}  // namespace swell
