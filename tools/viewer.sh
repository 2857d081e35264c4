#!/bin/sh
# SPDX-License-Identifier: MIT
# viewer.sh packages       install the page's npm packages into viewer/node_modules if missing
# viewer.sh build          build the page, viewer/dist/index.html: one file, which the tool contains
# viewer.sh screenshots BUILD   take the README's screenshots
#
# Building kymo needs none of this: the built page is in the repository.
set -eu
cd "$(dirname "$0")/../viewer"

# The devDependencies of viewer/package.json; the page contains none of them.
packages='vite typescript playwright-core'

have_packages()
{
	for package in $packages; do
		[ -e "node_modules/$package/package.json" ] || return 1
	done
}

install_packages()
{
	if ! command -v npm > /dev/null; then
		echo "viewer: npm is missing: install it (apt-get install npm) and try again" >&2
		return 1
	fi
	echo "viewer: installing npm's packages: $packages"
	# Give up on an unreachable registry within a minute or two.
	if ! npm ci --silent --no-audit --no-fund --ignore-scripts \
		--fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=60000; then
		echo "viewer: npm ci failed: without its registry the page cannot be built or tried in a browser" >&2
		return 1
	fi
}

case ${1:-} in
packages)
	have_packages || install_packages
	;;
build)
	have_packages || install_packages
	npm run --silent check
	npm run --silent build
	;;
screenshots)
	have_packages || install_packages
	cd ..
	node tools/screenshots.mjs "${2:-build}/src/kymo" "${2:-build}/examples/demo" docs/images
	;;
*)
	sed -n '3,5s/^# //p' "$0" >&2
	exit 2
	;;
esac
