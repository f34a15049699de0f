// PullImage: brings an image from a source into the store.
//
// Three layers at once are fetched, verified and unpacked, each unpacked while it comes. Layers
// that are there already are not fetched again; one that another pull is fetching is waited for.
//
// - Threads: any thread that may block; starts some of its own, three for each layer at work, and
//   joins them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "kube/images/cancellation.h"
#include "kube/images/source.h"
#include "kube/images/store.h"

namespace swell::images {

struct PullProgress {
  std::atomic<int64_t> bytes{0};  // fetched so far, of bytes_total
  std::atomic<int64_t> bytes_total{0};
  std::atomic<int> layers{0};  // unpacked, or there before
  std::atomic<int> layers_total{0};
};

// Returns what the store has now; its name and origin are the caller's to add, who flushes the
// store before it puts the name, or says in the name that it did not (StoredImage::boot). The
// caller holds ImageStore::HoldPulls() until it has put the name.
Result<StoredImage> PullImage(const ImageStore& store,
                              ImageSource& source,
                              PullProgress& progress,
                              const Cancellation& cancel);

// Writes an image as a directory in OCI's layout, under the name's tag.
Status ExportImage(const ImageStore& store, const StoredImage& image, const std::string& dir);

}  // namespace swell::images
