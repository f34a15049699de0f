// UnpackedBytes: what a file holds that may be packed by gzip or zstd, and the digest of that.
//
// A thread of its own unpacks and digests, some pieces ahead of who reads: so a layer's bytes are
// unpacked while the files of earlier ones are written. gzip is unpacked by Intel's igzip where the
// machine has it (docs/adr/0031), else by libarchive.
//
// - Threads: one reader. The input is read by the thread of its own.
// - Ownership: the input outlives it. Destroying it waits for a Read of the input that is under
// way.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "kube/images/packed_input.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {

// Unpacks on the caller's thread.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // At least one byte; 0 at the end.
  virtual Result<size_t> Read(char* to, size_t size) = 0;
};
// Decides by the first bytes. `without_igzip` is for tests.
Result<std::unique_ptr<Decoder>> OpenDecoder(PackedInput& input, bool without_igzip = false);

class UnpackedBytes {
 public:
  explicit UnpackedBytes(PackedInput& input);
  ~UnpackedBytes();

  // The next piece, which is good until the next call; empty at the end.
  Result<std::string_view> Next();
  // The digest of all pieces, once the end was reached.
  std::string Digest();

 private:
  struct Piece {
    std::vector<char> bytes;
    size_t size = 0;
  };

  void Run(PackedInput& input);
  Status UnpackAll(PackedInput& input);
  // False when nobody reads any more.
  bool TakeFree(Piece& piece);
  void PutFull(Piece piece);

  net::Sha256 hash_;  // the thread's until it ended
  Piece current_;     // the reader's
  Mutex mutex_;
  CondVar changed_;
  std::deque<Piece> free_ SWELL_GUARDED_BY(mutex_);
  std::deque<Piece> full_ SWELL_GUARDED_BY(mutex_);
  bool ended_ SWELL_GUARDED_BY(mutex_) = false;  // the thread's last piece is in full_
  bool stopped_ SWELL_GUARDED_BY(mutex_) = false;
  Status failed_ SWELL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace swell::images
