// DataDir: what an embedded cluster keeps on disk, and where.
//
//   DIR/swell.db            the store            DIR/pki/      CA, server and admin certificates
//   DIR/kubeconfig          for kubectl (0600)   DIR/swell.pid who runs the cluster
//   DIR/audit.log           who did what when    DIR/port      the API's
//   DIR/swell.log           the log              DIR/pages-port the pages'
//   DIR/history.db          the pages' history   DIR/programs-port  the port of pods' programs
//   DIR/pages-url           where the pages are, if there are any
//   DIR/pods/, DIR/volumes/, DIR/checkpoints/
//   DIR/cycles/             the scheduler's last cycles
//   DIR/images.yaml         the image catalogue's additions, if any
//   DIR/cluster.json        the cluster's shape and keys as of its last start
//   DIR/registries.yaml     how registries are reached, if they need more than their names
//   DIR/images/             images of containers, unless DIR/image-store names another directory
//   DIR/python              the path that the last --python gave
//
// - Threads: main thread, before the cluster runs; the paths are plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {

struct DataDir {
  std::string path;

  std::string Database() const { return path + "/swell.db"; }
  std::string Kubeconfig() const { return path + "/kubeconfig"; }
  std::string PidFile() const { return path + "/swell.pid"; }
  std::string LogFile() const { return path + "/swell.log"; }
  std::string AuditFile() const { return path + "/audit.log"; }
  std::string PortFile() const { return path + "/port"; }
  std::string PagesPortFile() const { return path + "/pages-port"; }
  std::string PagesUrlFile() const { return path + "/pages-url"; }
  std::string ProgramsPortFile() const { return path + "/programs-port"; }
  std::string HistoryFile() const { return path + "/history.db"; }
  std::string CyclesDir() const { return path + "/cycles"; }
  // Volumes on their way out: moved here at once, their files removed after that.
  std::string RemovedVolumesDir() const { return path + "/removed-volumes"; }
  std::string ImageCatalogue() const { return path + "/images.yaml"; }
};

// --data-dir, else $SWELL_DATA_DIR, else ~/.swell; absolute.
DataDir ChooseDataDir(const std::string& flag);
// The same for commands about a cluster: with neither the flag nor $SWELL_DATA_DIR, the cluster of
// $KUBECONFIG, where that is the file of a cluster's directory.
DataDir FindDataDir(const std::string& flag);
// Where the images are: `flag`, else what DIR/image-store says, else DIR/images; absolute.
std::string ImageStoreOf(const DataDir& dir, const std::string& flag);
// Remembers the flag, if it is given, for later starts and commands.
Status KeepImageStore(const DataDir& dir, const std::string& flag);
// URL of the running cluster's pages; empty if it has none. A file, since `swell status` is another
// process.
std::string PagesUrl(const DataDir& dir);
Status WritePagesUrl(const DataDir& dir, const std::string& url);
// What to do about a lost file: "put it back, or restore a backup: …".
std::string RestoreHint(const DataDir& dir);
// Creates the directory (0700), or says why it cannot be used.
Status PrepareDataDir(const DataDir& dir);

struct Pki {
  net::CertificatePair ca;
  net::CertificatePair server;
  net::CertificatePair admin;
};
// Loads what is there and makes what is missing or expires within 30 days.
Result<Pki> LoadOrMakePki(const DataDir& dir,
                          const Clock& clock,
                          const std::vector<std::string>& extra_hosts);

// Writes DIR/kubeconfig, whose user may do everything. Contexts and users that people have added
// there stay.
Status WriteAdminKubeconfig(const DataDir& dir, const Pki& pki, const std::string& url);

// The server of DIR/kubeconfig; empty: there is none.
std::string ServerUrl(const DataDir& dir);
// What to do about copies of the kubeconfig after a start at `now`; empty: they lead there already.
std::string MovedText(const std::string& before, const std::string& now);

// The process that runs the cluster, when it is alive.
struct RunningCluster {
  int pid = 0;
};
std::optional<RunningCluster> FindRunning(const DataDir& dir);
// Holds DIR and DIR/swell.pid locked for the life of this process. kConflict names the other
// process.
Status LockDataDir(const DataDir& dir);

}  // namespace swell::ops
