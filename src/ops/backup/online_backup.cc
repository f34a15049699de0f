#include "ops/backup/online_backup.h"

#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace swell::ops {

OnlineBackup::~OnlineBackup() {
  if (thread_.joinable()) thread_.join();
}

void OnlineBackup::Write(const store::Store& store,
                         const std::string& path,
                         std::shared_ptr<const store::RowSealer> sealer,
                         std::function<void(Result<json::Value>)> done) {
  if (thread_.joinable()) {
    return done(Status(Code::kTooManyRequests, "a backup is being written already"));
  }
  thread_ = std::thread([this, path, sealer = std::move(sealer), done = std::move(done),
                         snapshot = store.TakeSnapshot()]() mutable {
    const Status written = store::WriteDatabase(path, snapshot, std::move(sealer));
    json::Value answer = json::Object{
        {"file", path}, {"version", snapshot.version}, {"objects", snapshot.entries.size()}};
    executor_.Post([this, path, written, answer = std::move(answer), done = std::move(done)] {
      End(path, written, answer, done);
    });
  });
}

void OnlineBackup::End(const std::string& path,
                       const Status& written,
                       json::Value answer,
                       const std::function<void(Result<json::Value>)>& done) {
  thread_.join();
  if (written.ok()) return done(std::move(answer));
  if (const Status removed = RemoveTree(path); !removed.ok()) {
    SWELL_LOG_WARNING("cluster", "backup not removed", {"error", removed.ToString()});
  }
  done(written.WithContext("backup"));
}

}  // namespace swell::ops
