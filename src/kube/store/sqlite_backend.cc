// The file's format, version 1: a SQLite database in WAL mode with application_id "SWEL".
//   objects(id, resource, ns, name, version, attributes, bytes, checksum)   one row per object
//   meta(key, value)        'version': the newest version, which may be that of a deletion
// `bytes` of some resources are encrypted (RowSealer); the checksum is that of what is stored.
// There is no index on the names: the committer knows every object's row.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "kube/store/backend.h"
#include "kube/store/entry_codec.h"
#include "kube/store/sqlite_db.h"

namespace swell::store {
namespace {

constexpr uint32_t kApplicationId = 0x5357454c;  // "SWEL"
constexpr uint32_t kFormatVersion = 1;
constexpr int kRow = 100;   // SQLITE_ROW
constexpr int kDone = 101;  // SQLITE_DONE
// The log is copied into the database when it has this number of pages. It is so small that commits
// wait some milliseconds at most for the copying.
constexpr int kCheckpointPages = 2000;
constexpr size_t kLogBytes = (kCheckpointPages + 256) * size_t{4096 + 24};

constexpr char kCreateSql[] =
    "PRAGMA page_size=4096; PRAGMA application_id=1398228300; PRAGMA user_version=1;"
    "BEGIN;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, resource TEXT NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, version INTEGER NOT NULL, attributes BLOB NOT NULL,"
    " bytes BLOB NOT NULL, checksum INTEGER NOT NULL);"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('version', 0);"
    "COMMIT;";
static_assert(kApplicationId == 1398228300);

// ---- The lock -----------------------------------------------------------------------------------

// Held as long as the backend lives; the system drops it when the process ends, however it does.
class LockFile {
 public:
  static Result<std::unique_ptr<LockFile>> Take(const std::string& database) {
    std::string path = database + ".lock";
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return ErrnoStatus(errno, "open " + path);
    std::unique_ptr<LockFile> lock(new LockFile(fd));
    char buffer[32] = {};
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      ssize_t n = ::pread(fd, buffer, sizeof buffer - 1, 0);
      auto pid = ParseUint(Trim(std::string_view(buffer, n > 0 ? static_cast<size_t>(n) : 0)));
      return Status(Code::kUnavailable, StrCat(database, ": in use by another process",
                                               pid ? StrCat(" (pid ", *pid, ")") : std::string()));
    }
    // For people, and for the message above; the lock itself does not need it.
    std::string pid = StrCat(::getpid(), "\n");
    if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
      SWELL_LOG_DEBUG("store", "process id not written", {"file", path});
    }
    return lock;
  }
  ~LockFile() { ::close(fd_); }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  const int fd_;
};

// ---- Whose file is it ---------------------------------------------------------------------------

Status Refuse(const std::string& path, std::string_view why, std::string_view remedy) {
  return Status(Code::kInternal, StrCat(path, ": ", why, "; the file was left as it is. ", remedy));
}

// The file cannot be read. The data directory is the one around it.
Status RefuseUnreadable(const std::string& path, std::string_view why) {
  return Refuse(path, why,
                StrCat("Restore a backup: swell restore --force --data-dir ",
                       std::filesystem::path(path).parent_path().string(),
                       " FILE; or start a new cluster with another --data-dir"));
}

