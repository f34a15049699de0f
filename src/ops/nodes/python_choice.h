// PythonChoice: which Python of this machine the Python images of the catalogue run.
//
// Many install Swell into the environment that has their torch, and expect jobs to import that
// torch.
//
// - Threads: main thread, before the cluster runs.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/flags.h"
#include "ops/data_dir.h"

namespace swell::ops {

void AddPythonFlag(cli::Flags& flags, std::string& file);
// Misuse unless it is empty or names an interpreter. Makes it absolute and keeps its links: the
// Python of a virtual environment is a link to another Python.
Status CheckPython(std::string& file);

// Where a Python is looked for. A path that is empty or names nothing is passed over.
struct PythonPlaces {
  std::vector<std::string> environments;  // Pythons that may have torch, the first that has it wins
  std::string fallback;                   // the one to take if none has
  std::string programs;                   // as PATH, searched if there is no fallback either
  Duration limit = std::chrono::seconds(5);  // to answer
};
// $VIRTUAL_ENV's, $CONDA_PREFIX's and the one beside this program; the default; PATH.
PythonPlaces PythonPlacesHere();
std::string FindPython(const PythonPlaces& places);

// The flag, else what DIR/python says, else what is found. Remembers the flag, if it is given, for
// later starts.
Result<std::string> TakePython(const DataDir& dir, const std::string& flag);

// The Python of the last start, made with this --runtime. Empty where it is /usr/bin/python3, or
// pods are not processes.
std::string PythonIfNotDefault(const DataDir& dir, const std::string& runtime);

}  // namespace swell::ops
