#include "kube/process/files/memory_copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "kube/net/tls/sha256.h"
#include "kube/process/files/zip_writer.h"
#include "kube/process/shim/beneath.h"

namespace swell::process {
namespace {

// struct.Struct("<8sQQQ32x") of the SDK.
struct Head {
  char magic[8];
  uint64_t whole, place, size;
  char rest[32];
};
static_assert(sizeof(Head) == 64);
constexpr std::string_view kMagic = "SWELLMEM";
constexpr uint64_t kIndexBytesMax = 64 << 20;
// Four for each record. In memory a value takes many times the bytes of its text.
constexpr size_t kIndexValuesMax = 2 << 20;
constexpr size_t kNameMax = 256;
constexpr size_t kSaidBytesMax = 256;
constexpr int64_t kStepMax = 999'999'999'999;  // twelve digits in a name
constexpr size_t kChunkBytes = 4 << 20;
// The disk writes while the next bytes are read. Without that, all of a state could wait in the
// page cache for the end: minutes in which nothing gets on.
constexpr int64_t kWindowBytes = 16 << 20;
constexpr std::string_view kCodecs[] = {"bytes", "pickle", "tensors", "objects"};
// Not the SDK's, whose next save would remove a file that is still being written.
constexpr std::string_view kTemporary = ".swell-persist-";
constexpr const char* kLock = ".lock";

Status Refuse(std::string_view why) {
  return Status(Code::kInvalid, StrCat("the copy in memory: ", why));
}

Status ReadAt(int file, char* to, size_t size, uint64_t place) {
  while (size > 0) {
    const ssize_t got = ::pread(file, to, size, static_cast<off_t>(place));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read the copy in memory");
    if (got == 0) return Refuse("it is shorter than it says");
    to += got;
    size -= static_cast<size_t>(got);
    place += static_cast<uint64_t>(got);
  }
  return Status::Ok();
}

Result<MemoryCopy::Record> ReadRecord(const json::Value& value, uint64_t file_bytes) {
  const auto* parts = value.if_array();
  const bool shaped = parts != nullptr && parts->size() == 3 && (*parts)[0].is_string() &&
                      (*parts)[1].is_int64() && (*parts)[2].is_int64();
  if (!shaped) return Refuse("a record is not [name, place, size]");
  MemoryCopy::Record record;
  record.name = std::string(json::View((*parts)[0].get_string()));
  const int64_t place = (*parts)[1].get_int64(), size = (*parts)[2].get_int64();
  if (record.name.size() > kNameMax) return Refuse("a record's name is too long");
  if (place < 0 || size < 0 || static_cast<uint64_t>(place) > file_bytes ||
      static_cast<uint64_t>(size) > file_bytes - static_cast<uint64_t>(place)) {
    return Refuse(StrCat("record ", Quote(record.name), " is not in its file"));
  }
  record.place = static_cast<uint64_t>(place);
  record.size = static_cast<uint64_t>(size);
  return record;
}

Status ReadRecords(uint64_t file_bytes, uint64_t held_bytes, MemoryCopy& copy) {
  const json::Value* list = json::Find(copy.index, {"records"});
  if (list == nullptr || !list->is_array()) return Refuse("it has no list of records");
  uint64_t bytes = 0;
  for (const json::Value& item : list->get_array()) {
    SWELL_ASSIGN_OR_RETURN(MemoryCopy::Record record, ReadRecord(item, file_bytes));
    // Records that overlap would make a large file of a small one.
    bytes += record.size;
    if (bytes > file_bytes) return Refuse("its records are longer than its file");
    copy.records.push_back(std::move(record));
  }
  // Holes would make one of nothing. A file system that compresses holds a state in less, but not
  // in much less.
  if (bytes / 2 > held_bytes) return Refuse("its file has holes");
  const bool named = std::none_of(copy.records.begin(), copy.records.end(),
                                  [](const auto& record) { return record.name.empty(); });
  if (copy.records.empty() || (!named && copy.records.size() > 1)) {
    return Refuse("a record without a name is not alone");
  }
  return Status::Ok();
}

Status CheckIndex(const json::Value& index) {
  const int64_t step = json::GetInt(index, {"step"}, -1);
  if (step < 0 || step > kStepMax) return Refuse("it has no step");
  const std::string_view codec = json::GetString(index, {"codec"});
  if (std::find(std::begin(kCodecs), std::end(kCodecs), codec) == std::end(kCodecs)) {
    return Refuse(StrCat("codec ", Quote(codec.substr(0, kSaidBytesMax)), " is not known"));
  }
  return Status::Ok();
}

// ---- the checkpoint ----

// The folder of a job's checkpoints. Its user may change it meanwhile: names are looked up in the
// open folder, and new files are new.
class Folder {
 public:
  static Result<Folder> Open(const std::string& path) {
    Folder folder;
    folder.path_ = path;
    folder.dir_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.dir_.valid()) return ErrnoStatus(errno, "open " + path);
    // The job's run, and in its file the user of the job's processes.
    SWELL_ASSIGN_OR_RETURN(folder.run_, ReadPlainFile(path, ".run", 64));
    if (::fstatat(folder.dir_.get(), ".run", &folder.owner_, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoStatus(errno, path + "/.run");
    }
    return folder;
  }

