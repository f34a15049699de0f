// ImageCatalogue: what an image name means where no image of that name was pulled or imported: an
// entry point, an environment and files of the host.
//
// Entries come from DIR/images.yaml, first match wins, then from built-in defaults (Python and
// PyTorch images, git-sync, etcd, plain distributions). Built-in ones serve exactly the
// repositories that they name, of any registry and with any tag: a misspelt name must not run
// something else, nor must somebody's own image be replaced. Where no registry can be found at all,
// as on a machine without a network, they also stand in for names that are alike. In the file a
// pattern is an image name with `*` for any characters; a pattern without a tag matches every tag.
//
//   images:
//   - match: ["registry.example.com/team/*", "trainer"]
//     base: python                     # start from what this image means by default
//     entrypoint: [python3, /opt/train.py]
//     args: ["--help"]                 # when the pod gives neither command nor args
//     env: {OMP_NUM_THREADS: "4"}
//     path: [/opt/tools/bin]           # before the host's PATH
//     workingDir: /workspace
//     files: [{host: /srv/code, path: /workspace, readOnly: true}]
//     hostNetwork: false
//     hostTmp: false
//
// - Threads: immutable after Load.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swell::process {

struct ImageFile {
  std::string host;
  std::string path;
  bool read_only = true;
};

struct ImageEntry {
  std::vector<std::string> match;
  std::vector<std::string> alike;  // patterns: see StandInFor
  std::string base;
  std::vector<std::string> entrypoint;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> path;
  std::string working_dir;
  std::vector<ImageFile> files;
  bool host_network = false;
  bool host_tmp = false;
  std::string python;  // the Python that `python3` means in it; empty: no Python image
};

inline constexpr std::string_view kDefaultPython = "/usr/bin/python3";

class ImageCatalogue {
 public:
  struct Options {
    std::string config_dir;  // holds images.yaml; may be empty or absent
    std::string tools_dir;   // ours: scripts and links that the defaults use are written here
    std::string sdk_dir;     // put on PYTHONPATH of Python images; may be empty
    // What Python images run, with the environment that it belongs to; empty: PythonOfTools.
    std::string python;
    // This program, where images expect a `swell`; empty: /proc/self/exe.
    std::string program;
    bool writes_tools = true;  // false: to read what it says
    // Where TensorBoard is looked for, as PATH; empty: the process's PATH and its user's home.
    std::string programs;
  };

  // kInvalid names file, entry and field.
  static Result<ImageCatalogue> Load(const Options& options);

  // kNotFound says how to add the image.
  Result<ImageEntry> Find(const std::string& image) const;
  // The same for names that are alike, too.
  Result<ImageEntry> StandInFor(const std::string& image) const;
  // The name that an image which is not served was probably meant to be; may be empty.
  std::string Nearest(std::string_view image) const;
  const std::vector<ImageEntry>& entries() const { return entries_; }

 private:
  bool Serves(size_t entry, std::string_view image) const;
  Status ResolveBases();

  std::vector<ImageEntry> entries_;
  size_t configured_ = 0;  // the first ones come from the file, the rest are built in
  std::string config_file_;
  std::string no_program_;  // a script: what a stand-in runs where it was given no command
};

// The Python that the last start has written into tools_dir, else Debian's.
std::string PythonOfTools(const std::string& tools_dir);

// Whether an image name (with tag or digest) matches a pattern of the file.
bool ImageMatches(std::string_view pattern, std::string_view image);

}  // namespace swell::process
