// Which pod the words of a command mean: a pod, a job's chief, or one that something else selects.
// - Threads: asks the server; blocks on its loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace swell::cli {

struct ChosenPod {
  json::SharedValue pod;
  json::SharedValue service;  // when one was named: its ports are meant
};

// "NAME", "pod/NAME", "svc/NAME", "deployment/NAME" and other kinds with a selector; a bare name
// is a pod's, else a job's, else a workload's.
Result<ChosenPod> ChoosePod(Api& api, const std::string& ns, const std::string& words);

// The pods of a workload that Swell does not run as a job: a Deployment, a StatefulSet, a
// DaemonSet, a server of arena's or another operator's job by its name, or KIND/NAME of anything
// with a selector. kNotFound if there is none, or it has no pods.
Result<std::vector<json::SharedValue>> PodsOfWorkload(Api& api,
                                                      const std::string& ns,
                                                      std::string_view words);

// The container meant when none is named, as kubectl chooses; empty for a pod without containers.
std::string DefaultContainer(const json::Value& pod);
// `named`, or the default when it is empty: kNotFound if `named` does not exist.
Result<std::string> ChooseContainer(const json::Value& pod, const std::string& named);

}  // namespace swell::cli