  const std::string& run() const { return run_; }
  const std::string& path() const { return path_; }

  Result<UniqueFd> Make(const std::string& name) const {
    UniqueFd file(::openat(dir_.get(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return ErrnoStatus(errno, StrCat("make ", path_, "/", name));
    if (::geteuid() == 0 && ::fchown(file.get(), owner_.st_uid, owner_.st_gid) != 0) {
      return ErrnoStatus(errno, StrCat("give ", path_, "/", name));
    }
    return file;
  }
  Status Rename(const std::string& from, const std::string& to) const {
    if (::renameat(dir_.get(), from.c_str(), dir_.get(), to.c_str()) == 0) return Status::Ok();
    return ErrnoStatus(errno, StrCat("rename ", path_, "/", from));
  }
  // The SDK's processes write under this lock, too. A user's process may keep it for ever, so
  // nobody waits for it here.
  Result<UniqueFd> Lock() const {
    UniqueFd file = OpenLock();
    if (!file.valid() && errno == ENOENT) {
      const auto made = Make(kLock);
      (void)made;  // somebody else may have been faster
      file = OpenLock();
    }
    struct stat info {};
    if (!file.valid() || ::fstat(file.get(), &info) != 0) {
      return ErrnoStatus(errno, StrCat("open ", path_, "/", kLock));
    }
    if (!S_ISREG(info.st_mode)) {
      return Status(Code::kInvalid, StrCat(path_, "/", kLock, ": not a plain file"));
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, StrCat("lock ", path_, "/", kLock));
    return Status(Code::kConflict,
                  StrCat("another checkpoint of the job is being written to ", path_));
  }
  // Removes what killed agents left. Only the holder of the lock writes such files.
  void RemoveTemporaries() const {
    const auto names = ListDir(path_);
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (name.starts_with(kTemporary)) Remove(name);
    }
  }
  // -1: not known.
  int64_t FreeBytes() const {
    struct statvfs disk {};
    if (::fstatvfs(dir_.get(), &disk) != 0) return -1;
    const auto blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    return static_cast<int64_t>(blocks * disk.f_frsize);
  }
  void Remove(const std::string& name) const { ::unlinkat(dir_.get(), name.c_str(), 0); }
  bool IsNewer(const std::string& name, const timespec& than) const {
    struct stat info {};
    if (::fstatat(dir_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    const timespec& made = info.st_mtim;
    return made.tv_sec != than.tv_sec ? made.tv_sec > than.tv_sec : made.tv_nsec > than.tv_nsec;
  }
  Status Sync() const {
    return ::fsync(dir_.get()) == 0 ? Status::Ok() : ErrnoStatus(errno, "sync " + path_);
  }

 private:
  UniqueFd OpenLock() const {
    return UniqueFd(::openat(dir_.get(), kLock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  }

  std::string path_, run_;
  UniqueFd dir_;
  struct stat owner_ {};
};

std::string NameOfStep(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%012lld", static_cast<long long>(step));
  return name;
}

// The bytes of a checkpoint on their way to the disk.
class StateFile {
 public:
  StateFile(UniqueFd file, WriteProgress& progress) : file_(std::move(file)), progress_(progress) {}

  // Takes the room for all bytes at once, so that a state that does not fit does not fill the disk
  // first. Not every file system can do this. On the others, a write fails.
  Status Reserve(uint64_t bytes) {
    const int error =
        ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ? 0
                                                                                         : errno;
    const bool full = error == ENOSPC || error == EDQUOT;
    return full ? ErrnoStatus(error, "the checkpoint") : Status::Ok();
  }
  Status Write(std::string_view bytes) {
    hash_.Add(bytes);
    size_ += static_cast<int64_t>(bytes.size());
    SWELL_RETURN_IF_ERROR(WriteAll(file_.get(), bytes, "the checkpoint"));
    if (size_ - sent_ >= kWindowBytes) SWELL_RETURN_IF_ERROR(SendWindow());
    progress_.written = std::min(size_, progress_.bytes.load());
    return Status::Ok();
  }
  // Then the bytes are on disk, and other users may read them as far as the folder lets them.
  Status Finish() {
    if (::fchmod(file_.get(), 0644) == 0 && ::fsync(file_.get()) == 0) return Status::Ok();
    return ErrnoStatus(errno, "sync the checkpoint");
  }
  std::string Digest() { return hash_.Hex(); }
  int64_t size() const { return size_; }

 private:
  // What was written since the last window goes to the disk, which has the window before by then.
  Status SendWindow() {
    SWELL_RETURN_IF_ERROR(Sync(sent_, size_, SYNC_FILE_RANGE_WRITE));
    SWELL_RETURN_IF_ERROR(
        Sync(on_disk_, sent_,
             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
    on_disk_ = sent_;
    sent_ = size_;
    return Status::Ok();
  }
  Status Sync(int64_t from, int64_t to, unsigned how) const {
    // No bytes would mean all of the file.
    if (from == to || ::sync_file_range(file_.get(), from, to - from, how) == 0) {
      return Status::Ok();
    }
    // An error of the disk is told once, so the last sync would not see it again. File systems that
    // cannot do this say so with another.
    const bool failed = errno == EIO || errno == ENOSPC || errno == EDQUOT;
    return failed ? ErrnoStatus(errno, "sync the checkpoint") : Status::Ok();
  }

  UniqueFd file_;
  WriteProgress& progress_;
  net::Sha256 hash_;
  int64_t size_ = 0, sent_ = 0, on_disk_ = 0;
};

Status Pour(const MemoryCopy& copy,
            const MemoryCopy::Record& record,
            const ZipWriter::Sink& sink,
            std::string& chunk) {
  for (uint64_t done = 0; done < record.size;) {
    const size_t part = std::min<uint64_t>(chunk.size(), record.size - done);
    SWELL_RETURN_IF_ERROR(ReadAt(copy.file.get(), chunk.data(), part, record.place + done));
    SWELL_RETURN_IF_ERROR(sink(std::string_view(chunk).substr(0, part)));
    done += part;
  }
  return Status::Ok();
}

uint64_t BytesOf(const MemoryCopy& copy) {
  uint64_t bytes = 0;
  for (const MemoryCopy::Record& record : copy.records) bytes += record.size;
  return bytes;
}

Status WriteRecords(const MemoryCopy& copy, StateFile& file) {
  std::string chunk(kChunkBytes, '\0');
  const auto write = [&file](std::string_view bytes) { return file.Write(bytes); };
  if (copy.records.front().name.empty()) return Pour(copy, copy.records.front(), write, chunk);
  ZipWriter archive(write);
  for (const MemoryCopy::Record& record : copy.records) {
    SWELL_RETURN_IF_ERROR(archive.Begin("archive/" + record.name));
    SWELL_RETURN_IF_ERROR(Pour(
        copy, record, [&archive](std::string_view bytes) { return archive.Add(bytes); }, chunk));
    SWELL_RETURN_IF_ERROR(archive.End());
  }
  return archive.Finish();
}

json::Value Manifest(const json::Value& index,
                     const std::string& file,
                     int64_t size,
                     const std::string& digest) {
  json::Object manifest{{"version", 1}};
  for (const char* key : {"step", "epoch", "metrics", "time", "codec"}) {
    const json::Value* value = json::Find(index, {key});
    manifest[key] = value == nullptr ? json::Value() : *value;
  }
  manifest["file"] = file;
  manifest["size"] = size;
  manifest["sha256"] = digest;
  return manifest;
}

Status WriteManifest(const Folder& folder, const std::string& name, const json::Value& manifest) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd file, folder.Make(name));
  SWELL_RETURN_IF_ERROR(WriteAll(file.get(), json::PrintPretty(manifest, 1), "the checkpoint"));
  // The node agent's own user need not be the job's.
  if (::fchmod(file.get(), 0644) != 0) return ErrnoStatus(errno, "chmod");
  return ::fsync(file.get()) == 0 ? Status::Ok() : ErrnoStatus(errno, "sync the manifest");
}

Status WriteFiles(const MemoryCopy& copy, const Folder& folder, WriteProgress& progress) {
  const std::string step = NameOfStep(json::GetInt(copy.index, {"step"}));
  const std::string state_at = StrCat(kTemporary, step);
  const std::string manifest_at = StrCat(kTemporary, step, ".json");
  SWELL_ASSIGN_OR_RETURN(UniqueFd made, folder.Make(state_at));
  StateFile state(std::move(made), progress);
  SWELL_RETURN_IF_ERROR(state.Reserve(BytesOf(copy)));
  SWELL_RETURN_IF_ERROR(WriteRecords(copy, state));
  SWELL_RETURN_IF_ERROR(state.Finish());
  const std::string digest = state.Digest();
  const std::string name = StrCat(step, "-", digest.substr(0, 12), ".state");
  SWELL_RETURN_IF_ERROR(
      WriteManifest(folder, manifest_at, Manifest(copy.index, name, state.size(), digest)));
  // Both are on disk: no disk that is full can keep one of them away any more.
  SWELL_RETURN_IF_ERROR(folder.Rename(state_at, name));
  return folder.Rename(manifest_at, step + ".json");
}

// Says how much room is missing, if that is known. The room of a disk quota is not.
Status NoSpace(const MemoryCopy& copy, const Folder& folder) {
  constexpr int64_t kMiB = 1 << 20;
  const auto bytes = static_cast<int64_t>(BytesOf(copy));
  const int64_t free = folder.FreeBytes();
  const bool known = free >= 0 && free < bytes;
  return Status(Code::kNoSpace,
                StrCat("no space left in ", folder.path(), " for a checkpoint of ", bytes, " bytes",
                       known ? StrCat(": ", (bytes - free + kMiB - 1) / kMiB, " MiB are missing")
                             : std::string()));
}

// The run went back to an earlier checkpoint: it must not resume from a later one. What was saved
// after the copy was made is of processes that continued meanwhile.
void DropLaterSteps(const Folder& folder, int64_t step, const timespec& copied) {
  const std::string newest = NameOfStep(step) + ".json";
  const auto names = ListDir(folder.path());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.size() != newest.size() || !name.starts_with("step-") || !name.ends_with(".json")) {
      continue;
    }
    if (name > newest && !folder.IsNewer(name, copied)) folder.Remove(name);
  }
}

}  // namespace

Result<MemoryCopy> OpenMemoryCopy(const std::string& dir, const std::string& name) {
  const Result<UniqueFd> opened = OpenBeneath(dir, name, MissingDirs::kAreAnError);
  if (!opened.ok()) {
    return Refuse(StrCat(Quote(name), " is not in /dev/shm: the request must name a file there"));
  }
  const UniqueFd& found = *opened;
  struct stat info {};
  if (::fstat(found.get(), &info) != 0) return ErrnoStatus(errno, "the copy in memory");
  if (!S_ISREG(info.st_mode)) return Refuse("it is not a plain file");
  MemoryCopy copy;
  copy.file = UniqueFd(::open(DescriptorPath(found).c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy.file.valid()) return ErrnoStatus(errno, "open the copy in memory");
  Head head{};
  SWELL_RETURN_IF_ERROR(ReadAt(copy.file.get(), reinterpret_cast<char*>(&head), sizeof(head), 0));
  if (std::string_view(head.magic, sizeof(head.magic)) != kMagic || head.whole != 1) {
    return Refuse("it is not whole");
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (head.size > kIndexBytesMax || head.place > bytes || head.size > bytes - head.place) {
    return Refuse("its index is not in its file");
  }
  std::string text(head.size, '\0');
  SWELL_RETURN_IF_ERROR(ReadAt(copy.file.get(), text.data(), text.size(), head.place));
  Result<json::Value> index = json::Parse(text, {.values = kIndexValuesMax});
  // It may quote what it does not like.
  if (!index.ok()) return Refuse(index.status().message().substr(0, kSaidBytesMax));
  copy.index = std::move(*index);
  if (!copy.index.is_object()) return Refuse("its index is not an object");
  SWELL_RETURN_IF_ERROR(CheckIndex(copy.index));
  SWELL_RETURN_IF_ERROR(ReadRecords(bytes, static_cast<uint64_t>(info.st_blocks) * 512, copy));
  copy.made = info.st_mtim;
  return copy;
}

Status WriteCheckpoint(const MemoryCopy& copy, const std::string& dir, WriteProgress& progress) {
  progress.bytes = static_cast<int64_t>(BytesOf(copy));
  progress.written = 0;
  SWELL_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(dir));
  if (json::GetString(copy.index, {"run"}) != folder.run()) {
    return Refuse("it belongs to another run of the job");
  }
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, folder.Lock());
  folder.RemoveTemporaries();
  const Status written = WriteFiles(copy, folder, progress);
  if (!written.ok()) {
    folder.RemoveTemporaries();
    return written.code() == Code::kNoSpace ? NoSpace(copy, folder) : written;
  }
  DropLaterSteps(folder, json::GetInt(copy.index, {"step"}), copy.made);
  return folder.Sync();
}

}  // namespace swell::process
