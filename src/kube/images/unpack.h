// UnpackLayer: makes an overlay's directory of a layer's tar file.
//
// Nothing is written outside the directory, whatever the archive says: names that lead out of it
// are refused, and links are followed as if the directory were the root of the file system. What
// the layer removes becomes what overlays know: a character device 0:0 in place of a file, the
// attribute overlay.opaque on a directory that hides the one below. Device files are left out: a
// container's /dev is the runtime's.
//
// - Threads: any thread that may block.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kube/images/cancellation.h"
#include "kube/images/packed_input.h"

namespace swell::images {

struct UnpackLimits {
  int64_t bytes_max = int64_t{512} << 30;
  int64_t entries_max = 10'000'000;
};

// `to_dir` exists and is empty. Returns the digest of the unpacked tar file. kNoSpace when the disk
// is nearly full: some room is left to everybody else.
Result<std::string> UnpackLayer(PackedInput& layer,
                                const std::string& to_dir,
                                const UnpackLimits& limits,
                                const Cancellation& cancel);

// Copies the plain files of a tar file, for archives that hold an image. A link becomes the file
// that it names.
Status UnpackFiles(const std::string& file, const std::string& to_dir, const Cancellation& cancel);

// kNoSpace when a layer of `more` bytes would leave less than a twentieth and 1 GiB of the path's
// file system free, and when less than a twentieth and 100,000 of its files are.
Status CheckRoom(const std::string& path, int64_t more = 0);

}  // namespace swell::images
