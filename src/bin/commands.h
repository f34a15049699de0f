// The commands that only this program has: they run a cluster rather than talk to one.
// - Threads: main thread.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace swell {

// `swell up`, `down`, `status`. Arguments are those after the command's name; the answer is the
// process's exit status.
int UpCommand(const std::vector<std::string>& arguments);
int DownCommand(const std::vector<std::string>& arguments);
int StatusCommand(const std::vector<std::string>& arguments);
// `swell user`: who may use this machine's cluster. `swell backup`, `restore`: all of it in a file.
int UserCommand(const std::vector<std::string>& arguments);
int BackupCommand(const std::vector<std::string>& arguments);
int RestoreCommand(const std::vector<std::string>& arguments);
// `swell install`, `uninstall`: what Swell needs in a cluster that runs elsewhere.
int InstallCommand(const std::vector<std::string>& arguments);
int UninstallCommand(const std::vector<std::string>& arguments);
// `swell controller`, `agent`: the scheduler and the job controllers, and nodes, for such a
// cluster.
int ControllerCommand(const std::vector<std::string>& arguments);
int AgentCommand(const std::vector<std::string>& arguments);
// `swell job-master`: the master of one elastic job; contacts no cluster.
int JobMasterCommand(const std::vector<std::string>& arguments);
// `swell simulate`: scheduling cycles over a state in a file; contacts no cluster.
int SimulateCommand(const std::vector<std::string>& arguments);
// `swell replay`: recorded cycles again; contacts no cluster.
int ReplayCommand(const std::vector<std::string>& arguments);
// What the commands know of the scheduler (cli::WhatIfEngine); what cannot be read counts as
// absent.
cli::WhatIfEngine MakeForesight();

}  // namespace swell
