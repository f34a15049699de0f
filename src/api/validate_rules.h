// The pieces of ValidateObject, by area. Each appends to `errors`, with Kubernetes' wording.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/field_errors.h"
#include "api/scheme.h"

namespace swell::api {

using FieldErrors = std::vector<FieldError>;

// The member as text; "" when it is absent or something else.
std::string_view TextOf(const json::Value& parent, std::string_view key);
const json::Value* MemberOf(const json::Value& parent, std::string_view key);

// Name rules used by several areas. Empty answer: fine.
std::string CheckDns1035Label(std::string_view name);
std::string CheckPathSegmentName(std::string_view name);
std::string CheckConfigMapKey(std::string_view key);
std::string CheckIp(std::string_view ip);
std::string CheckPort(int64_t port);
std::string CheckEnvVarName(std::string_view name);

void CheckMetadata(const KindInfo& kind,
                   const json::Value& object,
                   const json::Value* old,
                   FieldErrors& errors);
void CheckLabels(const json::Value& labels, const std::string& path, FieldErrors& errors);
void CheckAnnotations(const json::Value& annotations, const std::string& path, FieldErrors& errors);
void CheckLabelSelector(const json::Value& selector, const std::string& path, FieldErrors& errors);
void CheckNonNegative(const json::Value& parent,
                      std::string_view key,
                      const std::string& path,
                      FieldErrors& errors);
// A map of resource names to quantities.
void CheckResourceList(const json::Value& list, const std::string& path, FieldErrors& errors);
void CheckResources(const json::Value& resources, const std::string& path, FieldErrors& errors);
// `path`'s value changed although it may not.
void CheckImmutable(const json::Value* now,
                    const json::Value* before,
                    const std::string& path,
                    FieldErrors& errors,
                    std::string_view detail = "field is immutable");

void CheckPodSpec(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckVolumes(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckAffinity(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckProbes(const json::Value& container, const std::string& path, FieldErrors& errors);
void CheckPodUpdate(const json::Value& pod, const json::Value& old, FieldErrors& errors);
void CheckPodTemplate(const json::Value& holder, const std::string& path, FieldErrors& errors);

void CheckWorkload(const KindInfo& kind,
                   const json::Value& object,
                   const json::Value* old,
                   FieldErrors& errors);
void CheckService(const json::Value& service, const json::Value* old, FieldErrors& errors);
void CheckStorage(const KindInfo& kind,
                  const json::Value& object,
                  const json::Value* old,
                  FieldErrors& errors);
void CheckConfig(const KindInfo& kind,
                 const json::Value& object,
                 const json::Value* old,
                 FieldErrors& errors);
void CheckPolicy(const KindInfo& kind,
                 const json::Value& object,
                 const json::Value* old,
                 FieldErrors& errors);

}  // namespace swell::api
