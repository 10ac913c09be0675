//! Libraries that are there and cannot be used.

#![cfg(unix)]

use std::ffi::c_int;
use std::fs;

use super::*;
use crate::gpu::tests::stubs::Stubs;

function_table! {
    struct Sums {
        required {
            fn sum(a: c_int, b: c_int) -> c_int;
            fn difference(a: c_int, b: c_int) -> c_int;
        }
        optional {
            fn product(a: c_int, b: c_int) -> c_int;
        }
    }
}

const ALL: &str = "int sum(int a, int b) { return a + b; }\n\
                   int difference(int a, int b) { return a - b; }\n\
                   int product(int a, int b) { return a * b; }\n";

fn table(path: &Path) -> Result<Sums, Unusable> {
    Sums::resolve(&OpenLibrary::open(path.as_os_str())?)
}

#[test]
fn functions_are_those_of_the_library() {
    let stubs = Stubs::new();
    let Some(path) = stubs.build("libsums.so", ALL) else { return };
    let sums = table(&path).unwrap();
    // SAFETY: the types are those of the source.
    unsafe {
        assert_eq!((sums.sum)(5, 3), 8);
        assert_eq!((sums.difference)(5, 3), 2);
        assert_eq!((sums.product.unwrap())(5, 3), 15);
    }
    let library = OpenLibrary::open(path.as_os_str()).unwrap();
    assert_eq!(library.file("sum"), path);
    assert_eq!(Sums::REQUIRED, ["sum", "difference"]);
}

#[test]
fn a_missing_function_is_named_unless_it_is_optional() {
    let stubs = Stubs::new();
    let without = |name: &str| {
        let lines = ALL.lines().filter(|line| !line.contains(name));
        stubs.build(&format!("lib_no_{name}.so"), &lines.collect::<Vec<_>>().join("\n"))
    };
    let Some(path) = without("product") else { return };
    assert!(table(&path).unwrap().product.is_none());
    let path = without("difference").unwrap();
    assert_eq!(table(&path).unwrap_err(), Unusable::Symbol("difference"));
}

#[test]
fn what_is_no_library_is_an_error() {
    let stubs = Stubs::new();
    let text = stubs.write("libtext.so", b"/* GNU ld script */ INPUT(libx.so)\n");
    let empty = stubs.write("libempty.so", b"");
    let folder = stubs.path().join("libfolder.so");
    fs::create_dir(&folder).unwrap();
    for path in [text, empty, folder, stubs.path().join("libnothing.so")] {
        match table(&path).unwrap_err() {
            Unusable::Load(why) => {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(why.contains(name), "{why}");
            }
            other => panic!("{other}"),
        }
    }
}

/// The machine is at byte 18 of an ELF file: 183 is 64-bit Arm, 243 is RISC-V.
#[test]
#[cfg(all(target_os = "linux", target_endian = "little"))]
fn a_library_for_another_machine_is_an_error() {
    let stubs = Stubs::new();
    let Some(path) = stubs.build("libsums.so", ALL) else { return };
    let mut bytes = fs::read(path).unwrap();
    let other = if bytes[18] == 243 { 183 } else { 243 };
    bytes[18] = other;
    bytes[19] = 0;
    let path = stubs.write("libother.so", &bytes);
    assert!(matches!(table(&path), Err(Unusable::Load(_))));
}

/// A download that broke off. Mapping the part that is missing would end the process when it is
/// accessed.
#[test]
fn a_library_that_is_cut_is_an_error() {
    let stubs = Stubs::new();
    let Some(path) = stubs.build("libsums.so", ALL) else { return };
    let bytes = fs::read(path).unwrap();
    for length in [4, 63, 64, 100, 500, bytes.len() / 4, bytes.len() / 2] {
        let path = stubs.write(&format!("libcut{length}.so"), &bytes[..length]);
        assert!(matches!(table(&path), Err(Unusable::Load(_))), "{length}");
    }
    // The very end is not mapped, and is not needed.
    for length in (bytes.len() / 2..bytes.len()).step_by(97) {
        let path = stubs.write(&format!("libcut{length}.so"), &bytes[..length]);
        if let Ok(sums) = table(&path) {
            // SAFETY: the types are those of the source.
            assert_eq!(unsafe { (sums.sum)(5, 3) }, 8);
        }
    }
}

/// Without binding at once, such a library would load, and end the process at the first call.
#[test]
fn a_library_whose_own_dependency_lacks_a_function_is_an_error() {
    let stubs = Stubs::new();
    let source = "int elsewhere(int); int sum(int a, int b) { return elsewhere(a + b); }\n\
                  int difference(int a, int b) { return a - b; }\n";
    let Some(path) = stubs.build("libsums.so", source) else { return };
    match table(&path).unwrap_err() {
        Unusable::Load(why) => assert!(why.contains("elsewhere"), "{why}"),
        other => panic!("{other}"),
    }
}

#[test]
fn texts_end_at_their_zero() {
    assert_eq!(text_of(b"gfx942\0\0xx"), "gfx942");
    assert_eq!(text_of(b" 12 "), "12");
    assert_eq!(text_of(b""), "");
}

#[test]
fn a_very_long_text_is_cut() {
    // SAFETY: the text ends with a zero, and lives as long as the test.
    let read = |text: &std::ffi::CStr| unsafe { constant_text(text.as_ptr()) }.unwrap();
    assert_eq!(read(c"out of memory"), "out of memory");
    let long = std::ffi::CString::new("x".repeat(1 << 20)).unwrap();
    assert_eq!(read(&long), "x".repeat(MOST_TEXT) + "...");
    // SAFETY: null is allowed.
    assert_eq!(unsafe { constant_text(std::ptr::null()) }, None);
}
