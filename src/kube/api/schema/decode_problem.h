// Why a document is not one of a built-in kind at all: what kube-apiserver, which decodes into
// typed structs, says before it looks at any value. Asked only when validation has failed already.
// - Threads: pure functions.
#pragma once

#include <string>

#include "kube/api/schema/schema.h"

namespace swell::api {

enum class DecodeForm {
  kJson,       // a JSON document: the words of Go's encoding/json
  kConverted,  // the outcome of a strategic merge patch: the words of the map converter
};

// The first thing in document order that no struct can hold; empty: it can be decoded.
std::string FindDecodeProblem(const Schema& schema,
                              const json::Value& value,
                              DecodeForm form = DecodeForm::kJson);

// A document as Go's %v prints maps: map[a:1 b:[x y]]. Keys sorted.
std::string GoText(const json::Value& value);

}  // namespace swell::api
