# Writes OUTPUT, a C++ file that defines a PodScript for each of SCRIPTS: a list of CONSTANT=FILE.
# The script's name is the file's without ".sh".
set(out "// Generated from src/cli/slurm/pod_scripts.\n#include \"cli/slurm/pod_scripts.h\"\n\n")
string(APPEND out "namespace swell::cli::slurm {\n\n")
foreach(script ${SCRIPTS})
  string(REGEX MATCH "^([^=]+)=(.+)$" pair ${script})
  set(constant ${CMAKE_MATCH_1})
  set(file ${CMAKE_MATCH_2})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND out "const PodScript ${constant}{\"${name}\", R\"sh(${text})sh\"};\n\n")
endforeach()
string(APPEND out "}  // namespace swell::cli::slurm\n")
file(WRITE ${OUTPUT} "${out}")
