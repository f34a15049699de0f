// ClusterRecord: what an embedded cluster knows of itself from its last start (DIR/cluster.json):
// the flags that gave it its shape, and which keys it has.
//
// - Threads: main thread, before the cluster runs; plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "ops/data_dir.h"

namespace swell::ops {

struct ClusterRecord {
  std::map<std::string, std::string> flags;  // "nodes" → "3"; those that were given
  std::string authority, account_key;        // digests of pki/ca.crt and pki/sa.key
  uint16_t port = 0;                         // of the API server; 0: an older record has none
};

// nullopt: the directory has no record, as one that is new or older.
Result<std::optional<ClusterRecord>> ReadClusterRecord(const DataDir& dir);
Status WriteClusterRecord(const DataDir& dir, const ClusterRecord& record);

// What a start may change about a cluster that was started before.
struct AllowedChanges {
  bool shape = false;  // --reshape: the record may be missing, only the user's flags count
  bool keys = false;   // --new-keys: missing and other keys are accepted
};

// Gives flags that the user left out the values of the record. Flags that the user gave and that
// say something else are an error, unless the shape may change. Answers the shape that the cluster
// now has.
Result<std::map<std::string, std::string>> TakeShape(const cli::Flags& flags,
                                                     const std::optional<ClusterRecord>& record,
                                                     const AllowedChanges& allowed);

// Refuses a directory whose database or keys are missing, empty, readable by others or not those of
// the record, before anything is made anew.
Status CheckClusterFiles(const DataDir& dir,
                         const std::optional<ClusterRecord>& record,
                         const AllowedChanges& allowed);
// Refuses a directory whose cluster runs.
Status CheckNotRunning(const DataDir& dir, const AllowedChanges& allowed);
// If the file of the port was lost, writes it again from the record: kubeconfigs name this port.
Status KeepPort(const DataDir& dir, const std::optional<ClusterRecord>& record);
// Refuses a directory with files of other kinds and nothing of a cluster: --data-dir named a wrong
// one, whose files a cluster would lie among.
Status CheckDirectoryIsOurs(const DataDir& dir);
// The digests and the port as they are now; empty where there is no file.
void TakeFiles(const DataDir& dir, ClusterRecord& record);

}  // namespace swell::ops
