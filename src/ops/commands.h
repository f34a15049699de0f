// Commands for administrators: they run or maintain a cluster. `main()` adds them to those of
// `cli`.
// - Threads: values; a command runs on the main thread.
#pragma once

#include "cli/cli.h"
#include "cli/command.h"

namespace swell::ops {

// The embedded cluster of this machine. `swell up` itself is in bin.
cli::Command DownCommand();
cli::Command StatusCommand();
cli::Command UserCommand();
cli::Command ImagesCommand();
cli::Command BackupCommand();
cli::Command RestoreCommand();
cli::Command EncryptionCommand();
cli::Command NvidiaSmiCommand();
// A Kubernetes cluster.
cli::Command InstallCommand();
cli::Command UninstallCommand();
// These contact no cluster.
cli::Command JobMasterCommand();
cli::Command SimulateCommand();
cli::Command ReplayCommand();
cli::Command LabCommand();

// The scheduler and the job controllers as `swell why` and `--dry-run=plan` use them. Objects that
// cannot be read count as absent.
cli::WhatIfEngine MakeWhatIfEngine();
// The image of this machine's cluster that was probably meant by a misspelt name (WhatIfEngine).
std::string MeantImage(std::string_view url, const std::string& image);

}  // namespace swell::ops