// Looks at the file's header without SQLite, so that a foreign file meets nothing that could
// write. `exists` is false for a file that is missing or empty.
Status CheckHeader(const std::string& path, bool* exists) {
  *exists = false;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Status::Ok() : ErrnoStatus(errno, "open " + path);
  unsigned char header[100];
  ssize_t size = ::read(fd, header, sizeof header);
  int error = errno;
  ::close(fd);
  if (size < 0) return ErrnoStatus(error, "read " + path);
  if (size == 0) return Status::Ok();
  *exists = true;
  std::string_view magic("SQLite format 3\0", 16);
  bool sqlite =
      size == sizeof header && std::string_view(reinterpret_cast<char*>(header), 16) == magic;
  auto number = [&header](size_t at) {
    return static_cast<uint32_t>(header[at]) << 24 | static_cast<uint32_t>(header[at + 1]) << 16 |
           static_cast<uint32_t>(header[at + 2]) << 8 | header[at + 3];
  };
  constexpr size_t kUserVersion = 60;
  constexpr size_t kApplication = 68;
  if (!sqlite) return RefuseUnreadable(path, "not a Swell database (no SQLite header)");
  if (number(kApplication) != kApplicationId) {
    return RefuseUnreadable(path, "not a Swell database (another program's SQLite database)");
  }
  if (number(kUserVersion) != kFormatVersion) {
    return Refuse(
        path,
        StrCat("written in format ", number(kUserVersion), ", this Swell knows ", kFormatVersion),
        "Use a Swell that knows the file's format");
  }
  return Status::Ok();
}

Status SyncDirectoryOf(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + directory);
  int result = ::fsync(fd);
  int error = errno;
  ::close(fd);
  return result == 0 ? Status::Ok() : ErrnoStatus(error, "fsync " + directory);
}

// Makes the log as long as it will get: overwriting a file's bytes syncs many times faster than
// growing it. SQLite takes zeros for the log's end. Without room for it the log grows as it goes.
void ReserveLog(const std::string& path, size_t bytes) {
  int fd = ::open((path + "-wal").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info;
  const std::string zeros(1 << 20, '\0');
  if (::fstat(fd, &info) == 0) {
    size_t size = static_cast<size_t>(info.st_size);
    size_t end = size;
    while (end < bytes) {
      size_t count = std::min(zeros.size(), bytes - end);
      ssize_t n = ::pwrite(fd, zeros.data(), count, static_cast<off_t>(end));
      if (n <= 0) break;
      end += static_cast<size_t>(n);
    }
    bool fits = end >= bytes && ::fsync(fd) == 0;
    if (!fits && ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
      SWELL_LOG_WARNING("store", "log not cut back", {"file", path + "-wal"});
    }
  }
  ::close(fd);
}

// Under another name first: the database is complete or absent, never half made.
Status CreateDatabase(const std::string& path) {
  std::string fresh = path + ".new";
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    SWELL_RETURN_IF_ERROR(RemoveTree(fresh + suffix));
  }
  // A log beside a missing database belongs to nothing; SQLite must not replay it.
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    SWELL_RETURN_IF_ERROR(RemoveTree(path + suffix));
  }
  // It holds Secrets: for its owner alone. The log gets the same mode.
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, "create " + fresh);
  ::close(fd);
  {
    SWELL_ASSIGN_OR_RETURN(auto db, SqliteDb::Open(fresh, SqliteDb::Mode::kCreate));
    SWELL_RETURN_IF_ERROR(db->Execute(kCreateSql));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "rename to " + path);
  return SyncDirectoryOf(path);
}

// ---- The backend --------------------------------------------------------------------------------

std::string IdKey(const Key& key) {
  std::string text;
  text.reserve(key.resource.size() + key.ns.size() + key.name.size() + 2);
  text.append(key.resource).append(1, '\0').append(key.ns).append(1, '\0').append(key.name);
  return text;
}

class SqliteBackend final : public Backend {
 public:
  SqliteBackend(Executor& executor,
                std::string path,
                std::unique_ptr<LockFile> lock,
                std::shared_ptr<const RowSealer> sealer,
                const Clock* clock = nullptr)
      : executor_(executor),
        path_(std::move(path)),
        lock_(std::move(lock)),
        clock_(clock),
        sealer_(std::move(sealer)) {}

  ~SqliteBackend() override {
    if (!thread_.joinable()) return;
    {
      MutexLock hold(mutex_);
      stopping_ = true;
    }
    wake_.NotifyOne();
    thread_.join();
  }

