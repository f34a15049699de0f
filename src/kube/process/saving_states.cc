#include "kube/process/saving_states.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/process/files/data_dir.h"
#include "kube/process/pod_store.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

constexpr size_t kFileBytesMax = 16 << 10;

// Anybody may make a directory of that name, as long as the cluster has none. The cluster may be
// stopped by another user than its own.
bool IsTheClusters(const std::string& memory_root, const std::string& data_dir) {
  struct stat root {
  }, data{};
  if (::lstat(memory_root.c_str(), &root) != 0 || !S_ISDIR(root.st_mode)) return false;
  if (root.st_uid == ::geteuid()) return true;
  return ::stat(data_dir.c_str(), &data) == 0 && root.st_uid == data.st_uid;
}

Result<std::string> FileOf(const std::string& data_dir) {
  SWELL_ASSIGN_OR_RETURN(const std::string path, PrepareDataDir(data_dir));
  const std::string root = MemoryRootOf(TagOf(path));
  if (!IsTheClusters(root, path))
    return Status(Code::kNotFound, StrCat(root, ": not the cluster's"));
  return StrCat(root, "/saving.json");
}

}  // namespace

void TellSaving(const std::string& data_dir, const SavingStates& saving) {
  const auto file = FileOf(data_dir);
  if (!file.ok()) return;
  if (saving.states == 0) {
    ::unlink(file->c_str());
    return;
  }
  const json::Value value = json::Object{{"states", saving.states},
                                         {"bytes", saving.bytes},
                                         {"written", saving.written},
                                         {"delay", saving.delay},
                                         {"secondsLeft", saving.seconds_left}};
  // Without the file, `swell down` can only say less while it waits.
  const Status told = ReplaceFile(*file, json::Print(value), 0600);
  (void)told;
}

std::optional<SavingStates> ReadSaving(const std::string& data_dir) {
  const auto file = FileOf(data_dir);
  const auto text = file.ok() ? ReadFile(*file, kFileBytesMax) : file;
  const auto value = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
  if (!value.ok()) return std::nullopt;
  return SavingStates{.states = json::GetInt(*value, {"states"}),
                      .bytes = json::GetInt(*value, {"bytes"}),
                      .written = json::GetInt(*value, {"written"}),
                      .delay = std::string(json::GetString(*value, {"delay"})),
                      .seconds_left = json::GetInt(*value, {"secondsLeft"})};
}

}  // namespace swell::process
