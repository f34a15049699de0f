// Readers of a container engine's answers. A field that the engine leaves out has its default.
// - Threads: pure functions and plain values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::cri {

using Texts = std::map<std::string, std::string>;

struct EngineVersion {
  std::string name;  // "containerd", "cri-o"
  std::string version;
};
EngineVersion ReadVersion(std::string_view bytes);

struct EngineStatus {
  std::string not_ready;       // what is missing, in the engine's words; empty: nothing
  bool strict_groups = false;  // it knows supplementalGroupsPolicy
  bool cdi = false;            // it gives devices by their CDI names
};
// Reads a verbose answer of Status.
EngineStatus ReadStatus(std::string_view bytes, const EngineVersion& version);

// Field 1 as text: the id in answers to RunPodSandbox and CreateContainer, the URL in answers to
// Exec and Attach.
std::string ReadFirstText(std::string_view bytes);

struct ListedSandbox {
  std::string id;
  int64_t attempt = 0;
  bool ready = false;
  Texts labels;
};
std::vector<ListedSandbox> ReadSandboxes(std::string_view bytes);

struct SandboxState {
  std::string ip;
  std::string netns;  // path of its network namespace; empty: it is not known
};
// Reads a verbose answer of PodSandboxStatus.
SandboxState ReadSandbox(std::string_view bytes);

enum class Phase { kCreated = 0, kRunning = 1, kExited = 2, kUnknown = 3 };

struct ListedContainer {
  std::string id;
  int64_t attempt = 0;
  Phase phase = Phase::kCreated;
  Texts labels, annotations;
};
std::vector<ListedContainer> ReadContainers(std::string_view bytes);

struct ContainerState {
  Phase phase = Phase::kUnknown;
  int64_t started_ns = 0;
  int64_t finished_ns = 0;
  int exit_code = 0;
  std::string reason;   // "OOMKilled", "Error", "Completed"
  std::string message;  // why it could not be started
  pid_t pid = 0;        // of its first process, in the machine's numbering; 0: it is not known
};
// Reads a verbose answer of ContainerStatus.
ContainerState ReadContainer(std::string_view bytes);

struct ImageInfo {
  std::string id;
  std::string digest;  // "docker.io/library/busybox@sha256:…"; may be empty
  int64_t size_bytes = 0;
  std::optional<int64_t> uid;  // of the image's user, if that is a number
  std::string user;            // the image's user, if that is a name
};
// nullopt: the engine does not have the image.
std::optional<ImageInfo> ReadImage(std::string_view bytes);

struct CommandOutput {
  std::string out, error;
  int code = 0;
};
CommandOutput ReadOutput(std::string_view bytes);

// From an answer to ContainerStats: what the container has written to its root file system.
int64_t ReadWritableBytes(std::string_view bytes);

}  // namespace swell::cri
