#include "jobs/kinds/role_member.h"

#include "base/strings.h"

namespace swell::jobs {

json::Object ConnectedMember::Cluster(std::string_view domain, std::string_view without) const {
  json::Object cluster;
  for (size_t i = 0; i < spec.replicas.size(); ++i) {
    const ReplicaSpec& other = spec.replicas[i];
    if (other.type == without) continue;
    json::Array addresses;
    for (int64_t number = 0; number < other.replicas; ++number) {
      addresses.push_back(json::Value(
          StrCat(NameOf(other, number), domain, ":", ports[i][static_cast<size_t>(number)])));
    }
    cluster[ToLower(other.type)] = std::move(addresses);
  }
  return cluster;
}

}  // namespace swell::jobs
