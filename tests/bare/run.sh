#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh SOURCE: run the README's two commands, make demo and make test, on a bare machine: a minimal Debian that
# mmdebstrap makes, with make, git and a clone of SOURCE's last commit, and nothing beside it. It has no
# pseudo-terminals, no /sys, and a root folder that is no mount point. Three times: as root, from nothing; as an
# ordinary user, with the packages there; and as root of an unprivileged container, which may neither mount nor
# trace (deny.py). No test may fail, and each that is skipped says why. Takes half an hour and needs Debian's
# mirror and npm's registry.
set -euo pipefail
source=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
root=$scratch/root
failed=0

skip()
{
	echo "skipped: $1"
	exit 77
}

# Mounts are in a namespace of their own: nothing is left of them when a run ends.
inside()
{
	unshare --mount --pid --fork --kill-child bash -euc '
		root=$1
		mount --make-rprivate /
		mount -t proc proc "$root/proc"
		mount -t tmpfs -o mode=755 tmpfs "$root/dev"
		for device in null zero full random urandom; do
			: > "$root/dev/$device"
			mount --bind "/dev/$device" "$root/dev/$device"
		done
		mkdir -m 1777 "$root/dev/shm"
		ln -s /proc/self/fd "$root/dev/fd"
		shift
		exec "$@"' inside "$root" "$@"
}

# as USER PREFIX...: both commands in USER's clone.
as()
{
	local user=$1 command log
	shift
	for command in demo test; do
		log=$scratch/$user-$command.log
		if inside "$@" chroot --userspec="$user:$user" "$root" env -i HOME="/home/$user" CI=1 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			make -C "/home/$user/kymo" "$command" < /dev/null > "$log" 2>&1; then
			echo "make $command as $user: ok"
		else
			echo "make $command as $user: FAILED"
			tail -n 200 "$log"
			failed=1
		fi
		grep -A100 '^Skipped, and why' "$log" || true
	done
}

[ "$(id -u)" = 0 ] || skip "needs root, to make a root folder"
command -v mmdebstrap > /dev/null || skip "mmdebstrap is not installed: apt-get install mmdebstrap"
trap 'rm -rf --one-file-system "$scratch"' EXIT
chmod 755 "$scratch"
mmdebstrap --quiet --variant=apt --include=make,git,ca-certificates bookworm "$root" > "$scratch/made" 2>&1 ||
	skip "mmdebstrap failed: $(tail -n 1 "$scratch/made")"
cp /etc/resolv.conf "$root/etc/resolv.conf"
for user in root ordinary contained; do
	[ "$user" != ordinary ] || chroot "$root" useradd --home-dir /home/ordinary ordinary
	[ "$user" != contained ] || chroot "$root" useradd --home-dir /home/contained --uid 0 --gid 0 --non-unique contained
	git clone -q --no-hardlinks "$source" "$root/home/$user/kymo"
	chroot "$root" chown -R "$user" "/home/$user"
done
as root
as ordinary
as contained "$here/deny.py"
exit $failed
