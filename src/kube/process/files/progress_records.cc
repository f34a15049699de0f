#include "kube/process/files/progress_records.h"

#include <dirent.h>

#include <memory>

#include "base/strings.h"
#include "kube/api/objects/progress.h"
#include "kube/process/shim/beneath.h"

namespace swell::process {
namespace {

constexpr std::string_view kPrefix = "progress-";
constexpr size_t kRecordBytes = 96;
constexpr int kEntriesMax = 256;

}  // namespace

node::ProgressRecords ReadProgressRecords(const std::string& dir) {
  node::ProgressRecords records;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(dir.c_str()), ::closedir);
  if (!folder) return records;
  for (int i = 0; i < kEntriesMax && records.size() < api::kRanksPerPodMax; ++i) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): each call has a stream of its own
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    const auto number = ParseInt(std::string_view(name).substr(kPrefix.size()));
    if (!number || *number < 0) continue;
    auto first = ReadPlainFile(dir, name, kRecordBytes);
    if (!first.ok() || first->size() != kRecordBytes) continue;
    auto second = ReadPlainFile(dir, name, kRecordBytes);
    if (second.ok() && *first == *second) records[*number] = std::move(*first);
  }
  return records;
}

}  // namespace swell::process
