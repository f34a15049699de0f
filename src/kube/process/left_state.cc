#include "kube/process/left_state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/process/shim/beneath.h"

namespace swell::process {
namespace {

constexpr std::string_view kSharedMemory = "/dev/shm";
constexpr size_t kRequestBytesMax = 4 << 10;

// The file says in which volume /dev/shm is; empty: the one that every pod has.
std::string FileFor(std::string_view volume) {
  return volume.empty() ? "persist.json" : StrCat("persist.", volume, ".json");
}

// How often an agent begins to write a state: others may have been killed while they wrote it, and
// one that kills its agent must not do so for ever.
constexpr int kTriesMax = 3;

// The file's name after `tries` failed tries.
std::string AfterTries(const std::string& file, int tries) {
  return tries == 0 ? file : StrCat(file, ".", tries);
}

std::optional<int> TriesOf(const LeftState& left) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (FileExists(StrCat(left.report_dir, "/", AfterTries(left.file, tries)))) return tries;
  }
  return std::nullopt;
}

Status Write(const LeftState& left,
             const std::string& file,
             const std::string& folder,
             WriteProgress& progress) {
  SWELL_ASSIGN_OR_RETURN(const std::string text,
                         ReadPlainFile(left.report_dir, file, kRequestBytesMax));
  SWELL_ASSIGN_OR_RETURN(const json::Value request, json::Parse(text));
  const std::string copy(json::GetString(request, {"copy"}));
  SWELL_ASSIGN_OR_RETURN(const MemoryCopy found, OpenMemoryCopy(left.memory_dir, copy));
  return WriteCheckpoint(found, folder, progress);
}

}  // namespace

std::string PersistFileOf(const ProcessPod& pod, const std::vector<node::MountSpec>& mounts) {
  if (pod.spec.job_uid.empty()) return "";
  const auto mount = std::find_if(mounts.begin(), mounts.end(), [](const node::MountSpec& each) {
    return each.container_path == kSharedMemory;
  });
  if (mount == mounts.end()) return pod.spec.security.host_ipc ? "" : FileFor("");
  const auto volume = pod.volumes.find(mount->volume);
  const bool own = volume != pod.volumes.end() && volume->second.scratch;
  return own && mount->sub_path.empty() ? FileFor(mount->volume) : "";
}

std::optional<LeftState> FindLeftState(const PodStore& store, const ProcessPod& pod) {
  if (pod.stopped) return std::nullopt;
  LeftState left{pod.dir + "/run/report", FileFor(""), store.SharedMemoryDir(pod.spec.pod_uid)};
  if (TriesOf(left)) return left;
  for (const auto& [name, volume] : pod.volumes) {
    if (!volume.scratch) continue;
    left.file = FileFor(name);
    left.memory_dir = volume.path;
    if (TriesOf(left)) return left;
  }
  return std::nullopt;
}

Status PersistState(const LeftState& left, const std::string& folder, WriteProgress& progress) {
  const auto tries = TriesOf(left);
  if (!tries) return Status(Code::kNotFound, StrCat(left.file, ": it is gone"));
  const auto path = [&left](int after) {
    return StrCat(left.report_dir, "/", AfterTries(left.file, after));
  };
  // Its last name nobody looks for.
  ::rename(path(*tries).c_str(), path(*tries + 1).c_str());
  Status written = Write(left, AfterTries(left.file, *tries + 1), folder, progress);
  if (MayBeTriedAgain(written)) {
    // The state was not the cause: this try does not count.
    ::rename(path(*tries + 1).c_str(), path(*tries).c_str());
  } else {
    ::unlink(path(*tries + 1).c_str());
  }
  return written;
}

bool MayBeTriedAgain(const Status& status) {
  return status.code() == Code::kNoSpace || status.code() == Code::kConflict;
}

void DropLeftState(const LeftState& left) {
  if (const auto tries = TriesOf(left)) {
    ::unlink(StrCat(left.report_dir, "/", AfterTries(left.file, *tries)).c_str());
  }
}

}  // namespace swell::process
