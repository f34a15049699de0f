// Kubeconfig: where the API server is and who we are there, read from kubectl's own file.
// Thread-safety: pure functions over files.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::client {

struct ClusterAccess {
  std::string server;  // https://127.0.0.1:6443
  std::string ca_pem;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::string token;
  std::string user;  // name of the kubeconfig's user, for messages
  std::string ns = "default";
};

// `context` empty: the file's current-context. Errors name the file and what is missing in it.
Result<ClusterAccess> LoadKubeconfig(const std::string& path, const std::string& context = {});

// A kubeconfig with one cluster, user and context, credentials embedded.
std::string MakeKubeconfig(const std::string& context_name, const ClusterAccess& access);

}  // namespace swell::client
