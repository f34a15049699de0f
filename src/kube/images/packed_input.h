// PackedInput: the bytes of a packed layer, from a file that is whole or from one that still grows.
//
// - Threads: Read from one thread. The rest of GrowingFile from another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace swell::images {

class PackedInput {
 public:
  virtual ~PackedInput() = default;
  // At least one byte, as many as are there; 0 at the end. May wait.
  virtual Result<size_t> Read(char* to, size_t size) = 0;
};

class FileInput final : public PackedInput {
 public:
  explicit FileInput(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<std::unique_ptr<FileInput>> Open(const std::string& path);
  Result<size_t> Read(char* to, size_t size) override;

 private:
  UniqueFd fd_;
};

// A file that another thread writes from its beginning to its end. Reading waits for what is
// missing.
class GrowingFile final : public PackedInput {
 public:
  static Result<std::unique_ptr<GrowingFile>> Open(const std::string& path);

  // The file now has `size` bytes. If that is less than before, it was replaced, and reading fails.
  void Grew(int64_t size);
  // Nothing more comes: the file is whole, or reading fails.
  void End(bool whole);
  // Whether the file began anew after some of it may have been read.
  bool restarted() const;

  Result<size_t> Read(char* to, size_t size) override;

 private:
  UniqueFd fd_;
  int64_t at_ = 0;  // the reader's
  mutable Mutex mutex_;
  CondVar changed_;
  int64_t size_ SWELL_GUARDED_BY(mutex_) = 0;
  bool ended_ SWELL_GUARDED_BY(mutex_) = false;
  bool whole_ SWELL_GUARDED_BY(mutex_) = false;
  bool restarted_ SWELL_GUARDED_BY(mutex_) = false;
};

}  // namespace swell::images
