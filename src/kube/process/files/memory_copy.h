// MemoryCopy: the state of a training process as it left it in shared memory, and the checkpoint on
// disk that is made of it. A process that must leave its GPU copies its state to memory, which
// takes a moment, and exits; the slow disk comes afterwards ("snapshot and persist": CheckFreq,
// FAST 2021; Gemini, SOSP 2023). sdk/python/swell/memory.py has the layout of the copy,
// sdk/python/swell/checkpoint.py that of the checkpoint.
//
// - Threads: any; blocking file operations, as long as the disk takes for the whole state.
// - Invariants: the pod's user wrote every byte that is read here. A copy that is not whole, not of
//   the folder's run or does not fit into its file is refused, and no link is followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "json/value.h"

namespace swell::process {

struct MemoryCopy {
  struct Record {
    std::string name;  // empty: the state is this one record
    uint64_t place = 0;
    uint64_t size = 0;
  };
  UniqueFd file;
  json::Value index;  // {"run", "step", "epoch", "metrics", "time", "codec"}
  std::vector<Record> records;
  timespec made{};
};

// How far the writing of a checkpoint is; another thread may look.
struct WriteProgress {
  std::atomic<int64_t> bytes{0}, written{0};
};

// Opens the copy dir/name, where `name` may lead through folders of `dir`.
Result<MemoryCopy> OpenMemoryCopy(const std::string& dir, const std::string& name);

// Writes the copy as a checkpoint to the job's folder. When it returns, the checkpoint survives a
// power cut. Checkpoints of later steps are dropped if they are older than the copy, since the job
// went back; earlier ones stay until the job's next save, also if this one fails. kNoSpace: the
// disk is full; then nothing of it is left there. kConflict: another one of the
// job is being written.
Status WriteCheckpoint(const MemoryCopy& copy, const std::string& dir, WriteProgress& progress);

}  // namespace swell::process
