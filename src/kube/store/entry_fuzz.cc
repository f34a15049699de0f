// What stands beside an object in the database: read whatever it says, and the same again when it
// is written.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "kube/store/entry_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace swell::store;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto attributes = DecodeAttributes(bytes);
  if (!attributes) return 0;
  const auto again = DecodeAttributes(EncodeAttributes(*attributes));
  SWELL_CHECK(again.has_value());
  SWELL_CHECK(again->uid == attributes->uid && again->labels == attributes->labels &&
              again->fields == attributes->fields);
  return 0;
}
