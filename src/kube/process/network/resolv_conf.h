// ResolvConf: the text of a pod's /etc/resolv.conf.
// - Threads: functions over texts.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "kube/node/runtime/runtime.h"

namespace swell::process {

// A resolv.conf whose name servers are these addresses at most.
std::string OnlyNameServers(std::string_view resolv_conf, const std::set<std::string>& addresses);

// The resolv.conf with two seconds for a name in place of the usual ten, unless it says how long
// itself. For name servers that pods may not reach: a name that is not in their hosts file, such as
// that of a member that is gone, must not hold them up.
std::string WithShortWaits(std::string_view resolv_conf);

// The node's resolv.conf with what a pod adds, as the kubelet joins them: servers and domains
// behind the node's own, each once; an option in place of the node's of the same name.
std::string WithPodsDns(std::string_view resolv_conf, const node::DnsSpec& dns);

}  // namespace swell::process
