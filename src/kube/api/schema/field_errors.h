// Field errors in Kubernetes' words (k8s.io/apimachinery's field package), and paths.
// - Threads: pure functions and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/api/schema/schema.h"

namespace swell::api {

FieldError RequiredError(std::string path, std::string_view detail = {});
FieldError InvalidError(std::string path, const json::Value& value, std::string_view detail);
FieldError InvalidText(std::string path, std::string_view value, std::string_view detail);
FieldError NotSupportedError(std::string path,
                             std::string_view value,
                             const std::vector<std::string>& supported);
FieldError DuplicateError(std::string path, const json::Value& value);
FieldError ForbiddenError(std::string path, std::string_view detail);
FieldError TooLongError(std::string path, size_t max_bytes);
FieldError TooManyError(std::string path, size_t count, size_t max);
FieldError NotFoundError(std::string path, std::string_view value);

// "spec" + "containers" → "spec.containers"; an index: "spec.containers[0]".
std::string PathField(std::string_view parent, std::string_view name);
std::string PathIndex(std::string_view parent, size_t index);
// A map's key: data[key].
std::string PathKey(std::string_view parent, std::string_view key);

// A value as messages show it: strings quoted, all else as JSON, shortened when huge.
std::string ShowValue(const json::Value& value);
// Labels, label selectors and valid quantities, as Go prints the types that they are there.
std::string ShowLabels(const json::Value& labels);
std::string ShowSelector(const json::Value& selector);
// A value of no declared type, as Go prints it.
std::string ShowUntyped(const json::Value& value);
std::string ShowQuantity(const json::Value& amount);
std::string ShowTime(std::string_view rfc3339);

}  // namespace swell::api
