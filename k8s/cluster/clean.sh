#!/usr/bin/env bash
# usage: clean.sh STATE GROUP_FOLDER...
# Waits until its input ends, which it does when whoever started it ends, however that comes about;
# then ends the cluster of STATE and removes what the kernel leaves: control groups and files.
set -uo pipefail
trap '' HUP INT TERM # Ctrl-C is for who started us
cat > /dev/null
state=$1
shift
# The first process of the cluster: when it dies, all others do.
if [ -s "$state/pid" ]; then
  pid=$(cat "$state/pid")
  if grep -qsF "$state" "/proc/$pid/cmdline"; then kill -KILL "$pid"; fi
  for _ in $(seq 300); do [ -d "/proc/$pid" ] || break; sleep 0.1; done
fi
failed=0
for group in "$@"; do
  for _ in $(seq 100); do
    [ -d "$group" ] || break
    find "$group" -depth -type d -exec rmdir {} + 2> /dev/null
    [ -d "$group" ] && sleep 0.1
  done
  [ -d "$group" ] && { echo "clean.sh: $group cannot be removed" >&2; failed=1; }
  # Folders above it that were made for it: those of our memory group in other controllers.
  parent=$(dirname "$group")
  while [ "$parent" != /sys/fs/cgroup ] && [ ! -e "$parent/cgroup.sane_behavior" ]; do
    rmdir "$parent" 2> /dev/null || break
    parent=$(dirname "$parent")
  done
done
rm -rf --one-file-system -- "$state" || failed=1
exit $failed
