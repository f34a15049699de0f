#include "kube/store/memory_backend.h"

namespace swell::store {

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(Executor& executor, std::shared_ptr<MemoryDisk> disk)
      : executor_(executor), disk_(std::move(disk)) {}

  Result<Loaded> Load() override {
    Loaded loaded;
    loaded.version = disk_->version_;
    for (const auto& [key, entry] : disk_->objects_) loaded.entries.push_back(entry);
    return loaded;
  }

  void Commit(std::vector<Change> batch, std::function<void(const Status&)> done) override {
    auto finish = [disk = disk_, done = std::move(done), crashes = disk_->crashes_] {
      if (disk->crashes_ != crashes) return;
      std::vector<Change> changes = std::move(disk->under_way_.front());
      disk->under_way_.erase(disk->under_way_.begin());
      if (disk->failing_commits > 0) {
        --disk->failing_commits;
        done(disk->failure);
        return;
      }
      disk->Apply(changes);
      done(Status::Ok());
    };
    disk_->under_way_.push_back(std::move(batch));
    if (disk_->commit_delay > Duration::zero()) {
      executor_.After(disk_->commit_delay, std::move(finish));
    } else {
      executor_.Post(std::move(finish));
    }
  }
  Duration CommitTime() const override { return disk_->commit_delay; }

 private:
  Executor& executor_;
  const std::shared_ptr<MemoryDisk> disk_;
};

void MemoryDisk::Apply(const std::vector<Change>& batch) {
  ++commits_;
  for (const Change& change : batch) {
    version_ = change.entry->version;
    if (change.type == EventType::kDeleted) {
      objects_.erase(change.entry->key);
    } else {
      objects_[change.entry->key] = change.entry;
    }
  }
  if (on_durable) on_durable(batch);
}

void MemoryDisk::Crash(bool keep_unanswered) {
  ++crashes_;
  if (keep_unanswered) {
    for (const std::vector<Change>& batch : under_way_) Apply(batch);
  }
  under_way_.clear();
}

std::unique_ptr<Backend> MakeFaultyBackend(Executor& executor, std::shared_ptr<MemoryDisk> disk) {
  return std::make_unique<FaultyBackend>(executor, std::move(disk));
}

std::unique_ptr<Backend> MakeMemoryBackend(Executor& executor) {
  return MakeFaultyBackend(executor, std::make_shared<MemoryDisk>());
}

}  // namespace swell::store
