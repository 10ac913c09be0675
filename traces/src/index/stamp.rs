//! Tells one state of a trace from another.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

/// The blocks that are hashed of a file that is larger than all of them.
const BLOCKS: u64 = 64;

/// The size of such a block, in bytes.
const BLOCK: u64 = 16 << 10;

/// The state of a file that an index is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Stamp {
    /// Its size.
    pub(super) bytes: u64,
    /// When it was changed, in nanoseconds since 1970; 0 where the system does not say.
    modified_ns: i64,
    /// XXH3 of its content, or of 64 blocks of 16 KiB of a file above 1 MiB: the first at its
    /// start, the last at its end, the others at even distances.
    sample: u64,
}

impl Stamp {
    /// The state of a file as it is now.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not a file.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let information = fs::metadata(path)?;
        if !information.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let bytes = information.len();
        let modified_ns = information.modified().map_or(0, |time| {
            let after =
                |length: std::time::Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
            match time.duration_since(UNIX_EPOCH) {
                Ok(length) => after(length),
                Err(before) => -after(before.duration()),
            }
        });
        Ok(Self { bytes, modified_ns, sample: sample(&mut File::open(path)?, bytes)? })
    }
}

fn sample(file: &mut File, bytes: u64) -> io::Result<u64> {
    let mut content = Vec::new();
    if bytes <= BLOCKS * BLOCK {
        file.take(bytes).read_to_end(&mut content)?;
    } else {
        let last = u128::from(bytes - BLOCK);
        for block in 0..BLOCKS {
            // Not above the file's size.
            let start = (last * u128::from(block) / u128::from(BLOCKS - 1)) as u64;
            file.seek(SeekFrom::Start(start))?;
            file.take(BLOCK).read_to_end(&mut content)?;
        }
    }
    Ok(XxHash3_64::oneshot(&content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_its_parts_tells() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        for size in [0, 1, 100, (BLOCKS * BLOCK) as usize, (BLOCKS * BLOCK) as usize + 1, 3 << 20] {
            let mut text = vec![b'x'; size];
            fs::write(&path, &text).unwrap();
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let set_time = |time| {
                File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            };
            let stamp = Stamp::of(&path).unwrap();
            assert_eq!(stamp.bytes, size as u64);
            assert_eq!(Stamp::of(&path).unwrap(), stamp);
            for place in [0, size / 2, size.saturating_sub(1)] {
                let Some(byte) = text.get_mut(place) else { continue };
                *byte = b'y';
                fs::write(&path, &text).unwrap();
                set_time(time);
                let other = Stamp::of(&path).unwrap();
                assert_eq!((other.bytes, other.modified_ns), (stamp.bytes, stamp.modified_ns));
                // A place in the middle of a large file is between two blocks.
                assert_eq!(
                    other.sample != stamp.sample,
                    place != size / 2 || size < 3 << 20,
                    "{place} of {size}"
                );
                text[place] = b'x';
            }
            fs::write(&path, &text).unwrap();
            set_time(time + std::time::Duration::from_nanos(1000));
            let other = Stamp::of(&path).unwrap();
            assert_eq!((other.bytes, other.sample), (stamp.bytes, stamp.sample));
            assert_ne!(other.modified_ns, stamp.modified_ns);
        }
        assert!(Stamp::of(folder.path()).is_err());
        assert!(Stamp::of(&folder.path().join("none")).is_err());
    }
}
