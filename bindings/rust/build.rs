// SPDX-License-Identifier: Apache-2.0
//! Links libcairn_embed.a: from CAIRN_LIB_DIR, else from build/ of the checkout that this crate lies in.
use std::{env, path::PathBuf};

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let place = env::var("CAIRN_LIB_DIR").map(PathBuf::from).unwrap_or_else(|_| here.join("../../build"));
    let library = place.join("libcairn_embed.a");
    if !library.is_file() {
        panic!("{} is missing: run make in cairn's checkout, or set CAIRN_LIB_DIR", library.display());
    }
    println!("cargo:rerun-if-env-changed=CAIRN_LIB_DIR");
    println!("cargo:rerun-if-changed={}", library.display());
    println!("cargo:rustc-link-search=native={}", place.display());
    println!("cargo:rustc-link-lib=static=cairn_embed");
}
