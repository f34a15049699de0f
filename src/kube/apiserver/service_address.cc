#include "kube/apiserver/service_address.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {

std::string HostAndPort(std::string_view address, std::string_view port) {
  const bool v6 = address.find(':') != std::string_view::npos;
  return StrCat(v6 ? "[" : "", address, v6 ? "]" : "", port.empty() ? "" : ":", port);
}

Result<std::string> AddressOfService(const Core& core,
                                     const json::Value& service,
                                     const std::string& wanted) {
  const std::string name(api::Name(service));
  std::string port = wanted;
  if (const std::optional<uint64_t> number = ParseUint(port)) {
    bool found = false;
    for (const json::Value& one : json::GetArray(service, {"spec", "ports"})) {
      if (json::GetInt(one, {"port"}) != static_cast<int64_t>(*number)) continue;
      port = json::GetString(one, {"name"});
      found = true;
      break;
    }
    if (!found) {
      return Status(Code::kUnavailable,
                    StrCat("no service port ", *number, " found for service ", Quote(name)));
    }
  }
  const auto endpoints = core.store.Get({"endpoints", std::string(api::Namespace(service)), name});
  if (!endpoints) return Status(Code::kNotFound, StrCat("endpoints ", Quote(name), " not found"));
  const auto document = endpoints->Parsed();
  for (const json::Value& subset : json::GetArray(*document, {"subsets"})) {
    const json::Array& addresses = json::GetArray(subset, {"addresses"});
    if (addresses.empty()) continue;
    for (const json::Value& one : json::GetArray(subset, {"ports"})) {
      if (json::GetString(one, {"name"}) != port) continue;
      return HostAndPort(json::GetString(addresses[0], {"ip"}),
                         std::to_string(json::GetInt(one, {"port"})));
    }
  }
  return Status(Code::kUnavailable, StrCat("no endpoints available for service ", Quote(name)));
}

}  // namespace swell::apiserver
