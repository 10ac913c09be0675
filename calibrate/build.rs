//! Rebuilds the program when a data file is added: `include_dir` notices only changed ones.

fn main() {
    println!("cargo:rerun-if-changed=../profiles");
}
