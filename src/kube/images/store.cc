#include "kube/images/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/images/reference.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {
namespace {

constexpr size_t kNamesBytesMax = 64 << 20;
constexpr std::chrono::milliseconds kLockPoll(50);
constexpr int kSweepTries = 20;
// A download that nobody has continued for a day is given up.
constexpr int64_t kPartAgeMax = 86'400;
// Between an image's look-up and its container's start.
constexpr int64_t kStartSeconds = 120;

StoredImage ReadImage(const json::Value& value) {
  StoredImage out;
  out.name = json::GetString(value, {"name"});
  out.digest = json::GetString(value, {"digest"});
  out.manifest = json::GetString(value, {"manifest"});
  out.size_bytes = json::GetInt(value, {"size"});
  out.imported = json::GetBool(value, {"imported"});
  for (const json::Value& item : json::GetArray(value, {"credentials"})) {
    if (item.is_string()) out.credentials.emplace_back(json::View(item.get_string()));
  }
  out.pulled_s = json::GetInt(value, {"pulled"});
  out.boot = json::GetString(value, {"boot"});
  return out;
}

json::Value WriteImage(const StoredImage& image) {
  json::Array credentials;
  for (const std::string& one : image.credentials) credentials.push_back(json::Value(one));
  json::Object out{{"name", image.name},         {"digest", image.digest},
                   {"manifest", image.manifest}, {"size", image.size_bytes},
                   {"imported", image.imported}, {"credentials", std::move(credentials)},
                   {"pulled", image.pulled_s}};
  if (!image.boot.empty()) out["boot"] = image.boot;
  return out;
}

int64_t ModifiedAt(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mtim.tv_sec : 0;
}

// Names in a directory; nothing where it does not exist.
std::vector<std::string> Names(const std::string& dir) {
  auto names = ListDir(dir);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

}  // namespace

void StoredImage::AddCredential(const std::string& fingerprint) {
  std::erase(credentials, fingerprint);
  credentials.push_back(fingerprint);
  if (credentials.size() > kCredentialsMax) {
    credentials.erase(credentials.begin(), credentials.end() - kCredentialsMax);
  }
}

int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string BootId() {
  auto text = ReadFile("/proc/sys/kernel/random/boot_id", 256);
  return text.ok() ? std::string(Trim(*text)) : "";
}

Status ImageStore::Prepare() const {
  // Layers hold programs that run as their owner: nobody but us may reach them.
  SWELL_RETURN_IF_ERROR(MakeDirs(dir_, 0700));
  for (const char* sub : {"/blobs/sha256", "/layers", "/used", "/tmp", "/locks", "/preload"}) {
    SWELL_RETURN_IF_ERROR(MakeDirs(dir_ + sub));
  }
  // A person may have made the store's own directory, for everybody to look into.
  for (const char* sub : {"/blobs", "/layers", "/tmp"}) {
    const std::string path = dir_ + sub;
    if (::chmod(path.c_str(), 0700) != 0) return ErrnoStatus(errno, "chmod " + path);
  }
  const std::string boot = BootId();
  if (boot.empty()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("boot", LOCK_EX));
  const std::string path = dir_ + "/boot";
  auto known = ReadFile(path, 256);
  if (known.ok() && *known == boot) return Status::Ok();
  if (known.ok()) SWELL_RETURN_IF_ERROR(ForgetUnwritten(boot));
  return WriteFileAtomically(path, boot, 0600);
}

// ---- what reached the disk ----

// Nobody of this machine pulls or runs anything yet: each process prepares the store first.
Status ImageStore::ForgetUnwritten(const std::string& boot) const {
  {
    SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("store", LOCK_EX));
    SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
    const auto unwritten = [&](const StoredImage& image) {
      return !image.boot.empty() && image.boot != boot;
    };
    for (const StoredImage& image : all) {
      if (unwritten(image)) SWELL_RETURN_IF_ERROR(RemoveTree(UsedDir(image.manifest)));
    }
    if (std::erase_if(all, unwritten) > 0) SWELL_RETURN_IF_ERROR(Write(all));
  }
  // Another machine may use the same directory.
  auto nobody_pulls = Lock("pulls", LOCK_EX | LOCK_NB);
  if (!nobody_pulls.ok()) return Status::Ok();
  for (const std::string& name : Names(dir_ + "/tmp")) {
    SWELL_RETURN_IF_ERROR(RemoveTree(StrCat(dir_, "/tmp/", name)));
  }
  return SweepLocked();
}

Status ImageStore::Flush() const {
  const UniqueFd fd(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + dir_);
  if (::syncfs(fd.get()) == 0) return Status::Ok();
  return ErrnoStatus(errno, "write to the disk of " + dir_);
}

