#!/bin/bash
# Installs those of the named Debian packages that are missing; does nothing, and needs no rights, if none is.
set -euo pipefail

missing=()
for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "these Debian packages are missing, and without sudo only root can install them: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "installing ${missing[*]}"
# A mirror may be slow to answer, and another program may be installing something.
patient=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
"${as_root[@]}" apt-get "${patient[@]}" update --quiet --quiet
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get "${patient[@]}" install --yes --quiet --no-install-recommends "${missing[@]}"
