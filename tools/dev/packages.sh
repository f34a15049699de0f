# shellcheck shell=bash
# The packages that ./dev installs when a command first needs them (tools/packages.txt).
# Sourced by ./dev after say.sh.

# The packages of the given sets, one a line, each once.
packages_of() {
  local set package condition wanted=" $* "
  while read -r set package condition; do
    [[ -n $set && $set != \#* && $wanted == *" $set "* ]] || continue
    if [[ $condition == unless:* ]] && command -v "${condition#unless:}" >/dev/null; then continue; fi
    printf '%s\n' "$package"
  done <tools/packages.txt | sort -u
}

# Those of the given packages that are not installed.
missing_of() {
  local have
  # dpkg-query fails when it knows one of the names not at all; what it does know it still prints.
  # shellcheck disable=SC2016  # the ${...} are dpkg-query's
  have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  local package
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$have" || printf '%s\n' "$package"
  done
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 "$@"
}

ensure_packages() {
  [[ -z ${SWELL_SKIP_PACKAGES:-} ]] || return 0
  local -a wanted missing
  mapfile -t wanted < <(packages_of "$@")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this system has no apt, so what the build needs cannot be installed from here" \
      "Swell is built and tested on Debian 12. Elsewhere: install the equivalents of" \
      "tools/packages.txt yourself, then set SWELL_SKIP_PACKAGES=1."
  fi
  mapfile -t missing < <(missing_of "${wanted[@]}")
  ((${#missing[@]} > 0)) || return 0

  local command="apt-get install --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo" "As root: $command"
    if [[ -t 0 ]]; then
      say "Missing packages: ${missing[*]}"
      sudo -v || die "packages are missing and sudo refused" "As root: $command"
    elif ! sudo -n true 2>/dev/null; then
      die "packages are missing and sudo wants a password" "As root: $command"
    fi
  fi
  quietly "Updating the package lists" "$LOGS/apt-update.log" apt update ||
    note "Going on with the package lists at hand."
  local text="Installing ${#missing[@]} package(s)"
  if ((${#missing[@]} <= 4)); then text="Installing ${missing[*]}"; fi
  quietly "$text" "$LOGS/apt-install.log" apt install -y --no-install-recommends "${missing[@]}" ||
    die "apt could not install what is missing" "Try: $command" \
      "Swell is built on Debian 12; on another release package names differ" \
      "(then install them yourself and set SWELL_SKIP_PACKAGES=1)."
}