Status ImageStore::Settle() const {
  SWELL_ASSIGN_OR_RETURN(const std::vector<StoredImage> before, List());
  const std::string boot = BootId();
  const auto waits = [&](const StoredImage& image) {
    return !image.boot.empty() && image.boot == boot;
  };
  if (std::none_of(before.begin(), before.end(), waits)) return Status::Ok();
  SWELL_RETURN_IF_ERROR(Flush());
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("store", LOCK_EX));
  SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> now, List());
  for (StoredImage& image : now) {
    // One that was pulled meanwhile waits for the next time.
    if (std::find(before.begin(), before.end(), image) != before.end() && waits(image)) {
      image.boot.clear();
    }
  }
  return Write(now);
}

std::string ImageStore::BlobPath(std::string_view digest) const {
  return StrCat(dir_, "/blobs/sha256/", DigestHex(digest));
}
std::string ImageStore::LayerDir(std::string_view diff_id) const {
  return StrCat(dir_, "/layers/", DigestHex(diff_id));
}
std::string ImageStore::PartPath(std::string_view digest) const {
  return StrCat(dir_, "/tmp/", DigestHex(digest), ".part");
}
std::string ImageStore::UsedDir(std::string_view manifest_digest) const {
  return StrCat(dir_, "/used/", DigestHex(manifest_digest));
}

Result<std::string> ImageStore::MakeTempDir() const {
  std::string path = dir_ + "/tmp/new-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "make " + path);
  ::chmod(path.c_str(), 0755);
  return path;
}

Result<std::string> ImageStore::PutBlob(std::string_view bytes) const {
  net::Sha256 hash;
  hash.Add(bytes);
  std::string digest = StrCat("sha256:", hash.Hex());
  const std::string path = BlobPath(digest);
  if (!FileExists(path)) SWELL_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
  return digest;
}

Result<std::string> ImageStore::ReadBlob(std::string_view digest, size_t limit) const {
  if (!IsDigest(digest)) return Status(Code::kInvalid, StrCat(Quote(digest), " is not a digest"));
  return ReadFile(BlobPath(digest), limit);
}

Result<UniqueFd> ImageStore::Lock(const std::string& name, int how) const {
  const std::string path = StrCat(dir_, "/locks/", name);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  while (::flock(fd.get(), how) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Status(Code::kConflict, "another process holds " + path);
    return ErrnoStatus(errno, "lock " + path);
  }
  return fd;
}

Result<UniqueFd> ImageStore::HoldPulls() const { return Lock("pulls", LOCK_SH); }

Result<UniqueFd> ImageStore::LockLayer(std::string_view digest, const Cancellation& cancel) const {
  while (true) {
    auto lock = Lock(std::string(DigestHex(digest)), LOCK_EX | LOCK_NB);
    if (lock.ok() || lock.status().code() != Code::kConflict) return lock;
    if (!cancel.Wait(kLockPoll)) return cancel.Check();
  }
}

// ---- names ----

Result<std::vector<StoredImage>> ImageStore::List() const {
  const std::string path = dir_ + "/names.json";
  std::vector<StoredImage> out;
  auto text = ReadFile(path, kNamesBytesMax);
  if (!text.ok()) {
    if (text.status().code() == Code::kNotFound) return out;
    return text.status();
  }
  auto value = json::Parse(*text);
  if (!value.ok()) return value.status().WithContext(path);
  for (const json::Value& item : json::GetArray(*value, {"images"})) out.push_back(ReadImage(item));
  return out;
}

Status ImageStore::Write(const std::vector<StoredImage>& images) const {
  json::Array list;
  for (const StoredImage& image : images) list.push_back(WriteImage(image));
  const json::Value value = json::Object{{"images", std::move(list)}};
  return WriteFileAtomically(dir_ + "/names.json", json::PrintPretty(value, 1), 0600);
}

Result<StoredImage> ImageStore::Find(std::string_view name) const {
  SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
  const size_t at = name.find('@');
  for (StoredImage& image : all) {
    const std::string_view own = image.name;
    const bool same_repository =
        at != std::string_view::npos && own.starts_with(name.substr(0, at)) &&
        (own[at] == ':' || own[at] == '@') && own.find('/', at) == std::string_view::npos;
    const bool by_digest = same_repository && (image.digest == name.substr(at + 1) ||
                                               image.manifest == name.substr(at + 1));
    if (own != name && !by_digest) continue;
    StoredImage found = std::move(image);
    return found;
  }
  return Status(Code::kNotFound, StrCat("image ", Quote(name), " is not in the store"));
}

