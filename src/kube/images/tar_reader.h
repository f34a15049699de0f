// TarReader: the entries of a tar file, which may be packed by gzip or zstd, by libarchive.
//
// - Threads: any thread that may block.
// - Ownership: the input outlives it. The reader's names and bytes are valid until the next call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/images/packed_input.h"

namespace swell::images {

struct TarEntry {
  enum class Kind { kFile, kDirectory, kSymlink, kHardlink, kFifo, kDevice };
  Kind kind = Kind::kFile;
  std::string path;
  std::string link;  // target of a link
  int mode = 0;
  int64_t uid = 0, gid = 0;
  int64_t mtime = 0;
  int64_t size = 0;
  std::vector<std::pair<std::string, std::string>> xattrs;
};

class TarReader {
 public:
  static Result<std::unique_ptr<TarReader>> Open(PackedInput& input);
  ~TarReader();

  // Nothing at the end.
  Result<std::optional<TarEntry>> Next();
  // Gives the entry's bytes piece by piece with their offset.
  using Sink = std::function<Status(std::string_view bytes, int64_t offset)>;
  Status ReadData(const Sink& sink);
  // After the last entry: reads the rest of the file, and tells the digest of the unpacked bytes.
  Result<std::string> Finish();
  // Unpacked bytes read so far.
  int64_t bytes() const;

 private:
  struct Impl;
  explicit TarReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swell::images
