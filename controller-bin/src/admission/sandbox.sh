# Has NGINX test a configuration where it can do no harm. Run by sh, in mount, network, IPC and PID namespaces of its own.
# Arguments: the directory with the configuration; a directory that becomes the root of all that NGINX sees, hidden behind
# a file system in memory; the Lua modules; NGINX's program; further files and directories that it may read.
# Status 125: it could not be tested.
set -eu
files=$1 root=$2 lua=$3 nginx=$4
shift 4
nobody=65534
said=$root/nginx/said

# Makes a file or directory of the system readable at its place, and nothing that is mounted below it.
show() {
  if [ -L "$1" ]; then
    cp -P "$1" "$root$1"
    return
  elif [ -d "$1" ]; then
    mkdir -p "$root$1"
  elif [ -e "$1" ]; then
    mkdir -p "$root$(dirname "$1")"
    : >"$root$1"
  else
    return 0
  fi
  mount --bind "$1" "$root$1"
  mount -o remount,bind,ro "$root$1"
}

prepare() {
  mount -t tmpfs -o size=32m,mode=755,nosuid,nodev,noexec tmpfs "$root"
  mkdir "$root/etc" "$root/nginx"
  cp -R "$files/." "$root/nginx/"
  cp -R "$lua" "$root/nginx/lua"
  mkdir -p "$root/nginx/run" "$root/nginx/logs" "$root/nginx/stream"
  touch "$said" "$root/nginx/stream/groups.conf"
  for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc/group /etc/ld.so.cache /etc/nsswitch.conf /etc/passwd \
    /dev/null /dev/random /dev/urandom "$@"; do
    show "$path"
  done
  # There is no network: whatever it wants to listen at, it may.
  echo 0 2>/dev/null >/proc/sys/net/ipv4/ip_unprivileged_port_start || true
  echo 1 2>/dev/null >/proc/sys/net/ipv4/ip_nonlocal_bind || true
}

prepare "$@" >&2 || exit 125
if chown -R "$nobody:$nobody" "$root/nginx" 2>/dev/null; then
  who="--reuid=$nobody --regid=$nobody --clear-groups"
else
  # There is one user in this namespace.
  who=
fi
status=0
# shellcheck disable=SC2086
chroot "$root" setpriv $who --no-new-privs --inh-caps=-all --bounding-set=-all \
  prlimit --as=1073741824 --cpu=10 --fsize=16777216 --nofile=1024 --core=0 -- \
  "$nginx" -t -q -c /nginx/nginx.conf 2>>"$said" || status=$?
head -c 65536 "$said" >&2
exit "$status"
