#include "kube/images/pull.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/images/packed_input.h"
#include "kube/images/reference.h"
#include "kube/images/unpack.h"

namespace swell::images {
namespace {

constexpr size_t kLayersAtOnce = 3;

// Fetches what `part` lacks. If only some of it comes, that is kept for the next pull. Bytes that
// are not the blob's are removed, and so is what fills the disk.
Status FetchPart(ImageSource& source, const Descriptor& blob, PartFile& part) {
  Status fetched = source.Fetch(blob, part);
  const Status written = part.Flush();
  if (fetched.ok()) fetched = written.ok() ? part.Verify(blob) : written;
  if (fetched.code() == Code::kInvalid || fetched.code() == Code::kNoSpace) part.Remove();
  return fetched;
}

// Room for what `part` lacks.
Status CheckRoomFor(const Descriptor& blob, const ImageStore& store, PartFile& part) {
  Status room = CheckRoom(store.dir(), blob.size - part.size());
  if (!room.ok()) part.Remove();
  return room;
}

// Fetches a blob into the store, unless it is there.
Status FetchBlob(const ImageStore& store,
                 ImageSource& source,
                 const Descriptor& blob,
                 std::atomic<int64_t>& arrived) {
  const std::string path = store.BlobPath(blob.digest);
  if (FileExists(path)) {
    arrived += blob.size;
    return Status::Ok();
  }
  const std::string part_path = store.PartPath(blob.digest);
  {
    SWELL_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(part_path, &arrived));
    SWELL_RETURN_IF_ERROR(CheckRoomFor(blob, store, part));
    SWELL_RETURN_IF_ERROR(FetchPart(source, blob, part));
  }
  if (::rename(part_path.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "keep " + path);
  return Status::Ok();
}

// A layer being unpacked; what was not kept is removed.
class NewLayer {
 public:
  static Result<std::unique_ptr<NewLayer>> Make(const ImageStore& store) {
    SWELL_ASSIGN_OR_RETURN(std::string dir, store.MakeTempDir());
    return std::unique_ptr<NewLayer>(new NewLayer(std::move(dir)));
  }
  ~NewLayer() {
    if (kept_) return;
    // What cannot be removed now goes with the next sweep of tmp/.
    [[maybe_unused]] Status removed = RemoveTree(dir_);
  }
  NewLayer(const NewLayer&) = delete;
  NewLayer& operator=(const NewLayer&) = delete;

  Status Unpack(PackedInput& packed, const std::string& diff_id, const Cancellation& cancel) {
    SWELL_ASSIGN_OR_RETURN(const std::string got,
                           UnpackLayer(packed, dir_, UnpackLimits(), cancel));
    if (got == diff_id) return Status::Ok();
    return Status(Code::kInvalid,
                  StrCat("it unpacks to ", got, ", where the config says ", diff_id));
  }
  Status Keep(const std::string& as) {
    if (::rename(dir_.c_str(), as.c_str()) != 0) return ErrnoStatus(errno, "keep " + as);
    kept_ = true;
    return Status::Ok();
  }

 private:
  explicit NewLayer(std::string dir) : dir_(std::move(dir)) {}

