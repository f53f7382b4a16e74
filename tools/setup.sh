# shellcheck shell=bash
# What ./run, ./test and ./bench have in common: packages, the build, templates, CRIU.
# Sourced with the root of the checkout as working directory. Nothing here asks a question.

fail() {
  echo "caisson: $*" >&2
  exit 1
}

say() { echo "caisson: $*" >&2; }

# Leaves unless this is Debian 12 and we are root or can be without a password.
check_machine() {
  local id=unknown version=unknown name=unknown
  if [[ -r /etc/os-release ]]; then
    # shellcheck disable=SC1091
    IFS='|' read -r id version name < <(. /etc/os-release && echo "$ID|${VERSION_ID:-}|$PRETTY_NAME")
  fi
  [[ $id == debian && $version == 12 ]] ||
    fail "this needs Debian 12 (bookworm): compiler, libraries and kernel features are tested there. This machine runs: $name."
  command -v apt-get > /dev/null || fail "apt-get is missing, so needed packages cannot be installed."
  if ((EUID != 0)) && ! sudo -n true 2> /dev/null; then
    fail "this needs root: to install Debian packages, to build the template's file system, and to start
sandboxes (namespaces, mounts, control groups and networks). The HTTP server itself drops root.
Run it as root, or as a user who may use sudo without a password."
  fi
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n -E "$@"; fi
}

# packages_of GROUP...: the names that tools/packages.txt lists for these groups.
packages_of() {
  awk -v groups=" $* " '!/^#/ && NF && index(groups, " " $1 " ") { print $2 }' tools/packages.txt
}

# Those of the given packages that are not installed.
missing_packages() {
  local known installed
  # dpkg-query fails if it has never heard of one of them, and lists the others all the same.
  known=$(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null) || true
  installed=$(awk '$1 == "installed" { print $2 }' <<< "$known")
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<< "$installed")
}

apt_quietly() {
  local log
  log=$(mktemp)
  if ! as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get --quiet --yes --no-install-recommends -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
    "$@" < /dev/null > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# Debian would make a database cluster and start it with the machine; the tests bring their own.
keep_postgres_off() {
  [[ -n $(missing_packages postgresql-common) ]] || return 0 # somebody uses one already
  apt_quietly install postgresql-common || return 0
  as_root sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' \
    /etc/postgresql-common/createcluster.conf
}

# The tests bring their own sshd; Debian's service looks for this file and does not start.
keep_sshd_off() {
  as_root mkdir -p /etc/ssh
  as_root touch /etc/ssh/sshd_not_to_be_run
}

# install_packages GROUP...: installs what is missing; does and says nothing if all is there.
install_packages() {
  local names missing removed
  mapfile -t names < <(packages_of "$@")
  mapfile -t missing < <(missing_packages "${names[@]}")
  ((${#missing[@]})) || return 0
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  # One broken source of many must not stop us: if it mattered, installing fails.
  apt_quietly update || true
  # Boost 1.81 and Debian's default Boost headers exclude each other, for example.
  removed=$(apt-get --simulate --no-install-recommends install "${missing[@]}" 2> /dev/null |
    awk '$1 == "Remv" { print $2 }' | xargs) || true
  [[ -z $removed ]] || say "these installed packages conflict with them and are removed: $removed"
  [[ " ${missing[*]} " != *" postgresql-15 "* ]] || keep_postgres_off
  [[ " ${missing[*]} " != *" openssh-server "* ]] || keep_sshd_off
  apt_quietly install "${missing[@]}" ||
    fail "these packages could not be installed (see above). Is there a network, and a Debian mirror to reach?"
}

# As many compilers at once as there are processors, and 1.5 GB of memory for each.
build_jobs() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1536000) }' /proc/meminfo)
  ((memory > 0)) || memory=1
  echo $((processors < memory ? processors : memory))
}

# The HTTP server's own user: what belongs to it belongs to nobody else.
make_user() {
  id caisson > /dev/null 2>&1 ||
    as_root useradd --system --no-create-home --shell /usr/sbin/nologin caisson
}

# build TARGET...: configures once and brings the targets up to date; says nothing if they are.
build() {
  [[ -f build/build.ninja ]] || cmake --preset release > /dev/null ||
    fail "cmake could not configure the build (see above)."
  local log
  log=$(mktemp)
  if ! ninja -C build -j "$(build_jobs)" "$@" 2>&1 | tee "$log" | announce; then
    grep -v '^\[' "$log" >&2 || true
    rm -f "$log"
    fail "the build failed (see above)."
  fi
  rm -f "$log"
}

# Tells of the work in ninja's output as soon as there is some; on a terminal also how far it is.
announce() {
  local line said=
  while IFS= read -r line; do
    [[ $line == \[*\]* && $line != *"Re-checking globbed"* && $line != *"Re-running CMake"* ]] || continue
    [[ -n $said ]] || say "building (the first time takes some minutes)"
    said=yes
    [[ ! -t 2 ]] || printf '\r\033[K%.100s' "$line" >&2
  done
  [[ -z $said || ! -t 2 ]] || echo >&2
}

# prepare_template NAME FOLDER: builds the template once per machine and links it as FOLDER/NAME.
prepare_template() {
  local path
  path=$(as_root tools/prepare-template "$1" | tail -n 1)
  [[ -d $path ]] || fail "the template $1 could not be prepared (see above)."
  as_root mkdir -p "$2"
  as_root ln -sfn "$path" "$2/$1"
}

# prepare_criu: finds or fetches what saves the memory of paused sandboxes; works without it, too.
prepare_criu() {
  as_root tools/prepare-criu > /dev/null
}
