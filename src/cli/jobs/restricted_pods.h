// RestrictedPods: jobs and servers in namespaces that enforce the Pod Security level "restricted".
// It refuses pods that do not say that they run as a user other than root, and gain no privileges.
// - Threads: blocks on the Api's loop.
#pragma once

#include <string>
#include <string_view>

#include "cli/api.h"

namespace swell::cli {

// The user and group as which pods run there if they name none. Images with a user of their own
// mostly have this one.
inline constexpr int64_t kUserOfRestricted = 1000;

// Writes into each pod of the object what the level demands and the pod does not say. `names_user`:
// also kUserOfRestricted; else the server or the image says as whom they run. What would be in
// root's home is in /tmp: other users may not look into it.
void MeetRestricted(json::Value& object, bool names_user);

// Api::Create of a job. If the level of its namespace refuses it, the job is made as the level
// demands, and `remark` says so; else `remark` becomes empty. `user_flag`: names another user.
Result<json::SharedValue> CreateJob(Api& api,
                                    const Resource& resource,
                                    std::string_view ns,
                                    const json::Value& job,
                                    const WriteOptions& options,
                                    std::string& remark,
                                    std::string_view user_flag = "--run-as-user");

// The same for a Deployment, which servers take whatever its pods are: the level is asked with a
// pod that is not kept. What the level refuses in any case is refused at once.
Result<json::SharedValue> CreateDeployment(Api& api,
                                           std::string_view ns,
                                           const json::Value& deployment,
                                           const WriteOptions& options,
                                           std::string& remark);

}  // namespace swell::cli
