#include "kube/images/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "kube/images/shared_library.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
constexpr size_t kXattrsMax = 100;
constexpr size_t kXattrBytesMax = 64 << 10;

// libarchive's functions, found when the first archive is opened.
struct Archive {
  decltype(archive_read_new)* read_new;
  decltype(archive_read_free)* read_free;
  decltype(archive_read_support_filter_gzip)* support_gzip;
  decltype(archive_read_support_filter_zstd)* support_zstd;
  decltype(archive_read_support_format_raw)* support_raw;
  decltype(archive_read_support_format_empty)* support_empty;
  decltype(archive_read_support_format_tar)* support_tar;
  decltype(archive_read_open_filename)* open_filename;
  decltype(archive_read_open)* open;
  decltype(archive_read_next_header)* next_header;
  decltype(archive_read_data_block)* data_block;
  decltype(archive_read_data)* data;
  decltype(archive_error_string)* error_string;
  decltype(archive_entry_pathname)* pathname;
  decltype(archive_entry_pathname_utf8)* pathname_utf8;
  decltype(archive_entry_symlink)* symlink;
  decltype(archive_entry_symlink_utf8)* symlink_utf8;
  decltype(archive_entry_hardlink)* hardlink;
  decltype(archive_entry_hardlink_utf8)* hardlink_utf8;
  decltype(archive_entry_filetype)* filetype;
  decltype(archive_entry_perm)* perm;
  decltype(archive_entry_uid)* uid;
  decltype(archive_entry_gid)* gid;
  decltype(archive_entry_mtime)* mtime;
  decltype(archive_entry_size)* size;
  decltype(archive_entry_xattr_reset)* xattr_reset;
  decltype(archive_entry_xattr_next)* xattr_next;
};

Result<Archive> LoadArchive() {
  SWELL_ASSIGN_OR_RETURN(SharedLibrary library,
                         SharedLibrary::Open("libarchive.so.13", "libarchive13"));
  Archive out;
  library.Find("archive_read_new", out.read_new);
  library.Find("archive_read_free", out.read_free);
  library.Find("archive_read_support_filter_gzip", out.support_gzip);
  library.Find("archive_read_support_filter_zstd", out.support_zstd);
  library.Find("archive_read_support_format_raw", out.support_raw);
  library.Find("archive_read_support_format_empty", out.support_empty);
  library.Find("archive_read_support_format_tar", out.support_tar);
  library.Find("archive_read_open_filename", out.open_filename);
  library.Find("archive_read_open", out.open);
  library.Find("archive_read_next_header", out.next_header);
  library.Find("archive_read_data_block", out.data_block);
  library.Find("archive_read_data", out.data);
  library.Find("archive_error_string", out.error_string);
  library.Find("archive_entry_pathname", out.pathname);
  library.Find("archive_entry_pathname_utf8", out.pathname_utf8);
  library.Find("archive_entry_symlink", out.symlink);
  library.Find("archive_entry_symlink_utf8", out.symlink_utf8);
  library.Find("archive_entry_hardlink", out.hardlink);
  library.Find("archive_entry_hardlink_utf8", out.hardlink_utf8);
  library.Find("archive_entry_filetype", out.filetype);
  library.Find("archive_entry_perm", out.perm);
  library.Find("archive_entry_uid", out.uid);
  library.Find("archive_entry_gid", out.gid);
  library.Find("archive_entry_mtime", out.mtime);
  library.Find("archive_entry_size", out.size);
  library.Find("archive_entry_xattr_reset", out.xattr_reset);
  library.Find("archive_entry_xattr_next", out.xattr_next);
  SWELL_RETURN_IF_ERROR(library.Check());
  return out;
}

const Result<Archive>& LoadedArchive() {
  static const Result<Archive> archive = LoadArchive();
  return archive;
}

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

// Two readers of libarchive, one behind the other: the first unpacks the bytes, which are digested
// on their way to the second, which knows tar.
struct TarReader::Impl {
  explicit Impl(const Archive& loaded)
      : lib(loaded), bytes_reader(loaded.read_new()), tar(loaded.read_new()) {}
  ~Impl() {
    lib.read_free(tar);
    lib.read_free(bytes_reader);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Error(archive* of) const {
    const char* why = lib.error_string(of);
    return Status(Code::kInvalid, why != nullptr ? why : "it cannot be read");
  }

  // The next unpacked bytes; 0 at the end, less on an error.
  la_ssize_t Fill() {
    if (at_end) return 0;
    const la_ssize_t n = lib.data(bytes_reader, buffer.data(), buffer.size());
    if (n > 0) {
      hash.Add({buffer.data(), static_cast<size_t>(n)});
      bytes += n;
    }
    if (n == 0) at_end = true;
    if (n < 0) broken = Error(bytes_reader);
    return n;
  }

  static la_ssize_t OnRead(archive*, void* self, const void** data) {
    auto& impl = *static_cast<Impl*>(self);
    *data = impl.buffer.data();
    const la_ssize_t n = impl.Fill();
    return n < 0 ? -1 : n;
  }

  // What is wrong with the packed bytes says more than what is missing of the tar file.
  Status TarError() const { return broken.ok() ? Error(tar) : broken; }

  const Archive& lib;
  archive* bytes_reader;
  archive* tar;
  std::vector<char> buffer = std::vector<char>(kBlockBytes);
  net::Sha256 hash;
  int64_t bytes = 0;
  bool at_end = false;
  Status broken;
};

TarReader::TarReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TarReader::~TarReader() = default;

int64_t TarReader::bytes() const { return impl_->bytes; }

Result<std::unique_ptr<TarReader>> TarReader::Open(const std::string& file) {
  const Result<Archive>& loaded = LoadedArchive();
  if (!loaded.ok()) return loaded.status();
  const Archive& lib = *loaded;
  auto impl = std::make_unique<Impl>(lib);
  if (impl->bytes_reader == nullptr || impl->tar == nullptr) {
    return Status(Code::kInternal, "libarchive has no memory");
  }
  lib.support_gzip(impl->bytes_reader);
  lib.support_zstd(impl->bytes_reader);
  lib.support_raw(impl->bytes_reader);
  lib.support_empty(impl->bytes_reader);
  archive_entry* entry = nullptr;
  if (lib.open_filename(impl->bytes_reader, file.c_str(), kBlockBytes) != ARCHIVE_OK) {
    return impl->Error(impl->bytes_reader);
  }
  const int first = lib.next_header(impl->bytes_reader, &entry);
  if (first == ARCHIVE_EOF) impl->at_end = true;
  if (first != ARCHIVE_OK && first != ARCHIVE_EOF) return impl->Error(impl->bytes_reader);
  lib.support_tar(impl->tar);
  lib.support_empty(impl->tar);
  if (lib.open(impl->tar, impl.get(), nullptr, &Impl::OnRead, nullptr) != ARCHIVE_OK) {
    return impl->TarError();
  }
  return std::unique_ptr<TarReader>(new TarReader(std::move(impl)));
}

Result<std::optional<TarEntry>> TarReader::Next() {
  const Archive& lib = impl_->lib;
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
  la_ssize_t n = 0;
  do {
    n = impl_->Fill();
  } while (n > 0);
  if (n < 0) return impl_->broken;
  return StrCat("sha256:", impl_->hash.Hex());
}

}  // namespace swell::images
