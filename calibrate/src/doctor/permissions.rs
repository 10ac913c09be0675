//! Whether this user may use the files through which a GPU's driver is reached: the first thing to
//! look at where a library is there and no device.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

use fusion_cost_model::Backend;

use super::{Finding, Status};

/// The files of a backend's driver, and who may use them.
struct Files {
    paths: &'static [&'static str],
    /// What to do where they are not there.
    absent: &'static str,
    /// What to do where this user may not open them.
    denied: &'static str,
}

const NVIDIA: Files = Files {
    paths: &["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"],
    absent: "the kernel's nvidia driver is not loaded, or this container was not given the GPU \
             (docker run --gpus all)",
    denied: "ask for read and write access",
};

const AMD: Files = Files {
    paths: &["/dev/kfd", "/dev/dri/renderD128"],
    absent: "the kernel's amdgpu driver is not loaded, or this container was not given the GPU \
             (docker run --device /dev/kfd --device /dev/dri)",
    denied: "add this user to the groups render and video, and log in again",
};

/// What keeps this user from the driver of a backend, as far as its files say.
pub(super) fn of(backend: Backend) -> Option<Finding> {
    let files = match backend {
        Backend::Cuda => NVIDIA,
        Backend::Hip => AMD,
        Backend::Cpu => return None,
    };
    if !cfg!(target_os = "linux") {
        return None;
    }
    Some(Finding::new("files of the driver", Status::Noted, files.lines()))
}

impl Files {
    /// A line for all files of which the same is to be said.
    fn lines(&self) -> Vec<String> {
        let mut alike: Vec<(Vec<&str>, String)> = Vec::new();
        for path in self.paths {
            let what = self.say(Path::new(path));
            match alike.iter_mut().find(|(_, known)| *known == what) {
                Some((paths, _)) => paths.push(path),
                None => alike.push((vec![path], what)),
            }
        }
        alike.into_iter().map(|(paths, what)| format!("{}: {what}", paths.join(", "))).collect()
    }

    fn say(&self, path: &Path) -> String {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        match opened.map_err(|error| error.kind()) {
            Ok(_) => "open to this user".to_owned(),
            Err(ErrorKind::NotFound) => format!("not there; {}", self.absent),
            Err(ErrorKind::PermissionDenied) => format!("closed to this user; {}", self.denied),
            Err(kind) => format!("cannot be opened: {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_keeps_a_user_from_a_driver_is_said_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kfd");
        assert!(AMD.say(&path).contains("not there; the kernel's amdgpu driver"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(AMD.say(&path), "open to this user");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        // Nothing is denied to root.
        if OpenOptions::new().write(true).open(&path).is_err() {
            assert!(AMD.say(&path).contains("add this user to the groups render and video"));
        }
        assert_eq!(of(Backend::Cpu), None);
    }

    #[test]
    fn the_same_is_said_once() {
        let files = Files { paths: &["/no/1", "/", "/no/2"], absent: "load it", denied: "ask" };
        let lines = files.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "/no/1, /no/2: not there; load it");
        assert!(lines[1].starts_with("/: cannot be opened: "), "{lines:?}");
    }
}