  const std::string dir_;
  bool kept_ = false;
};

// Unpacks a layer whose blob is in the store.
Status UnpackBlob(const ImageStore& store,
                  const Descriptor& blob,
                  const std::string& diff_id,
                  const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const auto layer, NewLayer::Make(store));
  SWELL_ASSIGN_OR_RETURN(const auto packed, FileInput::Open(store.BlobPath(blob.digest)));
  SWELL_RETURN_IF_ERROR(layer->Unpack(*packed, diff_id, cancel));
  return layer->Keep(store.LayerDir(diff_id));
}

// Fetches a layer, and unpacks it as it comes. Nothing of it is kept before the digests of all of
// it are right.
Status FetchAndUnpack(const ImageStore& store,
                      ImageSource& source,
                      const Descriptor& blob,
                      const std::string& diff_id,
                      std::atomic<int64_t>& arrived,
                      const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const auto layer, NewLayer::Make(store));
  const std::string part_path = store.PartPath(blob.digest);
  SWELL_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(part_path, &arrived));
  SWELL_RETURN_IF_ERROR(CheckRoomFor(blob, store, part));
  SWELL_ASSIGN_OR_RETURN(const auto growing, GrowingFile::Open(part_path));
  growing->Grew(part.size());
  part.OnWritten([&growing](int64_t size) { growing->Grew(size); });
  Status unpacked;
  std::thread unpacker([&] { unpacked = layer->Unpack(*growing, diff_id, cancel); });
  const Status fetched = FetchPart(source, blob, part);
  growing->End(fetched.ok());
  unpacker.join();
  // That bytes do not unpack says nothing where they are not the blob's.
  SWELL_RETURN_IF_ERROR(fetched);
  const std::string path = store.BlobPath(blob.digest);
  if (::rename(part_path.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "keep " + path);
  if (growing->restarted()) return UnpackBlob(store, blob, diff_id, cancel);
  SWELL_RETURN_IF_ERROR(unpacked);
  return layer->Keep(store.LayerDir(diff_id));
}

Status EnsureLayer(const ImageStore& store,
                   ImageSource& source,
                   const Descriptor& blob,
                   const std::string& diff_id,
                   std::atomic<int64_t>& arrived,
                   const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, store.LockLayer(diff_id, cancel));
  const bool unpacked = FileExists(store.LayerDir(diff_id));
  if (!unpacked && !FileExists(store.BlobPath(blob.digest))) {
    return FetchAndUnpack(store, source, blob, diff_id, arrived, cancel);
  }
  SWELL_RETURN_IF_ERROR(FetchBlob(store, source, blob, arrived));
  return unpacked ? Status::Ok() : UnpackBlob(store, blob, diff_id, cancel);
}

// The layers of one image, which several threads take one by one. The first error ends all.
class LayerWork {
 public:
  LayerWork(const ImageStore& store,
            ImageSource& source,
            const Manifest& manifest,
            const ImageConfig& config,
            PullProgress& progress,
            const Cancellation& cancel)
      : store_(store),
        source_(source),
        manifest_(manifest),
        config_(config),
        progress_(progress),
        cancel_(cancel) {
    // An image may hold a layer twice.
    std::set<std::string> seen;
    for (size_t i = 0; i < manifest.layers.size(); ++i) {
      if (seen.insert(config.diff_ids[i]).second) order_.push_back(i);
    }
    progress.layers_total = static_cast<int>(order_.size());
    for (const size_t i : order_) progress.bytes_total += manifest.layers[i].size;
    // The largest first: it is what the end waits for.
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return manifest.layers[a].size > manifest.layers[b].size;
    });
  }

  Status Run() {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < std::min(kLayersAtOnce, order_.size()); ++i) {
      threads.emplace_back([this] { Work(); });
    }
    Work();
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(mutex_);
    return failed_;
  }

 private:
  void Work() {
    while (true) {
      size_t next = 0;
      {
        MutexLock lock(mutex_);
        if (!failed_.ok() || next_ == order_.size()) return;
        next = order_[next_++];
      }
      const Descriptor& blob = manifest_.layers[next];
      Status done =
          EnsureLayer(store_, source_, blob, config_.diff_ids[next], progress_.bytes, cancel_);
      ++progress_.layers;
      if (done.ok()) continue;
      MutexLock lock(mutex_);
      if (failed_.ok()) failed_ = done.WithContext(StrCat("layer ", blob.digest));
    }
  }

  const ImageStore& store_;
  ImageSource& source_;
  const Manifest& manifest_;
  const ImageConfig& config_;
  PullProgress& progress_;
  const Cancellation& cancel_;
  std::vector<size_t> order_;
  Mutex mutex_;
  size_t next_ SWELL_GUARDED_BY(mutex_) = 0;
  Status failed_ SWELL_GUARDED_BY(mutex_);
};

}  // namespace

