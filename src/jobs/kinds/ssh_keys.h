// SshKeys: the key pair with which the processes of one job reach each other, as a Secret, and as
// files of their pods.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

inline constexpr std::string_view kRootKeys = "/root/.ssh";

std::string SshSecretName(const json::Value& job);
// `config`: what else the SSH client reads, or nothing.
json::Value SshSecret(const json::Value& job, const SshKeyPair& key, std::string_view config = "");
// A volume of the Secret's files. They lie in `folder` of it ("" or "NAME/"), and pods mount that
// at `path`.
json::Value SshVolume(const json::Value& job,
                      std::string_view name,
                      std::string_view folder,
                      std::string_view path,
                      bool with_config = false);

}  // namespace swell::jobs
