#include "kube/process/background/ready_dirs.h"

#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"

namespace swell::process {

ReadyDirs::ReadyDirs(Options options)
    : options_(std::move(options)),
      spares_({.kept = options_.ready,
               .there = [this] { return static_cast<int64_t>(ready_.size() + making_); },
               .make_one =
                   [this] {
                     MakeOne();
                     return true;
                   },
               .post = options_.post},
              worker_) {}

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
  spares_.Stop();
  ready_.clear();
  worker_.Finish();
}

void ReadyDirs::MakeOne() {
  ++making_;
  std::string path = StrCat(options_.prefix, next_++);
  auto on_made = scope_.Wrap([this, path](const Status& made) {
    --making_;
    if (made.ok()) {
      ready_.push_back(path);
    } else {
      // The next Take makes it, and returns the error.
      SWELL_LOG_WARNING("process", "no directory made ready", {"error", made.ToString()});
    }
  });
  worker_.Post([this, path = std::move(path), on_made] {
    options_.post([on_made, made = options_.make(path)] { on_made(made); });
  });
}

}  // namespace swell::process
