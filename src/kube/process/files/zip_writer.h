// ZipWriter: an archive of records without compression, as torch.save writes it and torch.load
// reads it (APPNOTE.TXT 6.3: stored, ZIP64, sizes after the data). libarchive would do it, too, but
// is opened only where images are used and may be missing.
//
// - Threads: a plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::process {

class ZipWriter {
 public:
  // Takes the archive's bytes in their order.
  using Sink = std::function<Status(std::string_view)>;

  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  // Begins a record, whose bytes follow by Add.
  Status Begin(const std::string& name);
  Status Add(std::string_view bytes);
  // Ends the record.
  Status End();
  // Writes the directory. Nothing can be added after it.
  Status Finish();

 private:
  struct Entry {
    std::string name;
    uint64_t place = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  Status Write(std::string_view bytes);

  Sink sink_;
  uint64_t place_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace swell::process
