#include "edge/process/ready_dirs.h"

#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"

namespace swell::edge {

ReadyDirs::ReadyDirs(Options options) : options_(std::move(options)) {}

Status ReadyDirs::Take(const std::string& path) {
  std::string spare;
  if (!ready_.empty() && !FileExists(path)) {
    spare = std::move(ready_.front());
    ready_.pop_front();
  }
  Refill();
  if (spare.empty()) return options_.make(path);
  if (::rename(spare.c_str(), path.c_str()) == 0) return Status::Ok();
  // Somebody took the spare away.
  return options_.make(path);
}

void ReadyDirs::Finish() {
  options_.ready = 0;
  ready_.clear();
  backstage_.Finish();
}

// At once while less than half is there, since a rush of pods would find none; the rest when it is
// quiet.
void ReadyDirs::Refill(bool quiet) {
  const size_t wanted = quiet ? options_.ready : (options_.ready + 1) / 2;
  while (ready_.size() + making_ < wanted) MakeOne();
  if (ready_.size() + making_ >= options_.ready || awaits_quiet_) return;
  awaits_quiet_ = backstage_.Later([this, alive = std::weak_ptr<bool>(alive_)] {
    options_.post([this, alive] {
      if (alive.expired()) return;
      awaits_quiet_ = false;
      Refill(/*quiet=*/true);
    });
  });
}

void ReadyDirs::MakeOne() {
  ++making_;
  std::string path = StrCat(options_.prefix, next_++);
  backstage_.Now([this, path = std::move(path), alive = std::weak_ptr<bool>(alive_)] {
    const Status made = options_.make(path);
    options_.post([this, path, made, alive] {
      if (alive.expired()) return;
      --making_;
      if (made.ok()) {
        ready_.push_back(path);
      } else {
        // Whoever takes one next makes it, and is told why not.
        SWELL_LOG_WARNING("process", "no directory made ready", {"error", made.ToString()});
      }
    });
  });
}

}  // namespace swell::edge
