#include "ops/cluster/last_port.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "base/words.h"

namespace swell::ops {
namespace {

constexpr uint64_t kFirstPort = 12000, kPorts = 18000;
constexpr int kPortTries = 20;
constexpr size_t kSocketsBytesMax = 16 << 20;

// The kernel's numbers of the sockets that listen at the port, as a process' open files have them.
std::vector<std::string> SocketsAt(uint64_t port) {
  constexpr std::string_view kListening = "0A";
  std::vector<std::string> sockets;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    auto text = ReadFile(file, kSocketsBytesMax);
    if (!text.ok()) continue;
    for (std::string_view line : Split(*text, '\n')) {
      const std::vector<std::string_view> words = SplitWords(line);
      // Its number, the local address and port, the remote ones, the state; the tenth is the inode.
      if (words.size() < 10 || words[3] != kListening) continue;
      const std::string local(words[1].substr(words[1].find(':') + 1));
      if (std::strtoull(local.c_str(), nullptr, 16) != port) continue;
      sockets.push_back(StrCat("socket:[", words[9], "]"));
    }
  }
  return sockets;
}

// ", by process 17 (python3)"; empty where that is not to be seen.
std::string HolderOf(uint64_t port) {
  const std::vector<std::string> sockets = SocketsAt(port);
  auto processes = ListDir("/proc");
  if (sockets.empty() || !processes.ok()) return "";
  for (const std::string& pid : *processes) {
    if (!ParseUint(pid)) continue;
    const std::string dir = StrCat("/proc/", pid);
    auto files = ListDir(dir + "/fd");
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      char link[64];
      const ssize_t n = ::readlink(StrCat(dir, "/fd/", file).c_str(), link, sizeof link);
      const std::string_view target(link, n > 0 ? static_cast<size_t>(n) : 0);
      if (std::find(sockets.begin(), sockets.end(), target) == sockets.end()) continue;
      auto name = ReadFile(dir + "/comm", 64);
      return StrCat(", by process ", pid, name.ok() ? StrCat(" (", Trim(*name), ")") : "");
    }
  }
  return "";
}

}  // namespace

uint16_t LastPort(const std::string& file) {
  auto text = ReadFile(file, 16);
  const uint64_t port = text.ok() ? ParseUint(Trim(*text)).value_or(0) : 0;
  return port <= 65535 ? static_cast<uint16_t>(port) : 0;
}

Result<uint16_t> ListenAtRecordedPort(const std::string& file,
                                      Random& random,
                                      const ListenAt& listen) {
  const uint16_t port = LastPort(file);
  if (port == 0) return ListenAtLastPort(file, random, listen);
  auto listening = listen(port);
  if (listening.ok() || SocketsAt(port).empty()) return listening;
  return Status(Code::kConflict,
                StrCat("port ", port, ", which the kubeconfigs of this cluster name, is taken",
                       HolderOf(port), ": end that program and start again; or start at another ",
                       "port with --reshape --listen HOST:PORT and the cluster's other flags, and "
                       "give out new kubeconfigs"));
}

Result<uint16_t> ListenAtLastPort(const std::string& file, Random& random, const ListenAt& listen) {
  uint64_t port = LastPort(file);
  for (int tries = 0; tries < kPortTries; ++tries) {
    if (port == 0) port = kFirstPort + random.Below(kPorts);
    auto listening = listen(static_cast<uint16_t>(port));
    if (listening.ok()) return listening;
    port = 0;
  }
  return listen(0);
}

}  // namespace swell::ops
