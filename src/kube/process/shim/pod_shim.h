// The pod shim: the process between swell and one container. It is this program started again as
// `swell pod-shim [in GROUP]`, in the control group with that path, and outlives the swell that
// started it. It reads the container's directory as a line from file descriptor 3, a socket, and
// ends if the socket is closed before.
//
// It builds the container's namespaces, control groups and root, starts a first process in them
// (which starts the command, passes signals on and reaps), writes what the command prints to the
// log, and leaves state.json and exit.json behind. It answers on the same socket: "started\n" or
// "error TEXT\n".
//
// Signals for the container go to its first process (ShimState::init_pid): SIGTERM and the like are
// passed to the command's process group; KillAllSignal() kills everything of the container. After a
// SIGTERM the container ends when the command has ended and every process it left behind too, so
// that a shell in between does not cut its child's last checkpoint short.
//
// `swell pod-shim exec DIR pipes|terminal ARG…` runs a command inside a running container
// (shim_exec.h).
//
// - Threads: a process of its own, with one thread.
#pragma once

namespace swell::process {

// SIGRTMIN + 1, which libraries leave alone.
int KillAllSignal();

int PodShimMain(int argc, char** argv);

}  // namespace swell::process
