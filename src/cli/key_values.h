// Flags that name several things at once: KEY=VALUE, repeated or between commas.
// - Threads: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swell::cli {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// "a=b" pairs. `flag` is for messages.
Result<KeyValues> ParsePairs(const std::vector<std::string>& texts, std::string_view flag);
// "claimname=data,path=/data,ro" as {claimname, data}, {path, /data}, {ro, ""}; a name that is not
// among `known` is refused. `flag` is for messages.
Result<KeyValues> ParseFields(std::string_view text,
                              std::string_view flag,
                              const std::vector<std::string_view>& known);
// "" for one that is not there.
std::string_view FieldOf(const KeyValues& fields, std::string_view name);
bool HasField(const KeyValues& fields, std::string_view name);
// Pairs of labels, which have to be ones that the server takes.
Result<KeyValues> ParseLabels(const std::vector<std::string>& texts, std::string_view flag);

}  // namespace swell::cli
