#!/usr/bin/env bash
# Builds the documentation into target/book, with the mdBook named here: the one on the PATH where it
# is that version, else one that is built once into target/tools.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.5.4
tools=${CARGO_TARGET_DIR:-target}/tools

is_mdbook() { [ "$("$1" --version 2>/dev/null)" = "mdbook v$version" ]; }

mdbook=mdbook
if ! is_mdbook mdbook; then
    mdbook=$tools/bin/mdbook
    if ! is_mdbook "$mdbook"; then
        echo "Building mdBook $version ..."
        # As it comes from the compiler: it runs for a second and is built for minutes otherwise.
        CARGO_TARGET_DIR=$tools/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=0 \
            cargo install mdbook --version "$version" --locked --no-default-features \
            --debug --quiet --root "$tools"
        rm -rf "$tools/build"
    fi
fi

"$mdbook" build docs
