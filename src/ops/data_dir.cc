#include "ops/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"
#include "base/words.h"
#include "kube/client/kubeconfig.h"

namespace swell::ops {
namespace {

constexpr size_t kKubeconfigBytesMax = 4 << 20;
constexpr std::string_view kContext = "swell";  // of kubeconfigs, and the name of their cluster
constexpr Duration kRenewBefore = std::chrono::hours(24 * 30);

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A stored pair that is still good for a while.
std::optional<net::CertificatePair> LoadPair(const std::string& base, const Clock& clock) {
  auto cert = ReadFile(base + ".crt", 1 << 20);
  auto key = ReadFile(base + ".key", 1 << 20);
  if (!cert.ok() || !key.ok()) return std::nullopt;
  auto info = net::DescribeCertificate(*cert);
  if (!info.ok() || info->not_after < clock.Now() + kRenewBefore) return std::nullopt;
  return net::CertificatePair{std::move(*cert), std::move(*key)};
}

Status StorePair(const std::string& base, const net::CertificatePair& pair) {
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(base + ".key", pair.key_pem, 0600));
  return WriteFileAtomically(base + ".crt", pair.cert_pem, 0644);
}

Result<net::CertificatePair> IssueAndStore(const std::string& base,
                                           const net::CertificatePair& ca,
                                           net::CertSpec spec,
                                           const Clock& clock) {
  spec.not_before = clock.Now() - std::chrono::minutes(5);
  SWELL_ASSIGN_OR_RETURN(net::CertificatePair pair, net::IssueCert(ca, spec));
  SWELL_RETURN_IF_ERROR(StorePair(base, pair));
  return pair;
}

// The process that the kernel names as the holder of a lock on this file; 0: none, or not known.
int HolderInKernel(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return 0;
  char file[64];
  std::snprintf(file, sizeof file, "%02x:%02x:%llu", major(info.st_dev), minor(info.st_dev),
                static_cast<unsigned long long>(info.st_ino));
  const auto locks = ReadFile("/proc/locks", 1 << 20);
  if (!locks.ok()) return 0;
  // "7: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF"
  for (std::string_view line : Split(*locks, '\n')) {
    const std::vector<std::string_view> words = SplitWords(line);
    if (words.size() < 6 || words[1] != "FLOCK" || words[3] != "WRITE" || words[5] != file)
      continue;
    return static_cast<int>(ParseInt(words[4]).value_or(0));
  }
  return 0;
}

bool IsLocked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

// The process that runs the cluster; 0: none, or it has not said yet who it is.
int Holder(const DataDir& dir) {
  const bool has_file = IsLocked(dir.PidFile());
  if (!has_file && !IsLocked(dir.path)) return 0;
  const auto text = ReadFile(dir.PidFile(), 64);
  const int64_t said = has_file && text.ok() ? ParseInt(Trim(*text)).value_or(0) : 0;
  return said > 0 ? static_cast<int>(said) : HolderInKernel(has_file ? dir.PidFile() : dir.path);
}

}  // namespace

DataDir ChooseDataDir(const std::string& flag) {
  std::string path = flag;
  if (path.empty()) path = Environment("SWELL_DATA_DIR");
  if (path.empty()) {
    std::string home = Environment("HOME");
    path = (home.empty() ? "/tmp" : home) + "/.swell";
  }
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return {absolute};
}

DataDir FindDataDir(const std::string& flag) {
  const std::string config = Environment("KUBECONFIG");
  constexpr std::string_view kFile = "/kubeconfig";
  const bool named = !flag.empty() || !Environment("SWELL_DATA_DIR").empty();
  if (named || !config.ends_with(kFile)) return ChooseDataDir(flag);
  const DataDir dir = ChooseDataDir(config.substr(0, config.size() - kFile.size()));
  return FileExists(dir.PidFile()) ? dir : ChooseDataDir(flag);
}

std::string ImageStoreOf(const DataDir& dir, const std::string& flag) {
  std::string path = flag;
  if (path.empty()) {
    auto kept = ReadFile(dir.path + "/image-store", 4096);
    if (kept.ok()) path = Trim(*kept);
  }
  if (path.empty()) return dir.path + "/images";
  return std::filesystem::absolute(path).lexically_normal().string();
}

Status KeepImageStore(const DataDir& dir, const std::string& flag) {
  if (flag.empty()) return Status::Ok();
  return WriteFileAtomically(dir.path + "/image-store", ImageStoreOf(dir, flag) + "\n");
}

std::string PagesUrl(const DataDir& dir) {
  const auto url = ReadFile(dir.PagesUrlFile(), 4096);
  return url.ok() ? std::string(Trim(*url)) : "";
}