Result<StoredImage> PullImage(const ImageStore& store,
                              ImageSource& source,
                              PullProgress& progress,
                              const Cancellation& cancel) {
  StoredImage out;
  SWELL_ASSIGN_OR_RETURN(std::string bytes, source.Top());
  SWELL_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(bytes));
  SWELL_ASSIGN_OR_RETURN(out.digest, store.PutBlob(bytes));
  out.manifest = out.digest;
  if (manifest.is_index) {
    SWELL_ASSIGN_OR_RETURN(const Descriptor own, ChoosePlatform(manifest, HostArchitecture()));
    SWELL_ASSIGN_OR_RETURN(bytes, source.ManifestOf(own));
    SWELL_ASSIGN_OR_RETURN(manifest, ParseManifest(bytes));
    if (manifest.is_index) return Status(Code::kInvalid, "manifest: an index within an index");
    SWELL_ASSIGN_OR_RETURN(out.manifest, store.PutBlob(bytes));
  }
  std::atomic<int64_t> config_bytes{0};
  {
    SWELL_ASSIGN_OR_RETURN(const UniqueFd lock, store.LockLayer(manifest.config.digest, cancel));
    Status got = FetchBlob(store, source, manifest.config, config_bytes);
    if (!got.ok()) return got.WithContext("config");
  }
  SWELL_ASSIGN_OR_RETURN(bytes, store.ReadBlob(manifest.config.digest, kConfigBytesMax));
  SWELL_ASSIGN_OR_RETURN(const ImageConfig config, ParseConfig(bytes));
  SWELL_RETURN_IF_ERROR(CheckConfig(manifest, config));
  out.size_bytes = manifest.config.size + manifest.LayerBytes();
  bool complete = true;
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    complete = complete && FileExists(store.LayerDir(config.diff_ids[i])) &&
               FileExists(store.BlobPath(manifest.layers[i].digest));
  }
  if (complete) return out;
  SWELL_RETURN_IF_ERROR(LayerWork(store, source, manifest, config, progress, cancel).Run());
  return out;
}

// ---- export ----

namespace {

Status CopyBlob(const ImageStore& store, const std::string& digest, const std::string& dir) {
  const std::string from = store.BlobPath(digest);
  const std::string to = StrCat(dir, "/blobs/sha256/", DigestHex(digest));
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return Status::Ok();
  return ErrnoStatus(error.value(), StrCat("copy ", from, " to ", to));
}

}  // namespace

Status ExportImage(const ImageStore& store, const StoredImage& image, const std::string& dir) {
  if (FileExists(dir)) {
    return Status(Code::kAlreadyExists, StrCat(Quote(dir), " exists; name a new directory"));
  }
  SWELL_ASSIGN_OR_RETURN(const std::string bytes,
                         store.ReadBlob(image.manifest, kManifestBytesMax));
  SWELL_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(bytes));
  SWELL_RETURN_IF_ERROR(MakeDirs(dir + "/blobs/sha256"));
  SWELL_RETURN_IF_ERROR(CopyBlob(store, image.manifest, dir));
  SWELL_RETURN_IF_ERROR(CopyBlob(store, manifest.config.digest, dir));
  for (const Descriptor& layer : manifest.layers) {
    SWELL_RETURN_IF_ERROR(CopyBlob(store, layer.digest, dir));
  }
  const std::string media_type = manifest.media_type.empty()
                                     ? "application/vnd.oci.image.manifest.v1+json"
                                     : manifest.media_type;
  const json::Value index = json::Object{
      {"schemaVersion", 2},
      {"mediaType", "application/vnd.oci.image.index.v1+json"},
      {"manifests",
       json::Array{json::Object{
           {"mediaType", media_type},
           {"digest", image.manifest},
           {"size", bytes.size()},
           {"platform", json::Object{{"architecture", HostArchitecture()}, {"os", "linux"}}},
           {"annotations", json::Object{{"io.containerd.image.name", image.name},
                                        {"org.opencontainers.image.ref.name", image.name}}}}}}};
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(dir + "/index.json", json::Print(index)));
  return WriteFileAtomically(dir + "/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
}

}  // namespace swell::images
