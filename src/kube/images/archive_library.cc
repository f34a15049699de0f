#include "kube/images/archive_library.h"

#include <string>
#include <string_view>

#include "kube/images/shared_library.h"

namespace swell::images {
namespace {

Result<ArchiveLibrary> LoadArchive() {
  SWELL_ASSIGN_OR_RETURN(SharedLibrary library,
                         SharedLibrary::Open("libarchive.so.13", "libarchive13"));
  ArchiveLibrary out;
  library.Find("archive_read_new", out.read_new);
  library.Find("archive_read_free", out.read_free);
  library.Find("archive_read_support_filter_gzip", out.support_gzip);
  library.Find("archive_read_support_filter_zstd", out.support_zstd);
  library.Find("archive_read_support_format_raw", out.support_raw);
  library.Find("archive_read_support_format_empty", out.support_empty);
  library.Find("archive_read_support_format_tar", out.support_tar);
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

}  // namespace

Status ArchiveLibrary::Error(archive* reader) const {
  const char* why = error_string(reader);
  const std::string_view said = why != nullptr ? why : "it cannot be read";
  return Status(Code::kInvalid,
                std::string(said == "Unrecognized archive format" ? "it is not a tar file" : said));
}

const Result<ArchiveLibrary>& LoadedArchive() {
  static const Result<ArchiveLibrary> archive = LoadArchive();
  return archive;
}

}  // namespace swell::images
