// SPDX-License-Identifier: Apache-2.0
//! Links libcairn_embed.a: from CAIRN_LIB_DIR, from lib/ of the packaged crate, or from build/ of the checkout that this
//! crate lies in. On systems that it is not for, the crate is built without it, and says so; so is it if CAIRN_LIB_DIR
//! is empty.
use std::{env, path::PathBuf};

fn is_for_this_system() -> bool {
    let is =
        |name: &str, value: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).map_or(false, |found| found == value);
    is("OS", "linux") && is("ARCH", "x86_64") && is("ENV", "gnu") && is("POINTER_WIDTH", "64")
}

fn main() {
    println!("cargo:rustc-check-cfg=cfg(cairn_embed)");
    println!("cargo:rerun-if-env-changed=CAIRN_LIB_DIR");
    if !is_for_this_system() {
        println!(
            "cargo:warning=cairn records x86-64 Linux with glibc: for {} nothing is recorded",
            env::var("TARGET").unwrap()
        );
        return;
    }
    if env::var_os("CAIRN_LIB_DIR").map_or(false, |place| place.is_empty()) {
        return;
    }
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let places: Vec<PathBuf> = match env::var("CAIRN_LIB_DIR") {
        Ok(place) => vec![PathBuf::from(place)],
        Err(_) => vec![here.join("lib"), here.join("../../build")],
    };
    let place = match places.iter().find(|place| place.join("libcairn_embed.a").is_file()) {
        Some(place) => place,
        None => panic!("libcairn_embed.a is missing: run make in cairn's checkout, or set CAIRN_LIB_DIR"),
    };
    println!("cargo:rerun-if-changed={}", place.join("libcairn_embed.a").display());
    println!("cargo:rustc-link-search=native={}", place.display());
    println!("cargo:rustc-link-lib=static=cairn_embed");
    println!("cargo:rustc-cfg=cairn_embed");
}
