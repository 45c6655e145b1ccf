#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command as another host would: under a name, a root folder, users, processes and a network of its own, with none of this
# host's files but the system's programs.
#   unshare --user --map-root-user --mount --uts --ipc --net --pid --fork \
#       sh other_host.sh ROOT NAME PROGRAMS MODELS OUT command...
# ROOT is an empty folder; the three folders are /opt, /models and /out there.
set -e
root=$1 name=$2 programs=$3 models=$4 out=$5
shift 5
echo "$name" > /proc/sys/kernel/hostname
mount -t tmpfs "$name" "$root"
for folder in usr proc etc dev opt models out; do
    mkdir "$root/$folder"
done
for folder in bin lib lib64; do # where /usr has them, they are links
    if [ -L "/$folder" ]; then
        cp -d "/$folder" "$root/$folder"
    else
        mkdir "$root/$folder"
        mount --rbind "/$folder" "$root/$folder"
    fi
done
echo "$name" > "$root/etc/hostname"
mount --rbind /usr "$root/usr"
mount --bind "$programs" "$root/opt"
mount --bind "$models" "$root/models"
mount --bind "$out" "$root/out"
mount -t proc proc "$root/proc"
for device in null urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
exec chroot "$root" "$@"
