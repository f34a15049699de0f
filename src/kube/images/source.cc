#include "kube/images/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/images/reference.h"
#include "kube/images/unpack.h"
#include "kube/images/write_at.h"

namespace swell::images {
namespace {

constexpr size_t kCopyBytes = 1 << 20;
constexpr size_t kWriteBytes = 256 << 10;
constexpr int64_t kRoomCheckBytes = 64 << 20;

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A file below `dir` that is a file: what an archive names may be anything.
Result<UniqueFd> OpenPlain(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Status(Code::kInvalid, path + " is not a plain file");
  }
  return fd;
}

// Calls `use` with each piece of the file from `offset` on.
template <class Use>
Status ReadPieces(int fd, int64_t offset, const Cancellation& cancel, const Use& use) {
  std::vector<char> buffer(kCopyBytes);
  while (true) {
    SWELL_RETURN_IF_ERROR(cancel.Check());
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read");
    if (n == 0) return Status::Ok();
    SWELL_RETURN_IF_ERROR(use(std::string_view(buffer.data(), static_cast<size_t>(n))));
    offset += n;
  }
}

// The text of a file that somebody else may have made: no pipe that would never end, no link.
Result<std::string> ReadPlain(const std::string& path, const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd file, OpenPlain(path));
  std::string text;
  Status read = ReadPieces(file.get(), 0, cancel, [&](std::string_view bytes) -> Status {
    if (text.size() + bytes.size() > kManifestBytesMax) {
      return Status(Code::kTooLarge, StrCat(path, ": larger than ", kManifestBytesMax, " bytes"));
    }
    text += bytes;
    return Status::Ok();
  });
  if (!read.ok()) return read;
  return text;
}

class OciDirectory final : public ImageSource {
 public:
  OciDirectory(std::string dir, std::string top, const Cancellation& cancel)
      : dir_(std::move(dir)), top_(std::move(top)), cancel_(cancel) {}

  Result<std::string> Top() override { return Read(top_); }
  Result<std::string> ManifestOf(const Descriptor& item) override { return Read(item.digest); }

  Status Fetch(const Descriptor& blob, PartFile& part) override {
    SWELL_ASSIGN_OR_RETURN(const UniqueFd file, OpenPlain(BlobPath(blob.digest)));
    return ReadPieces(file.get(), part.size(), cancel_, [&](std::string_view bytes) -> Status {
      if (part.size() + static_cast<int64_t>(bytes.size()) > blob.size) {
        return Status(Code::kInvalid,
                      StrCat("blob ", blob.digest, " is longer than its manifest says"));
      }
      return part.Append(bytes);
    });
  }

 private:
  std::string BlobPath(const std::string& digest) const {
    return StrCat(dir_, "/blobs/sha256/", DigestHex(digest));
  }
  Result<std::string> Read(const std::string& digest) const {
    SWELL_ASSIGN_OR_RETURN(std::string bytes, ReadPlain(BlobPath(digest), cancel_));
    net::Sha256 hash;
    hash.Add(bytes);
    if (hash.Hex() != DigestHex(digest)) {
      return Status(Code::kInvalid,
                    StrCat("blob ", digest, " has other content than its name says"));
    }
    return bytes;
  }

  std::string dir_;
  std::string top_;
  const Cancellation& cancel_;
};

// ---- docker save ----

// An image whose parts are the files of an unpacked `docker save`; its manifest is made here.
class DockerArchive final : public ImageSource {
 public:
  DockerArchive(std::string manifest,
                std::map<std::string, std::string> files,
                const Cancellation& cancel)
      : manifest_(std::move(manifest)), files_(std::move(files)), cancel_(cancel) {}

  Result<std::string> Top() override { return manifest_; }
  Result<std::string> ManifestOf(const Descriptor& item) override {
    return Status(Code::kNotFound, StrCat("there is no manifest ", item.digest));
  }
  Status Fetch(const Descriptor& blob, PartFile& part) override {
    const auto found = files_.find(blob.digest);
    if (found == files_.end()) {
      return Status(Code::kNotFound, StrCat("there is no blob ", blob.digest));
    }
    SWELL_ASSIGN_OR_RETURN(const UniqueFd file, OpenPlain(found->second));
    return ReadPieces(file.get(), part.size(), cancel_,
                      [&](std::string_view bytes) { return part.Append(bytes); });
  }

 private:
  std::string manifest_;
  std::map<std::string, std::string> files_;  // by digest
  const Cancellation& cancel_;
};

