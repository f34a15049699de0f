// What a ResourceSlice says of a device, as the conditions of classes and claims see it.
// - Threads: pure functions.
// - Ownership: values refer to the documents that they came from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/cel/cel.h"
#include "kube/api/objects/device_claim.h"

namespace swell::sched_inputs {

// Whether the driver's devices are GPUs, and count as such.
bool IsGpuDriver(std::string_view driver);
// `device` of the conditions: driver, attributes, capacity, allowMultipleAllocations.
api::CelValue DeviceValue(const json::Value& device, std::string_view driver);
// Whether Swell can allocate the device: it has no binding conditions, it is in no group of
// compatible devices, and it takes from shared counters at most once.
bool IsPlainDevice(const json::Value& device);
// Whether the taint keeps claims with these tolerations away.
bool KeepsAway(const json::Value& taint, const std::vector<api::DeviceToleration>& tolerations);
// What a request for these amounts takes of each of the device's capacities, by the device's own
// request policy. nullopt: the device does not have that much, or its policy does not allow it.
std::optional<api::DeviceAmounts> AmountsTaken(const json::Value& device,
                                               const api::DeviceAmounts& asked);
// As the scheduler counts it: in thousandths, bounded so that sums do not overflow.
int64_t CounterAmount(const api::Quantity& amount);
// The condition, or null: `problem` says why, where it is empty.
std::shared_ptr<const api::CelProgram> CompileCondition(std::string_view expression,
                                                        std::string& problem);
// The attribute as text; empty: the device has none of that name.
std::string AttributeText(const json::Value& device,
                          std::string_view driver,
                          std::string_view attribute);

}  // namespace swell::sched_inputs
