//! The shared library carries the name under which programs look for SQLite.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsqlite3.so.0");
        // Its threads go on when a program closes the library.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