Result<Descriptor> Describe(const std::string& dir,
                            const std::string& name,
                            std::map<std::string, std::string>& files,
                            const Cancellation& cancel) {
  if (StrCat("/", name, "/").find("/../") != std::string::npos) {
    return Status(Code::kInvalid,
                  StrCat("manifest.json: ", Quote(name), " leads out of the archive"));
  }
  const std::string path = StrCat(dir, "/", name);
  SWELL_ASSIGN_OR_RETURN(const UniqueFd file, OpenPlain(path));
  net::Sha256 hash;
  Descriptor out;
  SWELL_RETURN_IF_ERROR(ReadPieces(file.get(), 0, cancel, [&](std::string_view bytes) {
    hash.Add(bytes);
    out.size += static_cast<int64_t>(bytes.size());
    return Status::Ok();
  }));
  out.digest = StrCat("sha256:", hash.Hex());
  files[out.digest] = path;
  return out;
}

json::Value DescriptorJson(const Descriptor& item, std::string_view media_type) {
  return json::Object{{"mediaType", media_type}, {"digest", item.digest}, {"size", item.size}};
}

Result<OpenedFile> OpenDockerDirectory(const std::string& dir, const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadPlain(dir + "/manifest.json", cancel));
  auto list = json::Parse(text);
  if (!list.ok()) return list.status().WithContext("manifest.json");
  if (!list->is_array() || list->get_array().size() != 1) {
    return Status(Code::kInvalid, "manifest.json: expected one image; save images one by one");
  }
  const json::Value& image = list->get_array()[0];
  std::map<std::string, std::string> files;
  SWELL_ASSIGN_OR_RETURN(
      const Descriptor config,
      Describe(dir, std::string(json::GetString(image, {"Config"})), files, cancel));
  json::Array layers;
  const json::Array& names = json::GetArray(image, {"Layers"});
  if (names.size() > kLayersMax) return Status(Code::kInvalid, "manifest.json: too many layers");
  for (const json::Value& name : names) {
    if (!name.is_string()) return Status(Code::kInvalid, "manifest.json: Layers: expected texts");
    SWELL_ASSIGN_OR_RETURN(
        const Descriptor layer,
        Describe(dir, std::string(json::View(name.get_string())), files, cancel));
    layers.push_back(DescriptorJson(layer, "application/vnd.oci.image.layer.v1.tar"));
  }
  const json::Value manifest =
      json::Object{{"schemaVersion", 2},
                   {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                   {"config", DescriptorJson(config, "application/vnd.oci.image.config.v1+json")},
                   {"layers", std::move(layers)}};
  OpenedFile out;
  out.source = std::make_unique<DockerArchive>(json::Print(manifest), std::move(files), cancel);
  const json::Array& tags = json::GetArray(image, {"RepoTags"});
  if (!tags.empty() && tags[0].is_string()) out.name = json::View(tags[0].get_string());
  return out;
}

Result<OpenedFile> OpenLayout(const std::string& dir,
                              const std::string& tag,
                              const Cancellation& cancel) {
  auto text = ReadPlain(dir + "/index.json", cancel);
  if (text.status().code() == Code::kNotFound) {
    return Status(Code::kInvalid,
                  dir + " is not a directory in OCI's layout: it has no index.json");
  }
  if (!text.ok()) return text.status();
  auto index = ParseManifest(*text);
  if (!index.ok()) return index.status().WithContext(dir + "/index.json");
  std::vector<Descriptor> found;
  std::vector<std::string> names;
  for (const Descriptor& item : index->manifests) {
    names.push_back(Quote(item.name));
    const bool same = item.name == tag || item.name.ends_with(":" + tag);
    if (tag.empty() || same) found.push_back(item);
  }
  if (found.empty()) {
    return Status(Code::kNotFound, StrCat(dir, " has no image ", Quote(tag), "; it has ",
                                          names.empty() ? "none" : Join(names, ", ")));
  }
  if (found.size() > 1) {
    return Status(Code::kInvalid, StrCat(dir, " has several images; name one as oci:", dir,
                                         ":TAG. It has ", Join(names, ", ")));
  }
  OpenedFile out;
  out.source = std::make_unique<OciDirectory>(dir, found[0].digest, cancel);
  out.name = found[0].name;
  return out;
}

