// What else expressions handle: addresses and their ranges, URLs, versions, formats of texts,
// values that may be missing, bytes, and questions about rights. Each file below has the functions
// of some of them.
// - Threads: pure functions of immutable values.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kube/api/cel/cel.h"
#include "kube/api/cel/cel_access.h"
#include "kube/api/meta/cidr.h"

namespace re2 {
class RE2;
}

namespace swell::api {

struct CelAddress {
  Cidr host;  // with all its bits
};
struct CelRange {
  Cidr range;  // its address may have bits behind the prefix
};
struct CelUrl {
  std::string scheme, host, path, query;  // as written
};
struct CelVersion {
  std::array<uint64_t, 3> numbers{};
  std::vector<std::string> before;  // "alpha", "1" of 1.0.0-alpha.1
  std::string build;
};
struct CelFormat {
  std::string name;  // "dns1123Label"
};
struct CelOptional {
  std::shared_ptr<const CelValue> held;  // null: there is none
};
struct CelBytes {
  std::string octets;
};
// `authorizer`, and what its methods make of it until check() asks.
struct CelAuthority {
  enum class Stage { kAuthorizer, kGroup, kResource, kPath };
  std::shared_ptr<const CelAuthorizer> authorizer;
  CelAccessQuestion question;
  Stage stage = Stage::kAuthorizer;
  std::shared_ptr<const CelAccessQuestion> requested;  // of the variable alone
};
struct CelDecision {
  bool allowed = false;
  std::string reason;
};

struct CelObject {
  std::variant<CelAddress,
               CelRange,
               CelUrl,
               CelVersion,
               CelFormat,
               CelOptional,
               CelBytes,
               CelAuthority,
               CelDecision>
      is;
};

template <typename T>
CelValue CelOf(T object) {
  return {std::make_shared<const CelObject>(CelObject{std::move(object)})};
}
// Null for any other value.
template <typename T>
const T* CelAs(const CelValue& value) {
  const auto* object = std::get_if<CelObjectPtr>(&value.data);
  return object != nullptr ? std::get_if<T>(&(*object)->is) : nullptr;
}

std::string_view CelObjectType(const CelObject& object);
bool CelObjectsEqual(const CelObject& a, const CelObject& b, CelBudget& budget, int depth);
std::string CelObjectText(const CelObject& object);
// The size of its texts. What an optional value holds is not counted.
size_t CelObjectBytes(const CelObject& object);

// cel_network.cc
Result<CelValue> CallCelNetwork(std::string_view name, const std::vector<CelValue>& args);
// cel_versions.cc: versions and formats
std::optional<CelVersion> ParseCelVersion(std::string_view text, bool lenient);
Result<CelValue> CallCelVersion(std::string_view name, const std::vector<CelValue>& args);
Result<CelValue> CallCelFormat(std::string_view name, const std::vector<CelValue>& args);
bool IsCelFormat(std::string_view name);
// cel_times.cc. A text is the time that it spells, as values of schemas with that format are.
std::optional<WallTime> CelTimeOf(const CelValue& value);
std::string CelTimeText(WallTime time);
// Whole seconds since 1970, rounded down: half a second before it is -1.
int64_t CelSecondsOf(WallTime time);
Result<CelValue> CallCelTime(std::string_view name,
                             const std::vector<CelValue>& args,
                             CelBudget& budget);
// cel_strings.cc: find(), findAll(), format() and strings.quote()
Result<std::shared_ptr<const re2::RE2>> CompileCelPattern(const std::string& pattern,
                                                          size_t text_size,
                                                          CelBudget& budget);
Result<CelValue> CallCelString(std::string_view name,
                               const std::vector<CelValue>& args,
                               CelBudget& budget);
// cel_collections.cc: sets, and what makes lists of lists
Result<CelValue> CallCelSet(std::string_view name,
                            const std::vector<CelValue>& args,
                            CelBudget& budget);
Result<CelValue> CallCelLists(std::string_view name,
                              const std::vector<CelValue>& args,
                              CelBudget& budget);

}  // namespace swell::api
