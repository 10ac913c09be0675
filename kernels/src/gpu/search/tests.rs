//! The order of places, and the message if nothing is there.

use std::fs;

use super::*;
use crate::gpu::tests::stubs::Stubs;

fn folders(root: &Path, names: &[&str]) {
    for name in names {
        fs::create_dir_all(root.join(name)).unwrap();
    }
}

/// Places below the root, without it.
fn places(search: &Search, root: &Path) -> Vec<String> {
    let shown = |place: &Place| match place {
        Place::Folder(folder) => {
            folder.strip_prefix(root).unwrap_or(folder).to_str().unwrap().to_owned()
        }
        Place::Loader => "(loader)".to_owned(),
    };
    search.places.iter().map(shown).collect()
}

#[test]
fn cudas_places_in_their_order() {
    let stubs = Stubs::new();
    let root = stubs.path();
    folders(
        root,
        &[
            "cuda/lib64",
            "usr/local/cuda/lib64",
            "usr/local/cuda/targets/x86_64-linux/lib",
            "usr/local/cuda-12.4/lib64",
            "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
            "tools/bin",
            "tools/lib/python3.12/site-packages/nvidia/cu13/lib",
            "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib",
            "usr/lib/python3/dist-packages/nvidia/cublas/lib",
            "usr/lib/python2.7/site-packages/nvidia/old/lib",
        ],
    );
    fs::write(root.join("tools/bin/python3"), "").unwrap();
    let variable = |name: &str| match name {
        "CUDA_HOME" => Some(root.join("cuda").into()),
        "CUDA_PATH" => Some(OsString::new()),
        "VIRTUAL_ENV" => Some(root.join("venv").into()),
        "HOME" => Some(root.join("home").into()),
        "PATH" => {
            Some(std::env::join_paths([root.join("nowhere"), root.join("tools/bin")]).unwrap())
        }
        _ => None,
    };
    let given = [root.join("given"), root.join("cuda/lib64")];
    let search = Search::cuda(&given, &Surroundings { variable: &variable, root });
    assert_eq!(
        places(&search, root),
        [
            "given",
            "cuda/lib64",
            "usr/local/cuda/lib64",
            "usr/local/cuda/targets/x86_64-linux/lib",
            "usr/local/cuda-12.4/lib64",
            "(loader)",
            "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
            "tools/lib/python3.12/site-packages/nvidia/cu13/lib",
            "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib",
            "usr/lib/python3/dist-packages/nvidia/cublas/lib",
        ]
    );
}

/// Who starts a program in a folder that others write to does not mean to load their libraries.
#[cfg(unix)]
#[test]
fn folders_that_are_relative_to_the_current_one_are_no_places() {
    let stubs = Stubs::new();
    let root = stubs.path();
    folders(root, &["rocm/lib", "cuda/lib64", "bin", "lib/python3.9/site-packages/nvidia/x/lib"]);
    fs::write(root.join("bin/python3"), "").unwrap();
    let above = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let up: PathBuf = above;
    let relative = |name: &str| up.join(root.strip_prefix("/").unwrap()).join(name);
    assert!(relative("rocm/lib").is_dir());
    let variable = |name: &str| match name {
        "ROCM_PATH" => Some(relative("rocm").into()),
        "CUDA_HOME" => Some(relative("cuda").into()),
        "VIRTUAL_ENV" => Some(relative("").into()),
        "PATH" => Some(std::env::join_paths([relative("bin")]).unwrap()),
        _ => None,
    };
    let surroundings = Surroundings { variable: &variable, root };
    for search in [Search::rocm(&[], &surroundings), Search::cuda(&[], &surroundings)] {
        assert_eq!(places(&search, root), ["(loader)"]);
    }
}

#[test]
fn rocms_places_in_their_order() {
    let stubs = Stubs::new();
    let root = stubs.path();
    folders(root, &["mine/lib", "opt/rocm/lib", "opt/rocm-6.1.0/lib", "opt/rocm-6.2.0/lib"]);
    let variable = |name: &str| (name == "ROCM_PATH").then(|| root.join("mine").into());
    let search = Search::rocm(&[], &Surroundings { variable: &variable, root });
    let expected =
        ["mine/lib", "opt/rocm/lib", "opt/rocm-6.2.0/lib", "opt/rocm-6.1.0/lib", "(loader)"];
    assert_eq!(places(&search, root), expected);
    let nothing = Search::rocm(&[], &Surroundings { variable: &|_| None, root: Path::new("/no") });
    assert_eq!(nothing.places, [Place::Loader]);
}

const WANTED: Wanted<'static> = Wanted {
    what: "a library of nobody's",
    names: &["libnobody-needs-this.so.2", "libnobody-needs-this.so.1"],
    advice: "write it",
};

#[test]
fn what_is_not_there_is_said_with_all_names_and_places() {
    let given = [PathBuf::from("/given")];
    let search =
        Search::cuda(&given, &Surroundings { variable: &|_| None, root: Path::new("/no") });
    let missing = search.open(&WANTED, |_| Ok(())).unwrap_err();
    assert_eq!(missing.unusable, []);
    assert_eq!(
        missing.to_string(),
        "a library of nobody's (libnobody-needs-this.so.2, libnobody-needs-this.so.1) was not \
         found in /given, the folders of the system's loader; write it"
    );
}

#[test]
#[cfg(unix)]
fn what_cannot_be_used_is_passed_over_and_named_if_nothing_else_is_there() {
    let (first, second) = (Stubs::new(), Stubs::new());
    let text = first.write("libnobody-needs-this.so.2", b"text");
    let search = Search::only(&[first.path().into(), second.path().into()]);
    let missing = search.open(&WANTED, |_| Ok(())).unwrap_err();
    let said = missing.to_string();
    assert!(said.starts_with("a library of nobody's cannot be used: "), "{said}");
    assert!(said.contains(text.to_str().unwrap()), "{said}");
    assert!(said.ends_with("; write it"), "{said}");

    let Some(good) = second.build("libnobody-needs-this.so.1", "int f() { return 1; }") else {
        return;
    };
    let found = search.open(&WANTED, |_| Ok(7)).unwrap();
    assert_eq!((found.table, found.library.opened_as), (7, good));
    // One that does not fit is no better than one that does not load.
    let missing =
        search.open(&WANTED, |_| Err::<(), _>(Unusable::Unfit("too old".into()))).unwrap_err();
    assert_eq!(missing.unusable.len(), 2);
    assert!(missing.to_string().contains("too old"));
}
