// SQLite's files with small writes gathered into large ones. Private to store/.
//
// SQLite writes its log in pieces of 24 and 4096 bytes, one system call each, and copies it into
// the database a page at a time: with many changes in a transaction those calls cost more than all
// else the store's thread does. Here writes that follow each other in a file wait in memory, and
// reach it together: at the latest before it is synced, cut, measured, closed, or read where they
// are. What a commit or a checkpoint has synced is in the files, as ever; what is lost when the
// process dies is what nobody was promised.
//
// - Threads: as SQLite's own; each file by one thread at a time. An error of a write that waited is
//   told by the call that had it written; the rest of what waited is dropped, since SQLite then
//   takes the transaction back. Files are opened for one connection alone: there is no shared
//   memory (locking_mode=EXCLUSIVE).
#pragma once

namespace swell::store {

// The name by which sqlite3_open_v2 knows it.
const char* GatheringVfs();

}  // namespace swell::store
