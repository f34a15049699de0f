// The script itself. It runs in images of any kind, so it is plain POSIX shell with no program
// beside `sleep` and, for a time stamp, `date`.
#include "kube/process/machine/virtual_smi.h"

namespace swell::process {
namespace {

constexpr std::string_view kScript = R"sh(#!/bin/sh
# nvidia-smi for the virtual GPUs of a Swell pod. The node keeps the figures in a file.
devices=${SWELL_GPU_DEVICES:-/run/swell/gpu/devices}
programs=${SWELL_GPU_PROGRAMS:-}
# Those that a task of Slurm's has, of the pod's; empty: all.
visible=${SWELL_VISIBLE_GPUS:-}
mode=table query= format= only= loop=

usage() {
  cat_lines "nvidia-smi of Swell: virtual GPUs, whose figures are those of the pod that holds them." \
    "" "  nvidia-smi                          a table" \
    "  nvidia-smi -L                       a line for each GPU" \
    "  nvidia-smi -q                       all figures" \
    "  nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]" \
    "  nvidia-smi --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]" \
    "  -i INDEX|UUID    only this GPU" "  -l SECONDS       again and again" \
    "" "Fields of GPUs: index name uuid count utilization.gpu memory.used memory.free memory.total" \
    "  timestamp driver_version; those that a virtual GPU has not are [N/A]." \
    "Fields of programs: pid process_name gpu_uuid gpu_name used_memory"
}
cat_lines() { for line; do printf '%s\n' "$line"; done; }
fail() { printf '%s\n' "$1"; exit "${2:-2}"; }

need() { [ -n "$2" ] || fail "Option $1 needs a value. Run 'nvidia-smi -h' for help."; }
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) usage; exit 0 ;;
    -L|--list-gpus) mode=list ;;
    -q|--query) mode=full ;;
    --query-gpu=*) mode=gpu query=${1#*=} ;;
    --query-gpu) need "$1" "$2"; mode=gpu query=$2; shift ;;
    --query-compute-apps=*) mode=apps query=${1#*=} ;;
    --query-compute-apps) need "$1" "$2"; mode=apps query=$2; shift ;;
    --format=*) format=${1#*=} ;;
    --format) need "$1" "$2"; format=$2; shift ;;
    --id=*) only=${1#*=} ;;
    -i|--id) need "$1" "$2"; only=$2; shift ;;
    --loop=*) loop=${1#*=} ;;
    -l|--loop) loop=5; case ${2:-} in [0-9]*) loop=$2; shift ;; esac ;;
    *) fail "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.
Swell's nvidia-smi for virtual GPUs does not know: $1" ;;
  esac
  shift
done
case $loop in *[!0-9]*) fail "Option --loop: \"$loop\" is not a number of seconds." ;; esac

header=1 units=1
set_format() {
  [ -n "$format" ] || fail "Option --format=csv is missing. Run 'nvidia-smi -h' for help."
  rest=$format, csv=
  while [ -n "$rest" ]; do
    word=${rest%%,*} rest=${rest#*,}
    case $word in
      csv) csv=1 ;;
      noheader) header= ;;
      nounits) units= ;;
      *) fail "Option --format: \"$word\" is not one of csv, noheader, nounits." ;;
    esac
  done
  [ -n "$csv" ] || fail "Option --format=csv is missing. Run 'nvidia-smi -h' for help."
}

