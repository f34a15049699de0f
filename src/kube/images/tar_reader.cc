#include "kube/images/tar_reader.h"

#include <sys/stat.h>

#include "base/strings.h"
#include "kube/images/archive_library.h"
#include "kube/images/unpacked_bytes.h"

namespace swell::images {
namespace {

constexpr size_t kXattrsMax = 100;
constexpr size_t kXattrBytesMax = 64 << 10;

// The name in the bytes that the archive has; its UTF-8 form where this process's locale cannot
// say it.
std::string Text(const char* raw, const char* utf8) {
  if (raw != nullptr) return raw;
  return utf8 != nullptr ? utf8 : "";
}

TarEntry::Kind KindOf(mode_t type) {
  if (S_ISDIR(type)) return TarEntry::Kind::kDirectory;
  if (S_ISLNK(type)) return TarEntry::Kind::kSymlink;
  if (S_ISFIFO(type)) return TarEntry::Kind::kFifo;
  if (S_ISREG(type)) return TarEntry::Kind::kFile;
  return TarEntry::Kind::kDevice;
}

}  // namespace

// The unpacked bytes, digested on their way to libarchive's reader, which knows tar.
struct TarReader::Impl {
  Impl(const ArchiveLibrary& loaded, PackedInput& input)
      : lib(loaded), unpacked(input), tar(loaded.read_new()) {}
  ~Impl() { lib.read_free(tar); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The next unpacked bytes; empty at the end, and after an error, which `broken` has.
  std::string_view Fill() {
    if (at_end || !broken.ok()) return {};
    auto piece = unpacked.Next();
    if (!piece.ok()) {
      broken = piece.status();
      return {};
    }
    at_end = piece->empty();
    bytes += static_cast<int64_t>(piece->size());
    return *piece;
  }

  static la_ssize_t OnRead(archive*, void* self, const void** data) {
    auto& impl = *static_cast<Impl*>(self);
    const std::string_view piece = impl.Fill();
    *data = piece.data();
    return impl.broken.ok() ? static_cast<la_ssize_t>(piece.size()) : -1;
  }

  // What is wrong with the packed bytes says more than what is missing of the tar file.
  Status TarError() const { return broken.ok() ? lib.Error(tar) : broken; }

  const ArchiveLibrary& lib;
  UnpackedBytes unpacked;
  archive* tar;
  int64_t bytes = 0;
  bool at_end = false;
  Status broken;
};

TarReader::TarReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TarReader::~TarReader() = default;

int64_t TarReader::bytes() const { return impl_->bytes; }

Result<std::unique_ptr<TarReader>> TarReader::Open(PackedInput& input) {
  const Result<ArchiveLibrary>& loaded = LoadedArchive();
  if (!loaded.ok()) return loaded.status();
  const ArchiveLibrary& lib = *loaded;
  auto impl = std::make_unique<Impl>(lib, input);
  if (impl->tar == nullptr) return Status(Code::kInternal, "libarchive has no memory");
  lib.support_tar(impl->tar);
  lib.support_empty(impl->tar);
  if (lib.open(impl->tar, impl.get(), nullptr, &Impl::OnRead, nullptr) != ARCHIVE_OK) {
    return impl->TarError();
  }
  return std::unique_ptr<TarReader>(new TarReader(std::move(impl)));
}

Result<std::optional<TarEntry>> TarReader::Next() {
  const ArchiveLibrary& lib = impl_->lib;
  archive_entry* entry = nullptr;
  const int code = lib.next_header(impl_->tar, &entry);
  if (code == ARCHIVE_EOF) return std::optional<TarEntry>();
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return impl_->TarError();
  TarEntry out;
  out.path = Text(lib.pathname(entry), lib.pathname_utf8(entry));
  if (out.path.empty()) return Status(Code::kInvalid, "an entry has no name that can be read");
  out.kind = KindOf(lib.filetype(entry));
  const std::string hard = Text(lib.hardlink(entry), lib.hardlink_utf8(entry));
  if (!hard.empty()) out.kind = TarEntry::Kind::kHardlink;
  out.link = !hard.empty() ? hard : Text(lib.symlink(entry), lib.symlink_utf8(entry));
  out.mode = static_cast<int>(lib.perm(entry));
  out.uid = lib.uid(entry);
  out.gid = lib.gid(entry);
  out.mtime = lib.mtime(entry);
  out.size = lib.size(entry);
  lib.xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  while (out.xattrs.size() < kXattrsMax &&
         lib.xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    if (name == nullptr || size > kXattrBytesMax) continue;
    out.xattrs.emplace_back(name, std::string(static_cast<const char*>(value), size));
  }
  return std::optional<TarEntry>(std::move(out));
}

Status TarReader::ReadData(const Sink& sink) {
  while (true) {
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int code = impl_->lib.data_block(impl_->tar, &data, &size, &offset);
    if (code == ARCHIVE_EOF) return Status::Ok();
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return impl_->TarError();
    SWELL_RETURN_IF_ERROR(sink({static_cast<const char*>(data), size}, offset));
  }
}

Result<std::string> TarReader::Finish() {
  while (!impl_->Fill().empty()) continue;
  if (!impl_->broken.ok()) return impl_->broken;
  return impl_->unpacked.Digest();
}

}  // namespace swell::images
