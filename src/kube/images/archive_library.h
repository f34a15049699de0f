// libarchive's functions, found when the first archive is opened (docs/adr/0021).
// - Threads: any; loaded once.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/result.h"

namespace swell::images {

struct ArchiveLibrary {
  decltype(archive_read_new)* read_new;
  decltype(archive_read_free)* read_free;
  decltype(archive_read_support_filter_gzip)* support_gzip;
  decltype(archive_read_support_filter_zstd)* support_zstd;
  decltype(archive_read_support_format_raw)* support_raw;
  decltype(archive_read_support_format_empty)* support_empty;
  decltype(archive_read_support_format_tar)* support_tar;
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

  // What is wrong with `reader`.
  Status Error(archive* reader) const;
};

// kUnavailable names the package that is missing.
const Result<ArchiveLibrary>& LoadedArchive();

}  // namespace swell::images