Result<OpenedFile> OpenArchive(const std::string& file,
                               const ImageStore& store,
                               const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const std::string dir, store.MakeTempDir());
  const std::shared_ptr<void> temporary(nullptr, [dir](void*) {
    // What cannot be removed now goes with the next sweep of tmp/.
    [[maybe_unused]] Status removed = RemoveTree(dir);
  });
  Status unpacked = UnpackFiles(file, dir, cancel);
  if (!unpacked.ok()) return unpacked.WithContext(file);
  auto opened = FileExists(dir + "/manifest.json") ? OpenDockerDirectory(dir, cancel)
                : FileExists(dir + "/index.json")
                    ? OpenLayout(dir, "", cancel)
                    : Result<OpenedFile>(Status(Code::kInvalid,
                                                "it has neither manifest.json nor index.json: "
                                                "docker save did not write this"));
  if (!opened.ok()) return opened.status().WithContext(file);
  opened->temporary = temporary;
  return opened;
}

}  // namespace

// ---- a blob that arrives ----

Result<PartFile> PartFile::Open(const std::string& path, std::atomic<int64_t>* arrived) {
  PartFile out;
  out.path_ = path;
  out.arrived_ = arrived;
  out.fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!out.fd_.valid()) return ErrnoStatus(errno, "open " + path);
  SWELL_RETURN_IF_ERROR(ReadPieces(out.fd_.get(), 0, Cancellation(), [&](std::string_view bytes) {
    out.hash_.Add(bytes);
    out.size_ += static_cast<int64_t>(bytes.size());
    return Status::Ok();
  }));
  out.written_ = out.size_;
  if (arrived != nullptr) *arrived += out.size_;
  return out;
}

Status PartFile::Append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  if (arrived_ != nullptr) *arrived_ += static_cast<int64_t>(bytes.size());
  if (pending_.empty() && bytes.size() >= kWriteBytes) return Write(bytes);
  pending_.reserve(kWriteBytes);
  while (!bytes.empty()) {
    const std::string_view taken = bytes.substr(0, kWriteBytes - pending_.size());
    pending_ += taken;
    bytes.remove_prefix(taken.size());
    if (pending_.size() == kWriteBytes) SWELL_RETURN_IF_ERROR(Flush());
  }
  return Status::Ok();
}

Status PartFile::Flush() {
  if (pending_.empty()) return Status::Ok();
  SWELL_RETURN_IF_ERROR(Write(pending_));
  pending_.clear();
  return Status::Ok();
}

Status PartFile::Write(std::string_view bytes) {
  // Others fill the disk, too, among them the layers that come at the same time.
  if (written_ >= room_checked_) {
    SWELL_RETURN_IF_ERROR(CheckRoom(path_));
    room_checked_ = written_ + kRoomCheckBytes;
  }
  if (!WriteAt(fd_.get(), bytes, written_)) return ErrnoStatus(errno, "write " + path_);
  hash_.Add(bytes);
  written_ += static_cast<int64_t>(bytes.size());
  if (on_written_) on_written_(written_);
  return Status::Ok();
}

Status PartFile::Restart() {
  if (::ftruncate(fd_.get(), 0) != 0) return ErrnoStatus(errno, "empty " + path_);
  if (arrived_ != nullptr) *arrived_ -= size_;
  size_ = 0;
  written_ = 0;
  room_checked_ = 0;
  pending_.clear();
  hash_ = net::Sha256();
  digest_.clear();
  if (on_written_) on_written_(written_);
  return Status::Ok();
}

Status PartFile::Verify(const Descriptor& blob) {
  if (digest_.empty()) digest_ = StrCat("sha256:", hash_.Hex());
  if (size_ == blob.size && digest_ == blob.digest) return Status::Ok();
  return Status(Code::kInvalid, StrCat("blob ", blob.digest, " (", blob.size,
                                       " bytes) came with other content: ", size_,
                                       " bytes with the digest ", digest_));
}

void PartFile::Remove() { ::unlink(path_.c_str()); }

// ---- opening ----

Result<OpenedFile> OpenImageFile(const std::string& source,
                                 const ImageStore& store,
                                 const Cancellation& cancel) {
  std::string path = source;
  if (path.starts_with("docker-archive:")) return OpenArchive(path.substr(15), store, cancel);
  if (path.starts_with("oci-archive:")) return OpenArchive(path.substr(12), store, cancel);
  if (path.starts_with("oci:")) path.erase(0, 4);
  if (IsDirectory(path)) return OpenLayout(path, "", cancel);
  const size_t colon = path.rfind(':');
  if (colon != std::string::npos && IsDirectory(path.substr(0, colon))) {
    return OpenLayout(path.substr(0, colon), path.substr(colon + 1), cancel);
  }
  if (FileExists(path)) return OpenArchive(path, store, cancel);
  return Status(Code::kNotFound,
                StrCat("there is no file or directory ", Quote(path),
                       "; expected oci:DIR[:TAG], docker-archive:FILE or a path of either"));
}

}  // namespace swell::images
