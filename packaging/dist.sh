#!/usr/bin/env bash
# Makes target/dist/highwater-VERSION-x86_64-linux.tar.gz with its checksum beside it. NO_BUILD=1 packs
# the release binary that is there.
#
# The binary is linked with everything but glibc and the compiler's own libgcc_s, which every
# distribution with glibc has. A static glibc could not resolve names by the system's rules, and musl's
# allocator makes many threads wait for each other.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
name=highwater-$version-x86_64-linux
target=${CARGO_TARGET_DIR:-target}
dist=target/dist
binary=$target/release/highwater
allowed='linux-vdso|ld-linux-x86-64|libc\.so|libm\.so|libgcc_s\.so'

if [ -z "${NO_BUILD:-}" ]; then
    # zlib from source into the binary: libz-sys reads this.
    HIGHWATER_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown) LIBZ_SYS_STATIC=1 \
        cargo build --release --locked -p highwater
fi

strangers=$(ldd "$binary" | grep -vE "$allowed" || true)
if [ -n "$strangers" ]; then
    echo "the binary asks for more than glibc: $strangers" >&2
    exit 1
fi
glibc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$binary" | sort -Vu | tail -1)

rm -rf "$dist/$name"
mkdir -p "$dist/$name"
install -D -m 755 "$binary" "$dist/$name/bin/highwater"
install -D -m 644 packaging/highwater.service "$dist/$name/lib/systemd/system/highwater.service"
install -D -m 644 packaging/highwater.toml "$dist/$name/etc/highwater.toml"
install -D -m 644 packaging/grafana/highwater.json "$dist/$name/share/highwater/grafana/highwater.json"
install -m 644 LICENSE README.md CHANGELOG.md "$dist/$name/"

completions() { # shell, file
    mkdir -p "$(dirname "$dist/$name/$2")"
    "$binary" completions "$1" >"$dist/$name/$2"
}
completions bash share/bash-completion/completions/highwater
completions zsh share/zsh/site-functions/_highwater
completions fish share/fish/vendor_completions.d/highwater.fish

# The same sources give the same archive: names in order, one time, no user.
when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner -C "$dist" -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
(cd "$dist" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
rm -rf "${dist:?}/$name"
echo "$dist/$name.tar.gz, for Linux on x86-64 with glibc ${glibc#GLIBC_} or later"
