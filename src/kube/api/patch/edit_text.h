// EditText: a few members of an object's parts (metadata.resourceVersion, spec.nodeName) set or
// removed in the object's compact text, in one pass and without a document being built of it.
// - Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swell::api {

struct TextEdit {
  std::string_view part;  // "metadata"; no two edits are about the same member
  std::string_view key;   // "resourceVersion"; neither needs escaping
  std::string value;      // compact JSON; empty: the member is removed
};

// Members are replaced where they are, new ones (and parts) come at the end, and what no edit names
// stays as it was written, in exactly the room it takes. Returns nullopt if the text is not an
// object as json::Print writes it, or if one of the parts is not an object. The text is read only
// as far as the last edit.
std::optional<std::string> EditText(std::string_view text, const std::vector<TextEdit>& edits);

}  // namespace swell::api
