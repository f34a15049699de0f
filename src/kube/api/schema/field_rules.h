// What names and values must be, wherever they stand: the rules that schemas, custom definitions
// and the built-in kinds share, with Kubernetes' wording. Each Check appends to `errors`.
// - Threads: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/schema/field_errors.h"

namespace swell::api {

using FieldErrors = std::vector<FieldError>;

// The member as text; "" when it is absent or something else.
std::string_view TextOf(const json::Value& parent, std::string_view key);
const json::Value* MemberOf(const json::Value& parent, std::string_view key);
// The value as text; "" when it is something else.
std::string_view TextIn(const json::Value& value);
// The object's spec; an absent one is an empty one, as to a server that has types.
const json::Value& SpecOf(const json::Value& object);

// An element of a list, and its path: for (const auto& [port, at] : ItemsOf(spec, "ports", path)).
struct ListItem {
  const json::Value& value;
  std::string at;
};
std::vector<ListItem> ItemsOf(const json::Array& list, std::string_view path);
std::vector<ListItem> ItemsOf(const json::Value& parent,
                              std::string_view key,
                              std::string_view path);

// What is wrong with a text; "" when nothing is.
using TextRule = std::string (*)(std::string_view);
void CheckText(std::string_view text, TextRule rule, const std::string& path, FieldErrors& errors);
// CheckText for a text that is required; CheckName takes it from the parent's field.
void CheckRequired(std::string_view text,
                   TextRule rule,
                   const std::string& path,
                   FieldErrors& errors);
void CheckName(const json::Value& parent,
               std::string_view key,
               TextRule rule,
               const std::string& path,
               FieldErrors& errors);

// Rules used by several areas.
std::string CheckDns1035Label(std::string_view name);
std::string CheckPathSegmentName(std::string_view name);
std::string CheckConfigMapKey(std::string_view key);
std::string CheckIp(std::string_view ip);
std::string CheckEnvVarName(std::string_view name);

// A key as labels have it; told under `path`, with all that is wrong.
void CheckQualified(std::string_view key,
                    const std::string& path,
                    FieldErrors& errors,
                    bool any_case = false);
void CheckLabels(const json::Value& labels, const std::string& path, FieldErrors& errors);
void CheckAnnotations(const json::Value& annotations, const std::string& path, FieldErrors& errors);
void CheckLabelSelector(const json::Value& selector, const std::string& path, FieldErrors& errors);
void CheckNonNegative(const json::Value& parent,
                      std::string_view key,
                      const std::string& path,
                      FieldErrors& errors);
// One of the values, or nothing where a default is meant.
void CheckOneOf(const json::Value& parent,
                std::string_view key,
                const std::string& path,
                const std::vector<std::string>& supported,
                FieldErrors& errors);
// A DNS subdomain, or nothing.
void CheckSubdomain(const json::Value& parent,
                    std::string_view key,
                    const std::string& path,
                    FieldErrors& errors);
// The name of a container or volume: a DNS label that `names`, those before it, have not.
void CheckItemName(const json::Value& item,
                   const std::string& at,
                   std::set<std::string>& names,
                   FieldErrors& errors);
// An IANA service name. Answers whether it is one.
bool CheckPortName(std::string_view name, const std::string& path, FieldErrors& errors);
void CheckPort(int64_t port, const std::string& path, FieldErrors& errors);
// A number of a port, or the name of one.
void CheckPortOrName(const json::Value& port, const std::string& path, FieldErrors& errors);
// A count, or a share of all: "25%".
void CheckIntOrPercent(const json::Value& parent,
                       std::string_view key,
                       const std::string& path,
                       FieldErrors& errors);
// Whether such an amount is zero, as "0%" is. So is text that is not an amount.
bool IsZeroOrNoNumber(const json::Value* amount);
void CheckNotAbove100Percent(const json::Value& parent,
                             std::string_view key,
                             const std::string& path,
                             FieldErrors& errors);
// Invalid values that are shown as Go shows their types.
FieldError InvalidIntOrText(std::string path, const json::Value& value, std::string_view detail);
FieldError InvalidQuantity(std::string path, const json::Value& amount, std::string_view detail);
FieldError InvalidTexts(std::string path, const json::Array& texts, std::string_view detail);
// `path`'s value changed although it may not.
void CheckImmutable(const json::Value* now,
                    const json::Value* before,
                    const std::string& path,
                    FieldErrors& errors,
                    std::string_view detail = "field is immutable");
// Where a webhook is: a URL or a service; and the versions of reviews that it knows.
void CheckHookClient(const json::Value* client, const std::string& at, FieldErrors& errors);
void CheckReviewVersions(const json::Array& versions,
                         const std::string& at,
                         FieldErrors& errors,
                         std::string_view missing = {});

}  // namespace swell::api
