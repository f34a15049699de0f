// A command inside a running container: `swell pod-shim exec DIR pipes|terminal ARG…` joins the
// container's namespaces and control groups and runs the command with its environment and user.
//
// With pipes the command has the process's own standard streams. With a terminal it gets one of the
// container's; the master is sent over the socket at descriptor 3 before anything else happens.
//
// SIGTERM kills the command and its process group. The exit status is the command's, 128 + signal
// when it was killed, 127 when there is no such command, 126 when it cannot be started for
// another reason; the reason is on standard error.
//
// - Threads: the calling process has one thread.
#pragma once

#include <string>
#include <vector>

namespace swell::process {

int ShimExecMain(const std::string& dir, bool terminal, const std::vector<std::string>& argv);

}  // namespace swell::process