  Result<Loaded> Load() override;
  // Blocking, instead of Load and Commit.
  Result<Loaded> ReadAll() { return ReadEverything(); }
  Status WriteAll(const Store::Snapshot& snapshot);
  // Blocking, instead of Load and Commit: reads everything and encrypts it anew.
  Status SealAll();

  void Commit(std::vector<Change> batch, std::function<void(const Status&)> done) override {
    {
      MutexLock hold(mutex_);
      job_ = Job{std::move(batch), std::move(done)};
      has_job_ = true;
    }
    wake_.NotifyOne();
  }
  Duration CommitTime() const override { return commit_time_.load(std::memory_order_relaxed); }

 private:
  struct Job {
    std::vector<Change> batch;
    std::function<void(const Status&)> done;
  };

  Result<Loaded> ReadEverything();
  Result<Loaded> ReadRows();
  Status CheckStructure() const;
  Result<EntryPtr> ReadEntry(const SqliteStatement& row);
  Result<std::string> OpenRow(const Key& key, std::string_view bytes);
  Status SealStale();
  Status OpenForWriting();
  void RunCommitter();
  Status WriteBatch(const std::vector<Change>& batch);
  Status WriteChanges(const std::vector<Change>& batch);
  Status WriteChange(const Change& change);
  void CheckpointWhenLarge();

  Executor& executor_;
  const std::string path_;
  const std::unique_ptr<LockFile> lock_;
  const Clock* const clock_;                       // or null
  const std::shared_ptr<const RowSealer> sealer_;  // or null
  std::atomic<Duration> commit_time_{Duration::zero()};

  Mutex mutex_;
  CondVar wake_;
  Job job_ SWELL_GUARDED_BY(mutex_);
  bool has_job_ SWELL_GUARDED_BY(mutex_) = false;
  bool stopping_ SWELL_GUARDED_BY(mutex_) = false;

  // The loading thread's until the committer starts, the committer's from then on.
  std::unique_ptr<SqliteDb> db_;
  SqliteStatement begin_, commit_, insert_, update_, delete_, set_version_;
  std::unordered_map<std::string, int64_t> ids_;  // object → row
  int64_t next_id_ = 1;
  std::vector<EntryPtr> stale_;  // stored in plain text, or under an earlier key
  bool plain_ = false;           // one of them in plain text
  std::vector<std::pair<std::string, int64_t>> undo_;  // (object, its row before; 0: none)
  int checkpoint_pages_ = kCheckpointPages;
  std::thread thread_;
};

Result<Backend::Loaded> SqliteBackend::Load() {
  auto loaded = ReadEverything();
  if (!loaded.ok()) return loaded.status();
  SWELL_RETURN_IF_ERROR(OpenForWriting());
  SWELL_RETURN_IF_ERROR(SealStale());
  thread_ = std::thread([this] { RunCommitter(); });
  return loaded;
}

Status SqliteBackend::SealAll() {
  SWELL_RETURN_IF_ERROR(ReadEverything().status());
  SWELL_RETURN_IF_ERROR(OpenForWriting());
  SWELL_RETURN_IF_ERROR(SealStale());
  return db_->Checkpoint();
}

// In one transaction: a rotation that was interrupted begins again.
Status SqliteBackend::SealStale() {
  if (stale_.empty()) return Status::Ok();
  // What is overwritten is gone from the file, too.
  SWELL_RETURN_IF_ERROR(db_->Execute("PRAGMA secure_delete=ON"));
  if (begin_.Run() != 0) return db_->Error("begin");
  for (const EntryPtr& entry : stale_) {
    const Status written = WriteChange({EventType::kModified, entry});
    if (!written.ok()) {
      db_->RollBack();
      return written;
    }
  }
  if (commit_.Run() != 0) return db_->Error("commit");
  undo_.clear();
  stale_.clear();
  SWELL_RETURN_IF_ERROR(db_->Checkpoint());
  if (!std::exchange(plain_, false)) return Status::Ok();
  // Pages that were freed before still have old texts.
  SWELL_RETURN_IF_ERROR(db_->Execute("VACUUM"));
  return db_->Checkpoint();
}

