#include "kube/store/gathering_vfs.h"

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

namespace swell::store {
namespace {

constexpr char kName[] = "swell-gathering";
// The system's VFS takes no more than 131,071 bytes at a time.
constexpr size_t kGatherBytes = 120 << 10;

// Begins with what SQLite knows of a file; the system's own file lies behind it.
struct File {
  sqlite3_file base;
  sqlite3_file* real;
  std::string waiting;
  sqlite3_int64 at;  // where it belongs
};

File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }

int Flush(File& file) {
  if (file.waiting.empty()) return SQLITE_OK;
  const int result = file.real->pMethods->xWrite(file.real, file.waiting.data(),
                                                 static_cast<int>(file.waiting.size()), file.at);
  file.waiting.clear();
  return result;
}

int Write(sqlite3_file* base, const void* bytes, int size, sqlite3_int64 at) {
  File& file = Of(base);
  if (at != file.at + static_cast<sqlite3_int64>(file.waiting.size()) ||
      file.waiting.size() + static_cast<size_t>(size) > kGatherBytes) {
    if (const int result = Flush(file); result != SQLITE_OK) return result;
  }
  if (file.waiting.empty()) file.at = at;
  file.waiting.append(static_cast<const char*>(bytes), static_cast<size_t>(size));
  return SQLITE_OK;
}

int Read(sqlite3_file* base, void* bytes, int size, sqlite3_int64 at) {
  File& file = Of(base);
  if (at + size > file.at) {
    if (const int result = Flush(file); result != SQLITE_OK) return result;
  }
  return file.real->pMethods->xRead(file.real, bytes, size, at);
}

// A call of the real file, after what waits was written.
template <auto Method, class... Args>
int Flushed(sqlite3_file* base, Args... args) {
  File& file = Of(base);
  const int result = Flush(file);
  return result == SQLITE_OK ? (file.real->pMethods->*Method)(file.real, args...) : result;
}

// A call that has nothing to do with what the file says.
template <auto Method, class... Args>
int Passed(sqlite3_file* base, Args... args) {
  File& file = Of(base);
  return (file.real->pMethods->*Method)(file.real, args...);
}

int Close(sqlite3_file* base) {
  File& file = Of(base);
  const int written = Flush(file);
  const int closed = file.real->pMethods->xClose(file.real);
  file.~File();
  return written == SQLITE_OK ? closed : written;
}

const sqlite3_io_methods kMethods{
    .iVersion = 1,  // without shared memory and mapped files
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Flushed<&sqlite3_io_methods::xTruncate, sqlite3_int64>,
    .xSync = Flushed<&sqlite3_io_methods::xSync, int>,
    .xFileSize = Flushed<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    .xLock = Passed<&sqlite3_io_methods::xLock, int>,
    .xUnlock = Passed<&sqlite3_io_methods::xUnlock, int>,
    .xCheckReservedLock = Passed<&sqlite3_io_methods::xCheckReservedLock, int*>,
    .xFileControl = Passed<&sqlite3_io_methods::xFileControl, int, void*>,
    .xSectorSize = Passed<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = Passed<&sqlite3_io_methods::xDeviceCharacteristics>,
};

int Open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* base, int flags, int* opened) {
  base->pMethods = nullptr;
  auto* system = static_cast<sqlite3_vfs*>(vfs->pAppData);
  auto* real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(base) + sizeof(File));
  const int result = system->xOpen(system, name, real, flags, opened);
  // SQLite closes what has methods, even when it could not be opened.
  if (real->pMethods != nullptr) new (base) File{{&kMethods}, real, {}, 0};
  return result;
}

// The system's, but for how files are opened: its other functions do not look at whose they are.
sqlite3_vfs* Register() {
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs vfs;
  vfs = *system;
  vfs.szOsFile += static_cast<int>(sizeof(File));
  vfs.zName = kName;
  vfs.pAppData = system;
  vfs.xOpen = Open;
  sqlite3_vfs_register(&vfs, 0);
  return &vfs;
}

}  // namespace

const char* GatheringVfs() {
  static const sqlite3_vfs* const registered = Register();
  return registered->zName;
}

}  // namespace swell::store
