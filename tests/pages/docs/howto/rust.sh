# SPDX-License-Identifier: Apache-2.0
command -v cargo >/dev/null || return 0
home=$(getent passwd "$(id -u)" | cut -d: -f6)
export RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup} CARGO_HOME=$PWD/.cargo
mkdir src && sed -n '/^```rust/,/^```/p' "$SOURCE_DIR/docs/howto/rust.md" | grep -v '^```' >src/lib.rs || return
printf 'fn main() {\n    println!("{}", shop::total(&["a,b"]));\n}\n' >src/main.rs
printf '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n[[bin]]\nname = "shop"\ntest = false\n' >Cargo.toml
printf '*\n!src\n!src/*\n!Cargo.*\n' >.gitignore
export CARGO_NET_OFFLINE=true GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
cargo generate-lockfile -q && git init -q . && git add -A && git commit -qm first && cargo test -q --no-run
