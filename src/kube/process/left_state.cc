#include "kube/process/left_state.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/process/files/memory_copy.h"
#include "kube/process/shim/beneath.h"

namespace swell::process {
namespace {

constexpr std::string_view kSharedMemory = "/dev/shm";
constexpr size_t kRequestBytesMax = 4 << 10;

// The file says in which volume /dev/shm is; empty: the one that every pod has.
std::string FileFor(std::string_view volume) {
  return volume.empty() ? "persist.json" : StrCat("persist.", volume, ".json");
}

bool IsScratch(const node::VolumeSpec& volume) {
  return volume.kind == node::VolumeSpec::Kind::kEmptyDir ||
         volume.kind == node::VolumeSpec::Kind::kMemory;
}

}  // namespace

std::string PersistFileOf(const ProcessPod& pod, const std::vector<node::MountSpec>& mounts) {
  const auto mount = std::find_if(mounts.begin(), mounts.end(), [](const node::MountSpec& each) {
    return each.container_path == kSharedMemory;
  });
  if (mount == mounts.end()) return pod.spec.security.host_ipc ? "" : FileFor("");
  const auto& volumes = pod.spec.volumes;
  const auto volume = std::find_if(volumes.begin(), volumes.end(), [&](const auto& each) {
    return each.name == mount->volume && IsScratch(each);
  });
  return volume == volumes.end() || !mount->sub_path.empty() ? "" : FileFor(volume->name);
}

std::optional<LeftState> FindLeftState(const PodStore& store, const ProcessPod& pod) {
  LeftState left{pod.dir + "/run/report", FileFor(""), store.SharedMemoryDir(pod.spec.pod_uid)};
  const auto written = [&left] { return FileExists(StrCat(left.report_dir, "/", left.file)); };
  if (written()) return left;
  for (const node::VolumeSpec& volume : pod.spec.volumes) {
    const auto place = pod.volumes.find(volume.name);
    if (!IsScratch(volume) || place == pod.volumes.end()) continue;
    left.file = FileFor(volume.name);
    left.memory_dir = place->second.path;
    if (written()) return left;
  }
  return std::nullopt;
}

Status PersistState(const LeftState& left, const std::string& folder) {
  const auto text = ReadPlainFile(left.report_dir, left.file, kRequestBytesMax);
  // Whatever becomes of it, it is not tried again.
  ::unlink(StrCat(left.report_dir, "/", left.file).c_str());
  if (!text.ok()) return text.status();
  SWELL_ASSIGN_OR_RETURN(const json::Value request, json::Parse(*text));
  const std::string copy(json::GetString(request, {"copy"}));
  SWELL_ASSIGN_OR_RETURN(const MemoryCopy found, OpenMemoryCopy(left.memory_dir, copy));
  return WriteCheckpoint(found, folder);
}

}  // namespace swell::process
