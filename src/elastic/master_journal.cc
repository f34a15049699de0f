#include "elastic/master_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr size_t kHashDigits = 16;
constexpr size_t kFileBytesMax = size_t{1} << 30;

std::string Line(const json::Value& record) {
  const std::string text = json::Print(record);
  char hash[kHashDigits + 2];
  std::snprintf(hash, sizeof hash, "%016llx ", static_cast<unsigned long long>(StableHash(text)));
  return StrCat(hash, text, "\n");
}

bool HashFits(std::string_view line) {
  if (line.size() < kHashDigits + 1) return false;
  char hash[kHashDigits + 1];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(StableHash(line.substr(kHashDigits + 1))));
  return line.substr(0, kHashDigits) == hash;
}

Status ReplayRecord(std::string_view text, JobMaster& master) {
  SWELL_ASSIGN_OR_RETURN(json::Value record, json::Parse(text));
  if (const json::Value* snapshot = json::Find(record, {"snapshot"})) {
    return master.Restore(*snapshot);
  }
  const json::Value* body = json::Find(record, {"body"});
  if (body == nullptr) return {Code::kInvalid, "body: Required value"};
  auto answer = master.Handle(json::GetString(record, {"path"}), *body,
                              WallTime{json::GetInt(record, {"at"})});
  return answer.ok() ? Status::Ok() : answer.status();
}

}  // namespace

std::string MasterJournal::PrintRequest(std::string_view path,
                                        const json::Value& body,
                                        WallTime now) {
  return Line(json::Object{{"at", now.unix_ns}, {"path", path}, {"body", body}});
}

std::string MasterJournal::PrintSnapshot(const JobMaster& master) {
  return Line(json::Object{{"snapshot", master.Snapshot()}});
}

Result<std::unique_ptr<MasterJournal>> MasterJournal::Open(const std::string& path,
                                                           JobMaster& master) {
  std::unique_ptr<MasterJournal> journal(new MasterJournal(path));
  size_t good = 0;
  if (FileExists(path)) {
    SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kFileBytesMax));
    int64_t number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == std::string::npos) break;
      const std::string_view line = std::string_view(text).substr(at, end - at);
      ++number;
      if (!HashFits(line)) {
        if (end + 1 == text.size()) break;
        return Status(Code::kInvalid, StrCat(path, ": line ", number, " is damaged"));
      }
      if (Status replayed = ReplayRecord(line.substr(kHashDigits + 1), master); !replayed.ok()) {
        return replayed.WithContext(StrCat(path, ": line ", number));
      }
      at = good = end + 1;
    }
  }
  SWELL_RETURN_IF_ERROR(journal->OpenForAppend());
  if (::ftruncate(journal->fd_, static_cast<off_t>(good)) != 0) {
    return ErrnoStatus(errno, StrCat("truncate ", path));
  }
  // From the first line on a replay gives out the same numbers.
  if (good == 0) SWELL_RETURN_IF_ERROR(journal->Replace(PrintSnapshot(master)));
  return journal;
}

MasterJournal::~MasterJournal() {
  if (fd_ >= 0) ::close(fd_);
}

Status MasterJournal::OpenForAppend() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return fd_ >= 0 ? Status::Ok() : ErrnoStatus(errno, StrCat("open ", path_));
}

Status MasterJournal::Append(std::string_view lines) {
  if (fd_ < 0) return {Code::kUnavailable, StrCat(path_, " took an earlier record no more")};
  while (!lines.empty()) {
    const ssize_t wrote = ::write(fd_, lines.data(), lines.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    lines.remove_prefix(static_cast<size_t>(wrote));
  }
  if (lines.empty() && ::fdatasync(fd_) == 0) return Status::Ok();
  Status failed = ErrnoStatus(errno, StrCat("write ", path_));
  ::close(fd_);
  fd_ = -1;
  return failed;
}

Status MasterJournal::Replace(std::string_view lines) {
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(path_, lines, 0600));
  return OpenForAppend();
}

}  // namespace swell::elastic
