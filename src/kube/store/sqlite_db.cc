#include "kube/store/sqlite_db.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <sqlite3.h>

#include "base/percent.h"
#include "base/strings.h"

namespace swell::store {
namespace {

// A path as a SQLite URI. `immutable` promises that nobody writes: no log and no locks are used.
std::string Uri(const std::string& path, bool immutable) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      AppendPercent(uri, c);
    } else {
      uri += c;
    }
  }
  return uri + (immutable ? "?immutable=1" : "");
}

bool HasLog(const std::string& path) {
  struct stat info;
  return ::stat((path + "-wal").c_str(), &info) == 0 && info.st_size > 0;
}

int NoteWalPages(void* pages, sqlite3*, const char*, int n) {
  *static_cast<int*>(pages) = n;
  return SQLITE_OK;
}

// EFBIG: the process' own limit on file sizes, full in all but name.
bool MeansFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// The system's error behind an I/O error. What sqlite3_system_errno keeps may be gone by the time
// the statement has cleaned up; the files remember their own.
int SystemError(sqlite3* db) {
  int error = sqlite3_system_errno(db);
  for (int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(db, "main", which, &file) != SQLITE_OK) continue;
    if (file == nullptr || file->pMethods == nullptr) continue;
    int last = 0;
    if (file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &last) != SQLITE_OK) continue;
    if (MeansFull(last) || error == 0) error = last;
  }
  return error;
}

}  // namespace

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), db_(other.db_) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
  std::swap(statement_, other.statement_);
  std::swap(db_, other.db_);
  std::swap(next_, other.next_);
  return *this;
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

SqliteStatement& SqliteStatement::Bind(int64_t number) {
  sqlite3_bind_int64(statement_, next_++, number);
  return *this;
}

SqliteStatement& SqliteStatement::Bind(std::string_view text) {
  sqlite3_bind_text64(statement_, next_++, text.data() ? text.data() : "", text.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

SqliteStatement& SqliteStatement::BindBlob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_, next_++, bytes.data() ? bytes.data() : "", bytes.size(),
                      SQLITE_STATIC);
  return *this;
}

int SqliteStatement::Step() { return sqlite3_step(statement_); }

int SqliteStatement::Run() {
  int result = sqlite3_step(statement_);
  sqlite3_reset(statement_);
  next_ = 1;
  return result == SQLITE_DONE || result == SQLITE_ROW ? 0 : result;
}

int64_t SqliteStatement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

std::string_view SqliteStatement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  int size = sqlite3_column_bytes(statement_, column);
  if (bytes == nullptr || size <= 0) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

Result<std::unique_ptr<SqliteDb>> SqliteDb::Open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::kReadOnly    ? SQLITE_OPEN_READONLY
           : mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE
                                      : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  // Without a log to replay, reading as immutable creates no files beside the database.
  std::string uri = Uri(path, mode == Mode::kReadOnly && !HasLog(path));
  int result = sqlite3_open_v2(uri.c_str(), &raw, flags, nullptr);
  if (raw == nullptr) return Status(Code::kInternal, StrCat(path, ": out of memory"));
  std::unique_ptr<SqliteDb> db(new SqliteDb(raw, path));
  if (result != SQLITE_OK) return db->Error("open");
  sqlite3_busy_timeout(raw, 2000);
  return db;
}

SqliteDb::~SqliteDb() { sqlite3_close_v2(db_); }

Status SqliteDb::Execute(const char* sql) {
  // Ours replaces SQLite's own, which would checkpoint in the middle of things.
  sqlite3_wal_hook(db_, NoteWalPages, &wal_pages_);
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Error(sql);
  return Status::Ok();
}

Result<SqliteStatement> SqliteDb::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                  SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return Error(sql);
  return SqliteStatement(statement, db_);
}

Result<std::string> SqliteDb::QueryText(std::string_view sql) {
  SWELL_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  if (statement.Step() != SQLITE_ROW) return Error(sql);
  return std::string(statement.Bytes(0));
}

Status SqliteDb::Error(std::string_view what) const {
  int result = sqlite3_extended_errcode(db_);
  std::string message = sqlite3_errmsg(db_);
  bool io = (result & 0xff) == SQLITE_IOERR || (result & 0xff) == SQLITE_CANTOPEN;
  int error = io ? SystemError(db_) : 0;
  if ((result & 0xff) == SQLITE_FULL || MeansFull(error)) {
    return Status(Code::kNoSpace, StrCat(path_, ": the disk is full: ", message));
  }
  std::string cause = error != 0 ? StrCat(" (", std::strerror(error), ")") : "";
  return Status(Code::kInternal, StrCat(path_, ": ", what, ": ", message, cause));
}

void SqliteDb::RollBack() {
  if (sqlite3_get_autocommit(db_) == 0) {
    sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Status SqliteDb::Checkpoint() {
  int log = 0;
  int copied = 0;
  int result = sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &log, &copied);
  if (result != SQLITE_OK) return Error("checkpoint");
  // All copied: the next commit starts the log from its beginning.
  wal_pages_ = log == copied ? 0 : log;
  return Status::Ok();
}

}  // namespace swell::store