Status SqliteBackend::WriteAll(const Store::Snapshot& snapshot) {
  SWELL_RETURN_IF_ERROR(OpenForWriting());
  std::vector<Change> changes;
  changes.reserve(snapshot.entries.size());
  for (const EntryPtr& entry : snapshot.entries) changes.push_back({EventType::kAdded, entry});
  if (!changes.empty()) SWELL_RETURN_IF_ERROR(WriteBatch(changes));
  // The newest version may be that of a deletion.
  if (set_version_.Bind(static_cast<int64_t>(snapshot.version)).Run() != 0) {
    return db_->Error("version");
  }
  return db_->Checkpoint();
}

// Everything is read through a connection that cannot write, and every row checked, before one
// that can is opened.
Result<Backend::Loaded> SqliteBackend::ReadEverything() {
  auto damaged = [this](std::string_view what) {
    return RefuseUnreadable(path_, StrCat("the database is damaged (", what, ")"));
  };
  // The structure of the file is checked beside, through a connection of its own.
  Status structure;
  std::thread checker([this, &structure] { structure = CheckStructure(); });
  Result<Loaded> loaded = ReadRows();
  checker.join();
  if (!loaded.ok() && loaded.status().code() == Code::kUnauthorized) {
    return loaded.status().WithContext(path_);
  }
  if (!loaded.ok()) return damaged(loaded.status().message());
  if (!structure.ok()) return damaged(structure.message());
  return loaded;
}

Status SqliteBackend::CheckStructure() const {
  SWELL_ASSIGN_OR_RETURN(auto db, SqliteDb::Open(path_, SqliteDb::Mode::kReadOnly));
  SWELL_ASSIGN_OR_RETURN(std::string verdict, db->QueryText("PRAGMA quick_check(1)"));
  return verdict == "ok" ? Status::Ok() : Status(Code::kInternal, verdict);
}

Result<Backend::Loaded> SqliteBackend::ReadRows() {
  auto damaged = [](std::string what) { return Status(Code::kInternal, std::move(what)); };
  Loaded loaded;
  SWELL_ASSIGN_OR_RETURN(auto db, SqliteDb::Open(path_, SqliteDb::Mode::kReadOnly));
  SWELL_ASSIGN_OR_RETURN(std::string version,
                         db->QueryText("SELECT value FROM meta WHERE key='version'"));
  auto number = ParseUint(version);
  if (!number) return damaged(StrCat("version ", Quote(version)));
  loaded.version = *number;
  SWELL_ASSIGN_OR_RETURN(std::string newest_id,
                         db->QueryText("SELECT ifnull(max(id), 0) FROM objects"));
  size_t guess = ParseUint(newest_id).value_or(0);
  ids_.reserve(std::min<size_t>(guess, 1'000'000));
  loaded.entries.reserve(std::min<size_t>(guess, 1'000'000));
  SWELL_ASSIGN_OR_RETURN(
      auto rows, db->Prepare("SELECT id, resource, ns, name, version, attributes, bytes, checksum "
                             "FROM objects"));
  int result;
  while ((result = rows.Step()) == kRow) {
    SWELL_ASSIGN_OR_RETURN(EntryPtr entry, ReadEntry(rows));
    if (entry->version > loaded.version) return damaged("an object newer than the database");
    if (!ids_.emplace(IdKey(entry->key), rows.Int(0)).second) {
      return damaged(StrCat(entry->key.resource, " ", entry->key.name, " twice"));
    }
    next_id_ = std::max(next_id_, rows.Int(0) + 1);
    loaded.entries.push_back(std::move(entry));
  }
  if (result != kDone) return db->Error("read");
  return loaded;
}

