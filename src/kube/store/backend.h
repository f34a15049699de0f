// Backend: where the store's state is durable. SQLite in production, memory in tests, and memory
// with faults in simulation.
// - Threads: called by the store, on its thread; `done` runs there too, whatever thread writes.
// - Ownership: the store's; destroying a backend waits for a commit under way.
// - Invariants: what `done` said OK of is there after a power cut; a batch is there whole or not at
//   all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "kube/store/store.h"

namespace swell::store {

struct Change {
  EventType type;
  EntryPtr entry;
};

class Backend {
 public:
  virtual ~Backend() = default;
  struct Loaded {
    uint64_t version = 0;
    std::vector<EntryPtr> entries;
  };
  // Once, before anything else. Blocking.
  virtual Result<Loaded> Load() = 0;
  // Makes the changes durable as one transaction, then calls `done` on the executor given at
  // construction. Called again only after `done`: one batch at a time, so that what arrives
  // meanwhile forms the next group.
  virtual void Commit(std::vector<Change> batch, std::function<void(const Status&)> done) = 0;
  // How long the disk took for the last one; zero: not known, or nothing to speak of.
  virtual Duration CommitTime() const { return Duration::zero(); }
};

// Encrypts what some objects say, so that the database alone does not tell it.
// - Threads: immutable; any.
class RowSealer {
 public:
  virtual ~RowSealer() = default;
  // Whether objects of the resource are encrypted on disk.
  virtual bool Seals(std::string_view resource) const = 0;
  // A text that begins with kSealedPrefix.
  virtual Result<std::string> Seal(const Key& key, std::string_view plain) const = 0;
  // kUnauthorized says which key is missing or wrong, and what to do.
  virtual Result<std::string> Open(const Key& key, std::string_view stored) const = 0;
  // Whether it was sealed with the key that Seal() uses now.
  virtual bool IsCurrent(std::string_view stored) const = 0;
};
// No JSON begins with it.
inline constexpr std::string_view kSealedPrefix = "swell-sealed:";

// SQLite in WAL mode, synchronous=FULL, on a thread of its own. `path` is the database file.
// A file that is not ours or is corrupt is refused and left untouched. Without a clock commits are
// not timed; it must outlive the backend. With a sealer, Load() also encrypts what the database has
// in plain text or under an earlier key; without one, a database with encrypted rows is refused.
Result<std::unique_ptr<Backend>> OpenSqliteBackend(
    Executor& executor,
    const std::string& path,
    const Clock* clock = nullptr,
    std::shared_ptr<const RowSealer> sealer = nullptr);

// Writes a database of its own that holds just this. The file must not be there yet. Blocking; on
// any thread.
Status WriteDatabase(const std::string& path,
                     const Store::Snapshot& snapshot,
                     std::shared_ptr<const RowSealer> sealer = nullptr);
// Reads a database to its end and checks every row; it must not be in use.
Result<Store::Snapshot> ReadDatabase(const std::string& path,
                                     std::shared_ptr<const RowSealer> sealer = nullptr);
// Whether any row is encrypted.
Result<bool> HasSealedRows(const std::string& path);
// Encrypts all that the sealer seals with its current key, in one transaction.
Status SealDatabase(const std::string& path, std::shared_ptr<const RowSealer> sealer);

// Also: MakeFaultyBackend in memory_backend.h.
std::unique_ptr<Backend> MakeMemoryBackend(Executor& executor);

}  // namespace swell::store
