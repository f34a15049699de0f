#include "ops/access/audit_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::ops {
namespace {

constexpr uint64_t kBytesMax = uint64_t{256} << 20;
constexpr uint64_t kBlock = uint64_t{1} << 20;
constexpr size_t kLineMax = size_t{4} << 20;  // longer than any event is

// One file, from its end to its beginning, a line at a time.
class LinesFromEnd {
 public:
  LinesFromEnd(int fd, uint64_t bytes) : fd_(fd), unread_(bytes) {}

  // False: there is no further line. A line that is longer than kLineMax is left out.
  Result<bool> Next(std::string& line) {
    for (;;) {
      const size_t newline = text_.empty() ? std::string::npos : text_.rfind('\n');
      if (newline != std::string::npos) {
        line = text_.substr(newline + 1);
        text_.resize(newline);
        if (!std::exchange(skipping_, false) && !line.empty()) return true;
        continue;
      }
      if (unread_ == 0) break;
      if (text_.size() > kLineMax) {
        text_.clear();
        skipping_ = true;
      }
      SWELL_RETURN_IF_ERROR(ReadBlock());
    }
    line = std::exchange(text_, {});
    return !std::exchange(skipping_, false) && !line.empty();
  }
  uint64_t read() const { return read_; }

 private:
  Status ReadBlock() {
    const uint64_t size = std::min(kBlock, unread_);
    std::string block(size, '\0');
    size_t filled = 0;
    while (filled < size) {
      const ssize_t got = pread(fd_, block.data() + filled, size - filled,
                                static_cast<off_t>(unread_ - size + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read the audit log");
      if (got == 0)
        return Status(Code::kInternal, "the audit log became shorter while it was read");
      filled += static_cast<size_t>(got);
    }
    unread_ -= size;
    read_ += size;
    text_.insert(0, block);
    return Status::Ok();
  }

  const int fd_;
  uint64_t unread_;
  uint64_t read_ = 0;
  std::string text_;       // read, and not given out yet
  bool skipping_ = false;  // the line that ends here is too long
};

struct Search {
  const apiserver::AuditQuery& query;
  json::Array found;
  uint64_t read = 0;
  bool ended = false;  // enough was found, or what follows is too old
  bool more = false;
};

Status SearchFile(int fd, uint64_t bytes, Search& search) {
  LinesFromEnd lines(fd, bytes);
  std::string line;
  const uint64_t before = search.read;
  for (;;) {
    SWELL_ASSIGN_OR_RETURN(const bool there, lines.Next(line));
    search.read = before + lines.read();
    if (!there) return Status::Ok();
    if (search.read > kBytesMax) search.ended = search.more = true;
    if (search.ended) return Status::Ok();
    // Every line says when: an older one ends the search whether it matches or not.
    const bool may = search.query.MayMatch(line);
    if (!may && !search.query.since) continue;
    auto event = json::Parse(line);
    if (!event.ok()) continue;  // a line that a crash cut off
    const auto at = apiserver::AuditTime(*event);
    if (search.query.since && at && *at < *search.query.since) search.ended = true;
    if (search.ended || !may || !search.query.Matches(*event)) continue;
    if (search.found.size() == search.query.limit) {
      search.ended = search.more = true;
      return Status::Ok();
    }
    search.found.push_back(std::move(*event));
  }
}

}  // namespace

Result<json::Value> SearchAudit(const std::string& path, const apiserver::AuditQuery& query) {
  Search search{query};
  std::set<ino_t> seen;  // a file that gets another name meanwhile
  for (int age = 0; !search.ended; ++age) {
    const std::string name = age == 0 ? path : StrCat(path, ".", age);
    const UniqueFd fd(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() && errno == ENOENT && age > 0) break;
    if (!fd.valid() && errno == ENOENT) continue;  // between two names
    if (!fd.valid()) return ErrnoStatus(errno, name);
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, name);
    if (!seen.insert(info.st_ino).second) continue;
    SWELL_RETURN_IF_ERROR(SearchFile(fd.get(), static_cast<uint64_t>(info.st_size), search));
  }
  return json::Value(json::Object{{"kind", "EventList"},
                                  {"apiVersion", "audit.k8s.io/v1"},
                                  {"metadata", json::Object{}},
                                  {"items", std::move(search.found)},
                                  {"more", search.more}});
}

AuditSearch::AuditSearch(Executor& executor, std::string path)
    : executor_(executor),
      path_(std::move(path)),
      queue_(kWaitingMax, Duration::zero(), [this](std::vector<Task> tasks) {
        for (Task& task : tasks) {
          executor_.Post([done = std::move(task.done), found = SearchAudit(path_, task.query)] {
            done(found);
          });
        }
      }) {}

void AuditSearch::Find(apiserver::AuditQuery query, Done done) {
  Done answer = done;
  if (queue_.Push({std::move(query), std::move(done)}, 1)) return;
  answer(Status(Code::kTooManyRequests, "the audit log is being searched by too many; try again"));
}

}  // namespace swell::ops
