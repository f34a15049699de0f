// ImageStore: images on disk, shared by all containers, and by several clusters if they name the
// same directory.
//
//   blobs/sha256/HEX      manifests, configs and packed layers, by digest
//   layers/HEX/           unpacked layers, by the digest of their tar file
//   names.json            which name stands for which manifest, how it came here
//   used/HEX/ID           containers that run the image with that manifest: links to their
//                         directories, where exit.json reports the end
//   tmp/                  downloads (HEX.part, continued later) and layers being unpacked
//   locks/                one file for each layer that somebody fetches; `store`, `pulls`, `boot`
//   boot                  the machine's start (its boot_id) whose pulls the directory may hold
//   preload/              files and directories with images, imported when swell starts
//
// Everything is made in tmp/ and renamed, so a crash of a process leaves nothing half-made. A crash
// of the machine may: what was pulled is given to containers before it is on the disk. Such an
// image names the machine's start in `boot`, until Settle() has written it. Prepare() after another
// start removes what is not known to be on the disk.
//
// - Threads: any thread that may block; several processes.
// - Invariants: a name is written after everything it needs is there. What an image needs is
//   removed only while nobody pulls, and not while a container uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "kube/images/cancellation.h"
#include "kube/images/manifest.h"

namespace swell::images {

struct StoredImage {
  std::string name;      // HOST/PATH:TAG or HOST/PATH@DIGEST
  std::string digest;    // of what the name stands for: a manifest or an index
  std::string manifest;  // digest of this machine's manifest
  int64_t size_bytes = 0;
  bool imported = false;  // from a file: there is no registry to ask for it
  // Fingerprints of the credentials that a registry accepted for it, the latest last; empty: it
  // asked for none.
  std::vector<std::string> credentials;
  int64_t pulled_s = 0;  // Unix time
  std::string boot;      // the machine's start in which it was pulled; empty: it is on the disk
  bool operator==(const StoredImage&) const = default;

  static constexpr size_t kCredentialsMax = 100;
  // Adds a fingerprint, or makes it the latest. Beyond the bound the oldest is forgotten: its pods
  // pull again.
  void AddCredential(const std::string& fingerprint);
};

// What a container of a stored image needs.
struct ImageFiles {
  ImageConfig config;
  std::vector<std::string> layers;  // directories, the lowest first
};

class ImageStore {
 public:
  explicit ImageStore(std::string dir) : dir_(std::move(dir)) {}
  // Makes the directories. After a new start of the machine, removes what may not have reached the
  // disk.
  Status Prepare() const;
  // Waits until everything is on the disk.
  Status Flush() const;
  // Flushes, if there are images pulled in this start of the machine, and says so in their names.
  Status Settle() const;

  const std::string& dir() const { return dir_; }
  std::string BlobPath(std::string_view digest) const;
  std::string LayerDir(std::string_view diff_id) const;
  std::string PartPath(std::string_view digest) const;
  std::string PreloadDir() const { return dir_ + "/preload"; }
  // A new empty directory in tmp/.
  Result<std::string> MakeTempDir() const;

  // Keeps manifests and configs; returns the digest.
  Result<std::string> PutBlob(std::string_view bytes) const;
  Result<std::string> ReadBlob(std::string_view digest, size_t limit) const;

  // Held while blobs and layers are added, for as long as no name refers to them.
  Result<UniqueFd> HoldPulls() const;
  // One at a time fetches a layer, between all processes.
  Result<UniqueFd> LockLayer(std::string_view digest, const Cancellation& cancel) const;

  Result<std::vector<StoredImage>> List() const;
  // An image by its name, or by HOST/PATH@DIGEST if any tag of that repository has the digest.
  Result<StoredImage> Find(std::string_view name) const;
  Status Put(const StoredImage& image) const;
  // kNotFound; kConflict when containers run it, unless `force`.
  Status Remove(std::string_view name, bool force) const;

  Result<ImageFiles> FilesOf(std::string_view manifest_digest) const;
  // Notes that a container uses the image until CONTAINER_DIR/exit.json is there.
  Status MarkUsed(std::string_view manifest_digest,
                  const std::string& id,
                  const std::string& container_dir) const;
  // The image was asked for now.
  void Touch(std::string_view manifest_digest) const;
  int64_t LastUsed(std::string_view manifest_digest) const;
  bool InUse(std::string_view manifest_digest) const;

  // Deletes blobs and layers that no name and no running container needs. Does nothing while
  // somebody pulls: the end of the pull sweeps.
  Status Sweep() const;

  struct GcPolicy {
    int high_percent = 85;  // of the disk: begins above
    int low_percent = 80;   // ends below
    int64_t min_age_s = 120;
    std::function<int()> used_percent;  // empty: of the store's file system
  };
  // Removes images that no container uses, the least recently used first. Returns their names.
  // Imported ones stay: there is no registry that could bring them back.
  Result<std::vector<std::string>> CollectGarbage(const GcPolicy& policy, int64_t now_s) const;

 private:
  Result<UniqueFd> Lock(const std::string& name, int how) const;
  Status Write(const std::vector<StoredImage>& images) const;
  std::string UsedDir(std::string_view manifest_digest) const;
  struct Needed;
  Status AddNeeded(const std::string& manifest_digest, Needed& needed) const;
  // False: somebody pulls or sweeps.
  Result<bool> TrySweep() const;
  Status SweepLocked() const;
  Status ForgetUnwritten(const std::string& boot) const;

  std::string dir_;
};

int64_t UnixNow();
// Names the machine's present start; empty where the kernel does not say.
std::string BootId();

}  // namespace swell::images
