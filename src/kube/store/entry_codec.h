// How entries are written to disk beside their bytes: attributes in a compact form that loads
// without parsing JSON, and a checksum over everything.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/store/store.h"

namespace swell::store {

// Lengths as LEB128 numbers: uid, then count and pairs of labels, then of fields.
std::string EncodeAttributes(const Attributes& attributes);
// nullopt for bytes that EncodeAttributes did not write.
std::optional<Attributes> DecodeAttributes(std::string_view bytes);

// Detects damage, not malice.
uint64_t EntryChecksum(const Key& key,
                       uint64_t version,
                       std::string_view attributes,
                       std::string_view bytes);

}  // namespace swell::store