Result<EntryPtr> SqliteBackend::ReadEntry(const SqliteStatement& row) {
  Key key{std::string(row.Bytes(1)), std::string(row.Bytes(2)), std::string(row.Bytes(3))};
  uint64_t version = static_cast<uint64_t>(row.Int(4));
  std::string_view attributes = row.Bytes(5);
  std::string_view bytes = row.Bytes(6);
  uint64_t sum = EntryChecksum(key, version, attributes, bytes);
  auto decoded = DecodeAttributes(attributes);
  if (sum != static_cast<uint64_t>(row.Int(7)) || !decoded) {
    return Status(Code::kInternal, StrCat("the checksum of ", Quote(key.resource), " ",
                                          Quote(key.ns + "/" + key.name), " is wrong"));
  }
  SWELL_ASSIGN_OR_RETURN(std::string text, OpenRow(key, bytes));
  auto entry =
      std::make_shared<const Entry>(std::move(key), version, std::move(text), std::move(*decoded));
  const bool sealed = bytes.starts_with(kSealedPrefix);
  if (sealer_ != nullptr && sealer_->Seals(entry->key.resource) &&
      (!sealed || !sealer_->IsCurrent(bytes))) {
    plain_ |= !sealed;
    stale_.push_back(entry);
  }
  return EntryPtr(std::move(entry));
}

Result<std::string> SqliteBackend::OpenRow(const Key& key, std::string_view bytes) {
  if (!bytes.starts_with(kSealedPrefix)) return std::string(bytes);
  if (sealer_ != nullptr) return sealer_->Open(key, bytes);
  return Status(Code::kUnauthorized, StrCat(key.resource, " ", Quote(key.ns + "/" + key.name),
                                            " is encrypted, and this command has no key of it"));
}

Status SqliteBackend::OpenForWriting() {
  SWELL_ASSIGN_OR_RETURN(db_, SqliteDb::Open(path_, SqliteDb::Mode::kReadWrite));
  // Exclusive: the log's index stays in this process' memory, where no full disk can hurt it.
  SWELL_RETURN_IF_ERROR(db_->Execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;"
      "PRAGMA cache_size=-4096; PRAGMA journal_size_limit=67108864;"));
  SWELL_ASSIGN_OR_RETURN(std::string mode, db_->QueryText("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return Status(Code::kInternal, StrCat(path_, ": no write-ahead log here (", mode, ")"));
  }
  SWELL_RETURN_IF_ERROR(db_->Execute("PRAGMA synchronous=FULL"));
  // Touches the database, so that the log exists; on a full disk the store still opens.
  Status touched = db_->Execute("UPDATE meta SET value=value WHERE key='version'");
  if (touched.ok()) ReserveLog(path_, kLogBytes);
  SWELL_ASSIGN_OR_RETURN(begin_, db_->Prepare("BEGIN IMMEDIATE"));
  SWELL_ASSIGN_OR_RETURN(commit_, db_->Prepare("COMMIT"));
  SWELL_ASSIGN_OR_RETURN(
      insert_, db_->Prepare("INSERT INTO objects(id, resource, ns, name, version, attributes, "
                            "bytes, checksum) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  SWELL_ASSIGN_OR_RETURN(
      update_, db_->Prepare("UPDATE objects SET version=?, attributes=?, bytes=?, checksum=? "
                            "WHERE id=?"));
  SWELL_ASSIGN_OR_RETURN(delete_, db_->Prepare("DELETE FROM objects WHERE id=?"));
  SWELL_ASSIGN_OR_RETURN(set_version_, db_->Prepare("UPDATE meta SET value=? WHERE key='version'"));
  return Status::Ok();
}

void SqliteBackend::RunCommitter() {
  while (true) {
    Job job;
    {
      MutexLock hold(mutex_);
      while (!has_job_ && !stopping_) wake_.Wait(mutex_);
      if (!has_job_) break;
      job = std::move(job_);
      has_job_ = false;
    }
    Status status = WriteBatch(job.batch);
    executor_.Post([done = std::move(job.done), status] { done(status); });
    CheckpointWhenLarge();
  }
  // Closed by the thread that used it last; closing copies the log and removes it.
  for (SqliteStatement* statement :
       {&begin_, &commit_, &insert_, &update_, &delete_, &set_version_}) {
    *statement = SqliteStatement();
  }
  db_.reset();
}

Status SqliteBackend::WriteBatch(const std::vector<Change>& batch) {
  undo_.clear();
  int64_t first_new_id = next_id_;
  Status status = WriteChanges(batch);
  if (status.ok()) return status;
  db_->RollBack();
  for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) {
    if (it->second == 0) {
      ids_.erase(it->first);
    } else {
      ids_[it->first] = it->second;
    }
  }
  next_id_ = first_new_id;
  return status;
}