Status ImageStore::Put(const StoredImage& image) const {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("store", LOCK_EX));
  SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
  std::erase_if(all, [&](const StoredImage& other) { return other.name == image.name; });
  all.push_back(image);
  std::sort(all.begin(), all.end(),
            [](const StoredImage& a, const StoredImage& b) { return a.name < b.name; });
  SWELL_RETURN_IF_ERROR(Write(all));
  Touch(image.manifest);
  return Status::Ok();
}

Status ImageStore::Remove(std::string_view name, bool force) const {
  {
    SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("store", LOCK_EX));
    SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const StoredImage& image) { return image.name == name; });
    if (found == all.end()) {
      return Status(Code::kNotFound, StrCat("image ", Quote(name), " is not in the store"));
    }
    if (!force && InUse(found->manifest)) {
      return Status(Code::kConflict, StrCat("image ", Quote(name),
                                            " is used by pods, some of which may have ended; "
                                            "delete them, or use --force, which removes its name "
                                            "now and its files when the pods are gone"));
    }
    const std::string manifest = found->manifest;
    all.erase(found);
    SWELL_RETURN_IF_ERROR(Write(all));
    const bool shared = std::any_of(all.begin(), all.end(), [&](const StoredImage& image) {
      return image.manifest == manifest;
    });
    if (!shared && !InUse(manifest)) SWELL_RETURN_IF_ERROR(RemoveTree(UsedDir(manifest)));
  }
  // Another sweep may have passed what is not needed since. A pull sweeps at its end.
  for (int i = 0; i < kSweepTries; ++i) {
    SWELL_ASSIGN_OR_RETURN(const bool swept, TrySweep());
    if (swept) break;
    Cancellation().Wait(kLockPoll);
  }
  return Status::Ok();
}

// ---- use ----

Result<ImageFiles> ImageStore::FilesOf(std::string_view manifest_digest) const {
  ImageFiles out;
  SWELL_ASSIGN_OR_RETURN(std::string bytes, ReadBlob(manifest_digest, kManifestBytesMax));
  SWELL_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(bytes));
  SWELL_ASSIGN_OR_RETURN(bytes, ReadBlob(manifest.config.digest, kConfigBytesMax));
  SWELL_ASSIGN_OR_RETURN(out.config, ParseConfig(bytes));
  // An image may hold a layer twice, an overlay may not. The upper one hides all of the lower one.
  std::set<std::string> seen;
  const std::vector<std::string>& ids = out.config.diff_ids;
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    if (!seen.insert(*id).second) continue;
    out.layers.push_back(LayerDir(*id));
    if (!FileExists(out.layers.back())) {
      return Status(Code::kNotFound, StrCat("layer ", *id, " is not in the store"));
    }
  }
  std::reverse(out.layers.begin(), out.layers.end());
  return out;
}

Status ImageStore::MarkUsed(std::string_view manifest_digest,
                            const std::string& id,
                            const std::string& container_dir) const {
  const std::string dir = UsedDir(manifest_digest);
  SWELL_RETURN_IF_ERROR(MakeDirs(dir));
  const std::string path = StrCat(dir, "/", id);
  ::unlink(path.c_str());
  if (::symlink(container_dir.c_str(), path.c_str()) == 0) return Status::Ok();
  return ErrnoStatus(errno, "link " + path);
}

void ImageStore::Touch(std::string_view manifest_digest) const {
  const std::string dir = UsedDir(manifest_digest);
  // Without it the image only counts as older than it is.
  if (MakeDirs(dir).ok()) ::utimensat(AT_FDCWD, dir.c_str(), nullptr, 0);
}

int64_t ImageStore::LastUsed(std::string_view manifest_digest) const {
  return ModifiedAt(UsedDir(manifest_digest));
}

bool ImageStore::InUse(std::string_view manifest_digest) const {
  const std::string dir = UsedDir(manifest_digest);
  bool used = false;
  for (const std::string& id : Names(dir)) {
    const std::string link = StrCat(dir, "/", id);
    const bool runs = FileExists(link + "/spec.json") && !FileExists(link + "/exit.json");
    used = used || runs;
  }
  return used;
}

// ---- removal ----

struct ImageStore::Needed {
  std::set<std::string> blobs;   // HEX
  std::set<std::string> layers;  // HEX
};