Status WritePagesUrl(const DataDir& dir, const std::string& url) {
  return WriteFileAtomically(dir.PagesUrlFile(), url.empty() ? "" : url + "\n", 0644);
}

std::string RestoreHint(const DataDir& dir) {
  return StrCat("put it back, or restore a backup: swell restore --force --data-dir ", dir.path,
                " FILE");
}

Status PrepareDataDir(const DataDir& dir) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir.path, 0755).WithContext("data directory"));
  SWELL_RETURN_IF_ERROR(MakeDirs(dir.path + "/pki", 0700).WithContext("data directory"));
  if (::access(dir.path.c_str(), W_OK) != 0) {
    return ErrnoStatus(errno, StrCat("data directory ", dir.path));
  }
  return Status::Ok();
}

Result<Pki> LoadOrMakePki(const DataDir& dir,
                          const Clock& clock,
                          const std::vector<std::string>& extra_hosts) {
  Pki pki;
  std::string base = dir.path + "/pki/";
  auto ca = LoadPair(base + "ca", clock);
  if (!ca) {
    SWELL_ASSIGN_OR_RETURN(pki.ca,
                           net::GenerateCa("swell-ca", clock.Now() - std::chrono::minutes(5)));
    SWELL_RETURN_IF_ERROR(StorePair(base + "ca", pki.ca));
  } else {
    pki.ca = std::move(*ca);
  }
  net::CertSpec server{
      .common_name = "swell-apiserver",
      .dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                    "kubernetes.default.svc.cluster.local"},
      .ip_addresses = {"127.0.0.1", "::1", "10.96.0.1"},
      .server = true};
  for (const std::string& host : extra_hosts) {
    (IsIpAddress(host) ? server.ip_addresses : server.dns_names).emplace_back(Unbracketed(host));
  }
  // The server's names may change with the flags: always issued anew, it takes a millisecond.
  auto issued = IssueAndStore(base + "server", pki.ca, server, clock);
  if (!issued.ok() && ca) {
    return Status(issued.status().code(),
                  StrCat(base, "ca.key and ca.crt cannot be used (", issued.status().message(),
                         "); if one of them was changed, ", RestoreHint(dir)));
  }
  SWELL_ASSIGN_OR_RETURN(pki.server, std::move(issued));
  auto admin = ca ? LoadPair(base + "admin", clock) : std::nullopt;
  if (admin) {
    pki.admin = std::move(*admin);
    return pki;
  }
  net::CertSpec spec{
      .common_name = "swell-admin", .organizations = {"system:masters"}, .client = true};
  SWELL_ASSIGN_OR_RETURN(pki.admin, IssueAndStore(base + "admin", pki.ca, spec, clock));
  return pki;
}

Status WriteAdminKubeconfig(const DataDir& dir, const Pki& pki, const std::string& url) {
  client::ClusterAccess access;
  access.server = url;
  access.ca_pem = pki.ca.cert_pem;
  access.client_cert_pem = pki.admin.cert_pem;
  access.client_key_pem = pki.admin.key_pem;
  access.user = "swell-admin";
  const auto before = ReadFile(dir.Kubeconfig(), kKubeconfigBytesMax);
  return WriteFileAtomically(
      dir.Kubeconfig(),
      client::MakeKubeconfig(std::string(kContext), access, before.ok() ? *before : std::string()),
      0600);
}

std::string ServerUrl(const DataDir& dir) {
  const auto access = client::LoadKubeconfig(dir.Kubeconfig(), std::string(kContext));
  return access.ok() ? access->server : "";
}

std::string MovedText(const std::string& before, const std::string& now) {
  if (before.empty() || before == now) return "";
  return StrCat("The cluster was at ", before,
                " before. Copies of its kubeconfig still point there; for each of them:\n",
                "  kubectl config set-cluster ", kContext, " --server=", now, "\n");
}

std::optional<RunningCluster> FindRunning(const DataDir& dir) {
  const int pid = Holder(dir);
  if (pid <= 0) return std::nullopt;
  return RunningCluster{pid};
}

Status LockDataDir(const DataDir& dir) {
  // Never closed: the locks end with the process, however it ends. People remove the file, so the
  // directory is locked, too, where its file system can.
  const int directory = ::open(dir.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return ErrnoStatus(errno, "open " + dir.path);
  const bool free =
      ::flock(directory, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
  const int fd = ::open(dir.PidFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "open " + dir.PidFile());
  if (!free || ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int pid = Holder(dir);
    ::close(fd);
    ::close(directory);
    return Status(Code::kConflict, StrCat("a cluster already runs in ", dir.path,
                                          pid > 0 ? StrCat(" (process ", pid, ")") : "",
                                          "; stop it with: swell down --data-dir ", dir.path));
  }
  std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, "write " + dir.PidFile());
  }
  return Status::Ok();
}

}  // namespace swell::ops
