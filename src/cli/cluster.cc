#include "cli/cluster.h"

#include <signal.h>

#include <vector>

#include "base/file.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

// Whether the process that serves from this directory is alive.
bool Runs(const std::string& data_dir) {
  auto text = ReadFile(data_dir + "/swell.pid", 64);
  if (!text.ok()) return false;
  auto pid = ParseInt(Trim(*text));
  return pid && *pid > 0 && ::kill(static_cast<pid_t>(*pid), 0) == 0;
}

}  // namespace

Result<std::string> FindKubeconfig(const ClusterFlags& flags,
                                   const std::function<std::string(const std::string&)>& getenv) {
  if (!flags.kubeconfig.empty()) {
    if (!FileExists(flags.kubeconfig)) {
      return Status(Code::kNotFound, StrCat("--kubeconfig ", flags.kubeconfig, ": no such file"));
    }
    return flags.kubeconfig;
  }
  std::vector<std::string> tried;  // in words
  const std::string listed = getenv("KUBECONFIG");
  for (std::string_view path : Split(listed, ':')) {
    if (path.empty()) continue;
    if (FileExists(std::string(path))) return listed;
    tried.push_back(StrCat("$KUBECONFIG: ", path, " does not exist"));
  }
  // A cluster that was named is never replaced by another one.
  if (!tried.empty()) {
    return Status(Code::kNotFound, StrCat("no cluster found\n  ", Join(tried, "\n  "),
                                          "\nUnset KUBECONFIG to use the cluster of this machine"));
  }
  std::string home = getenv("HOME");
  std::string data_dir = getenv("SWELL_DATA_DIR");
  if (data_dir.empty()) data_dir = home + "/.swell";
  std::string embedded = data_dir + "/kubeconfig";
  std::string users = home + "/.kube/config";
  if (FileExists(embedded) && (Runs(data_dir) || !FileExists(users))) {
    return embedded;
  }
  tried.push_back(StrCat("no cluster of this machine runs in ", data_dir));
  if (FileExists(users)) return users;
  tried.push_back(StrCat(users, " does not exist"));
  return Status(Code::kNotFound, StrCat("no cluster found\n  ", Join(tried, "\n  "),
                                        "\nStart one on this machine with: swell up --detach"));
}

Result<client::ClusterAccess> FindCluster(
    const ClusterFlags& flags,
    const std::function<std::string(const std::string&)>& getenv,
    std::string& kubeconfig) {
  // As kubectl does: a file without a cluster means the one that this pod runs in.
  const std::string listed = getenv("KUBECONFIG");
  if (listed == "/dev/null" && flags.kubeconfig.empty()) {
    auto of_pod = client::InClusterAccess(getenv, std::string(client::kServiceAccountDir));
    if (of_pod) return std::move(*of_pod);
  }
  auto found = FindKubeconfig(flags, getenv);
  if (!found.ok() && flags.kubeconfig.empty() && listed.empty()) {
    auto of_pod = client::InClusterAccess(getenv, std::string(client::kServiceAccountDir));
    if (of_pod) return std::move(*of_pod);
  }
  if (!found.ok()) return found.status();
  kubeconfig = *found;
  return client::LoadKubeconfig(kubeconfig, flags.context);
}

bool IsEmbedded(std::string_view server_version) {
  return server_version.find("+swell") != std::string_view::npos;
}

}  // namespace swell::cli
