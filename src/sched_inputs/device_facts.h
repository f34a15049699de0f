// What a ResourceSlice says of a device, as the conditions of classes and claims see it.
// - Threads: pure functions.
// - Ownership: values refer to the documents that they came from.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"
#include "kube/api/cel/cel.h"

namespace swell::controllers {

// Whether the driver's devices are GPUs, and count as such.
bool IsGpuDriver(std::string_view driver);
// `device` of the conditions: driver, attributes, capacity, allowMultipleAllocations.
api::CelValue DeviceValue(const json::Value& device, std::string_view driver);
// Whether it needs no more than to be given away: no shared amounts, no taint that keeps claims
// away, no conditions of binding.
bool IsPlainDevice(const json::Value& device);
// The attribute as text; empty: the device has none of that name.
std::string AttributeText(const json::Value& device,
                          std::string_view driver,
                          std::string_view attribute);

}  // namespace swell::controllers
