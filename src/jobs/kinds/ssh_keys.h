// SshKeys: the key pair with which the processes of one job reach each other, as a Secret, and as
// files of their pods.
// - Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

inline constexpr std::string_view kRootKeys = "/root/.ssh";

std::string SshSecretName(const json::Value& job);
// `config`: what else the SSH client reads, or nothing.
json::Value SshSecret(const json::Value& job, const SshKeyPair& key, std::string_view config = "");

// Where pods have the keys.
struct KeyPlace {
  std::string path;       // the directory in containers, without a slash at its end
  std::string in_volume;  // the volume's folder that is mounted there; empty: the volume itself
  bool with_config = false;
};
// The same directory without slashes at its end.
std::string_view KeyFolder(std::string_view path);
// Mounts the keys in the containers that `takes` picks. What the template mounts there itself
// stays, and so do keys of its own.
void MountKeys(const json::Value& job,
               const KeyPlace& place,
               const std::function<bool(const json::Value& container)>& takes,
               json::Value& pod);

}  // namespace swell::jobs
