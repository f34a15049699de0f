// Kubeconfig: where the API server is and who we are there, read from kubectl's own file, or from
// the service account that a pod is given.
// - Threads: pure functions over files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swell::client {

// A program that prints credentials: users[].user.exec.
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  std::string command;      // a path, or a name to be found on PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
};

struct ClusterAccess {
  std::string server;  // https://127.0.0.1:6443
  std::string ca_pem;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::string token;
  std::string token_file;  // holds the token from now on, and may change
  std::optional<ExecPlugin> exec;
  std::string user;  // name of the kubeconfig's user, for messages
  std::string ns = "default";
};

// `paths` is a file, or several with colons between them as $KUBECONFIG has them: of clusters,
// users and contexts of one name the first file's counts, and so does the first current-context.
// Files that do not exist are left out as long as another does. `context` empty: the current one.
// Errors name the file and what is missing in it.
Result<ClusterAccess> LoadKubeconfig(const std::string& paths, const std::string& context = {});

// The service account of the pod that this process runs in; nullopt outside of a cluster. `root`:
// the folder of the account's files. Only tests have another than kServiceAccountDir.
std::optional<Result<ClusterAccess>> InClusterAccess(
    const std::function<std::string(const std::string&)>& getenv, const std::string& root);
inline constexpr std::string_view kServiceAccountDir =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// The namespace of the pod that this process runs in; nullopt outside of a cluster.
std::optional<std::string> InClusterNamespace(
    const std::string& root = std::string(kServiceAccountDir));

// A kubeconfig with one cluster, user and context, credentials embedded. From `before`, the text of
// the file that it replaces, it keeps all other clusters, users and contexts, the namespace of this
// one, and the current context; a text that is not a kubeconfig is left out.
std::string MakeKubeconfig(const std::string& context_name,
                           const ClusterAccess& access,
                           std::string_view before = {});

}  // namespace swell::client