Status ImageStore::AddNeeded(const std::string& manifest_digest, Needed& needed) const {
  needed.blobs.emplace(DigestHex(manifest_digest));
  SWELL_ASSIGN_OR_RETURN(std::string bytes, ReadBlob(manifest_digest, kManifestBytesMax));
  SWELL_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(bytes));
  needed.blobs.emplace(DigestHex(manifest.config.digest));
  for (const Descriptor& layer : manifest.layers) needed.blobs.emplace(DigestHex(layer.digest));
  SWELL_ASSIGN_OR_RETURN(bytes, ReadBlob(manifest.config.digest, kConfigBytesMax));
  SWELL_ASSIGN_OR_RETURN(const ImageConfig config, ParseConfig(bytes));
  for (const std::string& id : config.diff_ids) needed.layers.emplace(DigestHex(id));
  return Status::Ok();
}

Result<bool> ImageStore::TrySweep() const {
  auto nobody_pulls = Lock("pulls", LOCK_EX | LOCK_NB);
  if (!nobody_pulls.ok()) {
    if (nobody_pulls.status().code() == Code::kConflict) return false;
    return nobody_pulls.status();
  }
  SWELL_RETURN_IF_ERROR(SweepLocked());
  return true;
}

Status ImageStore::Sweep() const { return TrySweep().status(); }

Status ImageStore::SweepLocked() const {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, Lock("store", LOCK_EX));
  SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
  Needed needed;
  std::set<std::string> named;
  for (const StoredImage& image : all) {
    named.emplace(DigestHex(image.manifest));
    needed.blobs.emplace(DigestHex(image.digest));
    // An image that cannot be read needs nothing that could be used.
    Status added = AddNeeded(image.manifest, needed);
    if (!added.ok() && added.code() != Code::kNotFound) return added;
  }
  for (const std::string& hex : Names(dir_ + "/used")) {
    const std::string digest = "sha256:" + hex;
    const bool used = InUse(digest) || LastUsed(digest) > UnixNow() - kStartSeconds;
    Status added = used ? AddNeeded(digest, needed) : Status::Ok();
    if (!added.ok() && added.code() != Code::kNotFound) return added;
    if (!used && !named.contains(hex)) SWELL_RETURN_IF_ERROR(RemoveTree(UsedDir(digest)));
  }
  for (const std::string& hex : Names(dir_ + "/blobs/sha256")) {
    if (!needed.blobs.contains(hex)) ::unlink(BlobPath(hex).c_str());
  }
  for (const std::string& hex : Names(dir_ + "/layers")) {
    if (needed.layers.contains(hex)) continue;
    // Out of the way at once, so that nobody finds half of it.
    const std::string away = StrCat(dir_, "/tmp/old-", hex);
    if (::rename(LayerDir(hex).c_str(), away.c_str()) == 0) {
      SWELL_RETURN_IF_ERROR(RemoveTree(away));
    }
  }
  for (const std::string& name : Names(dir_ + "/tmp")) {
    const std::string path = StrCat(dir_, "/tmp/", name);
    const bool young = name.ends_with(".part") && ModifiedAt(path) > UnixNow() - kPartAgeMax;
    if (!young) SWELL_RETURN_IF_ERROR(RemoveTree(path));
  }
  // A lock's file may go once nobody can hold it, which is now.
  for (const std::string& name : Names(dir_ + "/locks")) {
    const bool kept = name == "store" || name == "pulls" || name == "boot";
    if (!kept) ::unlink(StrCat(dir_, "/locks/", name).c_str());
  }
  return Status::Ok();
}

Result<std::vector<std::string>> ImageStore::CollectGarbage(const GcPolicy& policy,
                                                            int64_t now_s) const {
  auto used_percent = [&]() -> int {
    if (policy.used_percent) return policy.used_percent();
    struct statvfs info;
    if (::statvfs(dir_.c_str(), &info) != 0 || info.f_blocks == 0) return 0;
    return static_cast<int>(100 - 100 * info.f_bavail / info.f_blocks);
  };
  std::vector<std::string> removed;
  if (used_percent() < policy.high_percent) return removed;
  SWELL_ASSIGN_OR_RETURN(std::vector<StoredImage> all, List());
  std::vector<std::pair<int64_t, StoredImage>> unused;
  for (StoredImage& image : all) {
    const int64_t last = std::max(LastUsed(image.manifest), image.pulled_s);
    if (!image.imported && !InUse(image.manifest) && last <= now_s - policy.min_age_s) {
      unused.emplace_back(last, std::move(image));
    }
  }
  std::stable_sort(unused.begin(), unused.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [last, image] : unused) {
    if (used_percent() <= policy.low_percent) break;
    Status done = Remove(image.name, /*force=*/false);
    if (done.ok()) removed.push_back(image.name);
    if (!done.ok() && done.code() != Code::kConflict) return done;
  }
  return removed;
}

}  // namespace swell::images
