//! `kubezap-http-executor`.
fn main() {}
