#!/usr/bin/env bash
# usage: clean.sh STATE GROUP_FOLDER...
# Waits until its stdin is closed, that is until its parent process exits, normally or not. Then kills
# the cluster of STATE and removes its control groups and files, which the kernel would keep.
set -uo pipefail
trap '' HUP INT TERM # Ctrl-C is for the parent process
cat > /dev/null
state=$1
shift
# The init process of the cluster's PID namespace: the kernel kills all other processes with it.
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
  # Parent groups that were created with it: the path of our memory group in other controllers.
  parent=$(dirname "$group")
  while [ "$parent" != /sys/fs/cgroup ] && [ ! -e "$parent/cgroup.sane_behavior" ]; do
    rmdir "$parent" 2> /dev/null || break
    parent=$(dirname "$parent")
  done
done
rm -rf --one-file-system -- "$state" || failed=1
exit $failed
