// MasterJournal: a job master's requests on disk, from which it is restored after a crash.
//
//   FILE   one line per record: 16 hex digits (hash of the rest), a space, JSON, a newline
//          {"snapshot": …}                     the state at the file's beginning, at most once,
//          first
//          {"at": ns, "path": …, "body": …}    a request that changed something
//
// A torn end (no newline, or a wrong hash) was never acknowledged and is cut off. A record that is
// wrong before the end is an error: the file is damaged. When the file has grown past its bound it
// is replaced, whole, by one that begins with a snapshot.
//
// - Threads: not thread-safe; one thread uses it. Append returns when the bytes are on the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "elastic/job_master.h"

namespace swell::elastic {

class MasterJournal {
 public:
  static constexpr uint64_t kBytesMax = 32 << 20;

  // Replays the file into `master`, and cuts off its torn end.
  static Result<std::unique_ptr<MasterJournal>> Open(const std::string& path, JobMaster& master);
  ~MasterJournal();
  MasterJournal(const MasterJournal&) = delete;
  MasterJournal& operator=(const MasterJournal&) = delete;

  static std::string PrintRequest(std::string_view path, const json::Value& body, WallTime now);
  static std::string PrintSnapshot(const JobMaster& master);

  // Whole lines, as Print… made them. After an error the journal takes no more.
  Status Append(std::string_view lines);
  // Everything from the beginning.
  Status Replace(std::string_view lines);

 private:
  explicit MasterJournal(std::string path) : path_(std::move(path)) {}
  Status OpenForAppend();

  const std::string path_;
  int fd_ = -1;
};

}  // namespace swell::elastic