Status SqliteBackend::WriteChanges(const std::vector<Change>& batch) {
  if (begin_.Run() != 0) return db_->Error("begin");
  // Where one object changed several times, only the last change needs to reach the disk.
  std::unordered_map<const Change*, bool> superseded;
  if (batch.size() > 1) {
    std::unordered_map<std::string, const Change*> last;
    for (const Change& change : batch) {
      const Change*& slot = last[IdKey(change.entry->key)];
      if (slot != nullptr) superseded[slot] = true;
      slot = &change;
    }
  }
  for (const Change& change : batch) {
    if (!superseded.empty() && superseded.count(&change) > 0) continue;
    SWELL_RETURN_IF_ERROR(WriteChange(change));
  }
  uint64_t version = batch.back().entry->version;
  if (set_version_.Bind(static_cast<int64_t>(version)).Run() != 0) return db_->Error("version");
  const SteadyTime begin = clock_ != nullptr ? clock_->Steady() : SteadyTime();
  if (commit_.Run() != 0) return db_->Error("commit");
  if (clock_ != nullptr) commit_time_ = clock_->Steady() - begin;
  return Status::Ok();
}

Status SqliteBackend::WriteChange(const Change& change) {
  const Entry& entry = *change.entry;
  std::string id_key = IdKey(entry.key);
  auto known = ids_.find(id_key);
  int64_t id = known == ids_.end() ? 0 : known->second;
  if (change.type == EventType::kDeleted) {
    if (id == 0) return Status::Ok();  // made and deleted within one batch
    undo_.emplace_back(id_key, id);
    ids_.erase(known);
    return delete_.Bind(id).Run() == 0 ? Status::Ok() : db_->Error("delete");
  }
  std::string attributes = EncodeAttributes(entry.attributes);
  int64_t version = static_cast<int64_t>(entry.version);
  std::string sealed;
  if (sealer_ != nullptr && sealer_->Seals(entry.key.resource)) {
    SWELL_ASSIGN_OR_RETURN(sealed, sealer_->Seal(entry.key, *entry.text));
  }
  const std::string& bytes = sealed.empty() ? *entry.text : sealed;
  int64_t checksum =
      static_cast<int64_t>(EntryChecksum(entry.key, entry.version, attributes, bytes));
  if (id != 0) {
    update_.Bind(version).BindBlob(attributes).BindBlob(bytes).Bind(checksum).Bind(id);
    return update_.Run() == 0 ? Status::Ok() : db_->Error("update");
  }
  id = next_id_++;
  undo_.emplace_back(id_key, 0);
  ids_.emplace(std::move(id_key), id);
  insert_.Bind(id).Bind(entry.key.resource).Bind(entry.key.ns).Bind(entry.key.name);
  insert_.Bind(version).BindBlob(attributes).BindBlob(bytes).Bind(checksum);
  return insert_.Run() == 0 ? Status::Ok() : db_->Error("insert");
}

