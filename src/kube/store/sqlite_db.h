// The little of SQLite that the store and the history of the pages use, with statuses that name the
// file.
// - Threads: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace swell::store {

// A prepared statement. Texts and blobs bound must live until Run or the last Step.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(sqlite3_stmt* statement, sqlite3* db) : statement_(statement), db_(db) {}
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  SqliteStatement& Bind(int64_t number);
  SqliteStatement& Bind(std::string_view text);
  SqliteStatement& BindBlob(std::string_view bytes);
  // A result code: SQLITE_ROW, SQLITE_DONE or an error.
  int Step();
  // Runs to the end without rows, and is ready to be bound again. The result code: 0 is fine.
  int Run();

  int64_t Int(int column) const;
  std::string_view Bytes(int column) const;  // of texts and blobs; until the next Step

 private:
  sqlite3_stmt* statement_ = nullptr;
  sqlite3* db_ = nullptr;
  int next_ = 1;
};

class SqliteDb {
 public:
  enum class Mode { kReadOnly, kReadWrite, kCreate };
  static Result<std::unique_ptr<SqliteDb>> Open(const std::string& path, Mode mode);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // One or several statements; their rows are dropped.
  Status Execute(const char* sql);
  Result<SqliteStatement> Prepare(std::string_view sql);
  // The first column of the first row.
  Result<std::string> QueryText(std::string_view sql);
  // The error of the last call. kNoSpace when the disk is full.
  Status Error(std::string_view what) const;
  void RollBack();

  // Pages in the write-ahead log after the last commit.
  int wal_pages() const { return wal_pages_; }
  // Copies the log into the database as far as possible.
  Status Checkpoint();

 private:
  SqliteDb(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  sqlite3* db_;
  const std::string path_;
  int wal_pages_ = 0;
};

}  // namespace swell::store