# Sets `title` and `value` of the field $1 for the GPU in index, name, uuid, total, busy, used.
field() {
  title=$1 unit=
  case $1 in
    index) value=$index ;;
    name|gpu_name) title=name value=$name ;;
    uuid|gpu_uuid) title=uuid value=$uuid ;;
    count) value=$count ;;
    utilization.gpu) title="$1 [%]" value=$busy unit=' %' ;;
    memory.used) title="$1 [MiB]" value=$used unit=' MiB' ;;
    memory.total) title="$1 [MiB]" value=$total unit=' MiB' ;;
    memory.free) title="$1 [MiB]" value=$((total - used)) unit=' MiB' ;;
    timestamp) value=$(date '+%Y/%m/%d %H:%M:%S.000' 2>/dev/null) ;;
    driver_version) value=virtual ;;
    utilization.memory) title="$1 [%]" value='[N/A]' ;;
    power.draw|power.limit) title="$1 [W]" value='[N/A]' ;;
    clocks.sm|clocks.mem|clocks.gr|clocks.current.sm) title="$1 [MHz]" value='[N/A]' ;;
    temperature.gpu|fan.speed|pstate|pci.bus_id|gpu_bus_id|serial|vbios_version|compute_mode) value='[N/A]' ;;
    persistence_mode|compute_cap|mig.mode.current|ecc.mode.current) value='[N/A]' ;;
    *) fail "Field \"$1\" is not a valid field to query." ;;
  esac
  [ -z "$units" ] || value=$value$unit
}
app_field() {
  title=$1 unit=
  case $1 in
    pid) value=$pid ;;
    process_name|name) title=process_name value=$process ;;
    gpu_uuid) value=$uuid ;;
    gpu_name) value=$name ;;
    used_memory|used_gpu_memory) title="used_gpu_memory [MiB]" value=$used unit=' MiB' ;;
    timestamp) value=$(date '+%Y/%m/%d %H:%M:%S.000' 2>/dev/null) ;;
    *) fail "Field \"$1\" is not a valid field to query." ;;
  esac
  [ -z "$units" ] || value=$value$unit
}
# One line of the fields in `query`, by the function $1: their titles, or with $2 their values.
row() {
  rest=$query, out=
  while [ -n "$rest" ]; do
    word=${rest%%,*} rest=${rest#*,}
    word=${word# }
    "$1" "$word"
    [ "$2" = values ] || value=$title
    out="$out${out:+, }$value"
  done
  printf '%s\n' "$out"
}

# The container's command: what its first process, which is Swell's, has started.
find_process() {
  pid= process=
  for dir in /proc/[0-9]*; do
    read -r stat 2>/dev/null <"$dir/stat" || continue
    words=${stat##*) }
    words=${words#* }
    [ "${words%% *}" = 1 ] || continue
    pid=${dir#/proc/} process=${stat#*(}
    process=${process%)*}
    return 0
  done
  return 1
}

# Runs the function $1 for every program on the GPU $index.
each_program() {
  if [ -z "$programs" ]; then
    if find_process; then "$1"; fi
    return 0
  fi
  while IFS='|' read -r on pid process used; do
    [ "$on" != "$index" ] || "$1"
  done <"$programs"
}

# Runs the function $1 for every GPU that is asked for.
each_gpu() {
  found=
  while IFS='|' read -r index name uuid total busy used; do
    case ,${visible:-$index}, in *,"$index",*) ;; *) continue ;; esac
    case $only in ''|"$index"|"$uuid") ;; *) continue ;; esac
    found=1
    "$1"
  done <"$devices"
  [ -n "$found" ] || fail "No devices were found${only:+ with the id \"$only\"}" 6
}
gpu_row() { row field values; }
program_row() { row app_field values; }
app_row() { each_program program_row; }
list_row() { printf 'GPU %s: %s (UUID: %s)\n' "$index" "$name" "$uuid"; }
full_row() {
  cat_lines "GPU $index (virtual)" "    Product Name                          : $name" \
    "    GPU UUID                              : $uuid" "    FB Memory Usage" \
    "        Total                             : $total MiB" \
    "        Used                              : $used MiB" \
    "        Free                              : $((total - used)) MiB" "    Utilization" \
    "        Gpu                               : $busy %" ""
}
table_row() {
  printf '| %3s  %-37.37s %8s / %8s MiB  %5s%%  |\n' "$index" "$name" "$used" "$total" "$busy"
}
process_line() {
  printf '| %3s  %8s  %-43.43s %11s MiB  |\n' "$index" "$pid" "$process" "$used"
}
process_row() { each_program process_line; }
line='+-----------------------------------------------------------------------------+'
table() {
  date 2>/dev/null
  cat_lines "$line" '| NVIDIA-SMI of Swell: VIRTUAL GPUs           Figures are those of the pod.   |' "$line" \
    '| GPU  Name                                            Memory-Usage  GPU-Util |' "$line"
  each_gpu table_row
  cat_lines "$line" "" "$line" \
    '| GPU       PID  Process name                                GPU Memory Usage |' "$line"
  each_gpu process_row
  cat_lines "$line"
}
show() {
  case $mode in
    table) table ;;
    list) each_gpu list_row ;;
    full) each_gpu full_row ;;
    gpu) each_gpu gpu_row ;;
    apps) each_gpu app_row ;;
  esac
}

[ -r "$devices" ] || fail "No devices were found: this pod has no virtual GPUs ($devices is missing)." 6
count=0
while IFS='|' read -r index _; do
  case ,${visible:-$index}, in *,"$index",*) count=$((count + 1)) ;; esac
done <"$devices"
case $mode in
  gpu|apps)
    [ -n "$query" ] || fail "Option --query-$mode names no field. Run 'nvidia-smi -h' for help."
    set_format
    index= name= uuid= total=0 busy= used=0 pid= process=
    by=field
    [ $mode = gpu ] || by=app_field
    titles=$(row $by titles) || fail "$titles"
    [ -z "$header" ] || printf '%s\n' "$titles" ;;
esac
show
while [ -n "$loop" ] && sleep "$loop"; do show; done
)sh";

}  // namespace

std::string_view VirtualSmiScript() { return kScript; }

}  // namespace swell::process
