#include "ops/cluster/http_dialer.h"

#include <memory>
#include <utility>

#include "kube/edge/http/http_transport.h"

namespace swell::ops {
namespace {

constexpr size_t kProxiedBytesMax = size_t{16} << 20;

}  // namespace

apiserver::HttpDialer DialerOf(net::Reactor& reactor) {
  return [&reactor](const apiserver::HttpTarget& to) -> Result<std::shared_ptr<api::RestHandler>> {
    edge::HttpTransportConfig config;
    config.client.base_url = to.base_url;
    // It is in memory until its reader has it, and pods may answer without end.
    config.client.max_response_bytes = kProxiedBytesMax;
    config.client.tls.insecure_skip_verify = !to.verify;  // as kube-apiserver does with pods
    config.client.tls.ca_pem = to.ca_pem;
    config.client.tls.server_name = to.server_name;
    SWELL_ASSIGN_OR_RETURN(auto transport, edge::HttpTransport::Make(reactor, std::move(config)));
    return std::shared_ptr<api::RestHandler>(std::move(transport));
  };
}

}  // namespace swell::ops