void SqliteBackend::CheckpointWhenLarge() {
  if (db_->wal_pages() < checkpoint_pages_) return;
  Status status = db_->Checkpoint();
  if (status.ok()) {
    checkpoint_pages_ = kCheckpointPages;
    return;
  }
  // The log keeps what is committed; try again when it has grown, not at every commit.
  checkpoint_pages_ = db_->wal_pages() + kCheckpointPages;
  SWELL_LOG_WARNING("store", "checkpoint failed", {"error", status.message()});
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenSqliteBackend(Executor& executor,
                                                   const std::string& path,
                                                   const Clock* clock,
                                                   std::shared_ptr<const RowSealer> sealer) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (!directory.empty()) SWELL_RETURN_IF_ERROR(MakeDirs(directory, 0700));
  SWELL_ASSIGN_OR_RETURN(auto lock, LockFile::Take(path));
  bool exists = false;
  SWELL_RETURN_IF_ERROR(CheckHeader(path, &exists));
  if (!exists) SWELL_RETURN_IF_ERROR(CreateDatabase(path));
  return std::unique_ptr<Backend>(
      std::make_unique<SqliteBackend>(executor, path, std::move(lock), std::move(sealer), clock));
}

namespace {

// For backends that commit nothing.
class NoExecutor final : public Executor {
 public:
  void Post(std::function<void()>) override {}
  TimerId After(Duration, std::function<void()>) override { return kNoTimer; }
  void Cancel(TimerId) override {}
  bool OnThread() const override { return true; }
};

}  // namespace

Status WriteDatabase(const std::string& path,
                     const Store::Snapshot& snapshot,
                     std::shared_ptr<const RowSealer> sealer) {
  if (FileExists(path)) {
    return Status(Code::kAlreadyExists, StrCat(path, ": there is such a file already"));
  }
  NoExecutor none;
  {
    SWELL_ASSIGN_OR_RETURN(auto lock, LockFile::Take(path));
    SWELL_RETURN_IF_ERROR(CreateDatabase(path));
    SqliteBackend backend(none, path, std::move(lock), std::move(sealer));
    SWELL_RETURN_IF_ERROR(backend.WriteAll(snapshot));
  }
  return RemoveTree(path + ".lock");
}

Result<Store::Snapshot> ReadDatabase(const std::string& path,
                                     std::shared_ptr<const RowSealer> sealer) {
  bool exists = false;
  SWELL_RETURN_IF_ERROR(CheckHeader(path, &exists));
  if (!exists) return Status(Code::kNotFound, StrCat(path, ": there is no such database"));
  NoExecutor none;
  SWELL_ASSIGN_OR_RETURN(auto lock, LockFile::Take(path));
  SqliteBackend backend(none, path, std::move(lock), std::move(sealer));
  SWELL_ASSIGN_OR_RETURN(Backend::Loaded loaded, backend.ReadAll());
  return Store::Snapshot{std::move(loaded.entries), loaded.version};
}

Result<bool> HasSealedRows(const std::string& path) {
  bool exists = false;
  SWELL_RETURN_IF_ERROR(CheckHeader(path, &exists));
  if (!exists) return false;
  SWELL_ASSIGN_OR_RETURN(auto db, SqliteDb::Open(path, SqliteDb::Mode::kReadOnly));
  SWELL_ASSIGN_OR_RETURN(
      const std::string count,
      db->QueryText(StrCat("SELECT count(*) FROM objects WHERE substr(bytes, 1, ",
                           kSealedPrefix.size(), ") = CAST('", kSealedPrefix, "' AS BLOB)")));
  return count != "0";
}

Status SealDatabase(const std::string& path, std::shared_ptr<const RowSealer> sealer) {
  bool exists = false;
  SWELL_RETURN_IF_ERROR(CheckHeader(path, &exists));
  if (!exists) return Status(Code::kNotFound, StrCat(path, ": there is no such database"));
  NoExecutor none;
  SWELL_ASSIGN_OR_RETURN(auto lock, LockFile::Take(path));
  SqliteBackend backend(none, path, std::move(lock), std::move(sealer));
  return backend.SealAll();
}

}  // namespace swell::store
